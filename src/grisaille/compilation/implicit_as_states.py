"""Algebraic unknowns carried along as states of a fused step, and solved inside its formula.

    X = (x, z, ρ, ζ)        0 = g(t, x, z, u, p)        z ← z − (∂g/∂z)⁻¹ g,   a fixed number of times

At its beginning a step solves z for the signals there, which may have jumped, and at every stage from that solution.
The iterations are part of the formula, so derivatives go through them: from a start that is a solution they are those
of the implicit function. ρ is the largest last correction of each unknown so far and ζ the largest unknown: Newton's
method squares errors, so where ρ is small beside ζ, what is left is its square. Where det ∂g/∂z changes its sign, the
path has come over a fold to another root: ρ is then ``UNSOLVED_VALUE``.

``damped`` iterations take the part 1, ¼ or 1/16 of a correction after which the next one, with the same Jacobian, is
smallest. Reference: P. Deuflhard, Newton Methods for Nonlinear Problems (2004), natural monotonicity test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.structure.system import System

Floats = NDArray[np.float64]
SOLVED_CORRECTION = 1e-5
"""A last correction below this part of an unknown's size leaves an error of its square."""
UNSOLVED_VALUE = 1e300
DAMPING_FACTORS = (1.0, 0.25, 0.0625)
"""Of a damped correction."""
MAX_ORIENTED_UNKNOWNS = 4
"""Unknowns up to which the sign of the determinant is followed."""


@dataclass(frozen=True)
class NewtonIterations:
    """How many iterations."""

    steps: int
    damped: bool = False
    exact: bool = False
    """Equations are linear: what a step changes says nothing about what is left."""


@dataclass(frozen=True)
class AlgebraicEffort:
    """How hard algebraic unknowns are solved: where a step begins, and from there at its stages."""

    first: NewtonIterations
    stages: NewtonIterations


ALGEBRAIC_EFFORTS = (
    AlgebraicEffort(NewtonIterations(3), NewtonIterations(5)),
    AlgebraicEffort(NewtonIterations(24, damped=True), NewtonIterations(6)),
    AlgebraicEffort(NewtonIterations(24, damped=True), NewtonIterations(16, damped=True)),
)
"""One after the other, until unknowns are solved along every path."""
LINEAR_EFFORT = AlgebraicEffort(NewtonIterations(1, exact=True), NewtonIterations(1, exact=True))
"""For equations that are linear in their unknowns."""


