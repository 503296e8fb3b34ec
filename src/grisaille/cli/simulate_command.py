"""``grisaille simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grisaille.cli.output import CommandOutput, plain_data, with_output_options
from grisaille.cli.parsing import assignments, check_ending, model_of, numbers, signal_of, times_of
from grisaille.cli.reading import given_of, reading_options
from grisaille.errors import DataError
from grisaille.writing import write_figure, write_table, write_whole

if TYPE_CHECKING:
    import xarray as xr

FILE = click.Path(path_type=Path)


@click.command("simulate")
@click.argument("target", metavar="FILE.py:Class|FILE.bmo|FOLDER")
@click.option("--times", metavar="FIRST:LAST:STEP", help="For example 0:10:0.1.")
@click.option("--experiment", metavar="NAME", help="Times, inputs and start of an experiment in the FOLDER; its first "
              "one unless --times is given.")  # fmt: skip
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE",
              help="A number, or a CSV file whose first column is time: u=1.5, u=data.csv:column.")  # fmt: skip
@click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="For example r.R=2e3.")
@click.option("--start", "starts", multiple=True, metavar="NAME=VALUE", help="A variable at the first instant.")
@click.option("--hold", type=click.Choice(["zoh", "foh", "spline"]), help="Inputs from files, between samples.")
@click.option("--realizations", type=click.IntRange(min=1), help="Paths of the disturbances; none unless given.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the paths and the noise.")
@click.option("--noise", is_flag=True, help="Add measurement noise to the outputs.")
@click.option("--output", "file", type=FILE, metavar="FILE", help="Write the trajectory: .csv or .nc (netCDF).")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the trajectory: .png, .svg or .pdf.")
@reading_options("Data: ", "found out, or as problem.toml says, unless given")
@with_output_options
def command(
    output: CommandOutput, target: str, times: str | None, experiment: str | None, file: Path | None, plot: Path | None,
    **given: Any,
) -> int:  # fmt: skip
    """Simulate a model, or an experiment of a problem folder."""
    check_ending("--output", file, (".csv", ".nc"))
    check_ending("--plot", plot, (".png", ".svg", ".pdf"))
    output.runs(target)
    result = _simulate(target, times, experiment, given, output.progress)
    if file is not None:
        _write(result, file)
        output.written(file)
    if plot is not None:
        from grisaille.reporting import plots

        write_figure(plot, plots.trajectories(result), "The picture")
        output.written(plot)
    if file is None and plot is None:
        output.say(result.to_dataframe().to_string(max_rows=20))
    named = (
        {str(n): plain_data(v.values) for n, v in {**result.coords, **result.data_vars}.items()} if file is None else {}
    )
    output.answer({"status": result.attrs.get("status"), "file": None if file is None else str(file), **named})
    return 0


def _simulate(
    target: str, times: str | None, experiment: str | None, given: dict[str, Any], progress: bool
) -> xr.Dataset:
    import grisaille

    arguments = (
        _of_experiment(target, experiment, given_of(given))
        if times is None
        else {"model": model_of(target), "times": times_of(times)}
    )
    signals = {n: signal_of(n, text, given_of(given)) for n, text in assignments("--input", given["inputs"])}
    arguments["inputs"] = {**arguments.get("inputs", {}), **signals}
    arguments["parameters"] = {**arguments.get("parameters", {}), **numbers("--parameter", given["parameters"])}
    arguments["start"] = {**arguments.get("start", {}), **numbers("--start", given["starts"])}
    if given["hold"] is not None:
        arguments["hold"] = given["hold"]
    return grisaille.simulate(
        **arguments, realizations=given["realizations"], seed=given["seed"], noise=given["noise"], progress=progress
    )


def _of_experiment(target: str, name: str | None, reading: dict[str, Any]) -> dict[str, Any]:
    """What an experiment of a folder says about a simulation."""
    from grisaille.problem.folder import load_problem

    if not Path(target).exists() or Path(target).suffix == ".py" or ":" in target:
        raise DataError("--times is needed: FIRST:LAST:STEP, for example --times 0:10:0.1.")
    problem = load_problem(target, reading)
    names = [e.name for e in problem.experiments]
    if name is not None and name not in names:
        raise DataError(f"--experiment {name}: the folder has {', '.join(map(str, names))}.")
    chosen = problem.experiments[0 if name is None else names.index(name)]
    signals, hold = chosen.input_signals()
    return {
        "model": problem.model, "times": chosen.grid(), "inputs": signals, "hold": hold,
        "parameters": dict(chosen.constants),
        "start": {n: v for n, v in chosen.start.items() if isinstance(v, int | float)},
    }  # fmt: skip


def _write(result: xr.Dataset, path: Path) -> None:
    if path.suffix == ".nc":
        from grisaille.estimation.persistence.netcdf import groups_as_bytes

        write_whole(path, groups_as_bytes([("", result)]), "The simulation")
    else:
        write_table(path, result.to_dataframe(), "The simulation")
