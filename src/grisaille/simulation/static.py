"""Models without derivatives: every requested time is an algebraic problem of its own."""

from __future__ import annotations

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.task import Status, Task
from grisaille.errors import StructureError
from grisaille.experiment.interpolation import SignalTable
from grisaille.simulation.directions import Directions
from grisaille.structure.initialization import Initializer


def solve_static(
    initializer: Initializer, kernel: Kernel, table: SignalTable, task: Task, directions: Directions
) -> None:
    """Fills the rows of a task without states, each solution starting from the one before it."""
    guess = np.array(task.z)
    for row, t in enumerate(task.times):
        u = table.at(float(t))
        try:
            point = initializer.solve(float(t), u, task.p, guess=guess)
        except StructureError:
            residual = initializer.functions.hard(float(t), guess, u, task.p)[0]
            task.status, task.t, task.z[:] = Status.NEWTON, float(t), guess
            task.where = int(np.argmax(np.abs(residual.full()))) if residual.numel() else -1
            return
        guess = point.z
        task.y[row] = kernel.O(float(t), point.x, point.z, u, task.p)
        if task.ns:
            s = initializer.sensitivity(float(t), u, task.p, point, directions.parameters)
            outer = kernel.OP(float(t), point.x, point.z, u, task.p) @ task.dp.T
            task.sy[row] = (kernel.OJ(float(t), point.x, point.z, u, task.p) @ s.sz.T + outer).T
        task.written, task.t = row + 1, float(t)
    task.z[:] = guess
    task.status = Status.DONE
