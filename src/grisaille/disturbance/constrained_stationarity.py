"""The stationary covariance of a linear system with constraints, and its derivatives.

    A P + P Aᵀ + W = 0,    C P = 0

solved as one linear system in the entries of P, so that the derivatives follow by the product rule (``duals``).
"""

from __future__ import annotations

import numpy as np

from grisaille.disturbance import refuse_unstable
from grisaille.disturbance.duals import Floats, solve_linear


def stationary(A: Floats, W: Floats, C: Floats, label: str) -> Floats:
    """P with A P + P Aᵀ + W = 0 and C P = 0, as a dual."""
    n = A.shape[-1]
    if not n:
        return np.zeros_like(W)
    free = null_space(C[0])
    refuse_unstable(free.T @ A[0] @ free, label)
    operator = np.stack([np.kron(a, np.eye(n)) + np.kron(np.eye(n), a) for a in A])
    tied = np.stack([np.kron(c, np.eye(n)) for c in C]) if C.shape[1] else np.zeros((len(A), 0, n * n))
    right = np.concatenate([-W.reshape(len(A), -1), np.zeros((len(A), tied.shape[1]))], axis=1)[..., None]
    P = solve_linear(np.concatenate([operator, tied], axis=1), right).reshape(A.shape)
    return np.asarray((P + np.swapaxes(P, -1, -2)) / 2)


def null_space(C: Floats) -> Floats:
    if not C.shape[0]:
        return np.eye(C.shape[1])
    _, singular, vt = np.linalg.svd(C / np.maximum(np.abs(C).max(axis=1, keepdims=True, initial=0.0), 1e-300))
    return np.asarray(vt[int(np.sum(singular > 1e-9)) :].T)
