"""``grisaille predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grisaille.cli.output import CommandOutput, plain_data, with_output_options
from grisaille.cli.parsing import check_ending, numbers
from grisaille.cli.reading import NAMED, given_of, reading_options
from grisaille.cli.saved import saved_fit
from grisaille.errors import DataError
from grisaille.writing import write_table

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.experiment.experiment import Experiment
    from grisaille.results.fit import Fit
    from grisaille.results.trajectories import Trajectories

FILE = click.Path(path_type=Path)


@click.command("predict")
@click.argument("target", metavar="FIT.nc|FOLDER", type=FILE, default=Path("."))
@click.option("--experiment", metavar="NAME", help="One that was fitted; the first unless given.")
@click.option("--data", type=FILE, metavar="FILE.csv",
              help="A new record instead: columns are those of the signals, or --column says which.")  # fmt: skip
@click.option("--time", default=None, metavar="COLUMN", help="With --data: the column of times, 'time' or 't'.")
@click.option("--column", "columns", multiple=True, metavar="NAME=COLUMN", help="With --data: where a signal is.")
@click.option("--unit", metavar="UNIT", help="With --data: of time; that of the fitted record unless given.")
@click.option("--zone", metavar="NAME", help="With --data: the time zone of dates without one.")
@reading_options("With --data: ", "found out, or refused, unless given")
@click.option("--horizon", metavar="K|DURATION|inf",
              help="From the data up to K samples, or a duration such as '1 h', before; 'inf' or nothing: a "
              "simulation.")  # fmt: skip
@click.option("--bands", type=click.Choice(["noise", "all"]),
              help="'noise': for given estimates; 'all': with their uncertainty. Columns carry the word.")  # fmt: skip
@click.option("--start", "starts", multiple=True, metavar="NAME=VALUE|declared", help="Where a new record begins.")
@click.option("--output", "file", type=FILE, metavar="FILE.csv", help="Write the predictions; printed unless given.")
@with_output_options
def command(
    output: CommandOutput, target: Path, experiment: str | None, data: Path | None, horizon: str | None,
    bands: str | None,
    starts: tuple[str, ...], file: Path | None, **reading: Any,
) -> int:  # fmt: skip
    """Predict a record by a saved fit: variables and outputs with their bands, beside what was measured.

    Executes nothing: the model is in the file of the fit.
    """
    check_ending("--output", file, (".csv",))
    path, fit = saved_fit(target)
    if data is not None and experiment is not None:
        raise DataError("--data and --experiment are two records: give one of them.")
    record: Any = experiment if data is None else _new_record(fit, data, reading)
    if data is None and any(value not in (None, ()) for value in reading.values()):
        raise DataError(f"--time, --column, --unit, --zone, {NAMED} say how to read --data FILE.csv, which is missing.")
    found = fit.predict(record, _horizon(horizon), start=_start(starts), bands=bands)  # type: ignore[arg-type]
    chosen = fit.experiments[0] if record is None else fit.find_experiment(record)
    table = table_of(found, chosen)
    if file is None:
        output.say(table.to_string(max_rows=20))
    else:
        write_table(file, table, "The prediction")
        output.written(file)
    far = _horizon_in_words(fit, horizon)
    output.say(f"Horizon: {far}. Start: {found.attrs['start']}.")
    columns = {} if file is not None else {str(n): plain_data(v.to_numpy()) for n, v in table.reset_index().items()}
    output.answer(
        {
            "fit": str(path), "file": None if file is None else str(file), "horizon": far,
            "start": found.attrs["start"], **columns,
        }
    )  # fmt: skip
    return 0


def table_of(found: Trajectories, experiment: Experiment) -> pd.DataFrame:
    """Return a row per time: ``y``, its band, such as ``y_lower_noise``, and ``y_measured`` where it was.

    Where the record has dates, these come first, as ISO 8601 with the offset of their zone, and times as numbers next.

    Columns of bands end in what these contain, ``_noise`` or ``_all``: a file has no attributes.
    """
    import numpy as np
    import pandas as pd

    from grisaille.experiment.times.dating import DATE

    times = found["time"].to_numpy()
    columns: dict[str, Any] = {}
    kind = f"_{found.attrs['bands']}" if "bands" in found.attrs else ""
    for name in found.data_vars:
        values = found[name]
        if values.dims == ("time",):
            columns[str(name)] = values.to_numpy()
        elif values.dims == ("statistic", "time"):
            for statistic, row in zip(values["statistic"].to_numpy(), values.to_numpy(), strict=True):
                columns[str(name) if statistic == "mean" else f"{name}_{statistic}{kind}"] = row
    for name, samples in experiment.outputs.items():
        measured = np.full(len(times), np.nan)
        at = np.searchsorted(times, samples.times)
        inside = (at < len(times)) & np.isclose(times[np.minimum(at, len(times) - 1)], samples.times, rtol=1e-12)
        measured[at[inside]] = samples.values[inside]
        columns[f"{name}_measured"] = measured
    dates = None if experiment.is_static else experiment.clock.dates(times)
    if dates is None:
        return pd.DataFrame(columns, index=pd.Index(times, name="time"))
    index = pd.Index([date.isoformat() for date in dates], name=DATE)
    return pd.DataFrame({"time": times, **columns}, index=index)


def _horizon(text: str | None) -> Any:
    """A whole number of samples, a duration in words, or infinity."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def _horizon_in_words(fit: Fit, text: str | None) -> str:
    """How far ahead was predicted."""
    from grisaille.estimation.estimator import SIMULATION
    from grisaille.estimation.predictions.horizons import horizon_text

    asked = _horizon(text)
    is_simulated = asked is None or fit.method.ahead is None or asked == float("inf")
    return SIMULATION if is_simulated else horizon_text(asked)


