"""``grisaille show-code``."""

from __future__ import annotations

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import model_of


@click.command("show-code")
@click.argument("target", metavar="FILE.py:Class|FILE.bmo|FOLDER")
@click.option("--scheme", "name", metavar="NAME", help="All that this integrator is built from: explicit, implicit, "
              "frozen-explicit or frozen-implicit; the model's functions alone unless given.")  # fmt: skip
@with_output_options
def command(output: CommandOutput, target: str, name: str | None) -> int:
    """Print the C that a model is compiled to, with its equations as comments."""
    from grisaille.compilation.debugging.readable_source import readable_files
    from grisaille.compilation.schemes import find_scheme
    from grisaille.structure.structure_cache import structure_of

    chosen = None if name is None else find_scheme(name)
    output.runs(target)
    structure = structure_of(model_of(target))
    files = readable_files(structure, chosen)
    for file, text in files.items():
        if len(files) > 1:
            output.say(f"/* ==== {file} ==== */\n")
        output.say(text)
    output.answer({"model": structure.model.name, "scheme": chosen and chosen.name, "files": files})
    return 0
