"""Gradients of a number made of a trajectory by many parameters: forwards once, backwards through the frozen steps.

Only points at which steps begin are kept. Where a record has more steps than ``MAX_NUMBERS_IN_MEMORY`` holds, it is
cut at rows into
stretches; each is run again before its way back, which costs one more simulation and the memory of one stretch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.adjoint_kernel import AdjointKernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Status, Task

Floats = NDArray[np.float64]
MAX_NUMBERS_IN_MEMORY = 8_000_000
"""Numbers kept on the way forward (64 MB)."""


@dataclass(frozen=True)
class PathStretch:
    """Rows ``first`` to ``last``, from the point where it begins."""

    first: int
    last: int
    t: float
    x: Floats
    z: Floats


@dataclass(frozen=True)
class AdjointGradient:
    """Derivatives of Σ weights · y by the start and by all parameters of the kernel; or the task that failed."""

    by_state: Floats
    by_parameters: Floats
    failed: Task | None = None
    weights: Floats | None = None


def gradient(
    plan: Plan[AdjointKernel], weigh: Callable[[Floats], Floats], room: int = MAX_NUMBERS_IN_MEMORY
) -> AdjointGradient:
    """Return the gradient of a run with frozen steps.

    weigh : rows (times, outputs) → their weights
    """
    kernel, back = plan.kernel, _Back(plan, room)
    rows = back.forward()
    by_state, by_parameters = np.zeros(kernel.nx), np.zeros(kernel.np)
    if rows is None:
        return AdjointGradient(by_state, by_parameters, back.last)
    weights = np.ascontiguousarray(weigh(rows), dtype=float)
    for stretch in reversed(back.stretches):
        run = back.again(stretch)
        if run.status == Status.DONE:
            part = np.ascontiguousarray(weights[stretch.first : stretch.last])
            kernel.back(run, back.path, back.taken, part, by_state, by_parameters)
        if run.status != Status.DONE:
            return AdjointGradient(by_state, by_parameters, run)
    return AdjointGradient(by_state, by_parameters, weights=weights)


class _Back:
    """Stretches of one run; the path of the last one that was run is there."""

    def __init__(self, plan: Plan[AdjointKernel], room: int) -> None:
        self.plan, self.kernel, self.task = plan, plan.kernel, plan.task()
        size = self.kernel.point_size
        points = max(room // size, 16)
        self.path = np.zeros(min(points, self._points()) * size)
        self.stretches: list[PathStretch] = []
        self.last, self.taken, self._here = self.task, 0, -1

    def _points(self) -> int:
        """Return at most as many points as the run has steps, and one."""
        task = self.task
        kinks = int(np.count_nonzero(task.kink))
        return int((task.t1 - task.t0) / task.fixed_step) + task.n_times + kinks + 4

    def forward(self) -> Floats | None:
        """Return all rows, or None where a run failed."""
        task = self.task
        rows, first, t, x, z = np.zeros_like(task.y), 0, task.t0, task.x.copy(), task.z.copy()
        count = task.n_times
        while first < task.n_times:
            last = min(first + count, task.n_times)
            stretch = PathStretch(first, last, t, x, z)
            run = self._run(stretch)
            if run.status == Status.MORE:
                if last - first <= 1:
                    # a single interval has more steps than there is room for
                    self.path = np.zeros(2 * self.path.size)
                count = max((last - first) // 2, 1)
                continue
            if run.status != Status.DONE:
                return None
            rows[first:last] = run.y
            self.stretches.append(stretch)
            first, t, x, z = last, run.t, run.x.copy(), run.z.copy()
        return rows

    def again(self, stretch: PathStretch) -> Task:
        """Return the stretch with its path, run again unless it was the last one."""
        return self.last if self._here == stretch.first else self._run(stretch)

    def _run(self, stretch: PathStretch) -> Task:
        task = self.task
        end = task.t1 if stretch.last == task.n_times else float(task.times[stretch.last - 1])
        times = task.times[stretch.first : stretch.last]
        run = self.plan.replace(t0=stretch.t, t1=end, x=stretch.x, z=stretch.z, times=times).task()
        run.work = self.last.work
        self.taken = self.kernel.forward(run, self.path)
        self.last, self._here = run, stretch.first
        return run
