"""``z`` from ``residual(t, x, z, u, p) = 0`` near a good prediction; as in gr_root.h, which explains the choices.

Newton's method with the last factors of dF/dz as long as they contract well. A root is meant to be the continuation of
a root nearby: where two corrections do not contract as they do near a single root (by 1/4 with factors of the point
before, by 1/2 with older ones), or new factors change a correction by half, ``rescue`` follows the root from where it
is known.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.numerics.sides import have_changed, reach
from grisaille.simulation.roots.damping import DECIDES_NOTHING, damped
from grisaille.simulation.roots.linear import EPS, EquationFunctions, Floats, StepFailure, lu, lu_solve
from grisaille.simulation.roots.rescue import Way, across_bends, rescue, search_pieces

MAX_ITERATIONS = 15
FRESH_CONTRACTION = 0.25
STALE_CONTRACTION = 0.5


@dataclass
class Anchor:
    """A known root: ``x``, ``z`` at time ``t``, with signals ``u``."""

    t: float
    x: Floats
    z: Floats
    u: Floats
    p: Floats | None = None
    """Where other than the task's."""


@dataclass
class Newton:
    """dF/d[x; z] and the factors of dF/dz, reused from stage to stage as long as Newton's method converges."""

    kernel: EquationFunctions
    task: Task
    jac: Floats | None = None
    factors: Any = None
    gaps: Floats | None = None
    """Of the switches where dF/d[x; z] was taken."""
    held: bool = False
    """Pieces stay as they are: their equations count as met."""

    def hold(self, f: Floats) -> Floats:
        if self.held:
            f[-self.kernel.nm :] = 0.0
        return f

    def linearise(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats | None = None) -> None:
        """Compute dF/d[x; z] at this point and the factors of its block dF/dz."""
        nx = self.kernel.nx
        self.factors = None
        p = self.task.p if p is None else p
        self.jac = self.kernel.J(t, x, z, u, p)
        self.task.jacobians += 1
        if self.kernel.sides > 0:
            self.gaps = self.kernel.S(t, x, z, u, p)
        if self.kernel.nz > 0:
            self.task.factorizations += 1
            self.factors = lu(self.jac[nx:, nx:])

    def solve(self, t: float, x: Floats, z: Floats, u: Floats, start: Anchor | None = None) -> tuple[Floats, Floats]:
        """Return ``(z, F)`` with ``z``, a prediction, moved to the root that continues ``start``; ``F`` is all of F
        there.
        """
        if self.kernel.nz == 0:
            return z, self.evaluate(t, x, z, u)
        try:
            return self._continued(start, t, x, u, *self.iterate(t, x, z, u))
        except StepFailure as failure:
            plain = failure
        self.task.rescues += 1
        if self.kernel.nm > 0:
            with suppress(StepFailure):
                return search_pieces(self, t, x, z, u)
        try:
            return damped(self, t, x, z, u) if start is None else rescue(self, start, t, x, z, u)
        except StepFailure as failure:
            self.factors = None
            if plain.status == Status.NEWTON and self.kernel.nm == 0:
                raise failure from None
            raise plain from None

    def _continued(
        self, start: Anchor | None, t: float, x: Floats, u: Floats, z: Floats, f: Floats
    ) -> tuple[Floats, Floats]:
        """Return the root ``z``; of one beyond a switch the walk over pieces decides whether it continues ``start``."""
        if start is None or self.kernel.nm > 0 or self.kernel.sides == 0:
            return z, f
        way = Way(self, start, t, x, u)
        return across_bends(way) if way.is_beyond(z) else (z, f)

    def iterate(self, t: float, x: Floats, z: Floats, u: Floats) -> tuple[Floats, Floats]:
        """Iterate from ``z`` by Newton's method; raises ``StepFailure`` where it leaves the neighbourhood of one
        root.
        """
        task, nx, z = self.task, self.kernel.nx, z.copy()
        enough, floor = 1e-13 / task.rtol, 1e-9 / task.rtol
        age, last, jumps = 1, z, False
        for iteration in range(MAX_ITERATIONS):
            f = self.evaluate(t, x, z, u, keep=iteration == 0)
            if self.factors is None:
                self.linearise(t, x, z, u)
                age = 0
            dz = self.correction(f)
            size, before = self.size(dz, z), self.size(last, z)
            stalls = iteration > 0 and size > 0.5 * before
            is_small = size <= enough or (stalls and size <= floor)
            if is_small or (iteration > 0 and size > 0.1 * before and self._at_rounding(f, x, z)):
                if not self._left_its_piece(t, x, z, u):
                    return z, f
                self.linearise(t, x, z, u)
                dz, age = lu_solve(self.factors, -f[nx:]), 0
                if self.size(dz, z) <= floor or self._at_rounding(f, x, z):
                    return z, f
                z, last, age = z + dz, dz, 1
                continue
            jumped, jumps = jumps, self._changes_pieces(dz)
            if iteration > 0 and not jumps and not jumped:
                contraction = FRESH_CONTRACTION if age == 1 else STALE_CONTRACTION
                if before > DECIDES_NOTHING and not size <= contraction * before:
                    break
                if not size <= max(10.0 * before, DECIDES_NOTHING) and age == 1:
                    break
            if iteration > 0 and _is_slow(size, before, enough):
                orientation = self.orientation
                self.linearise(t, x, z, u)
                old, dz, age = dz, lu_solve(self.factors, -f[nx:]), 0
                change, most = self.size(dz - old, z), max(size, self.size(dz, z))
                is_other = self.orientation != orientation or not change <= STALE_CONTRACTION * most
                if before > DECIDES_NOTHING and not jumps and not jumped and is_other:
                    break
            z, last, age = z + dz, dz, age + 1
        self.factors = None
        raise unsolved(f, nx)

    def evaluate(self, t: float, x: Floats, z: Floats, u: Floats, keep: bool = True) -> Floats:
        f = self.hold(self.kernel.F(t, x, z, u, self.task.p))
        self.task.evaluations += 1
        if not np.all(np.isfinite(f)):
            if not keep:
                self.factors = None
            bad = int(np.argmin(np.isfinite(f)))
            raise StepFailure(Status.NOT_FINITE, bad, f[bad])
        return f

    def correction(self, f: Floats) -> Floats:
        self.task.newton_iterations += 1
        return lu_solve(self.factors, -f[self.kernel.nx :])

    def size(self, dz: Floats, z: Floats) -> float:
        """Return the largest entry of a correction in units of its tolerance at ``z``."""
        nx, task = self.kernel.nx, self.task
        return float(np.max(np.abs(dz) / (task.atol[nx:] + task.rtol * np.abs(z))))

    def _left_its_piece(self, t: float, x: Floats, z: Floats, u: Floats) -> bool:
        """Return whether the factors belong to the other side of a switch: corrections with them then say nothing about
        the error.
        """
        if self.kernel.sides == 0:
            return False
        return self.gaps is None or have_changed(self.gaps, self.kernel.S(t, x, z, u, self.task.p))

    def reach(self, t: float, x: Floats, z: Floats, u: Floats, dz: Floats) -> float:
        """Return the share of ``dz`` that ends just beyond the first switch on its way."""
        if self.kernel.sides == 0:
            return 1.0

        def gaps(share: float) -> Floats:
            return self.kernel.S(t, x, z + share * dz, u, self.task.p)

        return reach(gaps, gaps(0.0))

    @property
    def orientation(self) -> int:
        """Return the sign of det dF/dz: the same all along a branch of solutions."""
        matrix, pivots = self.factors
        swaps = sum(p != k for k, p in enumerate(pivots))
        return -1 if (swaps + int(np.sum(np.diag(matrix) < 0))) % 2 else 1

    def _at_rounding(self, f: Floats, x: Floats, z: Floats) -> bool:
        """Return whether every residual is within what rounding of x and z alone makes of it."""
        assert self.jac is not None
        nx = self.kernel.nx
        noise = np.abs(self.jac[nx:]) @ np.abs(np.concatenate([x, z]))
        return bool(np.all(np.abs(f[nx:]) <= 4.0 * EPS * noise))

    def _changes_pieces(self, dz: Floats) -> bool:
        """Return whether the last entries of z, which may be relations of the others and jump by whole numbers,
        change.
        """
        nm = self.kernel.nm
        return nm > 0 and bool(np.any(np.abs(dz[-nm:]) > 0.5))


def unsolved(f: Floats, nx: int) -> StepFailure:
    worst = nx + int(np.argmax(np.abs(f[nx:])))
    return StepFailure(Status.NEWTON, worst, f[worst])


def _is_slow(size: float, before: float, enough: float) -> bool:
    """Return whether corrections that shrink from ``before`` to ``size`` will need more than three further ones."""
    rate = size / before if before > 0 else np.inf
    return not rate <= 0.1 or size * rate**3 > enough