@dataclass(frozen=True, eq=False)
class ImplicitAsStates:
    """A system and the steps that solve its algebraic unknowns."""

    original: System
    effort: AlgebraicEffort

    @cached_property
    def system(self) -> System:
        """Return the reduced system with the states X, without implicit unknowns."""
        s = self.original
        z, _ = self.begin(s.t, s.x, s.z, s.u, s.p)
        observed = ca.Function("o", [s.t, s.x, s.z, s.u, s.p], [s.observed])(s.t, s.x, z, s.u, s.p)
        further = ca.SX.sym("rho", 2 * s.nz)
        names = [f"{kind} of {n}" for kind in ("correction", "size") for n in s.implicit_names]
        nothing = ca.SX(0, 1)
        return replace(
            s, x=ca.vertcat(s.x, s.z, further), z=nothing, rhs=ca.vertcat(s.rhs, ca.SX.zeros(3 * s.nz)),
            residual=nothing, observed=observed, state_names=(*s.state_names, *s.implicit_names, *names),
            implicit_names=(), residual_texts=(), pieces=(),
        )  # fmt: skip

    def split(self, X: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Return x, z, ρ, ζ."""
        nx, nz = self.original.nx, self.original.nz
        x, z, rho, zeta = ca.vertsplit(X, [0, nx, nx + nz, nx + 2 * nz, nx + 3 * nz])
        return x, z, rho, zeta

    def begin(self, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the unknowns from a guess that signals may have left far behind, and what the last iteration
        changed.
        """
        return self._iterate(self.effort.first, t, x, z, u, p)

    def solve(self, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the unknowns from those of a point in the same step, and what the last iteration changed."""
        return self._iterate(self.effort.stages, t, x, z, u, p)

    def _iterate(self, by: NewtonIterations, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        for _ in range(by.steps):
            change, slope = self._newton(t, x, z, u, p)
            if by.damped:
                change = self._damped(change, slope, t, x, z, u, p)
            z = z - change
        return z, ca.SX.zeros(change.shape) if by.exact else ca.fabs(change)

    def _damped(self, change: ca.SX, slope: ca.SX, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        best, least = ca.SX(DAMPING_FACTORS[-1] * change), ca.SX(ca.inf)
        unit = ca.fmax(ca.fabs(z) + ca.fabs(change), 1e-300)
        for part in DAMPING_FACTORS:
            residual = self._residual(t, x, z - part * change, u, p)
            size = ca.sumsqr(ca.solve(slope, residual) / unit)
            # what is not a number is never less
            best, least = ca.if_else(size < least, part * change, best), ca.if_else(size < least, size, least)
        return best

    def orientation(self, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        """Return the sign of det ∂g/∂z."""
        if self.original.nz > MAX_ORIENTED_UNKNOWNS:
            return ca.SX(1)
        return ca.sign(ca.det(ca.densify(self._newton(t, x, z, u, p)[1])))

    @cached_property
    def _newton(self) -> ca.Function:
        s = self.original
        slope = ca.jacobian(s.residual, s.z)
        return ca.Function("newton", [s.t, s.x, s.z, s.u, s.p], [ca.solve(slope, s.residual), slope])

    @cached_property
    def _residual(self) -> ca.Function:
        s = self.original
        return ca.Function("residual", [s.t, s.x, s.z, s.u, s.p], [s.residual])

    def nominal(self, nominal: Floats) -> Floats:
        """Return sizes of X from those of x; nothing but x is projected."""
        return np.concatenate([nominal, np.ones(3 * self.original.nz)])

    def start(self, x: Floats, z: Floats) -> Floats:
        """Return X (…, nx + 3 nz) from starts; likewise from their derivatives."""
        return np.concatenate([x, z, np.zeros((*z.shape[:-1], 2 * self.original.nz))], axis=-1)

    def lost(self, X: Floats) -> int:
        """Return how many of the paths that ended in X (M, …) passed a fold."""
        nx, nz = self.original.nx, self.original.nz
        return int((X[:, nx + nz : nx + 2 * nz] >= UNSOLVED_VALUE).any(axis=1).sum())

    def fold(self, X: Floats) -> str:
        """Describe the paths that passed a fold."""
        return (
            f"the equations of {', '.join(self.original.implicit_names)} come to a fold in {self.lost(X)} of {len(X)} "
            f"realizations: two solutions meet there, and none lies beyond"
        )

    def unsolved(self, X: Floats) -> str:
        """Return which unknown was not solved along the paths that ended in X (M, …), in words; empty where all
        were.
        """
        nx, nz = self.original.nx, self.original.nz
        X = X[np.isfinite(X).all(axis=1)]
        if not len(X):
            return ""
        rho, size = X[:, nx + nz : nx + 2 * nz], X[:, nx + 2 * nz :].max(axis=0)
        bad = rho > SOLVED_CORRECTION * np.maximum(size, 1e-300)
        if not bad.any():
            return ""
        if self.lost(X):
            return self.fold(X)
        k = int(np.argmax((rho / np.maximum(size, 1e-300)).max(axis=0)))
        return (
            f"{self.original.implicit_names[k]} is not solved in {int(bad[:, k].sum())} of {len(X)} realizations: the "
            f"last of {self.effort.stages.steps} Newton steps still moves it by {rho[:, k].max():.2g} (its size is "
            f"{size[k]:.2g})"
        )
