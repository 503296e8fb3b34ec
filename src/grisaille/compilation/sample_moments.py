"""Means and spreads of many realizations, formed piece by piece.

::

    mean = (1/M) Σ y_m       spread = Σ (y_m - mean)²
    smean = (1/M) Σ ∂y_m     scross = Σ (y_m - mean)(∂y_m - smean)      (so ∂spread = 2 scross)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampleMoments:
    """Over ``count`` realizations; ``mean`` and ``spread`` (n_kept, ny), ``smean`` and ``scross`` (n_kept, ns, ny)."""

    count: int
    mean: Floats
    spread: Floats
    smean: Floats
    scross: Floats

    @classmethod
    def empty(cls, count: int, n_kept: int, ns: int, ny: int) -> SampleMoments:
        rows, more = (n_kept, ny), (n_kept, ns, ny)
        return cls(count, np.zeros(rows), np.zeros(rows), np.zeros(more), np.zeros(more))

    @classmethod
    def of(cls, y: Floats, sy: Floats) -> SampleMoments:
        """Return the moments of rows (count, n_kept, ny) and their sensitivities (count, n_kept, ns, ny)."""
        # realizations that became infinite are told apart elsewhere
        with np.errstate(over="ignore", invalid="ignore"):
            mean, smean = y.mean(axis=0), sy.mean(axis=0)
            deviation = y - mean
            spread, cross = (deviation**2).sum(axis=0), (deviation[:, :, None, :] * (sy - smean)).sum(axis=0)
        return cls(len(y), mean, spread, smean, cross)

    def joined(self, other: SampleMoments) -> SampleMoments:
        """Return the moments of both samples together (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        n = self.count + other.count
        share, product = other.count / n, self.count * other.count / n
        with np.errstate(over="ignore", invalid="ignore"):
            shift, sshift = other.mean - self.mean, other.smean - self.smean
            return SampleMoments(
                n,
                self.mean + share * shift,
                self.spread + other.spread + product * shift**2,
                self.smean + share * sshift,
                self.scross + other.scross + product * shift[:, None, :] * sshift,
            )
