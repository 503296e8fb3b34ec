"""``grisaille new``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from grisaille.cli.output import Output, answering
from grisaille.errors import DataError


def _complete(context: Any, parameter: Any, incomplete: str) -> list[str]:
    from grisaille.problem.creating import templates

    return [name for name in templates() if name.startswith(incomplete)]


@click.command("new")
@click.argument("template", required=False, shell_complete=_complete)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--list", "listing", is_flag=True, help="Show the templates.")
@answering
def command(output: Output, template: str | None, folder: Path | None, listing: bool) -> int:
    """Make a problem folder from a TEMPLATE, ready to fit and to change.

    FOLDER is the template's name unless given; nothing is overwritten.
    """
    from grisaille.problem.creating import create, templates

    known = templates()
    if listing:
        width = max(map(len, known))
        output.say("\n".join(f"{name:<{width}}  {title}" for name, title in known.items()))
        output.answer({"templates": known})
        return 0
    if template is None:
        raise DataError(f"Which template? There are {', '.join(known)}: 'grisaille new two-tank tanks'.")
    made = create(template, folder or Path(template))
    output.say(f"{made} holds {known[template]}. Next:\n  grisaille lint {made}\n  grisaille fit {made}")
    output.answer({"template": template, "folder": str(made)})
    return 0
