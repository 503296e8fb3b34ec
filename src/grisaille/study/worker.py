"""The work of a worker process: unpack a task once, then do any number of its runs."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence

from grisaille.errors import EstimationError
from grisaille.study.study_task import PreparedTask, RunAnswer, StudyTask

_local = threading.local()
_preparing = threading.Lock()
"""Symbolic work is not made for several threads at once."""


def run_chunk(key: str, packed: bytes, runs: Sequence[int]) -> list[RunAnswer]:
    """Run some runs of a task; the prepared task is kept for the next call."""
    prepared = _prepared(key, packed)
    return [prepared.do(run) for run in runs]


def _prepared(key: str, packed: bytes) -> PreparedTask:
    """Return one at a time per thread: studies follow each other."""
    if getattr(_local, "key", None) != key:
        with _preparing:
            _local.prepared = PreparedTask(_unpack(packed))
            _local.key = key
    return _local.prepared  # type: ignore[no-any-return]


def _unpack(packed: bytes) -> StudyTask:
    try:
        task: StudyTask = pickle.loads(packed)
    except AttributeError as error:
        raise EstimationError(
            f"A worker process cannot find something that was defined in a script or notebook: {error}. Put the class "
            f"of the method into a module of its own, or use executor='serial'."
        ) from error
    return task
