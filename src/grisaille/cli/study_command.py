"""``grisaille study run | resume | show``."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grisaille.cli.output import CommandOutput, frame_rows, with_output_options
from grisaille.cli.parsing import check_ending
from grisaille.cli.reading import OPTIONS, given_of, reading_options
from grisaille.errors import DataError, GrisailleError
from grisaille.writing import write_table

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.problem.folder import Problem
    from grisaille.problem.study_file import StudyPlan

FOLDER = click.Path(path_type=Path)


@click.group("study", no_args_is_help=False)
def command() -> None:
    """Many fits at once: other data (monte-carlo), other starts (multistart), redrawn noise (bootstrap)."""


@command.command("run")
@click.argument("folder", type=FOLDER, default=Path("."))
@click.option("--kind", type=click.Choice(["monte-carlo", "multistart", "bootstrap"]),
              help="That of problem.toml, or monte-carlo, unless given.")  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), help="How many fits; those of problem.toml, or 100, unless given.")
@click.option("--seed", type=click.IntRange(min=0), help="That of problem.toml unless given.")
@click.option("--truth", type=click.Choice(["fit", "guess"]), help="monte-carlo: where data are simulated.")
@click.option("--sampling", type=click.Choice(["sobol", "latin", "grid"]), help="multistart: how starts are drawn.")
@click.option("--resampling", type=click.Choice(["parametric", "residual"]), help="bootstrap: what is drawn.")
@click.option(
    "--store", type=FOLDER, metavar="FILE.db", help="Keeps finished runs; KIND.db in the FOLDER unless given."
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes; one per processor unless given.")
@click.option("--table", type=FOLDER, metavar="FILE.csv", help="Write one row per run.")
@click.option("--report", "page", type=FOLDER, metavar="FILE.html", help="Write a report as well.")
@reading_options("Data: ", "as problem.toml says unless given")
@with_output_options
def run(
    output: CommandOutput, folder: Path, kind: str | None, runs: int | None, seed: int | None, store: Path | None,
    workers: int | None, **options: Any,
) -> int:  # fmt: skip
    """Run a study of the problem in a FOLDER. Executes its model.py.

    Finished runs are kept: the same command, or 'grisaille study resume', continues where it stopped.
    """
    from grisaille.problem.folder import load_problem
    from grisaille.problem.study_file import StudyPlan

    output.runs(folder)
    extras, reading = Extras(options.pop("table"), options.pop("page")), given_of(options)
    given = {k: v for k, v in options.items() if v is not None and k not in OPTIONS}
    problem = load_problem(folder, reading)
    chosen = {**problem.settings, **given}
    named = kind or chosen.get("kind", "monte-carlo")
    file = store or problem.folder / chosen.get("store", f"{named}.db")
    where = os.path.relpath(problem.folder.absolute(), file.absolute().parent)
    plan = StudyPlan(
        where, named, runs or chosen.get("runs", 100), problem.seed if seed is None else seed, given, reading
    )
    return _carry_out(output, problem, plan, file, workers, extras)


@command.command("resume")
@click.argument("store", type=FOLDER, metavar="FILE.db|FOLDER", default=Path("."))
@click.option("--runs", type=click.IntRange(min=1), help="Go on to more runs than were asked for.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; one per processor unless given.")
@click.option("--table", type=FOLDER, metavar="FILE.csv", help="Write one row per run.")
@click.option("--report", "page", type=FOLDER, metavar="FILE.html", help="Write a report as well.")
@with_output_options
def resume(
    output: CommandOutput, store: Path, runs: int | None, workers: int | None, table: Path | None, page: Path | None
) -> int:
    """Go on with a study that was stopped. Executes the model.py of its folder."""
    from grisaille.problem.folder import load_problem
    from grisaille.problem.study_file import find_store, read_plan, read_store

    file = find_store(store)
    plan = read_plan(file)
    plan = plan if runs is None else replace(plan, runs=runs)
    output.say(f"{file}: {read_store(file).counts['runs']} of {plan.runs} runs are there.")
    output.runs(plan.folder_from(file))
    return _carry_out(
        output, load_problem(plan.folder_from(file), plan.reading), plan, file, workers, Extras(table, page)
    )


@command.command("show")
@click.argument("store", type=FOLDER, metavar="FILE.db|FOLDER", default=Path("."))
@click.option("--table", type=FOLDER, metavar="FILE.csv", help="Write one row per run.")
@with_output_options
def show(output: CommandOutput, store: Path, table: Path | None) -> int:
    """Show the finished runs of a study, also while it runs. Executes nothing."""
    from grisaille.problem.study_file import find_store, read_store

    found = read_store(find_store(store))
    output.say(found)
    _write(found.table if found.rows else None, table, output)
    summary = frame_rows(found.summary()) if found.counts["converged"] else {}
    output.answer(
        {"store": str(found.path), "kind": found.header["kind"], "counts": found.counts, "estimates": summary}
    )
    return 0


@dataclass(frozen=True)
class Extras:
    """Files that are written beside the store."""

    table: Path | None
    page: Path | None

    def check(self) -> None:
        check_ending("--table", self.table, (".csv",))
        check_ending("--report", self.page, (".html",))


def _carry_out(
    output: CommandOutput, problem: Problem, plan: StudyPlan, file: Path, workers: int | None, extras: Extras
) -> int:
    extras.check()
    if not file.absolute().parent.is_dir():
        raise DataError(f"--store {file}: there is no folder {str(file.parent)!r}.")
    plan.write(file)
    executor = "serial" if workers == 1 else workers
    try:
        study = problem.study(
            plan.kind, plan.runs, seed=plan.seed, store=file, executor=executor, progress=output.progress,
            **plan.settings,
        )  # fmt: skip
    except GrisailleError:
        plan.withdraw(file)
        raise
    output.say(study)
    output.written(file)
    _write(study.table, extras.table, output)
    if extras.page is not None:
        study.report(extras.page)
        output.written(extras.page)
    output.answer({
        "kind": plan.kind, "counts": study.counts, "store": str(file), "seed": plan.seed,
        "estimates": frame_rows(study.summary().table) if hasattr(study, "summary") else frame_rows(study.basins),
    })  # fmt: skip
    return 0 if study.counts["converged"] == study.counts["runs"] else 1


def _write(table: pd.DataFrame | None, path: Path | None, output: CommandOutput) -> None:
    check_ending("--table", path, (".csv",))
    if table is not None and path is not None:
        write_table(path, table, "The table")
        output.written(path)
