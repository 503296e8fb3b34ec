"""Matrices in other units: sizes of rows and columns that leave the rank a matter of the equations alone.

Rank is decided by singular values, which units change. Two scalings are made of the entries themselves:

``equilibrated``  every row and column has the largest entry 1 (Ruiz); quick, but not unique: where sizes differ by
1e±9, a regular matrix may be left with rows that hardly differ.

``balanced``  minimise Σ (log|a_ij| − r_i − c_j)² over the entries that are not zero (Curtis and Reid); unique, so that
D₁ A D₂ leads to the same matrix for all diagonal D₁, D₂.

A matrix whose entries are right to rounding is singular up to rounding in every scaling if it is singular at all; so it
is regular as soon as one scaling shows it.

References: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices (2001). A. Curtis,
J. Reid, On the automatic scaling of matrices for Gaussian elimination (1972).
"""

from __future__ import annotations

import numpy as np

EQUILIBRATIONS = 20
"""Passes of Ruiz's scaling; each halves the logarithm of what is left."""
RANK_TOLERANCE = 1e-9
"""Relative to the largest singular value of the scaled matrix; rounding is 1e-15, generic blocks lie above 1e-4."""


def equilibrated(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix, or each of a stack, with rows and columns of one size, and the sizes of the rows."""
    scaled, size = matrix.copy(), np.ones(matrix.shape[:-1])
    for _ in range(EQUILIBRATIONS):
        rows, columns = (np.sqrt(np.abs(scaled).max(axis=axis, keepdims=True)) for axis in (-1, -2))
        rows, columns = np.where(rows > 0, rows, 1.0), np.where(columns > 0, columns, 1.0)
        scaled = scaled / rows / columns
        size = size * rows[..., 0]
    return scaled, size


def balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix with entries as near to one as rows and columns allow, equilibrated; and the sizes of the rows."""
    present = (matrix != 0) & np.isfinite(matrix)
    logarithms = np.zeros(matrix.shape)
    logarithms[present] = np.log(np.abs(matrix[present]))
    sizes = _balance(present.astype(float), logarithms)
    rows, columns = np.exp(sizes[: len(matrix)]), np.exp(sizes[len(matrix) :])
    scaled, more = equilibrated(matrix / rows[:, None] / columns)
    return scaled, rows * more


def rank(matrix: np.ndarray) -> int:
    """How many rows are independent, in the scaling that shows most of them."""
    if not matrix.size:
        return 0
    most = min(matrix.shape)
    found = _rank(equilibrated(matrix)[0])
    return found if found == most or not np.any(matrix) else max(found, _rank(balanced(matrix)[0]))


def is_regular(matrix: np.ndarray) -> bool:
    """Whether all rows of a square matrix are independent."""
    if matrix.shape == (1, 1):
        return bool(matrix[0, 0] != 0)
    return rank(matrix) == len(matrix)


def _rank(matrix: np.ndarray) -> int:
    singular = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(singular > RANK_TOLERANCE * max(singular[0], 1e-300)))


def _balance(present: np.ndarray, logarithms: np.ndarray) -> np.ndarray:
    """(r, c) of the least squares, by conjugate gradients on its normal equations."""
    m = len(present)
    counts = np.maximum(np.concatenate([present.sum(axis=1), present.sum(axis=0)]), 1.0)

    def normal(v: np.ndarray) -> np.ndarray:
        return np.asarray(counts * v + np.concatenate([present @ v[m:], present.T @ v[:m]]))

    v = np.zeros(len(counts))
    residual = np.concatenate([logarithms.sum(axis=1), logarithms.sum(axis=0)])
    step = residual / counts
    size = float(residual @ step)
    first = size
    for _ in range(2 * len(counts)):
        if size <= 1e-12 * (1.0 + first):
            break
        moved = normal(step)
        length = size / float(step @ moved)
        v, residual = v + length * step, residual - length * moved
        new = residual / counts
        before, size = size, float(residual @ new)
        step = new + size / before * step
    return v
