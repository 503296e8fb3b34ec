"""The quadratic model of a criterion at one point of ξ, and its minimum between bounds.

    f(ξ + d) ≈ f + gᵀd + ½ dᵀHd,        (H + λ D²) d = −g,    D² = diag |H|

Steps are computed in units of D. With residuals r and their Jacobian J the model is that of ½|r + Jd|², solved by the
singular values of J: squaring it to H would lose half of the digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

MIN_OBJECTIVE_CHANGE = 1e-6
"""Unknowns whose change by an e-fold, or by their own size, moves the objective by less than this are not seen."""
OWN_UNITS = 1e-300
"""``HessianQuadratic.level`` where unknowns have units of their own: the diagonal of H alone tells their sizes."""
RANK, FLAT = 1e-12, 1e-24
"""Singular values of J relative to the largest, and eigenvalues of H, in units of D: below, a direction is not seen."""


class Quadratic(Protocol):
    """A model of the criterion around a point."""

    @property
    def slope(self) -> np.ndarray:
        """g"""
        ...

    @property
    def seen(self) -> np.ndarray:
        """Return by how much an e-fold of each unknown moves the criterion, in units of the smallest notable change."""
        ...

    def bend(self, step: np.ndarray) -> float:
        """Return dᵀHd"""
        ...

    def root(self, among: np.ndarray, step: np.ndarray, damping: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, b and D: the damped model over some unknowns is ½ |A D d + b|², with the others at ``step``."""
        ...


@dataclass(frozen=True, eq=False)
class SquaresQuadratic:
    """½ |r + J d|²."""

    jacobian: np.ndarray
    residuals: np.ndarray
    size: np.ndarray
    """D of the steps; at least the norms of the columns of J."""

    @property
    def slope(self) -> np.ndarray:
        return np.asarray(self.jacobian.T @ self.residuals)

    @property
    def seen(self) -> np.ndarray:
        level = float(self.residuals @ self.residuals) / max(len(self.residuals), 1)
        with np.errstate(over="ignore"):  # residuals of zero: as clearly as can be
            return np.asarray(np.sum(self.jacobian**2, axis=0) / max(level, 1e-300))

    def bend(self, step: np.ndarray) -> float:
        return float(np.sum((self.jacobian @ step) ** 2))

    def root(self, among: np.ndarray, step: np.ndarray, damping: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size = np.where(self.size[among] > 0, self.size[among], 1.0)
        A, b = self.jacobian[:, among] / size, self.residuals + self.jacobian[:, ~among] @ step[~among]
        if damping == 0:
            return A, b, size
        return np.vstack([A, np.sqrt(damping) * np.eye(len(size))]), np.append(b, np.zeros(len(size))), size


@dataclass(frozen=True, eq=False)
class HessianQuadratic:
    """gᵀd + ½ dᵀHd; λ is at least what makes H + λD² definite."""

    slope: np.ndarray
    hessian: np.ndarray
    level: float = 1.0
    """By how much the objective changes within a standard error of an unknown."""

    @property
    def seen(self) -> np.ndarray:
        return np.asarray(np.abs(np.diag(self.hessian)) / self.level)

    def bend(self, step: np.ndarray) -> float:
        return float(step @ self.hessian @ step)

    def root(self, among: np.ndarray, step: np.ndarray, damping: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        slope = self.slope[among] + self.hessian[np.ix_(among, ~among)] @ step[~among]
        H = self.hessian[np.ix_(among, among)]
        size = np.sqrt(np.maximum(np.abs(np.diag(H)), MIN_OBJECTIVE_CHANGE * self.level))
        values, vectors = np.linalg.eigh(H / np.outer(size, size))
        damping = max(damping, damping - 1.5 * float(values.min()))
        roots = np.sqrt(np.maximum(values + damping, FLAT))
        return roots[:, None] * vectors.T, (vectors.T @ (slope / size)) / roots, size


def is_definite(H: np.ndarray) -> bool:
    """Return whether a symmetric matrix is positive definite, whatever its units."""
    size = np.sqrt(np.abs(np.diag(H)))
    if not (np.isfinite(H).all() and (np.diag(H) > 0).all()):
        return False
    try:
        np.linalg.cholesky(H / np.outer(size, size))
    except np.linalg.LinAlgError:
        return False
    return True


def solve(model: Quadratic, among: np.ndarray, step: np.ndarray, damping: float) -> np.ndarray:
    """Return the minimum of the damped model over some unknowns, the others at ``step``."""
    A, b, size = model.root(among, step, damping)
    return np.asarray(np.linalg.lstsq(A, -b, rcond=RANK)[0] / size)


def bounded_step(
    model: Quadratic, low: np.ndarray, high: np.ndarray, damping: float, held: np.ndarray | None = None
) -> np.ndarray:
    """Return the damped step d with low ≤ d ≤ high; unknowns that a bound stops or that are held stay.

    Components that leave the box go to its side and the others are solved for again, so that a direction that the data
    hardly see does not shorten the whole step.
    """
    from scipy.optimize import lsq_linear

    g, step = model.slope, np.zeros_like(low)
    mine = np.ones(len(g), dtype=bool) if held is None else ~held
    free = mine & ~(((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0)))
    for _ in range(len(g)):
        if not free.any():
            break
        wanted = solve(model, free, step, damping)
        step[free] = np.clip(wanted, low[free], high[free])
        outside = np.flatnonzero(free)[wanted != step[free]]
        if not len(outside):
            break
        free[outside] = False
    if step.any() and g @ step + 0.5 * model.bend(step) >= 0:
        # sides were guessed wrongly, and the step leads uphill: an active set finds them
        step, mine = np.zeros_like(low), mine & (low < high)
        A, b, size = model.root(mine, step, damping)
        found = lsq_linear(A, -b, (low[mine] * size, high[mine] * size), method="bvls").x
        step[mine] = np.clip(found / size, low[mine], high[mine])
    return step
