"""``grisaille report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import check_ending
from grisaille.cli.saved import saved_fit


@click.command("report")
@click.argument("target", type=click.Path(path_type=Path), default=Path("."), metavar="FIT.nc|FOLDER")
@click.option("--output", "file", type=click.Path(path_type=Path), metavar="FILE.html",
              help="Beside the fit, with the ending .html, unless given.")  # fmt: skip
@click.option("--profiles", is_flag=True, help="Profile every unknown as well, which takes many fits.")
@click.option("--title", help="Instead of the model's name.")
@click.option("--open", "show", is_flag=True, help="Open it in a browser.")
@with_output_options
def command(
    output: CommandOutput, target: Path, file: Path | None, profiles: bool, title: str | None, show: bool
) -> int:
    """Write the report of a saved fit: one HTML file that needs nothing else. Executes nothing."""
    check_ending("--output", file, (".html",))
    path, fit = saved_fit(target)
    page = file or (path.with_name("report.html") if path.name == "fit.nc" else path.with_suffix(".html"))
    fit.report(page, profiles=profiles, title=title)
    output.written(page)
    if show:
        webbrowser.open(page.absolute().as_uri())
    output.answer({"fit": str(path), "report": str(page)})
    return 0
