"""The root at the other end of a curve with folds; as ``gr_fold`` in gr_rescue.h.

From z, where a branch ends, a curve is followed on which all equations hold but one: that fails by σ times what it does
at first, and σ goes from 1 to 0. At a fold σ turns, and the sign of det dF/dz changes, which tells the way; the root
has the sign that the branch had. This is where z goes when its branch ends and its equations hold but in the limit: an
output with hysteresis jumps to its other level.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.compilation.task import Status
from grisaille.simulation.roots.damping import damped
from grisaille.simulation.roots.linear import Floats, StepFailure, lu_solve

if TYPE_CHECKING:
    from grisaille.simulation.roots.newton import Newton

STEPS, TRIALS = 400, 20
STRIDE = 0.1
"""Of the size of z: the first step along the curve."""
LONGEST = 0.25
END = 1e-6
"""Of σ: rounding leaves no zero."""
CORRECTIONS = 8


@dataclass
class SolutionCurve:
    """F(t, x, z, u) = σ · lift at a fixed t, x, u."""

    newton: Newton
    t: float
    x: Floats
    u: Floats
    lift: Floats
    size: Floats

    def residual(self, z: Floats) -> Floats:
        newton = self.newton
        newton.task.evaluations += 1
        f: Floats = newton.kernel.F(self.t, self.x, z, self.u, newton.task.p)[newton.kernel.nx :]
        return f

    def norm(self, dz: Floats) -> float:
        return float(np.max(np.abs(dz) / self.size))

    def step(self, z: Floats, sigma: float, stride: float, back: bool) -> tuple[Floats, float, float]:
        """Return z, σ and the stride that could be taken, with the factors of z; ends just beyond the first switch."""
        slope = lu_solve(self.newton.factors, self.lift)
        self.size = np.maximum(self.size, np.abs(z))
        norm, stride = self.norm(slope), min(2.0 * stride, LONGEST)
        while 0.0 < norm < np.inf and stride > 1e-12:
            ahead = (stride if back else -stride) / norm
            if not back:
                ahead = max(ahead, -sigma)
            ahead *= self.newton.reach(self.t, self.x, z, self.u, ahead * slope)
            found = self.corrected(slope, z + ahead * slope, sigma + ahead)
            if found is not None:
                return (*found, stride)
            stride *= 0.25
        raise StepFailure(Status.NEWTON)

    def corrected(self, slope: Floats, z: Floats, sigma: float) -> tuple[Floats, float] | None:
        """Correct a point back onto the curve, in the plane across its tangent."""
        across, before = slope / self.size**2, np.inf
        for _ in range(CORRECTIONS):
            residual = self.residual(z) - sigma * self.lift
            if not np.all(np.isfinite(residual)):
                return None
            dz = lu_solve(self.newton.factors, -residual)
            share = float((across @ dz) / (across @ slope))
            dz = dz - share * slope
            z, sigma, length = z + dz, sigma - share, self.norm(dz)
            if length <= 1e-9 or not length <= 0.5 * before:
                return (z, sigma) if length <= 1e-7 else None
            before = length
        return None


def beyond_folds(newton: Newton, t: float, x: Floats, z: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return ``(z, F)`` at the root on a curve through ``z`` that is oriented as it; ``StepFailure`` where there is
    none.
    """
    task, nx = newton.task, newton.kernel.nx
    size = np.abs(z) + task.atol[nx:] / task.rtol
    newton.linearise(t, x, z, u)
    orientation = newton.orientation
    inverse = np.array([lu_solve(newton.factors, unit) for unit in np.eye(z.size)])
    weights = np.max(np.abs(inverse) / size, axis=1)
    for row in np.argsort(-weights, kind="stable")[:TRIALS]:
        newton.linearise(t, x, z, u)
        curve = SolutionCurve(newton, t, x, u, np.eye(z.size)[row], size)
        f = curve.residual(z)
        start = curve.corrected(inverse[row], z, float(f[row])) if np.all(np.isfinite(f)) else None
        if start is None or start[1] == 0.0:
            continue
        curve.lift = curve.lift * start[1]
        with suppress(StepFailure):
            return _traced(curve, start[0], orientation)
    raise StepFailure(Status.NEWTON)


def _traced(curve: SolutionCurve, z: Floats, orientation: int) -> tuple[Floats, Floats]:
    newton, sigma, stride, before = curve.newton, 1.0, 0.5 * STRIDE, z
    for _ in range(STEPS):
        newton.linearise(curve.t, curve.x, z, curve.u)
        back = newton.orientation != orientation
        if not back and sigma <= END:
            break
        before = z
        z, sigma, stride = curve.step(z, sigma, stride, back)
    else:
        raise StepFailure(Status.NEWTON)
    root, f = damped(newton, curve.t, curve.x, z, curve.u, orientation)
    # it lies within the last step
    if newton.orientation != orientation or curve.norm(root - z) > 2.0 * curve.norm(z - before) + 1e-6:
        raise StepFailure(Status.NEWTON)
    return root, f
