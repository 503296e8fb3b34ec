"""The unscented filter: averages over sigma points in place of linearisation.

    x₀ = x,   x_{±i} = x ± √(n + λ) L_i,   P = L Lᵀ        λ = α² (n + κ) − n
    weights of means       w₀ = λ/(n + λ),                    w_i = 1/(2 (n + λ))
    weights of covariances w₀ = λ/(n + λ) + 1 − α² + β,       w_i the same

Between samples the moments follow x' = E f, P' = cov(X, f) + cov(f, X) + E BBᵀ, averages over sigma points of the
present moments; so a disturbance that enters as w² moves the mean and the spread. At a sample ȳ = E h,
S = cov(h) + R, K = cov(X, h) S⁻¹, P ← P − K S Kᵀ. α = 1, β = 0, κ = 3 are the defaults: all weights are positive, and
on linear models nothing is lost by cancellation (α = 1e-3 loses six digits).

L is Cholesky's factor. A pivot below 1e-12 of its diagonal entry is a direction without uncertainty: its column is
zero, and so is its derivative, because a variance that vanishes has its minimum there.

References: S. Särkkä, IEEE Trans. Autom. Control 52 (2007) 1631, eqs. (34), (35); S. J. Julier, J. K. Uhlmann, Proc.
IEEE 92 (2004) 401.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.filtering.implicit import Closed
from grisaille.filtering.measurement import Update, Updated, UpdateSymbols, masked_noise, solve_symmetric
from grisaille.filtering.moments import Rates

NO_VARIANCE = 1e-12
"""Pivots of Cholesky's factor, relative to the diagonal, that count as zero."""


@dataclass(frozen=True)
class SigmaPoints:
    """Spread and weights of the points."""

    alpha: float = 1.0
    beta: float = 0.0
    kappa: float = 3.0

    def weights(self, n: int) -> tuple[float, ca.DM, ca.DM]:
        """√(n + λ), weights of means and of covariances, the centre first."""
        total = self.alpha**2 * (n + self.kappa)
        means = np.full(2 * n + 1, 1 / (2 * total))
        means[0] = (total - n) / total
        covariances = means.copy()
        covariances[0] += 1 - self.alpha**2 + self.beta
        return float(np.sqrt(total)), ca.DM(means), ca.DM(covariances)

    def around(self, x: ca.SX, P: ca.SX) -> tuple[list[ca.SX], ca.DM, ca.DM]:
        """The points, and both sets of weights."""
        return self.along(x, square_root(P))

    def along(self, x: ca.SX, L: ca.SX) -> tuple[list[ca.SX], ca.DM, ca.DM]:
        """The same for P = L Lᵀ."""
        spread, means, covariances = self.weights(x.numel())
        columns = [spread * L[:, j] for j in range(x.numel())]
        return [x, *(x + c for c in columns), *(x - c for c in columns)], means, covariances


def square_root(P: ca.SX) -> ca.SX:
    """L with L Lᵀ = P, lower triangular, zero columns where P is singular."""
    n = P.size1()
    L = ca.SX(n, n)
    for j in range(n):
        pivot = P[j, j] - ca.sumsqr(L[j, :j]) if j else P[j, j]
        is_there = pivot > NO_VARIANCE * P[j, j]
        root = ca.sqrt(ca.if_else(is_there, pivot, 1.0))
        L[j, j] = ca.if_else(is_there, root, 0.0)
        for i in range(j + 1, n):
            rest = P[i, j] - (ca.dot(L[i, :j], L[j, :j]) if j else 0.0)
            L[i, j] = ca.if_else(is_there, rest / root, 0.0)
    return L


def unscented_rates(closed: Closed, sigma: SigmaPoints) -> Rates:
    """Averages of the drift and of the intensity.

    A is the Jacobian at the mean, which ``linearization`` needs; the W that goes with it makes A P + P Aᵀ + W the
    covariance's rate over sigma points: E BBᵀ and what cov(X, f − A X) adds, nothing on linear models whatever P is.
    """

    def rates(t: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        _, A, _, z = closed.rates(t, x, z, u, q)
        points, means, covariances = sigma.around(x, P)
        values = [closed.flow(t, point, z, u, q) for point in points]
        f, W = (sum((means[i] * v[k] for i, v in enumerate(values)), start=0) for k in (0, 1))
        rest = ca.SX(x.numel(), x.numel())
        for i, (point, value) in _enumerated(points, values):
            rest += covariances[i] * ca.mtimes(point - x, (value[0] - f - ca.mtimes(A, point - x)).T)
        return f, A, W + rest + rest.T, z

    return rates


def unscented_update(closed: Closed, sigma: SigmaPoints) -> Update:
    """The update over sigma points of the predicted moments."""

    def update(a: UpdateSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> Updated:
        points, means, covariances = sigma.around(x, P)
        seen = [closed.seen(a.t, point, z, a.u, a.q) for point in points]
        values = [a.mask * s[0] for s in seen]
        mean = sum((means[i] * v for i, v in enumerate(values)), start=0)
        R = sum((means[i] * s[2] for i, s in enumerate(seen)), start=0)
        S, together = masked_noise(a, R), ca.SX(x.numel(), mean.numel())
        for i, (point, value) in _enumerated(points, values):
            S += covariances[i] * ca.mtimes(value - mean, (value - mean).T)
            together += covariances[i] * ca.mtimes(point - x, (value - mean).T)
        e = a.mask * a.y - mean
        K = solve_symmetric(S, together.T).T
        return Updated(x + ca.mtimes(K, e), P - ca.mtimes([K, S, K.T]), e, S)

    return update


def _enumerated(points: list[ca.SX], values: list[ca.SX]) -> list[tuple[int, tuple[ca.SX, ca.SX]]]:
    return list(enumerate(zip(points, values, strict=True)))
