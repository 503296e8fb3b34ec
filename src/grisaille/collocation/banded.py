"""Symmetric positive definite band matrices: Cholesky factors, solutions, determinants and the inverse in the band.

Lower storage: ``band[d, j]`` is the entry (j + d, j). The entries of the inverse that lie in the band (the selected
inverse) follow from the factor by a backward recursion over blocks of the band's width (Takahashi),

    Σ_{i+1,i} = −Σ_{i+1,i+1} L_{i+1,i} L_{ii}⁻¹,    Σ_{ii} = (L_{ii}⁻ᵀ − Σ_{i+1,i}ᵀ L_{i+1,i}) L_{ii}⁻¹,

in time proportional to the length. Reference: A. M. Erisman, W. F. Tinney, Communications of the ACM 18 (1975) 177.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NotPositiveDefinite(Exception):
    """The matrix has no Cholesky factor."""


class BandedFactor:
    """L with L Lᵀ = A."""

    def __init__(self, band: Floats) -> None:
        from scipy.linalg import lapack

        self._solver = lapack.dpbtrs
        self.factor, failed = lapack.dpbtrf(band, lower=1)
        if failed or not np.isfinite(self.factor[0]).all():
            raise NotPositiveDefinite
        self.width = band.shape[0] - 1

    def solve(self, right: Floats) -> Floats:
        """A⁻¹ right; one or several columns."""
        return np.asarray(self._solver(self.factor, right, lower=1)[0]).reshape(right.shape)

    @cached_property
    def log_determinant(self) -> float:
        return 2 * float(np.log(self.factor[0]).sum())

    @cached_property
    def inverse_band(self) -> Floats:
        """Entries of A⁻¹ inside the band, stored alike."""
        diagonal, below = self._blocks()
        size, count = diagonal.shape[1], len(diagonal)
        inverse = np.linalg.inv(diagonal)
        within = np.empty_like(diagonal)
        across = np.zeros_like(diagonal)
        within[-1] = inverse[-1].T @ inverse[-1]
        for i in range(count - 2, -1, -1):
            step = below[i] @ inverse[i]
            across[i] = -within[i + 1] @ step
            within[i] = inverse[i].T @ inverse[i] - across[i].T @ step
        band = np.zeros((self.width + 1, count * size))
        rows = np.concatenate([within, across], axis=1)
        places = np.arange(size)
        for d in range(self.width + 1):
            band[d] = rows[:, places + d, places].ravel()
        return band[:, : self.factor.shape[1]]

    def _blocks(self) -> tuple[Floats, Floats]:
        """L as blocks on and below the diagonal, padded with ones to a whole number of blocks."""
        n, size = self.factor.shape[1], max(self.width, 1)
        count = -(-n // size)
        padded = np.zeros((2 * size, count * size))
        padded[: self.width + 1, :n] = self.factor
        padded[0, n:] = 1.0
        # entries that would lie beyond the matrix are not defined by LAPACK
        outside = np.arange(count * size) + np.arange(2 * size)[:, None] >= n
        padded[1:][outside[1:]] = 0.0
        first = np.arange(count)[:, None, None] * size
        i, j = np.arange(size)[None, :, None], np.arange(size)[None, None, :]
        column = first + np.broadcast_to(j, (1, size, size))
        diagonal = np.where(i >= j, padded[np.clip(i - j, 0, None), column], 0.0)
        below = np.where(i + size - j <= self.width, padded[np.clip(i + size - j, 0, 2 * size - 1), column], 0.0)
        return diagonal, below[:-1]


def gathered(band: Floats, places: NDArray[np.int64]) -> Floats:
    """Dense symmetric blocks (N, m, m) of a band matrix at index sets (N, m); entries beyond the band are zero."""
    i, j = places[:, :, None], places[:, None, :]
    distance, column = np.abs(i - j), np.minimum(i, j)
    return np.where(distance < len(band), band[np.minimum(distance, len(band) - 1), column], 0.0)


def times(band: Floats, x: Floats) -> Floats:
    """A x for one or several columns."""
    n = band.shape[1]
    x = x.reshape(n, -1)
    found = band[0][:, None] * x
    for d in range(1, min(len(band), n)):
        found[d:] += band[d, : n - d, None] * x[: n - d]
        found[: n - d] += band[d, : n - d, None] * x[d:]
    return np.asarray(found)


def without(band: Floats, held: NDArray[np.bool_]) -> Floats:
    """The matrix with rows and columns of held unknowns replaced by those of the identity."""
    kept = band.copy()
    n = band.shape[1]
    kept[:, held] = 0.0
    for d in range(1, len(band)):
        kept[d, : n - d][held[d:]] = 0.0
    kept[0, held] = 1.0
    return kept
