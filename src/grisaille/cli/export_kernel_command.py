"""``grisaille export-kernel``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import assignments, model_of, numbers, signal_of, times_of
from grisaille.cli.reading import given_of, reading_options
from grisaille.errors import DataError


@click.command("export-kernel")
@click.argument("target", metavar="FILE.py:Class")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--times", required=True, metavar="FIRST:LAST:STEP", help="For example 0:10:0.1.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE",
              help="A number, or a CSV file whose first column is time: u=1.5, u=data.csv:column.")  # fmt: skip
@click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="For example r.R=2e3.")
@click.option("--values", metavar="NAME=FIRST:LAST:STEP", help="A parameter that takes many values: k=3.85:10.25:0.08.")
@click.option("--hold", type=click.Choice(["zoh", "foh", "spline"]), help="Inputs from files, between samples.")
@click.option("--realizations", type=click.IntRange(min=1), default=500, show_default=True, help="At each value.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the paths.")
@click.option("--reduce", "reduced", type=click.Choice(["moments", "none"]), default="moments", show_default=True,
              help="Mean and variance over the realizations, or every path.")  # fmt: skip
@click.option("--sensitivity", "sensitivities", multiple=True, metavar="NAME", help="To differentiate by.")
@click.option("--observe", "observed", multiple=True, metavar="NAME", help="What is kept; everything unless given.")
@click.option("--step", type=float, help="Longest cell of the grid of the disturbances.")
@click.option("--rtol", type=float, default=1e-6, show_default=True, help="Of the steps in a cell.")
@reading_options("Data: ", "found out, or refused, unless given")
@with_output_options
def command(output: CommandOutput, target: str, folder: Path, times: str, values: str | None, **given: Any) -> int:
    """Write an ensemble as a folder that runs where there is a graphics processor and CuPy, and nothing else."""
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.export import export_ensembles
    from grisaille.simulation.posing import pose

    output.runs(target)
    model, instants = model_of(target), times_of(times)
    inputs = {n: signal_of(n, text, given_of(given)) for n, text in assignments("--input", given["inputs"])}
    fixed = numbers("--parameter", given["parameters"])
    name, many = _values(values)
    if name in fixed:
        raise DataError(f"--values {name}: --parameter gives it one value as well; leave one of them out.")
    points = [
        pose(model, instants, inputs, {**fixed, **one}, None, hold=given["hold"], breaks=(),
             sensitivities=given["sensitivities"])
        for one in ([{name: v} for v in many] or [{}])
    ]  # fmt: skip
    options = EnsembleOptions(
        given["realizations"], seed=given["seed"], step=given["step"], rtol=given["rtol"],
        reduce=["mean", "variance"] if given["reduced"] == "moments" else None, observed=given["observed"] or None,
    )  # fmt: skip
    written = export_ensembles(points, options, folder, {name: many} if name else {})
    output.say(str(written))
    output.answer({"folder": str(folder), "values": written.values, "realizations": written.realizations,
                   "steps": written.steps, "instructions": written.instructions})  # fmt: skip
    return 0


def _values(text: str | None) -> tuple[str, list[float]]:
    """The name and the values; nothing where none are given."""
    if text is None:
        return "", []
    ((name, span),) = assignments("--values", (text,))
    return name, times_of(span, "--values").tolist()
