"""``grisaille fit``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grisaille.cli.output import CommandOutput, frame_rows, with_output_options
from grisaille.cli.parsing import numbers, values
from grisaille.cli.reading import given_of, reading_options
from grisaille.errors import GrisailleError

if TYPE_CHECKING:
    from grisaille.assessment.diagnosis import Diagnosis
    from grisaille.problem.folder import Problem
    from grisaille.results.fit import Fit

MAX_SHOWN_TESTS = 6
"""Unhealthy residual tests that are printed."""


@click.command("fit")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("."))
@click.option("--method", metavar="NAME", help="Another estimator than the folder's, such as OutputError.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the estimator.")
@click.option("--estimate", "names", multiple=True, metavar="NAME", help="What to estimate instead; may be repeated.")
@click.option("--guess", "guesses", multiple=True, metavar="NAME=VALUE", help="Where to begin instead.")
@click.option("--output", "target", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Where fit.nc and report.html go; the problem's folder unless given.")  # fmt: skip
@click.option("--no-report", is_flag=True, help="Write fit.nc only.")
@reading_options("Data: ", "as problem.toml says unless given")
@with_output_options
def command(
    output: CommandOutput, folder: Path, method: str | None, options: tuple[str, ...], names: tuple[str, ...],
    guesses: tuple[str, ...], target: Path | None, no_report: bool, **reading: Any,
) -> int:  # fmt: skip
    """Fit the problem in a FOLDER: print the table, write fit.nc and report.html.

    Executes the model file in the folder. The status is 1 when the fit did not converge.
    """
    from grisaille.problem.folder import load_problem

    output.runs(folder)
    problem = load_problem(folder, given_of(reading))
    changes: dict[str, Any] = {"method": _method(problem, method, values("--option", options))}
    if names:
        changes["estimate"] = list(names)
        changes |= {k: _among(names, getattr(problem, k)) for k in ("guess", "bounds", "priors")}
    if guesses:
        changes["guess"] = {**changes.get("guess", problem.guess), **numbers("--guess", guesses)}
    if output.progress:
        sys.stderr.write("preparing the model …\r")
    fit = problem.fit(**changes, progress=output.progress)
    if output.progress:
        sys.stderr.write("\r\033[K")
    found = _diagnosis(fit)
    verdicts = list(found.verdicts) if found else []
    output.say(fit)
    output.say(describe_residuals(found))
    files = _write(fit, target or problem.folder, problem.title, not no_report, output)
    output.answer({**content(fit), "residual_tests": [asdict(v) for v in verdicts], "files": [str(f) for f in files]})
    return 0 if fit.converged else 1


def _method(problem: Problem, name: str | None, options: dict[str, Any]) -> Any:
    """The folder's estimator, or another one; options replace those of the folder."""
    from grisaille.problem.folder_methods import changed_method

    return changed_method(problem.method, name, options, problem.seed)


def _diagnosis(fit: Fit) -> Diagnosis | None:
    """Return the residual tests; None where the method has none."""
    try:
        return fit.diagnose()
    except GrisailleError:
        return None


def describe_residuals(found: Diagnosis | None) -> str:
    """Return the unhealthy tests of the residuals, at one level for all together as in the table of the fit."""
    if found is None or not found.tested:
        return "Residuals: not tested for this method."
    bad = found.unhealthy_together
    if not bad:
        return f"Residuals: {found.together}."
    lines = [f"  ✗ {v.output} in {v.experiment}, {v.test}: {v.sentence}" for v in bad[:MAX_SHOWN_TESTS]]
    more = [f"  … and {len(bad) - MAX_SHOWN_TESTS} more, in the report"] if len(bad) > MAX_SHOWN_TESTS else []
    return "\n".join([f"Residuals: {found.together}:", *lines, *more])


def _among(names: tuple[str, ...], table: dict[str, Any]) -> dict[str, Any]:
    """What the folder says about these names."""
    bases = {n.partition("@")[0] for n in names}
    return {n: v for n, v in table.items() if n in names or n.partition("@")[0] in bases}


def _write(fit: Fit, folder: Path, title: str, with_report: bool, output: CommandOutput) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    try:
        fit.save(folder / "fit.nc")
        written.append(folder / "fit.nc")
    except GrisailleError as error:
        click.echo(f"grisaille: fit.nc was not written: {error}", err=True)
    if with_report:
        fit.report(folder / "report.html", title=title)
        written.append(folder / "report.html")
    for path in written:
        output.written(path)
    return written


def content(fit: Fit) -> dict[str, Any]:
    """A fit for programs."""
    parameters = frame_rows(fit.parameters)
    for unknown in fit.estimate.unknowns:
        parameters[unknown.name]["unit"] = unknown.unit
    return {
        "model": fit.model_name, "method": type(fit.method).__name__, "converged": fit.converged, "status": fit.status,
        "notes": [*fit.notes, *fit.limits().notes], "parameters": parameters, "quality": frame_rows(fit.quality),
        "log_likelihood": fit.log_likelihood if fit.estimate.is_likelihood else None,
        "measurements": fit.estimate.count, "seconds": fit.estimate.seconds,
    }  # fmt: skip
