"""Tables to experiments, frames to tables, and experiments back to frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import with_marks
from grisaille.experiment.header_units import refuse_other_time_unit, units_in_headers
from grisaille.experiment.record_table import RecordTable
from grisaille.experiment.rows import RowNames
from grisaille.experiment.sampled_signals import SampledSignal, evaluate
from grisaille.experiment.signal_checks import check_text
from grisaille.experiment.times.clock import UNITS, UNSTATED_UNIT, is_calendar

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment
    from grisaille.experiment.experiment_content import ExperimentContent

INDEX = "the index"


def table_of_frame(frame: pd.DataFrame, time: str | None) -> tuple[RecordTable, str | None]:
    """Return the columns of a frame, and the name of its column of times (None: rows are independent samples)."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"from_frame needs a pandas DataFrame, got {type(frame).__name__}.")
    if frame.empty:
        raise DataError(f"The frame is empty ({len(frame)} rows, {frame.shape[1]} columns).")
    if isinstance(frame.index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise DataError("The frame has several levels of rows or columns; flatten it with reset_index() first.")
    columns: dict[Any, Any] = {name: frame.iloc[:, k].array for k, name in enumerate(frame.columns)}
    repeated = frozenset(frame.columns[frame.columns.duplicated()])
    if time is None and _index_is_time(frame.index):
        time = INDEX
    if time is not None and time not in columns and time in (INDEX, frame.index.name):
        columns[time] = frame.index
    labels = None if isinstance(frame.index, pd.RangeIndex) else list(frame.index)
    rows = RowNames(labels=labels)
    return RecordTable(columns, rows, "The frame", units=units_in_headers(columns), repeated=repeated), time


def _index_is_time(index: pd.Index) -> bool:
    return index.name is not None or index.dtype.kind in "fmM" or isinstance(index, pd.DatetimeIndex)


class WantedColumns(NamedTuple):
    """Which columns of a table are what in an experiment, as ``Experiment.from_csv`` takes them.

    zone, dayfirst : how dates in the column of times are read
    """

    time: str | None
    inputs: Any = ()
    outputs: Any = ()
    constants: Any = MappingProxyType({})
    zone: str | None = None
    dayfirst: bool | None = None


def make_experiments(
    cls: type[Experiment], table: RecordTable, wanted: WantedColumns, options: Mapping[str, Any], *,
    name: str | None = None, unit: str | None = None, by: str | None = None,
) -> Any:  # fmt: skip
    """Return one experiment, or with ``by`` a list of them; ``options`` are further arguments of ``Experiment``."""
    time, dayfirst = wanted.time, wanted.dayfirst
    if dayfirst is not None and not isinstance(dayfirst, bool):
        raise DataError(f"dayfirst is {dayfirst!r}; give True, False, or None, which leaves it to the dates.")
    if dayfirst is not None and time is None:
        raise DataError(f"dayfirst={dayfirst!r} is given without time=, the column of dates.")
    order = None if time is None else table.day_comes_first(time, dayfirst)
    if by is None:
        return _make(cls, table, wanted._replace(dayfirst=order), options, name, unit)
    if name is not None:
        raise DataError(f"name={name!r} is given together with by={by!r}: runs are named by that column.")
    return [
        _make(cls, run, wanted._replace(dayfirst=order), options, label, unit) for label, run in table.runs(by).items()
    ]


def _make(
    cls: type[Experiment], table: RecordTable, wanted: WantedColumns, options: Mapping[str, Any], name: str | None,
    unit: str | None,
) -> Experiment:  # fmt: skip
    time, zone, dayfirst = wanted.time, wanted.zone, wanted.dayfirst
    if zone is not None and time is None:
        raise DataError(f"zone={zone!r} is given without time=, the column of dates.")
    signals = {"inputs": _wanted(wanted.inputs, "inputs"), "outputs": _wanted(wanted.outputs, "outputs")}
    columns = {n: c for named in signals.values() for n, c in named.items() if isinstance(c, str)}
    units = {n: table.units[c] for n, c in columns.items() if c in table.units}
    arguments = dict(options)
    arguments["units"] = {**units, **arguments.get("units", {})}
    arguments["constants"] = _constants(table, _wanted(wanted.constants, "constants"), "constants=")
    if isinstance(arguments.get("start"), Mapping):
        arguments["start"] = _constants(table, arguments["start"], "start=")
    arguments["weights"] = _weights(table, arguments.get("weights"))
    times = None if time is None else table.times(time, zone, dayfirst, bool(unit or table.units.get(time)))
    if time is not None and not is_calendar(times):
        refuse_other_time_unit(time, unit, table.units)
    return cls._remade(
        None,
        table.rows,
        time=times,
        inputs=_signals(signals["inputs"], "input", table.numbers),
        outputs=_signals(signals["outputs"], "output", table.measurements),
        name=name,
        unit=unit or _time_unit(table.units.get(time, "") if time is not None else "", times),
        **arguments,
    )


def _time_unit(named: str, times: Any) -> str:
    """As the file has it below the header of its times; seconds where it does not, or names a calendar."""
    return UNSTATED_UNIT if not named or (named not in UNITS and is_calendar(times)) else named


def _wanted(columns: Any, what: str) -> dict[str, Any]:
    """Return names in the model to names of columns."""
    if isinstance(columns, Mapping):
        return dict(columns)
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(f"{what}={columns!r}: give a list of columns, [{columns!r}], or a dict of names to columns.")
    for column in columns:
        check_text(column, f"{what}: a column", "'u' (rename columns that are numbered)")
    return {column: column for column in columns}


def _signals(wanted: Mapping[str, Any], one: str, read: Callable[[Any, str], np.ndarray]) -> dict[str, Any]:
    return {n: read(c, f"{one} '{n}'") if isinstance(c, str) else c for n, c in wanted.items()}


def _constants(table: RecordTable, wanted: Mapping[str, Any], role: str) -> dict[str, Any]:
    return {n: table.constant(c, f"{role} '{n}'") if isinstance(c, str) else c for n, c in wanted.items()}


def _weights(table: RecordTable, weights: Any) -> Any:
    if isinstance(weights, str):
        return table.numbers(weights, "weights=")
    if isinstance(weights, Mapping):
        return {n: table.numbers(w, f"weight of '{n}'") if isinstance(w, str) else w for n, w in weights.items()}
    return weights


def to_frame(record: ExperimentContent) -> pd.DataFrame:
    """Signals side by side at every time some of them has a sample, between t0 and the last output; limits as texts."""
    times = _all_times(record)
    columns: dict[str, Any] = {n: evaluate(s, record.hold[n], times) for n, s in record.inputs.items()}
    for name, samples in record.outputs.items():
        column = np.full(len(times), np.nan)
        rows = np.searchsorted(times, samples.times)
        column[rows] = samples.values
        columns[name] = column
        if name in record.marks:
            columns[name] = column.astype(object)
            columns[name][rows] = with_marks(samples.values, record.marks[name])
    index = pd.RangeIndex(len(times)) if record.is_static else pd.Index(times, name="time")
    return pd.DataFrame(columns, index=index)


def _all_times(record: ExperimentContent) -> np.ndarray:
    axes = [s.times for s in record.inputs.values() if isinstance(s, SampledSignal)]
    outputs = np.concatenate([y.times for y in record.outputs.values()])
    begin = outputs.min() if record.t0 is None else record.t0
    times = np.unique(np.concatenate([[begin], outputs, *axes]))
    return np.asarray(times[(times >= begin) & (times <= outputs.max())])
