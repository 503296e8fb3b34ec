"""A bar over the runs of a study, with failures counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from grisaille.study.study_task import RunAnswer


@contextmanager
def progress_of(label: str, runs: int, wanted: bool) -> Iterator[Callable[[Sequence[RunAnswer]], None]]:
    """Give what to call with finished runs."""
    if not wanted:
        yield lambda finished: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    troubles = TextColumn("{task.fields[failed]} failed, {task.fields[unconverged]} not converged")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), troubles, TimeRemainingColumn())
    with Progress(*columns) as bar:
        line = bar.add_task(label, total=runs, failed=0, unconverged=0)
        failed = unconverged = 0

        def show(finished: Sequence[RunAnswer]) -> None:
            nonlocal failed, unconverged
            failed += sum(bool(a.row["failure"]) for a in finished)
            unconverged += sum(not a.row["failure"] and not a.row["converged"] for a in finished)
            bar.update(line, advance=len(finished), failed=failed, unconverged=unconverged)

        yield show
