"""``grisaille schema``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.writing import write_text


@click.command("schema")
@click.option("--output", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file.")
@with_output_options
def command(output: CommandOutput, file: Path | None) -> int:
    """Print the JSON schema of problem.toml, for editors that check while you type."""
    from grisaille.problem.schema import problem_schema

    text = json.dumps(problem_schema(), ensure_ascii=False, indent=2)
    if file is not None:
        write_text(file, text + "\n", "The schema")
        output.written(file)
        output.answer({"file": str(file)})
    elif not output.quiet:
        click.echo(text)
    return 0
