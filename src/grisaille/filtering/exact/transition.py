"""Exact transitions of a linear stochastic equation over an interval, with derivatives.

Over an interval of length h, in its own time s ∈ [0, 1], with forcing and intensity polynomials in s,

    dX = (A X + Σ_k b_k s^k) dt + dβ,   E dβ dβᵀ = Σ_k W_k s^k dt:        X(1) = Φ X(0) + h Σ_k Ψ_k b_k + N(0, Q)

    Φ = e^{Ah}        Ψ_j = ∫₀¹ e^{Ah(1−s)} s^j ds
    Q = h Σ_j M_j[W_j],    M_j[W] = ∫₀¹ s^j e^{Ah(1−s)} W e^{Aᵀh(1−s)} ds

Held and linearly joined inputs are such polynomials, so their transitions are exact. Both integrals are Taylor series
over 2⁻ˢ of the interval,

    Ψ_j = Σ_m (Ahη)^m η^{j+1} j!/(m+j+1)!,  η = 2⁻ˢ        M_j[W] likewise with X ↦ AhX + XAᵀh in place of Ah,

and then s doublings, (s+η)^j expanded by the binomial theorem; nothing is inverted, so a singular A is no special case.
Compare ``disturbance.discretization``, whose method this extends. All matrices are duals (``duals``).
"""

from __future__ import annotations

from math import comb

import numpy as np

from grisaille.disturbance.discretization import DEGREE, doublings
from grisaille.disturbance.duals import Floats, times, transpose

NEGLIGIBLE = 1e-18
"""Part of an entry that is left out of a series."""
FEWEST = 8
"""Terms of a series that are always taken, so that entries that cancel by chance do not end it."""


def state_transition(A: Floats, h: float, degree: int) -> tuple[Floats, Floats]:
    """Φ, (1 + ns, n, n), and h Ψ_j for j = 0 … degree, (degree + 1, 1 + ns, n, n)."""
    n = A.shape[-1]
    s = doublings(A[0], h)
    eta = 2.0**-s
    Ah = A * (h * eta)  # scaled before it is raised to powers: hundreds of terms of a long chain would overflow
    identity = np.zeros_like(A)
    identity[0] = np.eye(n)
    E = np.zeros_like(A)
    Psi = np.zeros((degree + 1, *A.shape))
    power = identity
    weights = _first_weights(eta, degree)
    for m in range(DEGREE + 2 * n + 1):
        Psi += weights[:, None, None, None] * power
        weights *= (m + 1) / (m + 2 + np.arange(degree + 1))
        power = times(Ah, power) / (m + 1)
        E += power
        if m > FEWEST and is_negligible(power, E):
            break
    for _ in range(s):
        Psi = times((identity + E)[None], Psi) + _shifted(Psi, eta)
        E = 2 * E + times(E, E)
        eta *= 2
    return identity + E, h * Psi


def noise_covariance(A: Floats, h: float, W: Floats) -> Floats:
    """Q, (…, 1 + ns, n, n), of intensities W, (…, degree + 1, 1 + ns, n, n)."""
    n, degree = A.shape[-1], W.shape[-4] - 1
    s = doublings(A[0], h)
    eta = 2.0**-s
    Ah = A * (h * eta)
    # M[i, j] = M_i[W_j] for i ≤ j: what the binomial theorem needs of W_j
    operated = np.broadcast_to(W[..., None, :, :, :, :], (*W.shape[:-4], degree + 1, *W.shape[-4:]))
    M = np.zeros(operated.shape)
    weights = _first_weights(eta, degree)
    for m in range(DEGREE + 2 * n + 1):
        added = weights[:, None, None, None, None] * operated
        M = M + added
        if m > FEWEST and is_negligible(added, M):
            break
        weights *= (m + 1) / (m + 2 + np.arange(degree + 1))
        moved = times(Ah, operated)
        operated = (moved + transpose(moved)) / (m + 1)
    F = state_transition(A, h * eta, 0)[0]
    for _ in range(s):
        M = times(times(F, M), transpose(F)) + np.moveaxis(_shifted(np.moveaxis(M, -5, 0), eta), 0, -5)
        F = times(F, F)
        eta *= 2
    Q = h * np.sum([M[..., j, j, :, :, :] for j in range(degree + 1)], axis=0)
    return np.asarray((Q + transpose(Q)) / 2)


def polynomial_nodes(degree: int) -> tuple[Floats, Floats]:
    """Points in [0, 1] and the matrix that takes values there to coefficients."""
    if degree == 0:
        return np.array([0.5]), np.ones((1, 1))
    nodes = 0.5 - 0.5 * np.cos(np.pi * np.arange(degree + 1) / degree)
    return nodes, np.asarray(np.linalg.inv(np.vander(nodes, degree + 1, increasing=True)), dtype=np.float64)


def _first_weights(eta: float, degree: int) -> Floats:
    """η^{j+1} m! j!/(m+j+1)! for m = 0: the weight of (Ahη)^m/m!."""
    j = np.arange(degree + 1)
    return np.asarray(eta ** (j + 1.0) / (j + 1.0))


def _shifted(integrals: Floats, eta: float) -> Floats:
    """Σ_i C(j, i) η^{j−i} integral_i: the second half of a doubled interval, whose s begins at η."""
    out = np.zeros_like(integrals)
    for j in range(len(integrals)):
        for i in range(j + 1):
            out[j] += comb(j, i) * eta ** (j - i) * integrals[i]
    return out


def is_negligible(term: Floats, total: Floats) -> bool:
    """Whether no entry of a term adds anything to its sum.

    Entries far from the diagonal begin late, each one after another that is nearer, so that a term without a new entry
    is the last that has any.
    """
    return bool((np.abs(term) <= NEGLIGIBLE * np.abs(total)).all())
