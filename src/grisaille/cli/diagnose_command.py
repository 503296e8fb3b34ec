"""``grisaille diagnose``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import check_ending
from grisaille.cli.saved import saved_fit
from grisaille.writing import write_figure, write_table


@click.command("diagnose")
@click.argument("target", metavar="FIT.nc|FOLDER", type=click.Path(path_type=Path), default=Path("."))
@click.option("--level", type=float, default=0.01, show_default=True,
              help="Probability of calling a healthy series unhealthy, for each test.")  # fmt: skip
@click.option("--output", "file", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write the table.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the tests: .png, .svg or .pdf.")
@with_output_options
def command(output: CommandOutput, target: Path, level: float, file: Path | None, plot: Path | None) -> int:
    """Test the residuals of a saved fit: whiteness, spectrum, inputs, normality, outliers, size. Executes nothing.

    The status is 1 where a test is unhealthy, or the fit did not converge.
    """
    check_ending("--output", file, (".csv",))
    check_ending("--plot", plot, (".png", ".svg", ".pdf"))
    path, fit = saved_fit(target)
    found = fit.diagnose(level)
    output.say(found)
    if not fit.converged:
        output.say(f"The fit did not converge: {fit.status}")
    if file is not None:
        write_table(file, found.table, "The table")
        output.written(file)
    if plot is not None:
        write_figure(plot, found.plot(), "The picture")
        output.written(plot)
    output.answer({
        "fit": str(path), "level": level, "healthy": bool(found), "converged": fit.converged, "status": fit.status,
        "residual_tests": [asdict(v) for v in found.verdicts],
    })  # fmt: skip
    return 0 if found and fit.converged else 1
