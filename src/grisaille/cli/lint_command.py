"""``grisaille lint``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.reading import given_of, reading_options


@click.command("lint")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("."))
@click.option("--strict", is_flag=True, help="Remarks count as mistakes.")
@reading_options("Data: ", "as problem.toml says unless given")
@with_output_options
def command(output: CommandOutput, folder: Path, strict: bool, **reading: Any) -> int:
    """Find all mistakes in a problem FOLDER at once. Executes its model.py."""
    from grisaille.problem.linting import lint

    output.runs(folder)
    found = lint(folder, given_of(reading))
    errors, notes = len(found.errors), len(found.notes)
    for finding in found.items:
        output.say(f"{finding}{'' if finding.severity == 'error' else ' (note)'}")
    if not errors:
        output.say(f"{folder}: nothing wrong{f', {notes} to look at' if notes else ''}.")
    else:
        output.say(
            f"{folder}: {errors} {'mistake' if errors == 1 else 'mistakes'}{f', {notes} notes' if notes else ''}."
        )
    output.answer(
        {"folder": str(folder), "errors": errors, "notes": notes, "findings": [asdict(f) for f in found.items]}
    )
    return int(bool(errors) or (strict and bool(notes)))
