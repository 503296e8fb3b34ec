"""One step of the Radau IIA method with three stages; the twin of gr_radau.h, with the same formulas and constants.

::

    M Z_i = h Σ_j a_ij F(t + c_j h, y + Z_j),   y(t + h) = y + Z_3,   M = diag(I, 0),   y = (x, z)

With ``A⁻¹ = T diag(γ, [α −β; β α]) T⁻¹`` and ``Z = T W`` simplified Newton needs one real and one complex matrix of the
size of the model. Stage vectors are stored as rows: ``Z (3, n)``.

Reference: Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.8 and VI.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.task import Status, Task
from grisaille.numerics import sides
from grisaille.simulation.integrators import steps
from grisaille.simulation.integrators.steps import EPS, Equations, Floats, StepFailure

C = np.array([0.15505102572168219018, 0.64494897427831780982, 1.0])
T = np.array(
    [
        [0.091232394870892942792, -0.14125529502095420843, -0.030029194105147424492],
        [0.24171793270710701896, 0.20412935229379993199, 0.38294211275726193779],
        [0.96604818261509293619, 1.0, 0.0],
    ]
)
TI = np.array(
    [
        [4.3255798900631553510, 0.33919925181580986954, 0.54177053993587487119],
        [-4.1787185915519047273, -0.32768282076106238708, 0.47662355450055045196],
        [-0.50287263494578687595, 2.5719269498556054292, -0.59603920482822492497],
    ]
)
A_INVERSE = np.array(
    [
        [3.2247448713915890491, 1.1678400846904054591, -0.25319726474218080826],
        [-3.5678400846904054591, 0.77525512860841095092, 1.0531972647421808083],
        [5.5319726474218080826, -7.5319726474218080826, 5.0],
    ]
)
GAMMA, ALPHA, BETA = 3.6378342527444957322, 2.6810828736277521339, 3.0504301992474105694
E = np.array([-10.048809399827415944, 1.3821427331607492039, -1.0 / 3.0])
"""Embedded formula of order 3."""
STALLED, STALLED_BELOW = 0.45, 0.1
"""Newton with the exact matrix that shrinks by less has come to rounding: of 12 V, beside an ideal diode's 1e-5 ohm."""


class Outcome(Enum):
    CONVERGED = auto()
    SLOW = auto()
    DIVERGED = auto()
    BAD_VALUE = auto()


@dataclass
class Polynomial:
    """The collocation polynomial of an earlier step and its sensitivities, which predict the next stages."""

    t: float
    h: float
    y: Floats
    Z: Floats
    S: Floats
    V: Floats

    def stages(self, t: float, h: float) -> Floats:
        """(3, 3) weights of ``Z`` at the stages of the step ``(t, h)``."""
        return np.array([collocation_weights(float(s)) for s in (t + C * h - self.t) / self.h])


