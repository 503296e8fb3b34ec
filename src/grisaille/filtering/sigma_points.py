"""Sigma points: as many as it takes to have a mean and a covariance.

    x₀ = x,   x_{±i} = x ± √(n + λ) L_i,   P = L Lᵀ        λ = α² (n + κ) − n
    weights of means       w₀ = λ/(n + λ),                    w_i = 1/(2 (n + λ))
    weights of covariances w₀ = λ/(n + λ) + 1 − α² + β,       w_i the same

α = 1, β = 0, κ = 3 are the defaults: all weights are positive, and on linear models nothing is lost by cancellation
(α = 1e-3 loses six digits).

L is Cholesky's factor. A pivot below 1e-12 of its diagonal entry is a direction without uncertainty: its column is
zero, and so is its derivative, because a variance that vanishes has its minimum there. One that is not finite is no
such direction: the root is not finite either.

Reference: S. J. Julier, J. K. Uhlmann, Proc. IEEE 92 (2004) 401.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

NO_VARIANCE = 1e-12
"""Pivots of Cholesky's factor, relative to the diagonal, that count as zero."""
MAX_DIAGONAL = 1e300
"""Diagonal entries with which pivots are compared: an infinite one is not nothing beside itself."""


@dataclass(frozen=True)
class SigmaPoints:
    """Spread and weights of the points."""

    alpha: float = 1.0
    beta: float = 0.0
    kappa: float = 3.0

    def weights(self, n: int) -> tuple[float, ca.DM, ca.DM]:
        """Return √(n + λ), weights of means and of covariances, the centre first."""
        total = self.alpha**2 * (n + self.kappa)
        means = np.full(2 * n + 1, 1 / (2 * total))
        means[0] = (total - n) / total
        covariances = means.copy()
        covariances[0] += 1 - self.alpha**2 + self.beta
        return float(np.sqrt(total)), ca.DM(means), ca.DM(covariances)

    def around(self, x: ca.SX, P: ca.SX) -> tuple[list[ca.SX], ca.DM, ca.DM]:
        """Return the points, and both sets of weights."""
        return self.along(x, square_root(P))

    def along(self, x: ca.SX, L: ca.SX) -> tuple[list[ca.SX], ca.DM, ca.DM]:
        """Return the same for P = L Lᵀ."""
        spread, means, covariances = self.weights(x.numel())
        columns = [spread * L[:, j] for j in range(x.numel())]
        return [x, *(x + c for c in columns), *(x - c for c in columns)], means, covariances


def square_root(P: ca.SX, singular: float = 0.0) -> ca.SX:
    """Return L with L Lᵀ = P, lower triangular; where P is singular the columns are zero, or as given."""
    n = P.size1()
    L = ca.SX(n, n)
    for j in range(n):
        pivot = P[j, j] - ca.sumsqr(L[j, :j]) if j else P[j, j]
        is_there = ca.logic_not(pivot <= NO_VARIANCE * ca.fmin(P[j, j], MAX_DIAGONAL))
        root = ca.sqrt(ca.if_else(is_there, pivot, 1.0))
        L[j, j] = ca.if_else(is_there, root, singular)
        for i in range(j + 1, n):
            rest = P[i, j] - (ca.dot(L[i, :j], L[j, :j]) if j else 0.0)
            L[i, j] = ca.if_else(is_there, rest / root, 0.0)
    return L


def first_singular(P: np.ndarray) -> int:
    """Return number of the first direction without uncertainty, by the same rule; −1 where P is positive definite."""
    L = np.zeros_like(P)
    for j in range(len(P)):
        pivot = P[j, j] - L[j, :j] @ L[j, :j]
        if pivot <= NO_VARIANCE * min(P[j, j], MAX_DIAGONAL):
            return j
        L[j:, j] = (P[j:, j] - L[j:, :j] @ L[j, :j]) / np.sqrt(pivot)
    return -1
