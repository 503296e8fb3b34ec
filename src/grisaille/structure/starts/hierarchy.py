"""Least squares by rank of importance: each level is met as well as the levels above it allow.

Minimise |A₁Δ − b₁|, among its minimisers |A₂Δ − b₂|, and so on; what no level determines stays zero. Each level works
in the null space left by those above it (singular value decomposition, relative rank tolerance).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csc_array

MIN_PIVOT = 1e-8
RANK_TOLERANCE = 1e-11


def solve_levels(levels: Iterable[tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
    """Return the correction Δ, shape (n,) or (n, m) for right-hand sides with m columns.

    A level is asked for only while those above it leave freedom. Raises ``numpy.linalg.LinAlgError`` where one that is
    needed is not finite.
    """
    delta, free = np.zeros(n), np.eye(n)
    for matrix, right in levels:
        if delta.ndim < right.ndim:
            delta = np.zeros((n, *right.shape[1:]))
        if matrix.shape[0] == 0:
            continue
        if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
            raise np.linalg.LinAlgError("a level is not finite")
        reduced = matrix @ free
        # rows that the levels above determine are rounding of their own entries, whatever sizes the others have
        sizes = np.abs(matrix).sum(axis=1)
        is_open = np.abs(reduced).max(axis=1, initial=0.0) > RANK_TOLERANCE * sizes
        reduced = np.where(is_open[:, None], reduced, 0.0)
        u, s, vt = np.linalg.svd(reduced, full_matrices=True)
        scale = sizes[is_open].max(initial=0.0)
        rank = int(np.sum(s > RANK_TOLERANCE * max(scale, s[0] if s.size else 0.0)))
        if rank == 0:
            continue
        gap = right - matrix @ delta
        y = vt[:rank].T @ ((u[:, :rank].T @ gap).T / s[:rank]).T
        delta = delta + free @ y
        free = free @ vt[rank:].T
        if free.shape[1] == 0:
            break
    return delta


def solve_sparse(matrix: csc_array, right: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Δ where a large square first level leaves no freedom: A Δ = b, whose rows have the sizes ``rows``.

    None where that cannot be told: pivots so small beside the largest one that a rank might be missing, in which case
    ``solve_levels`` decides.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    scaled = csc_array(matrix, copy=True)
    scaled.data /= rows[scaled.indices]  # rows of subnormal size have no finite inverse
    try:
        factors = splu(scaled)
    except RuntimeError:  # "Factor is exactly singular"
        return None
    pivots = np.abs(factors.U.diagonal())
    if not pivots.min() > MIN_PIVOT * pivots.max():
        return None
    found = factors.solve(right / rows)
    found += factors.solve(right / rows - scaled @ found)
    return np.asarray(found) if np.isfinite(found).all() else None
