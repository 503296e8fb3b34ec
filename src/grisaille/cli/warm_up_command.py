"""``grisaille warm-up``."""

from __future__ import annotations

import click

from grisaille.cli.output import CommandOutput, with_output_options


@click.command("warm-up")
@with_output_options
def command(output: CommandOutput) -> int:
    """Compile the integrators once, so that models compile their equations alone.

    Not needed: an integrator is compiled when the first model of its kind asks for it, and kept in the cache folder.
    This command compiles those of the usual kinds of small models beforehand, and the filter of linear models, on all
    processors: about a minute of processor time.
    """
    from grisaille.compilation.warm_up import warm_up

    found = warm_up()
    output.say(found)
    output.answer({"integrators": found.integrators, "built": found.built, "seconds": found.seconds})
    return 0
