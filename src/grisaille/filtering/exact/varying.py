"""Transitions of linear equations whose coefficients vary inside a cell, and how finely cells are cut for them.

    dX = (A(s) X + b(s)) dt + dβ,   E dβ dβᵀ = W(s) dt,        s ∈ [0, 1] on a piece of length h

A, b and W are polynomials on each piece, and Φ and Q power series in s,

    (m + 1) Φ_{m+1} = h Σ_j A_j Φ_{m−j}        (m + 1) Q_{m+1} = h (Σ_j A_j Q_{m−j} + transpose + W_m)

so that nothing is approximated but the formulas by polynomials. Cells are cut in halves until the last Chebyshev
coefficients of these are below ``TAIL`` of the formula's size, and, where A varies, until ‖A‖h ≤ 1: the series
converges within some twenty terms. A forcing b is a last column of A, whose state is one.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.duals import Floats, times, transpose
from grisaille.experiment.cells import Cells
from grisaille.filtering.exact.transition import is_negligible

TAIL = 1e-8
"""Largest last Chebyshev coefficient of a polynomial, relative to the formula: the next ones are a hundredth of it."""
BEFORE = 0.02
"""What the last coefficient but one counts beside it; the last may vanish by symmetry."""
LONGEST = 1.0
"""‖A‖h of a piece."""
MOST_PIECES = 64
"""Pieces of a record per cell, on average; more are too many, and the extended filter steps instead."""
MOST_NUMBERS = 4_000_000
"""Coefficients of A on all pieces of a record; each direction of derivatives has as many."""
FEWEST_TERMS = 40


def varying_transitions(A: Floats, W: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Φ and Q, (K, 1 + ns, n, n) each, of K pieces of lengths h.

    A, W : (K, degree + 1, 1 + ns, n, n) coefficients of polynomials in s
    """
    n, degree, by = A.shape[-1], A.shape[1] - 1, h[:, None, None, None]
    F = np.zeros((len(A), *A.shape[2:]))
    F[:, 0] = np.eye(n)
    Q, still = np.zeros_like(F), 0
    phi, cov = [F.copy()], [Q.copy()]
    for m in range(most_terms(n)):
        pairs = [(A[:, j], m - j) for j in range(min(m, degree) + 1)]
        moved = np.sum([times(a, cov[k]) for a, k in pairs], axis=0)
        cov.append((by / (m + 1)) * (moved + transpose(moved) + (W[:, m] if m < W.shape[1] else 0.0)))
        phi.append((by / (m + 1)) * np.sum([times(a, phi[k]) for a, k in pairs], axis=0))
        F, Q = F + phi[-1], Q + cov[-1]
        is_still = m >= W.shape[1] and is_negligible(phi[-1], F) and is_negligible(cov[-1], Q)
        still = still + 1 if is_still else 0
        if still > degree:
            break
    return F, Q


def most_terms(n: int) -> int:
    """Terms of a series of n states at most."""
    return FEWEST_TERMS + 2 * n


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


def most_pieces(cells: int, n: int) -> int:
    """Return how many pieces a record of so many cells may be cut into."""
    return min(MOST_PIECES * cells, MOST_NUMBERS // (8 * n * n))


def rough_cells(coefficients: Floats) -> NDArray[np.bool_]:
    """Tell the cells on which a polynomial of these coefficients, (K, degree + 1, …), does not describe its formula."""
    c = coefficients.reshape(len(coefficients), coefficients.shape[1], -1)
    degree = c.shape[1] - 1
    size = np.abs(c).sum(axis=1).max(axis=0)
    leading = 2.0 ** (2 * degree - 1)
    last = c[:, degree] / leading
    before = (c[:, degree - 1] + leading * degree / 2 * last) / (leading / 4)
    tail = np.maximum(np.abs(last), BEFORE * np.abs(before))
    return np.asarray((tail > TAIL * size).any(axis=1))


def cut_cells(cells: Cells, pieces: NDArray[np.int64]) -> Cells:
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
    return Cells(bounds, sample_at, moved, cells.end)
