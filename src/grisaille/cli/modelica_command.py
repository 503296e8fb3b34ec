"""``grisaille modelica check``."""

from __future__ import annotations

from pathlib import Path

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.errors import DataError

PLACE = click.Path(path_type=Path)


@click.group("modelica")
def command() -> None:
    """Modelica models: how far files get."""


@command.command("check")
@click.argument("folder", type=PLACE)
@click.option("--references", type=PLACE, metavar="FOLDER", help="Where NAME.csv (or .csv.gz) stand.")
@click.option("--only", default="", metavar="PATTERN", help="Files whose name matches, such as 'Rotational|Analog'.")
@click.option("--limit", default=60.0, show_default=True, metavar="SECONDS", help="For one file.")
@click.option("-j", "jobs", default=1, show_default=True, metavar="N", help="Files at the same time.")
@click.option("--path", multiple=True, type=PLACE, metavar="FOLDER", help="Of libraries, for .mo files; repeatable.")
@click.option("--output", "store", type=PLACE, metavar="FILE.jsonl", help="A line for each file; continues from there.")
@with_output_options
def check(
    output: CommandOutput, folder: Path, references: Path | None, only: str, limit: float, jobs: int,
    path: tuple[Path, ...],
    store: Path | None,
) -> int:  # fmt: skip
    """Read, build and simulate every .bmo and .mo file below FOLDER, and compare it with its reference.

    NAME.csv, in FOLDER/references or beside NAME.bmo, has a column of times and one for each signal, under its
    Modelica name. A signal agrees when 98 % of its times lie within 1 % of its range. Each file runs in a process of
    its own, compiled without optimization. With --output a check that was stopped goes on where it was.
    """
    from grisaille.study.modelica_check import ModelicaCheck, find_files, outcome_text, summary

    if jobs < 1 or not limit > 0:
        raise DataError("-j takes a whole number from 1, --limit a number of seconds above zero.")
    files = find_files(folder, references, only)
    rows = []
    try:
        for row in ModelicaCheck(files, limit, jobs, store, path).rows():
            rows.append(row)
            output.say(f"{row['seconds']:6.1f} s  {row['name']}: {outcome_text(row)}")
    except KeyboardInterrupt as stop:
        kept = f" They are kept in {store}; the same command continues." if store is not None else ""
        stop.add_note(f"Stopped after {len(rows)} of {len(files)} files.{kept}")
        raise
    output.say("\n" + summary(rows))
    if store is not None:
        output.written(store)
    output.answer({"files": rows})
    return 0 if all(row["simulated"] and row["verified"] is not False for row in rows) else 1
