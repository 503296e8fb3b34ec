"""``grisaille compare``."""

from __future__ import annotations

from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, frame_rows, with_output_options
from grisaille.cli.parsing import check_ending
from grisaille.cli.saved import label_of, saved_fit
from grisaille.errors import DataError


@click.command("compare")
@click.argument("targets", nargs=-1, required=True, metavar="[LABEL=]FIT.nc|FOLDER …")
@click.option("--nested", multiple=True, metavar="SMALLER:LARGER",
              help="Likelihood-ratio test of a fit that is a special case of another; may be repeated.")  # fmt: skip
@click.option("--report", "page", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a report as well.")
@with_output_options
def command(output: CommandOutput, targets: tuple[str, ...], nested: tuple[str, ...], page: Path | None) -> int:
    """Put saved fits side by side: likelihood, AIC, BIC, residuals. Executes nothing."""
    from grisaille.results.comparison import compare

    check_ending("--report", page, (".html",))
    fits = {}
    for target in targets:
        label, sign, path = target.partition("=")
        file, fit = saved_fit(Path(path if sign else target))
        name = label if sign else label_of(file)
        if name in fits:
            raise DataError(f"Two fits are called {name!r}: write LABEL=FILE for one of them, as in old={file}.")
        fits[name] = fit
    found = compare(fits, [_pair(text) for text in nested])
    output.say(found)
    if page is not None:
        found.report(page)
        output.written(page)
    output.answer({
        "fits": frame_rows(found.table), "best": found.best, "tests": frame_rows(found.tests),
        "notes": list(found.notes),
    })  # fmt: skip
    return 0


def _pair(text: str) -> tuple[str, str]:
    smaller, sign, larger = text.partition(":")
    if not sign:
        raise DataError(f"--nested {text}: write SMALLER:LARGER with the labels of two fits.")
    return smaller, larger
