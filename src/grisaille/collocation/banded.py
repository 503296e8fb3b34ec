"""Symmetric positive definite band matrices: Cholesky factors, solutions, determinants and the inverse in the band.

Lower storage: ``band[d, j]`` is the entry (j + d, j). The entries of the inverse that lie in the band (the selected
inverse) follow from the factor by a backward recursion over columns (Takahashi),

    Σ_{ij} = −Σ_{k>j} Σ_{ik} L_{kj} / L_{jj},    Σ_{jj} = (1/L_{jj} − Σ_{k>j} L_{kj} Σ_{kj}) / L_{jj},

in time proportional to the length. Reference: A. M. Erisman, W. F. Tinney, Communications of the ACM 18 (1975) 177.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from grisaille.collocation.array_types import Floats, Integers, Mask
from grisaille.collocation.compiled_functions import compiled_function

PIVOT_ROUNDING = 64 * float(np.finfo(float).eps)


class NotPositiveDefinite(Exception):
    """The matrix has no Cholesky factor."""


class BandedFactor:
    """L with L Lᵀ = A; rows and columns of what is held are those of the identity."""

    def __init__(self, band: Floats, held: Mask | None = None) -> None:
        from scipy.linalg import lapack

        band = band if held is None else without_held(band, held)
        self._solver = lapack.dpbtrs
        self.factor, failed = lapack.dpbtrf(band, lower=1)
        if failed or not np.isfinite(self.factor[0]).all():
            raise NotPositiveDefinite
        self.width = band.shape[0] - 1
        self.singular = bool((self.factor[0] ** 2 < PIVOT_ROUNDING * band[0]).any())
        """Whether what elimination left of a diagonal entry is rounding: then it may come out positive or not."""

    def solve(self, right: Floats) -> Floats:
        """Return A⁻¹ right; one or several columns."""
        return np.asarray(self._solver(self.factor, right, lower=1)[0]).reshape(right.shape)

    @cached_property
    def log_determinant(self) -> float:
        return 2 * float(np.log(self.factor[0]).sum())

    @cached_property
    def inverse_band(self) -> Floats:
        """Entries of A⁻¹ inside the band, stored alike."""
        L = np.asfortranarray(self.factor)
        found = np.empty_like(L, order="F")
        run = compiled_function("assembly.c", "gr_inverse_band", 3)
        run(np.array([self.width, L.shape[1]], dtype=np.int64), L, found)
        return found


def gather_blocks(band: Floats, places: Integers) -> Floats:
    """Return dense symmetric blocks (N, m, m) of a band matrix at index sets (N, m); entries beyond the band are
    zero.
    """
    i, j = places[:, :, None], places[:, None, :]
    distance, column = np.abs(i - j), np.minimum(i, j)
    return np.where(distance < len(band), band[np.minimum(distance, len(band) - 1), column], 0.0)


def times(band: Floats, x: Floats) -> Floats:
    """Return A x for one or several columns."""
    n = band.shape[1]
    x = x.reshape(n, -1)
    found = band[0][:, None] * x
    for d in range(1, min(len(band), n)):
        found[d:] += band[d, : n - d, None] * x[: n - d]
        found[: n - d] += band[d, : n - d, None] * x[d:]
    return np.asarray(found)


def without_held(band: Floats, held: Mask) -> Floats:
    """Return the matrix with rows and columns of held unknowns replaced by those of the identity."""
    kept = band.copy()
    n = band.shape[1]
    kept[:, held] = 0.0
    for d in range(1, len(band)):
        kept[d, : n - d][held[d:]] = 0.0
    kept[0, held] = 1.0
    return kept


def mask_held(band: Floats, held: Mask) -> Floats:
    """Return an inverse with nothing in rows and columns of what is held."""
    kept = without_held(band, held)
    kept[0, held] = 0.0
    return kept
