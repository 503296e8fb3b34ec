"""``z`` where signals jump, so that its equations change at once; the twin of gr_change.h, which explains the choices.

What z was may lie nearer to another root of the new equations than to the one that continues it. The root that is meant
is the one to which z comes while the old equations become the new ones, in equal parts of their residuals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.simulation.integrators.damping import decides_nothing
from grisaille.simulation.integrators.rescue import Way, along
from grisaille.simulation.integrators.roots import Anchor
from grisaille.simulation.integrators.steps import Floats, StepFailure

if TYPE_CHECKING:
    from grisaille.simulation.integrators.roots import Newton

OF_ONE_ROOT = 2
"""Newton's corrections of linear equations, the one that is nothing included."""
STILL_HOLDS = 1e-2
"""Of z: what the old equations may be off by at the old z."""


def solve_changed(newton: Newton, before: Anchor, t: float, x: Floats, z: Floats, u: Floats) -> tuple[Floats, Floats]:
    """``(z, F)`` with signals ``u``, at the root that continues ``z``, that of the signals which ``before`` sees."""
    old = before.signals(newton.task)
    corrections = newton.task.newton_iterations
    found, f = newton.solve(t, x, z, u, before)
    if newton.kernel.nm > 0 or bool((old == u).all()) or newton.task.newton_iterations - corrections <= OF_ONE_ROOT:
        return found, f
    found = _follow_change(newton, Way(newton, Anchor(t, x, z, u=u), t, x, u, old=old), found)
    newton.factors = None
    return newton.iterate(t, x, found, u)


def _follow_change(newton: Newton, way: Way, z: Floats) -> Floats:
    """The root at the end of the way, where ``z``, which plain Newton has found, is another one."""
    task, start = newton.task, way.start.z
    try:
        newton.linearise(way.t, way.x, z, way.u)
        branch = newton.orientation
    except StepFailure:
        branch = 0
    residual = way.values(0.0, start)
    if not np.all(np.isfinite(residual)) or not way.linearise(0.0, start):
        return z
    orientation = newton.orientation
    off = newton.correction(np.append(np.zeros(newton.kernel.nx), residual))
    if not newton.size(off, start) <= STILL_HOLDS / task.rtol:
        return z
    try:
        found, _ = along(way)
    except StepFailure:
        task.snaps += bool(branch) and orientation != branch
        return z
    return found if newton.size(found - z, z) > max(10.0, decides_nothing(task)) else z
