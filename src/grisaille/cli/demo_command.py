"""``grisaille demo``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("demo")
@click.option("--output", type=click.Path(path_type=Path), default=Path("grisaille-demo"), metavar="FOLDER",
              show_default=True, help="Where its files go.")  # fmt: skip
def command(output: Path) -> int:
    """See it work: a pendulum in gusts, an index-3 system, from its equations to a fit and a report."""
    from grisaille.demo import run

    run(output)
    return 0
