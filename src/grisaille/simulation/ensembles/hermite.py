"""A disturbance between grid points when its derivatives are needed too: one polynomial for all of them.

With w, w', …, w^(d) known at both ends of a cell of length h, the polynomial H of degree 2d + 1 that takes all these
values gives w^(j) = H^(j) in between. Derivatives then belong to each other: a velocity integrated from w'' arrives
where the constraint on w' wants it, which lines through each derivative on its own would miss. For d = 0 it is a line.
"""

from __future__ import annotations

from functools import cache
from math import factorial, perm

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@cache
def unit_basis(d: int) -> Floats:
    """Return (2d + 2, 2d + 2): coefficients of powers of s on [0, 1] from (f, f', …, f^(d)) at 0, then at 1."""
    n = 2 * d + 2
    left = np.diag([float(factorial(j)) for j in range(n)])[: d + 1]
    right = np.array([[float(perm(k, j)) if k >= j else 0.0 for k in range(n)] for j in range(d + 1)])
    return np.linalg.inv(np.vstack([left, right]))


def mixing(d: int, h: float, fraction: float) -> Floats:
    """Return (d + 1, 2d + 2): w, …, w^(d) at a fraction of the cell from the same at its left end, then at its right
    end.
    """
    n = 2 * d + 2
    powers = np.array([[perm(k, j) * fraction ** (k - j) if k >= j else 0.0 for k in range(n)] for j in range(d + 1)])
    scale = h ** np.arange(d + 1.0)
    return powers @ unit_basis(d) * np.tile(scale, 2) / scale[:, None]


def piece_polynomials(left: Floats, right: Floats, h: Floats, order: int) -> Floats:
    """Return coefficients of powers of t − τ of the derivative ``order``, (…, cells, 2d + 2), from ends (…, cells, d +
    1).
    """
    d = left.shape[-1] - 1
    scale = h[:, None] ** np.arange(d + 1.0)
    ends = np.concatenate([left * scale, right * scale], axis=-1)
    coefficients = ends @ unit_basis(d).T / h[:, None] ** np.arange(2 * d + 2.0)
    for _ in range(order):
        powers = np.arange(1, coefficients.shape[-1])
        coefficients = np.concatenate([coefficients[..., 1:] * powers, np.zeros_like(coefficients[..., :1])], axis=-1)
    return np.asarray(coefficients)
