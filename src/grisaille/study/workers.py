"""Who does the runs: this process, processes of our own, or an executor of the user's (a Dask cluster's, for one)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any, Protocol

from grisaille.errors import EstimationError
from grisaille.study.processes import Pool, processors
from grisaille.study.study_task import PreparedTask, RunAnswer
from grisaille.study.worker import run_chunk

UNKNOWN_POOL_SIZE = 64
"""Workers assumed behind an executor that does not say how many it has."""


class Workers(Protocol):
    """Takes runs and gives futures of their answers."""

    workers: int

    def submit(self, runs: Sequence[int]) -> Future[list[RunAnswer]]: ...

    def renew(self) -> None:
        """New workers after some died."""
        ...

    def close(self, *, now: bool) -> None: ...


class SerialWorkers:
    """Runs one after the other, in this process."""

    workers = 1

    def __init__(self, prepared: PreparedTask) -> None:
        self.prepared = prepared

    def submit(self, runs: Sequence[int]) -> Future[list[RunAnswer]]:
        future: Future[list[RunAnswer]] = Future()
        future.set_result([self.prepared.do(run) for run in runs])
        return future

    def renew(self) -> None:
        """Nobody can have died."""

    def close(self, *, now: bool) -> None:
        """Nobody to send home."""


class ProcessWorkers:
    """Worker processes of the study's own."""

    def __init__(self, prepared: PreparedTask, workers: int) -> None:
        self.task, self.workers = prepared.task, workers
        self.pool = Pool(workers)

    def submit(self, runs: Sequence[int]) -> Future[list[RunAnswer]]:
        return self.pool.submit(run_chunk, self.task.key, self.task.packed, tuple(runs))

    def renew(self) -> None:
        self.pool.abandon()
        self.pool = Pool(self.workers)

    def close(self, *, now: bool) -> None:
        self.pool.abandon() if now else self.pool.shutdown()


class ExecutorWorkers:
    """The workers behind an executor that belongs to the user."""

    def __init__(self, prepared: PreparedTask, executor: Executor) -> None:
        self.task, self.executor = prepared.task, executor
        self.workers = int(getattr(executor, "_max_workers", 0) or UNKNOWN_POOL_SIZE)

    def submit(self, runs: Sequence[int]) -> Future[list[RunAnswer]]:
        try:
            return self.executor.submit(run_chunk, self.task.key, self.task.packed, tuple(runs))
        except RuntimeError as error:
            # broken pools and pools that were shut down
            raise EstimationError(f"The executor takes no more runs: {error}. Give a new one.") from error

    def renew(self) -> None:
        """A broken executor says so at the next submission."""

    def close(self, *, now: bool) -> None:
        """The executor stays open: its owner closes it."""


def make_workers(executor: Any, prepared: PreparedTask, runs: int) -> Workers:
    """Return the workers that ``executor=`` asks for."""
    if executor == "serial" or (executor is None and (processors() == 1 or runs == 1)):
        return SerialWorkers(prepared)
    if executor is None or executor == "processes":
        return ProcessWorkers(prepared, min(processors(), runs))
    if isinstance(executor, int) and not isinstance(executor, bool) and executor > 0:
        return ProcessWorkers(prepared, min(executor, runs))
    if isinstance(executor, Executor) or callable(getattr(executor, "submit", None)):
        return ExecutorWorkers(prepared, executor)
    raise EstimationError(
        f"executor is {executor!r}; give None (a process per processor), a number of processes, 'serial', or an "
        f"executor such as client.get_executor() of a Dask client."
    )
