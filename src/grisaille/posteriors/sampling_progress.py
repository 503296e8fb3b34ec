"""A bar over the transitions of all chains, with divergent ones after the warm-up counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from grisaille.posteriors.chain import SamplingOptions
from grisaille.posteriors.chain_worker import ChainAnswer
from grisaille.posteriors.target import PosteriorTask
from grisaille.structure.structure_cache import structure_of


@contextmanager
def progress_of(
    task: PosteriorTask, chains: int, options: SamplingOptions, wanted: bool | None
) -> Iterator[Callable[[Sequence[ChainAnswer]], None]]:
    """Give what to call with finished blocks.

    wanted : None for a bar on terminals alone
    """
    if wanted is False or (wanted is None and not getattr(sys.stderr, "isatty", lambda: False)()):
        yield lambda finished: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    label = f"{chains} chain{'' if chains == 1 else 's'} of {structure_of(task.model).model.name}"
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[diverged]} divergent"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(label, total=chains * (options.tune + options.draws), diverged=0)
        diverged = 0

        def show(finished: Sequence[ChainAnswer]) -> None:
            nonlocal diverged
            for a in finished:
                tuning = max(options.tune - (a.chain.done - len(a.block.energy)), 0)
                diverged += int(a.block.diverging[tuning:].sum())
            bar.update(line, advance=sum(len(a.block.energy) for a in finished), diverged=diverged)

        yield show
