"""Tasks of integrators for tests, which give signals by their breaks and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.compilation import Plan, Task
from grisaille.experiment import SignalTable


def task_of(
    kernel: Any, t0: float, t1: float, *, breaks: Any = None, coef: Any = None, kink: Any = None, slice: int = 0,
    **named: Any,
) -> Task:  # fmt: skip
    """The task of a plan; without ``coef`` signals are zero, without ``kink`` every break is one."""
    signals = None
    if breaks is not None:
        table = np.zeros((np.size(breaks) - 1, kernel.nu, 1)) if coef is None else coef
        signals = SignalTable(breaks, table, np.ones(np.size(breaks), np.uint8) if kink is None else kink)
    task = Plan(kernel, t0, t1, signals=signals, **named).task()
    task.slice = slice
    return task
