"""Mean and covariance of the states before the first sample, of which particles are drawn.

As filters have them (``initial_moments``): given, stationary, or what process noise builds up over the first interval,
of the model linearised where the record begins:

    P = ∫₀ᵈ exp(A s) W exp(A s)ᵀ ds,   W = B Bᵀ

On hidden constraints P is made tangent to them.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.filtering.initial_moments import is_flat, start_covariance, start_mean

TAYLOR_DEGREE = 14
"""Of a matrix exponential whose argument has a norm of one half: 2⁻¹⁵/15! is 2e-17."""


def particle_start(
    model: StochasticModel, kind: Any, t: float, u: Floats, q: Floats, x0: Floats, z0: Floats, interval: float
) -> tuple[Floats, Floats]:
    """Return mean (n,) and covariance (n, n) of X before the first sample.

    interval : to the second sample
    """
    if is_flat(kind):
        raise EstimationError(
            f"initial_covariance={kind!r} is no distribution that particles can be drawn from: give finite variances, "
            f"{{state: variance}}."
        )
    mean = start_mean(model, kind, x0[None])
    A, W, C = _linearized(model, t, mean[0], z0, u, q)
    P, _ = start_covariance(model, kind, A[None], W[None], _built_up(A, W, interval)[None], C[None])
    covariance = P[0]
    if len(C):
        tangent = np.eye(model.n) - np.linalg.pinv(C) @ C
        covariance = tangent @ covariance @ tangent.T
    return mean[0], covariance


def root_of(P: Floats) -> Floats:
    """Return a root with one column for each direction that has a variance: P = root rootᵀ."""
    size = np.sqrt(np.maximum(np.diag(P), 0.0))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(P / scale[:, None] / scale)
    there = values > 1e-14 * max(values.max(initial=0.0), 1e-300)
    root = scale[:, None] * vectors[:, there] * np.sqrt(values[there])
    # signs of eigenvectors are arbitrary: fixed, so that a small change of P changes the root little
    largest = np.abs(root).argmax(axis=0)
    return np.asarray(root * np.sign(root[largest, np.arange(root.shape[1])]))


def _linearized(
    model: StochasticModel, t: float, X: Floats, z: Floats, u: Floats, q: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return A, W and the Jacobian of the constraints."""

    def make() -> ca.Function:
        closed = AlgebraicModel(model)
        f, B = closed.formula(ca.densify(model.drift)), closed.formula(ca.densify(model.noise))
        C = ca.jacobian(model.constraints, model.X) if model.constraints.numel() else ca.SX(0, model.n)
        parts = [ca.densify(ca.jacobian(f, model.X)), ca.densify(ca.mtimes(B, B.T)), ca.densify(C)]
        return ca.Function("start", closed.plain_symbols, parts)

    function = model.cached_value("particle start", make)
    A, W, C = (np.array(part.full()) for part in function(t, X, z, u, q))
    return A, W.reshape(model.n, model.n), C.reshape(-1, model.n)


def _built_up(A: Floats, W: Floats, h: float) -> Floats:
    """Return the integral over h by halves: Q ← Q + F Q Fᵀ, F ← F²."""
    n, norm = len(A), np.abs(A).sum(axis=1).max(initial=0.0) * h
    if not np.isfinite(norm):
        return np.zeros((n, n))
    halves = max(0, int(np.ceil(np.log2(max(norm, 1e-300) / 0.5)))) if norm > 0 else 0
    H = np.zeros((2 * n, 2 * n))
    H[:n, :n], H[:n, n:], H[n:, n:] = -A, W, A.T
    big, term = np.eye(2 * n), np.eye(2 * n)
    for k in range(1, TAYLOR_DEGREE + 1):  # of a norm below one half
        term = term @ H * (h / 2**halves / k)
        big += term
    F = big[n:, n:].T
    Q = F @ big[:n, n:]
    for _ in range(halves):
        Q, F = Q + F @ Q @ F.T, F @ F
    return np.asarray(0.5 * (Q + Q.T))
