"""Memory for the factors of sparse matrices: how much they need is known once they are computed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from grisaille.compilation.shared_library import SharedLibrary
from grisaille.compilation.task import Task

Answer = TypeVar("Answer")


def with_factor_memory(library: SharedLibrary, task: Task, run: Callable[[], Answer]) -> Answer:
    """Return the result of ``run`` with enough ``task.factors``; where they outgrow their memory, run again from the
    start of the task.
    """
    while True:
        before = task.copy()
        size = int(library.function("gr_factors_work", ctypes.c_long)(task.room))
        if task.factors.size < size:
            task.factors = np.zeros(size)
        answer = run()
        if task.wanted <= task.room:
            return answer
        before.room, before.factors = task.wanted, np.zeros(0)
        task.take_over(before)
