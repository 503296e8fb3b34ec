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

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import SuperLU

MAX_EQUILIBRATIONS = 20
"""Passes of Ruiz's scaling; each halves the logarithm of what is left."""
RANK_TOLERANCE = 1e-9
"""Relative to the largest singular value of the scaled matrix; rounding is 1e-15, generic blocks lie above 1e-4."""
NUMBERS_TOLERANCE = 1e-13
"""The same for matrices of numbers, in which nothing is rounded but sums of a few terms: nodes that weak conductances
tie to others, ten powers of ten below those among them, are tied."""

CLEAR_CONDITION_SHARE = 1e-2
"""Part of the condition number at which a rank is lost, up to which an estimate of it leaves no doubt."""


def equilibrated(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix, or each of a stack, with rows and columns of one size, and the sizes of the rows."""
    scaled, size = matrix.copy(), np.ones(matrix.shape[:-1])
    for _ in range(MAX_EQUILIBRATIONS):
        rows, columns = (np.sqrt(np.abs(scaled).max(axis=axis, keepdims=True)) for axis in (-1, -2))
        rows, columns = np.where(rows > 0, rows, 1.0), np.where(columns > 0, columns, 1.0)
        scaled = scaled / rows / columns
        size = size * rows[..., 0]
    return scaled, size


def equilibrated_entries(matrix: csc_array) -> tuple[csc_array, np.ndarray, np.ndarray]:
    """Return a sparse matrix with rows and columns of one size, and the sizes of both, 0 of empty ones."""
    from scipy.sparse import csc_array

    scaled = csc_array(matrix, copy=True)
    column = np.repeat(np.arange(scaled.shape[1]), np.diff(scaled.indptr))
    scaled.data, rows, columns = equilibrated_triplets(scaled.data, scaled.indices, column, scaled.shape)
    return scaled, rows, columns


def equilibrated_triplets(
    values: np.ndarray, row: np.ndarray, column: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return entries, each in its row and column, scaled so that rows and columns have one size; and the sizes of
    both.
    """
    values = values.copy()
    rows, columns = np.ones(shape[0]), np.ones(shape[1])
    for _ in range(MAX_EQUILIBRATIONS):
        high, wide = np.zeros(shape[0]), np.zeros(shape[1])
        np.maximum.at(high, row, np.abs(values))
        np.maximum.at(wide, column, np.abs(values))
        high, wide = np.sqrt(high), np.sqrt(wide)
        values /= np.where(high > 0, high, 1.0)[row] * np.where(wide > 0, wide, 1.0)[column]
        rows, columns = rows * high, columns * wide
    return values, rows, columns


def balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix with entries as near to one as rows and columns allow, equilibrated; and the sizes of the
    rows.
    """
    present = (matrix != 0) & np.isfinite(matrix)
    logarithms = np.zeros(matrix.shape)
    logarithms[present] = np.log(np.abs(matrix[present]))
    sizes = _balance(present.astype(float), logarithms)
    rows, columns = np.exp(sizes[: len(matrix)]), np.exp(sizes[len(matrix) :])
    scaled, more = equilibrated(matrix / rows[:, None] / columns)
    return scaled, rows * more


def rank(matrix: np.ndarray, tolerance: float = RANK_TOLERANCE) -> int:
    """Return how many rows are independent, in the scaling that shows most of them."""
    if not matrix.size:
        return 0
    most = min(matrix.shape)
    found = _rank(equilibrated(matrix)[0], tolerance)
    return found if found == most or not np.any(matrix) else max(found, _rank(balanced(matrix)[0], tolerance))


def is_regular(matrix: np.ndarray, tolerance: float = RANK_TOLERANCE) -> bool:
    """Return whether all rows of a square matrix are independent."""
    if matrix.shape == (1, 1):
        return bool(matrix[0, 0] != 0)
    return rank(matrix, tolerance) == len(matrix)


def is_clearly_regular(matrix: csc_array) -> bool:
    """Return whether sparse factors of a square matrix leave no doubt about its rank, by ``is_regular``; False says
    nothing.

    Of the equilibrated matrix, σ_max ≤ √(|A|₁ |A|∞), and 1/σ_min alike of its inverse, whose norms are estimated from
    below, hardly ever by more than a factor of ten each (Higham, Accuracy and Stability of Numerical Algorithms, 15.3).
    """
    from scipy.sparse.linalg import splu

    if not np.isfinite(matrix.data).all():
        return False
    scaled, rows, columns = equilibrated_entries(matrix)
    if not (rows.all() and columns.all()):
        return False
    try:
        factors = splu(scaled)
    except RuntimeError:  # "Factor is exactly singular"
        return False
    inverse = [_norm_of_inverse(factors, scaled.shape[0], *ways) for ways in (("N", "T"), ("T", "N"))]
    sizes = [float(abs(scaled).sum(axis=axis).max()) for axis in (0, 1)]
    return bool(np.sqrt(np.prod(sizes) * np.prod(inverse)) < CLEAR_CONDITION_SHARE / RANK_TOLERANCE)


def _norm_of_inverse(factors: SuperLU, n: int, forth: str, back: str) -> float:
    """Return Hager's estimate of |A⁻¹|₁, from below."""
    x, most = np.full(n, 1.0 / n), 0.0
    for _ in range(5):
        y = factors.solve(x, forth)
        most = max(most, float(np.abs(y).sum()))
        z = factors.solve(np.where(y < 0, -1.0, 1.0), back)
        j = int(np.argmax(np.abs(z)))
        if not abs(z[j]) > z @ x:
            break
        x = np.zeros(n)
        x[j] = 1.0
    return most if np.isfinite(most) else np.inf


def _rank(matrix: np.ndarray, tolerance: float) -> int:
    singular = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(singular > tolerance * max(singular[0], 1e-300)))


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
