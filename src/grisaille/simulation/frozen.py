"""The frozen discretisation: steps fixed once, so that results are smooth in parameters and repeat bit by bit.

Steps end on output times and kinks; between them they are equal and at most ``step`` long. Without a given step, the
largest one whose error estimate stays within the tolerance is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.task import Status, Task
from grisaille.simulation.integration import first_choice, integrate

HALVINGS = 20


def choose_step(
    kernel: Kernel, task: Task, method: str, step: float | None, on_slice: Callable[[Task], None] | None
) -> str:
    """Runs the task with fixed steps; gives the method's name. ``task.fixed_step`` holds the step that was used."""
    inner = method.removeprefix("frozen").removeprefix("-") or first_choice(kernel, task)
    if step is not None or task.n_times < 2:
        task.fixed_step = step or max(task.t1 - task.t0, 1.0)
        return f"frozen {integrate(kernel, task, inner, on_slice)}"
    begin = _Snapshot(task)
    task.fixed_step = float(np.diff(task.times).max())
    for _ in range(HALVINGS):
        used = integrate(kernel, task, inner, on_slice)
        if task.status == Status.DONE and task.error_estimate <= 1.0:
            break
        # the estimate is of fourth order or higher: jump close to the step that is needed
        factor = 0.5 if task.status != Status.DONE else float(np.clip(0.9 * task.error_estimate**-0.25, 0.1, 0.5))
        if task.t1 - task.t0 > task.max_steps * task.fixed_step * factor:
            break
        begin.restore(task, task.fixed_step * factor)
    return f"frozen {used}"


class _Snapshot:
    """The task as it was before a run, to run it again."""

    def __init__(self, task: Task) -> None:
        self.arrays = {name: np.array(getattr(task, name)) for name in ("x", "z", "sx", "sz")}

    def restore(self, task: Task, step: float) -> None:
        for name, value in self.arrays.items():
            getattr(task, name)[...] = value
        task.t, task.written, task.steps, task.rejected, task.resumed = task.t0, 0, 0, 0, 0
        task.error_estimate = task.worst_constraint = 0.0
        task.h, task.memory, task.work, task.fixed_step = 0.0, None, np.zeros(0), step
