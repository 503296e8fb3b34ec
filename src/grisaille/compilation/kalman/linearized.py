"""The step of gr_filter_linearized.h in NumPy, with derivatives: the twin for interpreted models.

    T_1 = M, T_k = M T_{k−1}/k, E = Σ T_k        U_1 = W, U_k = (A U_{k−1} + its transpose)/k, Q = Σ U_k
    doublings times:  Q ← Q + F Q Fᵀ,  F = I + E        E ← 2E + E²
    x ← x + E[:, n],   P ← Φ P Φᵀ + Q,   Φ = I + E

Arrays carry the value first, then one matrix per direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DEGREE = 12
"""Of the Taylor series, as in gr_filter_linearized.h: 2⁻¹³/13! is 2e-14, and where the doublings were chosen the norm
is an eighth, not a half."""


def solve_linearized(c: Floats, s: Floats, h: float, doublings: int, n: int, powers: int) -> tuple[Floats, Floats]:
    """Carried columns (1 + ns, size) after the step, and Φ; c, (1 + ns, …), are the coefficients A, G, W, z."""
    nd, size, half = len(c), n + powers, n * (n + 1) // 2
    small, part = h * 2.0**-doublings, 2.0**-doublings
    A, G, W, z = np.split(c, [n * n, n * (n + powers), n * (n + powers) + half], axis=1)
    M = np.zeros((nd, size, size))
    M[:, :n, :n], M[:, :n, n:] = small * A.reshape(nd, n, n), small * G.reshape(nd, n, powers)
    M[0, n + np.arange(1, powers), n + np.arange(powers - 1)] = part * np.arange(1, powers)
    E, Q = _series(M, small * _full(W, n), doublings, n)
    E[0, :n, :n] += np.eye(n)
    Phi = E[:, :n, :n]
    x = s[:, :n] + E[:, :n, n]
    P = _times(_times(Phi, _full(s[:, n : n + half], n)), np.swapaxes(Phi, -1, -2)) + Q
    column, row = np.triu_indices(n)
    return np.concatenate([x, P[:, row, column], z], axis=1), Phi


def _series(M: Floats, W: Floats, doublings: int, n: int) -> tuple[Floats, Floats]:
    A, E, T, U, Q = M[:, :n, :n], M.copy(), M, W, W.copy()
    for k in range(2, DEGREE + 1):
        T = _times(M, T) / k
        moved = _times(A, U)
        U = (moved + np.swapaxes(moved, -1, -2)) / k
        E, Q = E + T, Q + U
    for _ in range(doublings):
        F = E[:, :n, :n].copy()
        F[0] += np.eye(n)
        Q = Q + _times(_times(F, Q), np.swapaxes(F, -1, -2))
        E = 2 * E + _times(E, E)
    return E, Q


def _times(X: Floats, Y: Floats) -> Floats:
    product = X[:1] @ Y
    product[1:] += X[1:] @ Y[:1]
    return np.asarray(product)


def _full(half: Floats, n: int) -> Floats:
    column, row = np.triu_indices(n)
    full = np.zeros((len(half), n, n))
    full[:, row, column] = full[:, column, row] = half
    return full
