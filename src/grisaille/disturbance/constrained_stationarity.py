"""The stationary covariance of a linear system with constraints, and its derivatives.

    A P + P Aᵀ + W = 0,    C P = 0

solved as one linear system in the entries of P, so that the derivatives follow by the product rule (``duals``).
"""

from __future__ import annotations

import numpy as np

from grisaille.cache import Cache
from grisaille.disturbance import refuse_unstable
from grisaille.disturbance.duals import Floats, solve_linear


def stationary(A: Floats, W: Floats, C: Floats, label: str) -> Floats:
    """Return P with A P + P Aᵀ + W = 0 and C P = 0, as a dual."""
    if not A.shape[-1]:
        return np.zeros_like(W)
    key = tuple((part.shape, part.tobytes()) for part in (A, W, C))
    return _solutions.get(key, lambda: _solved(A, W, C, label)).copy()


_solutions: Cache[Floats] = Cache(16)
"""A filter begins at the same point with other steps, or goes on from it with other directions."""


def _solved(A: Floats, W: Floats, C: Floats, label: str) -> Floats:
    free = null_space(C[0])
    refuse_unstable(free.T @ A[0] @ free, label)
    operator = _beside_identity(A) + _before_identity(A)
    tied = _beside_identity(C)
    right = np.concatenate([-W.reshape(len(A), -1), np.zeros((len(A), tied.shape[1]))], axis=1)[..., None]
    P = solve_linear(np.concatenate([operator, tied], axis=1), right).reshape(A.shape)
    return np.asarray((P + np.swapaxes(P, -1, -2)) / 2)


def _beside_identity(A: Floats) -> Floats:
    """Return A ⊗ I of every matrix."""
    count, rows, n = A.shape
    product = A[:, :, None, :, None] * np.eye(n)[:, None, :]
    return np.asarray(product.reshape(count, rows * n, n * n))


def _before_identity(A: Floats) -> Floats:
    """Return I ⊗ A of every matrix."""
    count, n = A.shape[0], A.shape[-1]
    product = np.eye(n)[:, None, :, None] * A[:, None, :, None, :]
    return np.asarray(product.reshape(count, n * n, n * n))


def null_space(C: Floats) -> Floats:
    if not C.shape[0]:
        return np.eye(C.shape[1])
    _, singular, vt = np.linalg.svd(C / np.maximum(np.abs(C).max(axis=1, keepdims=True, initial=0.0), 1e-300))
    return np.asarray(vt[int(np.sum(singular > 1e-9)) :].T)
