"""Gradients forwards, direction by direction, beside those through the adjoint.

The way back through a frozen step differentiates the step as it was taken: where an equation bends inside it, each
stage counts the side that it happens to lie on. Forward sensitivities follow such a step in pieces
(gr_bend_tangents.h). Along one direction they tell whether it matters; that direction weighs every unknown by its own
slope, so that an error of any of them is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Task
from grisaille.simulation import integration

Floats = NDArray[np.float64]
SLOPE_TOLERANCE = 1e-7
"""Relative difference of slopes in one direction that is rounding: they are the same sums in another order."""
DIRECTIONS_PER_RUN = 16
"""Followed in one run."""
MIN_SLOPE_SHARE = 1e-9
"""Of the largest slope: smaller ones weigh no more than one of this size."""


@dataclass(frozen=True, eq=False)
class ForwardGradient:
    """Derivatives of Σ weights · y of one run with frozen steps.

    dp, sx, sz : by each unknown, of parameters and start
    weights : (times, outputs)
    require_end : raises where a run has not come to its end
    """

    plan: Plan[Kernel]
    dp: Floats
    sx: Floats
    sz: Floats
    weights: Floats
    require_end: Callable[[Task], None]

    def agrees(self, slopes: Floats) -> bool:
        """Return whether slopes by the unknowns agree with a run along one direction."""
        n, largest = len(slopes), float(np.abs(slopes).max(initial=0.0))
        if not largest > 0.0:
            return bool(self.along(np.ones((1, n)))[0] == 0.0)
        sizes = np.maximum(np.abs(slopes), MIN_SLOPE_SHARE * largest)
        # no two unknowns weigh the same, so that errors of two cannot cancel
        direction = (1.0 + np.modf(np.sqrt(2.0) * np.arange(n))[0]) / sizes
        found = float(self.along(direction[None, :])[0])
        return bool(abs(found - direction @ slopes) <= SLOPE_TOLERANCE * (direction @ np.abs(slopes)))

    def slopes(self) -> Floats:
        """Return the derivatives by every unknown."""
        every = np.eye(len(self.dp))
        parts = [self.along(every[k : k + DIRECTIONS_PER_RUN]) for k in range(0, len(every), DIRECTIONS_PER_RUN)]
        return np.concatenate(parts)

    def along(self, directions: Floats) -> Floats:
        """Return the derivatives along combinations of unknowns, a row each."""
        plan = self.plan.replace(dp=directions @ self.dp, sx=directions @ self.sx, sz=directions @ self.sz)
        task = integration.run(plan).task
        self.require_end(task)
        return np.asarray(np.einsum("ty,tdy->d", self.weights, task.sy))
