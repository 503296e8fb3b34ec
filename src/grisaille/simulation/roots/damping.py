"""Damped Newton from piece to piece, as ``gr_newton_damped`` in gr_rescue.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.compilation.task import Status
from grisaille.simulation.roots.linear import Floats, StepFailure

if TYPE_CHECKING:
    from grisaille.simulation.roots.newton import Newton

MAX_PIECES = 200
DECIDES_NOTHING = 3.0
"""Corrections below this, in units of the tolerance, say nothing about roots."""


def damped(
    newton: Newton, t: float, x: Floats, z: Floats, u: Floats, orientation: int | None = None
) -> tuple[Floats, Floats]:
    """Solve by Newton's method with corrections halved until the next one would be smaller; near the root the plain
    method takes over.

    A correction ends just beyond the first switch on its way, so that each belongs to one piece. With ``orientation``,
    a piece whose det dF/dz has another sign ends the search.
    """
    kernel, task, nx, share = newton.kernel, newton.task, newton.kernel.nx, 1.0
    floor = 1e-9 / task.rtol
    for _ in range(MAX_PIECES):
        f = newton.hold(kernel.F(t, x, z, u, task.p))
        task.evaluations += 1
        if not np.all(np.isfinite(f[nx:])):
            bad = nx + int(np.argmin(np.isfinite(f[nx:])))
            raise StepFailure(Status.NOT_FINITE, bad, f[bad])
        newton.linearise(t, x, z, u)
        if orientation is not None and newton.orientation != orientation:
            break
        dz = newton.correction(f)
        size = newton.size(dz, z)
        if not np.isfinite(size):
            break
        whole = newton.reach(t, x, z, u, dz)
        if size <= DECIDES_NOTHING and (whole == 1.0 or size <= floor):
            return newton.iterate(t, x, z, u)
        share = min(1.0, 4.0 * share)
        while not _is_closer(newton, t, x, z, u, share * whole * dz, (1.0 - 0.25 * share * whole) * size):
            share *= 0.5
            if share < 1e-12:
                raise StepFailure(Status.NEWTON, nx + int(np.argmax(np.abs(f[nx:]))), float(np.max(np.abs(f[nx:]))))
        z = z + share * whole * dz
    raise StepFailure(Status.NEWTON, nx + int(np.argmax(np.abs(f[nx:]))), float(np.max(np.abs(f[nx:]))))


def _is_closer(newton: Newton, t: float, x: Floats, z: Floats, u: Floats, step: Floats, limit: float) -> bool:
    """Return whether the next correction with the same matrix is small enough (Deuflhard's natural monotonicity)."""
    f = newton.hold(newton.kernel.F(t, x, z + step, u, newton.task.p))
    newton.task.evaluations += 1
    finite = bool(np.all(np.isfinite(f[newton.kernel.nx :])))
    return finite and newton.size(newton.correction(f), z) <= limit * (1.0 + 1e-9)
