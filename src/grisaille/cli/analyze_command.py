"""``grisaille analyze``."""

from __future__ import annotations

from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import check_ending, model_of


@click.command("analyze")
@click.argument("target", metavar="FILE.py:Class|FILE.bmo|FOLDER")
@click.option("--equations", is_flag=True, help="Print the model as well.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the incidence: .png, .svg or .pdf.")
@with_output_options
def command(output: CommandOutput, target: str, equations: bool, plot: Path | None) -> int:
    """Print the structure of a model: index, states, hidden constraints, consistent start."""
    import grisaille

    check_ending("--plot", plot, (".png", ".svg", ".pdf"))
    output.runs(target)
    model = model_of(target)
    found = grisaille.analyze(model)
    if equations:
        output.say(f"{model}\n")
    output.say(found)
    if plot is not None:
        found.plot(str(plot))
        output.written(plot)
    output.answer({
        "model": found.structure.model.name, "index": found.index, "states": list(found.states),
        "degrees_of_freedom": found.degrees_of_freedom, "hidden_constraints": list(found.hidden_constraints),
        "differentiated": found.differentiated, "start": found.start, "start_note": found.start_note,
    })  # fmt: skip
    return 0
