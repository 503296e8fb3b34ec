"""Worker processes that start from any script or notebook cell, use one BLAS thread each, and never outlive the study.

The standard spawn runs the user's script again in every child, so that scripts need an ``if __name__ == "__main__"``;
tasks here are plain data, children have no use for the script, and it is hidden while they start. Linear algebra reads
its number of threads when NumPy is first imported, so the variables are set in the child's environment.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from grisaille.memory import available_memory, share_memory

ONE_THREAD = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)  # fmt: skip
_starting = threading.Lock()


class Pool(ProcessPoolExecutor):
    """A pool of such processes."""

    def __init__(self, workers: int) -> None:
        self.context = _Context()
        found = available_memory()
        budget = None if found is None else found.bytes // workers
        super().__init__(workers, mp_context=self.context, initializer=_begin, initargs=(budget, workers))

    def abandon(self) -> None:
        """Ends the processes now, whatever they are doing."""
        self.shutdown(wait=False, cancel_futures=True)
        for process in self.context.started:
            if process.is_alive():
                process.terminate()


def processors() -> int:
    """Return how many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _starting, _without_script(), _one_thread():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    """Remembers the processes it started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *arguments: Any, **options: Any) -> _Process:  # type: ignore[override]
        self.started.append(_Process(*arguments, **options))
        return self.started[-1]


@contextmanager
def _without_script() -> Iterator[None]:
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _one_thread() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _begin(budget: int | None, workers: int) -> None:
    """In the child: Ctrl-C is the parent's affair, a parent that is gone ends the child, and memory is shared."""
    share_memory(budget, workers)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
