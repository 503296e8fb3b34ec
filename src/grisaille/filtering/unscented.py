"""The unscented filter: averages over sigma points in place of linearisation.

Between samples the moments follow x' = E f, P' = cov(X, f) + cov(f, X) + E BBᵀ, averages over sigma points of the
present moments; so a disturbance that enters as w² moves the mean and the spread. At a sample ȳ = E h,
S = cov(h) + R, K = cov(X, h) S⁻¹, P ← P − K S Kᵀ.

Where a formula jumps with a state the Gaussian is cut at the switch first (``averages``), and the Jacobian that a
linearised step needs is that of the average: the mean's own slope, which sees the jump.

References: S. Särkkä, IEEE Trans. Autom. Control 52 (2007) 1631, eqs. (34), (35); S. J. Julier, J. K. Uhlmann, Proc.
IEEE 92 (2004) 401.
"""

from __future__ import annotations

import casadi as ca

from grisaille.filtering.algebraic_model import AlgebraicModel, with_corrections
from grisaille.filtering.constraint_projection import Rates
from grisaille.filtering.jumps.averages import average
from grisaille.filtering.measurement import (
    Update,
    UpdateResult,
    UpdateSymbols,
    masked_noise,
    seen_where_measured,
    solve_symmetric,
)
from grisaille.filtering.sigma_points import SigmaPoints


def unscented_rates(closed: AlgebraicModel, sigma: SigmaPoints) -> Rates:
    """Return averages of the drift and of the intensity.

    A is the Jacobian at the mean, which ``linearization`` needs; the W that goes with it makes A P + P Aᵀ + W the
    covariance's rate over sigma points: E BBᵀ and what cov(X, f − A X) adds, nothing on linear models whatever P is.
    """
    jumping = _jumping_rates(closed, sigma)
    if jumping is not None:
        return jumping

    def rates(
        t: ca.SX, h: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        _, A, _, z = closed.rates(t, h, x, z, u, q)
        points, means, covariances = sigma.around(x, P)
        values = [closed.flow(t, h, point, z, u, q) for point in points]
        f, W = (sum((means[i] * v[k] for i, v in enumerate(values)), start=0) for k in (0, 1))
        rest = ca.SX(x.numel(), x.numel())
        for i, (point, value) in _enumerated(points, values):
            rest += covariances[i] * ca.mtimes(point - x, (value[0] - f - ca.mtimes(A, point - x)).T)
        return f, A, W + rest + rest.T, with_corrections(z, [value[2] for value in values])

    return rates


def unscented_update(closed: AlgebraicModel, sigma: SigmaPoints) -> Update:
    """Return the update over sigma points of the predicted moments."""
    m = closed.model
    jumping = average(closed, m.measured, m.variance, sigma)

    def cut(a: UpdateSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> UpdateResult:
        assert jumping is not None
        mean, R, together, spread, z = jumping(a.t, x, P, z, a.u, a.q)
        rows = ca.diag(a.mask)
        S = ca.mtimes([rows, spread, rows]) + masked_noise(a, R)
        e = a.mask * (a.y - mean)
        K = solve_symmetric(S, ca.mtimes(rows, together.T)).T
        return UpdateResult(x + ca.mtimes(K, e), P - ca.mtimes([K, S, K.T]), e, S, z)

    def update(a: UpdateSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> UpdateResult:
        points, means, covariances = sigma.around(x, P)
        seen = [seen_where_measured(closed, a, point, z) for point in points]
        values = [a.mask * s[0] for s in seen]
        mean = sum((means[i] * v for i, v in enumerate(values)), start=0)
        R = sum((means[i] * s[2] for i, s in enumerate(seen)), start=0)
        S, together = masked_noise(a, R), ca.SX(x.numel(), mean.numel())
        for i, (point, value) in _enumerated(points, values):
            S += covariances[i] * ca.mtimes(value - mean, (value - mean).T)
            together += covariances[i] * ca.mtimes(point - x, (value - mean).T)
        e = a.mask * a.y - mean
        K = solve_symmetric(S, together.T).T
        z = with_corrections(seen[0][3], [s[3] for s in seen[1:]])
        return UpdateResult(x + ca.mtimes(K, e), P - ca.mtimes([K, S, K.T]), e, S, z)

    return update if jumping is None else cut


def _jumping_rates(closed: AlgebraicModel, sigma: SigmaPoints) -> Rates | None:
    """Return the same where drift or intensity jump with a state; A = ∂E f/∂x then includes the jump."""
    m = closed.model
    averaged = average(closed, m.drift, ca.mtimes(m.noise, m.noise.T), sigma)
    if averaged is None:
        return None
    P = ca.SX.sym("P", m.n, m.n)
    t, x, z, u, q = closed.symbols
    arguments = [t, x, P, z, u, q]
    f, W, together, _, points = averaged(*arguments)
    A = ca.jacobian(f, m.X)
    rest = together - ca.mtimes(P, A.T)
    outputs = [f, A, W + rest + rest.T, with_corrections(closed.z, [points])]
    function = ca.Function("rates", arguments, ca.cse(outputs))

    def rates(
        t: ca.SX, h: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        f, A, W, z = function(t, x, P, z, u, q)
        return f, A, W, z

    return rates


def _enumerated(points: list[ca.SX], values: list[ca.SX]) -> list[tuple[int, tuple[ca.SX, ca.SX]]]:
    return list(enumerate(zip(points, values, strict=True)))
