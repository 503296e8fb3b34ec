"""Mean and a square root of the covariance between samples: the unscented filter propagated through its sigma points.

With P = L Lᵀ, L lower triangular, and averages over the sigma points x ± √(n + λ) L_j,

    x' = E f        L' = L Φ(L⁻¹ P' L⁻ᵀ)        P' = cov(X, f) + cov(f, X) + B Bᵀ

Φ takes the lower triangle and half of the diagonal, so that L'Lᵀ + L L'ᵀ = P'. The exact solution is that of
``moments``; at a finite step the two differ by the order of the method. P must be positive definite, or nothing comes
out (NaN): from a singular one the root grows like that of time, which no step follows. B is taken at the mean: programs
that integrate sigma points do so, and their numbers are reached step by step. Where f or B jump with a state the
averages are those of ``averages``, B included.

Reference: S. Särkkä, IEEE Trans. Autom. Control 52 (2007) 1631, eq. (35).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.filtering.algebraic_model import AlgebraicModel, solve_algebraic, with_corrections
from grisaille.filtering.constraint_projection import ConstraintProjection
from grisaille.filtering.jumps.averages import JumpAverage, average
from grisaille.filtering.moment_steps import STAGE_TABLES, StepSymbols
from grisaille.filtering.sigma_points import SigmaPoints, square_root


def square_root_step(
    closed: AlgebraicModel, sigma: SigmaPoints, projection: ConstraintProjection, solver: str
) -> ca.Function:
    """Return one step of mean and square root; it takes and gives the covariance, whose factor is unique."""
    model, packing = closed.model, closed.packing
    a = StepSymbols.of(model, packing)
    x, P, z = packing.unpack(a.s)
    L, method = square_root(P, singular=np.nan), STAGE_TABLES[solver]
    jumping = average(closed, model.drift, ca.mtimes(model.noise, model.noise.T), sigma)
    dx, dL, sum_x, sum_L = ca.SX.zeros(model.n), ca.SX.zeros(model.n, model.n), 0, 0
    for part, u, weight in zip(method.parts, method.signals, method.weights, strict=True):
        here, root = x + part * a.h * dx, L + part * a.h * dL
        z = solve_algebraic(closed, a.t + part * a.h, here, z, a.u[u], a.q)
        dx, rate, z = _averaged(closed, sigma, jumping, (a.t + part * a.h, a.h, here, root, z, a.u[u], a.q))
        dL = ca.mtimes(root, _lower_half(_inside(root, rate)))
        sum_x, sum_L = sum_x + weight * dx, sum_L + weight * dL
    end, root = a.t + a.h, L + a.h * sum_L
    x, P = projection.after_step(end, x + a.h * sum_x, ca.mtimes(root, root.T), a.u[2], a.q, a.nominal)
    z = solve_algebraic(closed, end, x, z, a.u[2], a.q)
    return ca.Function("step", a.arguments, ca.cse([packing.pack(x, P, z)]))


def _averaged(
    closed: AlgebraicModel,
    sigma: SigmaPoints,
    jumping: JumpAverage | None,
    at: tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX],
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return E f, P', and z with the corrections of all points."""
    t, h, x, root, z, u, q = at
    if jumping is not None:
        mean, W, together, _, points = jumping(t, x, ca.mtimes(root, root.T), z, u, q)
        return mean, together + together.T + W, with_corrections(z, [points])
    points, means, covariances = sigma.along(x, root)
    flows = [closed.flow(t, h, point, z, u, q) for point in points]
    mean = sum((means[i] * f[0] for i, f in enumerate(flows)), start=0)
    together = ca.SX(x.numel(), x.numel())
    for i, (point, f) in enumerate(zip(points, flows, strict=True)):
        together += covariances[i] * ca.mtimes(point - x, (f[0] - mean).T)
    return mean, together + together.T + flows[0][1], with_corrections(z, [f[2] for f in flows])


def _inside(L: ca.SX, P: ca.SX) -> ca.SX:
    """Return L⁻¹ P L⁻ᵀ."""
    half = _forward(L, P)
    return _forward(L, half.T).T


def _forward(L: ca.SX, right: ca.SX) -> ca.SX:
    """Return L⁻¹ right, by substitution."""
    rows: list[ca.SX] = []
    for i in range(L.size1()):
        rest = right[i, :]
        for j, row in enumerate(rows):
            rest = rest - L[i, j] * row
        rows.append(rest / L[i, i])
    return ca.vertcat(*rows)


def _lower_half(M: ca.SX) -> ca.SX:
    return ca.tril(M) - ca.diag(ca.diag(M)) / 2
