"""The frozen discretisation: steps fixed once, so that results are smooth in parameters and repeat bit by bit.

Steps end on output times and kinks; between them they are equal and at most ``step`` long. Without a given step, the
largest one whose error estimate stays within the tolerance is found by halving. The estimate does not see algebraic
unknowns that nothing feeds back: where there are any, rows must also agree with those of a run under error control. And
a run that fails is tried with shorter steps only if that one gets through.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.task import Status, Task
from grisaille.simulation.integration import first_choice, integrate

HALVINGS = 20
WITH_JUMPS = 1e-3
"""Steps, of the run, that are short enough where a solution jumps inside one."""


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
    reference: Task | None = None
    for _ in range(HALVINGS):
        used = integrate(kernel, task, inner, on_slice)
        done = task.status == Status.DONE
        if reference is None and (not done or (task.error_estimate <= 1.0 and kernel.nz > kernel.ne)):
            reference = begin.copy(kernel, task)
            integrate(kernel, reference, "auto")
        if done and task.error_estimate <= 1.0 and (kernel.nz == kernel.ne or _agree(task, reference)):
            break
        if not done and reference is not None and reference.status != Status.DONE:
            break
        if done and task.snaps and task.fixed_step <= WITH_JUMPS * (task.t1 - task.t0):
            break  # no equal step ends at a jump of the solution, however short it is
        # the estimate is of fourth order or higher: jump close to the step that is needed
        large = done and task.error_estimate > 1.0
        factor = float(np.clip(0.9 * task.error_estimate**-0.25, 0.1, 0.5)) if large else 0.5
        if task.t1 - task.t0 > task.max_steps * task.fixed_step * factor:
            break
        begin.restore(task, task.fixed_step * factor)
    return f"frozen {used}"


def _agree(task: Task, reference: Task | None) -> bool:
    """Whether every row is that of a run under error control, within a thousandth of what its quantity covers."""
    if reference is None or reference.status != Status.DONE:
        return True
    there, here = reference.y, task.y
    usable = np.isfinite(there) & np.isfinite(here)
    there, apart = np.where(usable, there, 0.0), np.where(usable, np.abs(here - there), 0.0)
    covered = there.max(axis=0) - there.min(axis=0)
    return bool(np.all(apart.max(axis=0) <= 1e-3 * covered + 1e-6 * np.abs(there).max(axis=0)))


class _Snapshot:
    """The task as it was before a run, to run it again."""

    def __init__(self, task: Task) -> None:
        self.arrays = {name: np.array(getattr(task, name)) for name in ("p", "dp", "x", "z", "sx", "sz")}

    def copy(self, kernel: Kernel, task: Task) -> Task:
        """The same run from its beginning, without sensitivities and with steps under error control."""
        return Task.create(
            kernel, task.t0, task.t1, p=self.arrays["p"], x=self.arrays["x"], z=self.arrays["z"], times=task.times,
            breaks=task.breaks, coef=task.coef, kink=task.kink, rtol=task.rtol, atol=task.atol, nominal=task.nominal,
            max_steps=task.max_steps, past=task.past,
        )  # fmt: skip

    def restore(self, task: Task, step: float) -> None:
        for name, value in self.arrays.items():
            getattr(task, name)[...] = value
        task.t, task.written, task.steps, task.rejected, task.resumed = task.t0, 0, 0, 0, 0
        task.error_estimate = task.worst_constraint = 0.0
        task.snaps = task.branch = 0
        task.h, task.memory, task.work, task.fixed_step = 0.0, None, np.zeros(0), step
