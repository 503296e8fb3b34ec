"""Progress bars over simulated time and over realizations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Task


@contextmanager
def progress_of(plan: Plan[Any], label: str, wanted: bool) -> Iterator[Callable[[Task], None] | None]:
    """Give what to call after each slice; None when no bar is wanted."""
    if not wanted or plan.t1 <= plan.t0:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    now = TextColumn("t = {task.fields[now]:.4g}")
    columns = (TextColumn("{task.description}"), BarColumn(), now, TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        line = bar.add_task(f"simulating {label}", total=plan.t1 - plan.t0, now=plan.t0)
        yield lambda t: bar.update(line, completed=t.t - t.t0, now=t.t)


@contextmanager
def progress_over(count: int, label: str, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Give what to call with (done, total) realizations; None when no bar is wanted."""
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        line = bar.add_task(f"simulating {label}", total=count)
        yield lambda done, total: bar.update(line, completed=done, total=total)
