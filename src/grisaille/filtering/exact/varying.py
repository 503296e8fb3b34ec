"""Transitions of linear equations whose coefficients vary inside a cell, and how finely cells are cut for them.

    dX = (A(s) X + b(s)) dt + dβ,   E dβ dβᵀ = W(s) dt,        s ∈ [0, 1] on a piece of length h

A, b and W are polynomials on each piece, and Φ and Q power series in s (``transition``), so that nothing is
approximated but the formulas by polynomials. Cells are cut in halves until the last Chebyshev coefficients of these are
below ``CHEBYSHEV_TAIL`` of the formula's size, and, where A varies, until ‖A‖h ≤ 1: the series converges in some
twenty terms.
A forcing b is a last column of A, whose state is one.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.duals import Floats
from grisaille.experiment.record_cells import RecordCells

CHEBYSHEV_TAIL = 1e-8
"""Largest last Chebyshev coefficient of a polynomial, relative to the formula: the next ones are a hundredth of it."""
WEIGHT_OF_PREVIOUS_COEFFICIENT = 0.02
"""What the last coefficient but one counts beside it; the last may vanish by symmetry."""
MAX_PIECE_NORM = 1.0
"""‖A‖h of a piece."""
MAX_PIECES = 64
"""Pieces of a record per cell, on average; more are too many, and the extended filter steps instead."""
MAX_NUMBERS = 4_000_000
"""Coefficients of A on all pieces of a record; each direction of derivatives has as many."""


def with_forcing(A: Floats, b: Floats, W: Floats) -> tuple[Floats, Floats]:
    """Return A with b as its last column, and W with a last row and column of zeros.

    All are coefficients of polynomials, (K, degree + 1, 1 + ns, …); where they are the same on all cells K may be one.
    """
    K, n = max(len(A), len(b), len(W)), A.shape[-1]
    degree = max(A.shape[1], b.shape[1])
    bordered = np.zeros((K, degree, A.shape[2], n + 1, n + 1))
    bordered[:, : A.shape[1], :, :n, :n] = A
    bordered[:, : b.shape[1], :, :n, n:] = b
    widened = np.zeros((K, W.shape[1], W.shape[2], n + 1, n + 1))
    widened[..., :n, :n] = W
    return bordered, widened


def max_pieces(cells: int, n: int) -> int:
    """Return how many pieces a record of so many cells may be cut into."""
    return min(MAX_PIECES * cells, MAX_NUMBERS // (8 * n * n))


def rough_cells(coefficients: Floats) -> NDArray[np.bool_]:
    """Tell the cells on which a polynomial of these coefficients, (K, degree + 1, …), does not describe its formula."""
    c = coefficients.reshape(len(coefficients), coefficients.shape[1], -1)
    degree = c.shape[1] - 1
    size = np.abs(c).sum(axis=1).max(axis=0)
    leading = 2.0 ** (2 * degree - 1)
    last = c[:, degree] / leading
    before = (c[:, degree - 1] + leading * degree / 2 * last) / (leading / 4)
    tail = np.maximum(np.abs(last), WEIGHT_OF_PREVIOUS_COEFFICIENT * np.abs(before))
    return np.asarray((tail > CHEBYSHEV_TAIL * size).any(axis=1))


def cut_cells(cells: RecordCells, pieces: NDArray[np.int64]) -> RecordCells:
    """Cut every cell into equal pieces."""
    if (pieces == 1).all():
        return cells
    of = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin, width = number / pieces[of], 1.0 / pieces[of]
    bounds = np.append(cells.bounds[of] + cells.lengths[of] * begin, cells.bounds[-1])
    sample_at = np.full(len(bounds), -1, dtype=np.int64)
    sample_at[:-1][number == 0], sample_at[-1] = cells.sample_at[:-1], cells.sample_at[-1]
    old = cells.coefficients[of]
    moved = np.zeros_like(old)
    for k in range(old.shape[2]):
        for j in range(k + 1):
            moved[:, :, j] += comb(k, j) * old[:, :, k] * (begin ** (k - j) * width**j)[:, None]
    return RecordCells(bounds, sample_at, moved, cells.end)
