"""Matrices together with their derivatives: one array, the value first, then one matrix per direction.

    X = (X₀, X₁, …, X_ns),   X_k = ∂X₀/∂θ · (direction k),        shape (…, 1 + ns, rows, columns)

Sums, scalings and transposes act on all of it at once; products follow the product rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def times(X: Floats, Y: Floats) -> Floats:
    """Return X Y with derivatives."""
    product = X[..., :1, :, :] @ Y
    product[..., 1:, :, :] += X[..., 1:, :, :] @ Y[..., :1, :, :]
    return np.asarray(product)


def transpose(X: Floats) -> Floats:
    return np.swapaxes(X, -1, -2)


def constant_dual(value: Floats, directions: int) -> Floats:
    """Return a matrix that no direction moves."""
    still = np.zeros((*value.shape[:-2], 1 + directions, *value.shape[-2:]))
    still[..., 0, :, :] = value
    return still


def solve_linear(operator: Floats, right: Floats) -> Floats:
    """Return x with operator · x = right, by least squares for tall ones; dx from operator · dx = d right − d operator
    · x.

    Exact for consistent systems, which is not checked.
    """
    x = np.linalg.lstsq(operator[0], right[0], rcond=1e-13)[0]
    moved = right[1:] - operator[1:] @ x
    flat = moved.transpose(1, 0, 2).reshape(moved.shape[1], -1)
    dx = np.linalg.lstsq(operator[0], flat, rcond=1e-13)[0].reshape(len(x), len(moved), x.shape[1]).transpose(1, 0, 2)
    return np.concatenate([x[None], dx])
