"""Models without derivatives: every requested time is an algebraic problem, continued from the one before."""

from __future__ import annotations

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Status, Task
from grisaille.errors import StructureError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.simulation.roots.linear import Floats, StepFailure
from grisaille.simulation.roots.newton import Anchor, Newton
from grisaille.structure.starts.initialization import ConsistentStart, Initializer


def solve_static(initializer: Initializer, plan: Plan[Kernel]) -> Task:
    """Return the rows of a plan without states; where a root cannot be continued, its own start decides."""
    task = plan.replace(fixed_step=1.0).task()  # to rounding, and nothing could be shortened
    kernel, table = plan.kernel, SignalTable(task.breaks, task.coef, task.kink)
    newton, x = Newton(kernel, task), np.zeros(0)
    before = Anchor(task.t, x, task.z, u=table.at(task.t))
    for row, t in enumerate(map(float, task.times)):
        u = table.at(t)
        try:
            z = _continued(initializer, newton, before, t, u)
        except StepFailure as failure:
            task.status, task.where, task.amount = failure.status, failure.where, failure.amount
            task.t, task.fixed_step = t, 0.0
            return task
        before = Anchor(t, x, z, u=u)
        task.y[row] = kernel.O(t, x, z, u, task.p)
        if task.ns:
            s = initializer.sensitivity(t, u, task.p, ConsistentStart(x, z, 0.0, {}), task.dp)
            outer = kernel.OP(t, x, z, u, task.p) @ task.dp.T
            task.sy[row] = (kernel.OJ(t, x, z, u, task.p) @ s.sz.T + outer).T
        task.z[:], task.written, task.t = z, row + 1, t
    task.status, task.fixed_step = Status.DONE, 0.0
    return task


def _continued(initializer: Initializer, newton: Newton, before: Anchor, t: float, u: Floats) -> Floats:
    task = newton.task
    try:
        with np.errstate(all="ignore"):
            return newton.solve(t, before.x, before.z, u, before)[0]
    except StepFailure as failure:
        try:
            return initializer.solve(t, u, task.p).z
        except StructureError:
            raise failure from None