def _start(texts: tuple[str, ...]) -> Any:
    if not texts:
        return "auto"
    return "declared" if texts == ("declared",) else numbers("--start", texts)


def _new_record(fit: Fit, path: Path, reading: dict[str, Any]) -> Experiment:
    """A file as an experiment with the signals of the fitted ones."""
    from grisaille.cli.parsing import assignments
    from grisaille.experiment.decimals import table_with_decimal
    from grisaille.experiment.experiment import Experiment

    old = fit.experiments[0]
    said = dict(assignments("--column", reading["columns"]))
    known = [*old.inputs, *old.outputs]
    for name in said:
        if name not in known:
            raise DataError(f"--column {name}={said[name]}: the fit has no signal {name!r}; it has {', '.join(known)}.")
    given = given_of(reading)
    table = table_with_decimal(path, **{k: v for k, v in given.items() if k != "dayfirst"})
    headers = list(table.columns)
    time = reading["time"] or next((h for h in headers if h in ("time", "t")), None)
    if time is None and not old.is_static:
        raise DataError(f"{path.name} has no column 'time' or 't': name it by --time. It has: {', '.join(headers)}.")
    where = {n: said.get(n, n) for n in known}
    missing = [n for n in old.inputs if where[n] not in headers]
    if missing:
        raise DataError(
            f"{path.name} has no column {where[missing[0]]!r} for the input '{missing[0]}': --column "
            f"{missing[0]}=COLUMN names it. It has: {', '.join(headers)}."
        )
    outputs = {n: where[n] for n in old.outputs if where[n] in headers}
    if not outputs:
        raise DataError(
            f"{path.name} holds none of the outputs {', '.join(old.outputs)}: --column NAME=COLUMN says where one is. "
            f"Without measurements use fit.simulate(times, inputs) in Python."
        )
    options: dict[str, Any] = {
        k: v for k, v in (("unit", reading["unit"] or old.clock.unit), ("zone", reading["zone"])) if v
    }
    made: Experiment = Experiment.from_csv(
        path, time=None if old.is_static else time, inputs={n: where[n] for n in old.inputs}, outputs=outputs,
        hold=dict(old.hold), **{**given, "decimal": table.decimal}, **options,
    )  # fmt: skip
    return made
