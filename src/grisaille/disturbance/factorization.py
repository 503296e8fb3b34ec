"""Square roots of covariances: Cholesky factors in scaled coordinates, without pivoting.

::

    Q = D R D,  D = diag(√q_ii)        L = D chol(R),  L Lᵀ = Q

Scaling makes the rank decision indifferent to units and to the powers of the step that a chain of integrators brings
(h³/3 beside h). No pivoting: an order of rows that changes with the parameters would make paths jump. A pivot below
``RANK_ROUNDING`` of its diagonal gives a zero column, so semidefinite covariances have a factor too; for ``SX`` the
zero columns are those found in numbers, and kept. Reference: G. H. Golub, C. F. Van Loan, Matrix Computations, section
4.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import DataError

Floats = NDArray[np.float64]

RANK_ROUNDING = 32 * np.finfo(float).eps
"""Times the dimension: pivots of scaled covariances below this are rounding."""

MAX_NEGATIVE_PIVOT = 1e-6
"""Negative pivots beyond this part of the diagonal are not rounding."""


def factorize(Q: ArrayLike) -> Floats:
    """Return lower-triangular L with L Lᵀ = Q, of one covariance or of a stack of them.

    Raises ``DataError`` when Q is not positive semidefinite.
    """
    q = np.asarray(Q, dtype=float)
    n = q.shape[-1]
    diagonal = np.diagonal(q, axis1=-2, axis2=-1)
    _refuse_negative(diagonal, np.max(diagonal, axis=-1, initial=0.0, keepdims=True))
    scale = np.sqrt(np.maximum(diagonal, 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    R = q * inverse[..., :, None] * inverse[..., None, :]
    L: Floats = np.zeros_like(R)
    for j in range(n):
        column = R[..., j:, j] - np.einsum("...ik,...k->...i", L[..., j:, :j], L[..., j, :j])
        pivot = column[..., 0]
        _refuse_negative(pivot, np.ones_like(pivot))
        kept = pivot > RANK_ROUNDING * n
        root = np.sqrt(np.where(kept, pivot, 1.0))
        L[..., j:, j] = np.where(kept[..., None], column / root[..., None], 0.0)
    return np.asarray(L * scale[..., :, None])


def nonzero_pivots(L: ArrayLike) -> tuple[bool, ...]:
    """Return which columns of a factor are not zero: what a symbolic factor must know beforehand."""
    return tuple(bool(entry > 0) for entry in np.diagonal(np.asarray(L)))


def factorize_symbolic(Q: ca.SX, pivots: Sequence[bool]) -> ca.SX:
    """Return L as formulas; columns without a pivot are zero, now and for other parameter values.

    Unscaled: without pivoting, scaling changes the rank decision only, and that is given here.
    """
    n = Q.shape[0]
    L = ca.SX(n, n)
    for j in (j for j in range(n) if pivots[j]):
        for i in range(j, n):
            rest = Q[i, j] - ca.dot(L[i, :j], L[j, :j])
            L[i, j] = ca.sqrt(rest) if i == j else rest / L[j, j]
    return L


def _refuse_negative(pivot: Floats, size: Floats) -> None:
    worst = np.min(pivot + MAX_NEGATIVE_PIVOT * size, initial=0.0)
    if worst < 0 or not np.all(np.isfinite(pivot)):
        raise DataError(
            f"A covariance is not positive semidefinite: a pivot is {np.min(pivot):.3g}, in units of its diagonal. "
            "Check the correlations of the disturbance, or the matrix given."
        )
