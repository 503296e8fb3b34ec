"""Many runs of one task: dealt out in chunks, collected as they finish, kept at once, resumed where they stopped.

Chunks last about a quarter of a second, so that neither sending nor storing counts and little is lost when the process
is killed. When workers die, the runs they had are tried again apart from all others, in halves, until those that kill
their worker are found; these are recorded as failed, and the study goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from pathlib import Path
from typing import Any

from grisaille import interrupts
from grisaille.errors import EstimationError, GrisailleError
from grisaille.memory import require_memory
from grisaille.structure.structure_cache import structure_of
from grisaille.study.header import header_of
from grisaille.study.result_rows import failed_row
from grisaille.study.store import Store
from grisaille.study.study_progress import progress_of
from grisaille.study.study_task import PreparedTask, RunAnswer, StudyTask
from grisaille.study.workers import Workers, make_workers

CHUNK_SECONDS = 0.25
NUMBER, ROW = 40, 1500
"""Bytes of a number in the row of a run, and of the texts and what Python adds beside them."""
MAX_CHUNK = 256

Keep = Callable[[list[RunAnswer]], None]


def run_task(
    task: StudyTask, runs: int, store: str | Path | None, executor: Any, progress: bool
) -> tuple[PreparedTask, list[RunAnswer]]:
    """Return the answers of runs 0, …, runs − 1, in order."""
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise EstimationError(f"The number of runs is {runs!r}; it must be a whole number above zero.")
    prepared = PreparedTask(task)
    require_memory(
        runs * (ROW + NUMBER * len(prepared.layout.floats)),
        f"The table of {runs} runs",
        lambda available: f"{available // (ROW + NUMBER * len(prepared.layout.floats))} runs would fit: ask for fewer.",
    )
    shelf = Store(store, header_of(task), prepared.layout.floats) if store is not None else None
    try:
        answers = shelf.read(runs) if shelf else {}
        todo = [run for run in range(runs) if run not in answers]
        with progress_of(f"{task.kind} of {structure_of(task.model).model.name}", runs, progress) as show:
            show(list(answers.values()))

            def keep(finished: list[RunAnswer]) -> None:
                if shelf:
                    shelf.write(finished)
                answers.update({a.run: a for a in finished})
                show(finished)

            if todo:
                _work(prepared, todo, executor, keep)
    except KeyboardInterrupt as stop:
        if shelf:
            stop.add_note(f"{len(answers)} of {runs} runs are in '{shelf.path}'; the same call continues from there.")
        raise
    finally:
        if shelf:
            shelf.close()
    return prepared, [answers[run] for run in range(runs)]


def _work(prepared: PreparedTask, todo: Sequence[int], executor: Any, keep: Keep) -> None:
    crew = make_workers(executor, prepared, len(todo))
    finished = False
    try:
        suspects = _deal_out(crew, todo, keep)
        _quarantine(crew, suspects, keep, prepared)
        finished = True
    finally:
        crew.close(now=not finished)


def _deal_out(crew: Workers, todo: Sequence[int], keep: Keep) -> list[list[int]]:
    """Everything once; gives back the chunks that were lost with their workers."""
    left, pace, lost = deque(todo), ChunkPace(), list[list[int]]()
    pending: dict[Future[list[RunAnswer]], list[int]] = {}
    while left or pending:
        while left and len(pending) < 2 * crew.workers:
            chunk = [left.popleft() for _ in range(pace.chunk(len(left), crew.workers))]
            try:
                pending[crew.submit(chunk)] = chunk
            except BrokenExecutor:
                left.extendleft(reversed(chunk))
                if not pending:
                    crew.renew()
                break
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        interrupts.check()
        broken = False
        for future in done:
            chunk = pending.pop(future)
            answers = _answers(future)
            if answers is None:
                lost.append(chunk)
                broken = True
            else:
                pace.learn(answers)
                keep(answers)
        if broken and not pending:
            crew.renew()
    return lost


def _quarantine(crew: Workers, suspects: list[list[int]], keep: Keep, prepared: PreparedTask) -> None:
    """One chunk at a time; a chunk that loses its worker is halved, a single run is recorded as failed."""
    waiting = deque(suspects)
    while waiting:
        chunk = waiting.popleft()
        future = crew.submit(chunk)
        wait([future])
        answers = _answers(future)
        if answers is not None:
            keep(answers)
            continue
        crew.renew()
        if len(chunk) > 1:
            middle = len(chunk) // 2
            waiting.extendleft([chunk[middle:], chunk[:middle]])
        else:
            reason = f"{type(_error(future)).__name__}, twice"
            keep([RunAnswer(chunk[0], prepared.seed(chunk[0]), 0.0, failed_row(prepared.layout, "worker", reason))])


def _answers(future: Future[list[RunAnswer]]) -> list[RunAnswer] | None:
    """None when the worker was lost; what the worker itself refuses concerns all runs and is raised."""
    error = _error(future)
    if isinstance(error, GrisailleError):
        raise error
    return None if error is not None else future.result()


def _error(future: Future[list[RunAnswer]]) -> BaseException | None:
    return CancelledError("the executor gave the run up") if future.cancelled() else future.exception()


class ChunkPace:
    """How many runs to a chunk."""

    def __init__(self) -> None:
        self.runs, self.seconds = 0, 0.0

    def learn(self, answers: list[RunAnswer]) -> None:
        self.runs += len(answers)
        self.seconds += sum(a.seconds for a in answers)

    def chunk(self, left: int, workers: int) -> int:
        if not self.runs:
            return 1
        fitting = int(CHUNK_SECONDS * self.runs / max(self.seconds, 1e-9))
        fair = -(-left // (2 * workers))
        return max(1, min(fitting, fair, MAX_CHUNK, left))