@dataclass
class Step:
    """The equations of one step from ``(t, y)`` and what carries over to the next."""

    kernel: Equations
    task: Task
    y: Floats = field(default_factory=lambda: np.zeros(0))
    f: Floats = field(default_factory=lambda: np.zeros(0))
    u: Floats = field(default_factory=lambda: np.zeros(0))
    jac: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    matrices: Any = None
    h_factored: float = 0.0
    Z: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    W: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    stage_u: list[Floats] = field(default_factory=list)
    stage_jacobians: list[Floats] = field(default_factory=list)
    scale: Floats = field(default_factory=lambda: np.zeros(0))
    theta: float = 1.0
    rate: float = 1.0
    update: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    """Newton's last update."""

    def split(self, y: Floats) -> tuple[Floats, Floats]:
        return y[: self.kernel.nx], y[self.kernel.nx :]

    def at_stage(self, j: int, t: float, h: float) -> tuple[Any, ...]:
        return (t + C[j] * h, *self.split(self.y + self.Z[j]), self.stage_u[j], self.task.p)

    def read_signals(self, t: float, h: float) -> None:
        self.stage_u = [steps.signals(self.task, float(t + c * h), t + 0.5 * h) for c in C]

    def predict(self, polynomial: Polynomial | None, t: float, h: float) -> None:
        """Where Newton's iteration starts; without a polynomial the solution stands still."""
        self.Z = np.zeros((3, len(self.y)))
        if polynomial is not None:
            self.Z = (polynomial.y - self.y) + polynomial.stages(t, h) @ polynomial.Z
        self.W = TI @ self.Z

    def values(self, t: float, h: float) -> Floats:
        """F at the stages."""
        G = np.empty_like(self.Z)
        for j in range(3):
            G[j] = self.kernel.F(*self.at_stage(j, t, h))
            refuse_not_finite(G[j])
        self.task.evaluations += 3
        return G

    def factor(self, h: float) -> None:
        """γ/h M − J and (α + iβ)/h M − J."""
        from scipy.linalg import lu_factor

        if self.h_factored > 0 and abs(h - self.h_factored) <= 1e-9 * h:
            return
        self.h_factored = 0.0
        refuse_not_finite(self.jac)
        mass = np.zeros(len(self.y))
        mass[: self.kernel.nx] = 1.0 / h
        self.task.factorizations += 1
        try:
            real = steps.lu(GAMMA * np.diag(mass) - self.jac)
        except StepFailure as refused:
            # for short steps a refused column is one of dF/dz
            raise StepFailure(Status.SINGULAR, max(refused.where - self.kernel.nx, -1)) from None
        self.matrices = real, lu_factor((ALPHA + 1j * BETA) * np.diag(mass) - self.jac, check_finite=False)
        self.h_factored = h

    def transformed_solve(self, h: float, W: Floats, G: Floats) -> Floats:
        """Newton's update of W for M Z = h A g(Z), given the values G = g(Z)."""
        from scipy.linalg import lu_solve

        real, pair = self.matrices
        nx, R = self.kernel.nx, TI @ G
        R[0, :nx] -= GAMMA / h * W[0, :nx]
        R[1, :nx] -= ALPHA / h * W[1, :nx] - BETA / h * W[2, :nx]
        R[2, :nx] -= BETA / h * W[1, :nx] + ALPHA / h * W[2, :nx]
        d = lu_solve(pair, R[1] + 1j * R[2], check_finite=False)
        return np.array([steps.lu_solve(real, R[0]), d.real, d.imag])

    def iterate(self, t: float, h: float, kappa: float, limit: int) -> tuple[Outcome, float]:
        """Simplified Newton until the error of Z is below kappa; else by how much to shorten the step."""
        rate, old, old_quotient = max(self.rate, EPS) ** 0.8, 0.0, 0.0
        self.theta = 1e-3
        for m in range(1, limit + 1):
            d = self.transformed_solve(h, self.W, self.values(t, h))
            self.task.newton_iterations += 1
            self.update, size = d, rms(d, self.scale)
            if not math.isfinite(size):
                return Outcome.DIVERGED, 0.5
            if 1 < m < limit:
                quotient = size / old
                self.theta = quotient if m == 2 else math.sqrt(quotient * old_quotient)
                old_quotient = quotient
                if not self.theta < 0.99:
                    return Outcome.DIVERGED, 0.5
                rate = self.theta / (1.0 - self.theta)
                left = limit - 1 - m
                miss = rate * size * self.theta**left / kappa
                if miss >= 1.0:
                    return Outcome.SLOW, 0.8 * min(miss, 20.0) ** (-1.0 / (4.0 + left))
            old = max(size, EPS)
            self._add(d)
            self.rate = rate
            if rate * size <= kappa:
                return Outcome.CONVERGED, 1.0
        return Outcome.DIVERGED, 0.5

    def iterate_exact(self, t: float, h: float, polynomial: Polynomial | None) -> bool:
        """Newton to rounding, simplified where that contracts; ``scale`` must be the size of the solution.

        True when it did not contract by a half, as the Jacobian of the start makes it near one root.
        """
        strained = False
        try:
            old = math.inf
            for m in range(50):
                d = self.transformed_solve(h, self.W, self.values(t, h))
                self.task.newton_iterations += 1
                size = rms(d, self.scale)
                if not math.isfinite(size) or (m > 1 and size > 0.9 * old and size > 1e-10):
                    break
                strained |= size > 0.5 * old and size > 1e-7
                self._add(d)
                if at_rounding(size, old):
                    return strained
                old = size
        except StepFailure:
            pass
        self.predict(polynomial, t, h)
        try:
            self.values(t, h)
        except StepFailure:
            self.Z = np.zeros_like(self.Z)
        self._iterate_whole(t, h)
        return True

    def _add(self, d: Floats) -> None:
        self.W = self.W + d
        self.Z = T @ self.W

    def iterate_across(self, t: float, h: float, kappa: float) -> bool:
        """Newton with the exact matrix from ``Z``, to ``kappa``; true where it finds the stages.

        For steps that pass a bend: the Jacobian of the start does not contract there, or contracts to no solution.
        """
        try:
            self._iterate_whole(t, h, kappa)
        except StepFailure:
            return False
        self.W, self.theta = TI @ self.Z, 1.0
        return True

    def _iterate_whole(self, t: float, h: float, enough: float = 0.0) -> None:
        """Newton with the exact matrix, to rounding or to ``enough``.

        A correction ends just beyond the first switch that one of the stages passes, and is halved until the next one
        would be smaller.
        """
        old, n, share = math.inf, len(self.y), 1.0
        for _ in range(50):
            self.linearise_stages(t, h)
            try:
                factors = self.factor_whole(h)
            except StepFailure:
                raise StepFailure(Status.NEWTON, 0) from None
            d, worst = self._correction(factors, t, h)
            size, before = rms(d, self.scale), self.Z
            reach = self._reach(t, h, d)
            stays = reach == 1.0 or size > 0.3 * old
            stalls = enough > 0.0 and reach == 1.0 and STALLED * old < size <= STALLED_BELOW
            if (stays and (size <= enough or at_rounding(size, old))) or (enough == 0.0 and size <= 1e-13) or stalls:
                self.Z = before + d
                return
            share = min(1.0, 4.0 * share)
            while not self._is_closer(factors, t, h, before + share * reach * d, (1.0 - 0.25 * share * reach) * size):
                share *= 0.5
                if share < 1e-4:
                    raise StepFailure(Status.NEWTON, worst % n)
            old = size
        raise StepFailure(Status.NEWTON, worst % n)

    def _reach(self, t: float, h: float, d: Floats) -> float:
        """The share of an update of Z that ends just beyond the first switch of a stage."""
        if self.kernel.sides == 0:
            return 1.0
        Z = self.Z

        def gaps(share: float) -> Floats:
            self.Z = Z + share * d
            return self.stage_gaps(t, h)

        share = sides.reach(gaps, gaps(0.0))
        self.Z = Z
        return share

    def stage_gaps(self, t: float, h: float) -> Floats:
        """Gaps of all switches at the stages, one after the other."""
        return np.concatenate([self.kernel.S(*self.at_stage(j, t, h)) for j in range(3)])

    def _correction(self, factors: tuple[Floats, list[int]], t: float, h: float) -> tuple[Floats, int]:
        G = self.values(t, h)
        G[:, : self.kernel.nx] -= (A_INVERSE @ self.Z[:, : self.kernel.nx]) / h
        self.task.newton_iterations += 1
        return steps.lu_solve(factors, G.ravel()).reshape(G.shape), int(np.argmax(np.abs(G)))

    def _is_closer(self, factors: tuple[Floats, list[int]], t: float, h: float, Z: Floats, limit: float) -> bool:
        """Deuflhard's natural monotonicity: would the next correction with the same matrix be small enough?"""
        self.Z = Z
        try:
            trial = rms(self._correction(factors, t, h)[0], self.scale)
        except StepFailure:
            return False
        return trial <= limit * (1.0 + 1e-9) or trial <= 1e-12

    def linearise_stages(self, t: float, h: float) -> None:
        self.stage_jacobians = [self.kernel.J(*self.at_stage(j, t, h)) for j in range(3)]
        self.task.jacobians += 3

    def factor_whole(self, h: float) -> tuple[Floats, list[int]]:
        """The 3n × 3n matrix A⁻¹/h ⊗ M − diag(J_1, J_2, J_3)."""
        n = len(self.y)
        mass = np.zeros(n)
        mass[: self.kernel.nx] = 1.0 / h
        whole = np.kron(A_INVERSE, np.diag(mass))
        for j in range(3):
            whole[j * n : (j + 1) * n, j * n : (j + 1) * n] -= self.stage_jacobians[j]
        self.task.factorizations += 1
        return steps.lu(whole)

    def error(self, t: float, h: float, again: bool) -> tuple[float, Floats]:
        """The scaled embedded error, filtered a second time where it is above one and ``again`` is set.

        Not beyond a switch, where F of the other side would make a jump look like the stiffness that is filtered.
        """
        lift, nx = (E @ self.Z) / h, self.kernel.nx

        def filtered(f: Floats) -> Floats:
            # the rows of z are what Newton left, which the step does not feel
            return steps.lu_solve(self.matrices[0], np.append((f + lift)[:nx], np.zeros(len(f) - nx)))

        error = filtered(self.f)
        size = rms(error, self.scale)
        if again and size >= 1.0 and not self._has_other_sides(t, self.y + error):
            f = self.kernel.F(t, *self.split(self.y + error), self.u, self.task.p)
            self.task.evaluations += 1
            if np.all(np.isfinite(f)):
                error = filtered(f)
                size = rms(error, self.scale)
        return (max(size, 1e-10) if math.isfinite(size) else math.inf), error

    def _has_other_sides(self, t: float, y: Floats) -> bool:
        """Whether a point lies beyond a switch that the start of the step has before it."""
        if self.kernel.sides == 0:
            return False
        here, there = (self.kernel.S(t, *self.split(point), self.u, self.task.p) for point in (self.y, y))
        return sides.have_changed(here, there)


def collocation_weights(s: float) -> Floats:
    """Weights of Z_1, Z_2, Z_3 in the collocation polynomial at t + s h."""
    a, b, _ = C
    return np.array(
        [
            s * (s - b) * (s - 1.0) / (a * (a - b) * (a - 1.0)),
            s * (s - a) * (s - 1.0) / (b * (b - a) * (b - 1.0)),
            s * (s - a) * (s - b) / ((1.0 - a) * (1.0 - b)),
        ]
    )


def rms(v: Floats, scale: Floats) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return math.sqrt(float(np.mean((v / scale) ** 2)))


def at_rounding(size: float, old: float) -> bool:
    """Did an update of this relative size, after one of size ``old``, end in rounding?"""
    return size <= 2e-16 or (old < math.inf and size * size <= 1e-16 * old) or (size <= 1e-10 and size > 0.3 * old)


def refuse_not_finite(values: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(values)):
        rows = np.isfinite(values) if values.ndim == 1 else np.isfinite(values).all(axis=1)
        raise StepFailure(Status.NOT_FINITE, int(np.argmin(rows)))
