"""0 = residual(z, u_i, p) for all rows i of a static experiment, each row's root continued from where it is known.

All rows take Newton steps together; those that do not contract as they do near a single root are followed one by one
(``rescue``), from their own root at other parameters, where that is known, or from the root of the row before. Where a
root cannot be continued, the start that the model declares decides, as it does for the first row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from grisaille.compilation.plan import Plan
from grisaille.errors import DataError, StructureError
from grisaille.simulation.roots.linear import Floats, StepFailure
from grisaille.simulation.roots.newton import FRESH_CONTRACTION, Anchor, Newton
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.switch_sides import sides_of

MAX_ITERATIONS = 15
CORRECTION_TOLERANCE = 1e-13
"""Of the last correction, relative to each entry's size and its nominal."""
QUADRATIC_CONVERGENCE = 1e-3
"""Corrections from which on Newton's method doubles its digits."""
DECIDES_NOTHING = 1e-7
"""Corrections below this part of an entry say nothing about roots."""


@dataclass(frozen=True, eq=False)
class KnownRoot:
    """Roots (nz, rows) and the parameters they belong to."""

    z: Floats
    p: Floats


class RowRoots:
    """The roots of all rows, followed from those at other parameters."""

    def __init__(self, structure: Structure, u: Floats) -> None:
        system = structure.system
        self.structure, self.u, self.nz = structure, u, system.nz
        self.initializer = Initializer(structure)
        self.nominal = self.initializer.nominal
        self._residual = ca.Function(
            "rows",
            [system.z, system.u, system.p],
            [ca.densify(ca.vec(f)) for f in (system.residual, ca.jacobian(system.residual, system.z))],
        )
        held = len(system.pieces)
        gaps = sides_of(system.residual[: system.nz - held], system.z[: system.nz - held])
        self.sides = ca.Function("sides", [system.z, system.u, system.p], [ca.densify(gaps)])

    def solve(self, p: Floats, known: KnownRoot | None = None) -> Floats:
        """Return (nz, rows); raises ``DataError`` naming a row that has no solution."""
        n = self.u.shape[1]
        if self.nz == 0:
            return np.zeros((0, n))
        with np.errstate(all="ignore"):
            z, doubtful = self._together(self._guess(p, known), p)
            for row in doubtful:
                z[:, row] = self._one(row, z, p, known)
        return z

    def slopes(self, z: Floats, p: Floats) -> tuple[Floats, Floats]:
        """Return residuals (rows, nz) and their derivatives by z (rows, nz, nz)."""
        n = self.u.shape[1]
        r, j = self._residual(z, self.u, np.repeat(p[:, None], n, axis=1))
        return r.full().T, j.full().T.reshape(n, self.nz, self.nz).swapaxes(1, 2)

    def _guess(self, p: Floats, known: KnownRoot | None) -> Floats:
        if known is not None:
            return known.z.copy()
        return np.repeat(self._started(0, p)[:, None], self.u.shape[1], axis=1)

    def _together(self, z: Floats, p: Floats) -> tuple[Floats, list[int]]:
        """Apply Newton's method to every row; the rows that did not converge to the root beside them keep their
        guess.
        """
        n = self.u.shape[1]
        guess, before = z.copy(), np.full(n, np.inf)
        moving, doubtful = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        for _ in range(MAX_ITERATIONS):
            step = _steps(*self.slopes(z, p))
            size = np.max(np.abs(step.T) / (self.nominal[:, None] + np.abs(z)), axis=0)
            lost = ~(size <= FRESH_CONTRACTION * before) & ((before > DECIDES_NOTHING) | ~np.isfinite(size))
            doubtful |= moving & lost
            moving &= ~doubtful
            z[:, moving] += step.T[:, moving]
            # near a root corrections are squared, c, c²/k, c⁴/k³, …: the next one is foreseen
            is_next_nothing = (before <= QUADRATIC_CONVERGENCE) & (size**3 <= 0.01 * CORRECTION_TOLERANCE * before**2)
            moving &= ~((size <= CORRECTION_TOLERANCE) | is_next_nothing | ((size <= 1e-9) & (size > 0.5 * before)))
            before = np.where(moving, size, before)
            if not moving.any():
                break
        doubtful |= moving
        z[:, doubtful] = guess[:, doubtful]
        return z, np.flatnonzero(doubtful).tolist()

    def _one(self, row: int, z: Floats, p: Floats, known: KnownRoot | None) -> Floats:
        """Return the root of one row, followed from where it is known."""
        u, nothing = self.u[:, row], np.zeros(0)
        if known is not None:
            start = Anchor(0.0, nothing, known.z[:, row], u=u, p=known.p)
        elif row > 0:
            start = Anchor(0.0, nothing, z[:, row - 1].copy(), u=self.u[:, row - 1])
        else:
            return self._started(row, p)
        try:
            return self._newton(p).solve(0.0, nothing, start.z, u, start)[0]
        except StepFailure:
            return self._started(row, p)

    def _newton(self, p: Floats) -> Newton:
        equations: Any = _RowEquations(self)
        plan = Plan(equations, 0.0, 1.0, p=p, rtol=1e-8, atol=1e-11 * self.nominal, fixed_step=1.0)
        return Newton(equations, plan.task())

    def _started(self, row: int, p: Floats) -> Floats:
        try:
            return self.initializer.solve(0.0, self.u[:, row], p).z
        except StructureError as error:
            names = [s.name for s in self.structure.system.signals]
            inputs = ", ".join(f"{n} = {v:.6g}" for n, v in zip(names, self.u[:, row], strict=True) if n[0] != "[")
            at = f" ({inputs})" if inputs else ""
            raise DataError(f"the algebraic equations could not be solved in row {row}{at}: {error}") from error


class _RowEquations:
    """The residual of one row in the form of the integrators' Newton method."""

    nx = nc = ny = 0

    def __init__(self, roots: RowRoots) -> None:
        system, self._residual = roots.structure.system, roots._residual
        self.nz, self.nu, self.np, self.nm = system.nz, system.nu, system.np, len(system.pieces)
        self._sides = roots.sides
        self.sides = int(roots.sides.numel_out(0))

    def F(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats) -> Floats:
        return np.array(self._residual(z, u, p)[0].full()).ravel()

    def S(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats) -> Floats:
        return np.array(self._sides(z, u, p).full()).ravel()

    def J(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats) -> Floats:
        return np.array(self._residual(z, u, p)[1].full()).reshape(self.nz, self.nz, order="F")


def _steps(r: Floats, j: Floats) -> Floats:
    """Return Newton's corrections (rows, nz); NaN where a matrix is singular."""
    good = np.isfinite(j).all(axis=(1, 2)) & np.isfinite(r).all(axis=1)
    steps = np.full_like(r, np.nan)
    try:
        steps[good] = np.linalg.solve(j[good], -r[good][:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        for row in np.flatnonzero(good):
            try:
                steps[row] = np.linalg.solve(j[row], -r[row])
            except np.linalg.LinAlgError:
                continue
    return steps
