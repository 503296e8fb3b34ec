"""One experiment as filters read it: sample times, values with gaps, weights, and signals as polynomials on cells.

Cells lie between neighbouring sample times and breaks of the inputs, so that every signal is one polynomial on each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from grisaille.experiment.piecewise_polynomials import SignalTable, shifted_coefficients

Floats = NDArray[np.float64]
SAME_TIME = 1e-11
"""Breaks closer to a sample than this part of the record are at it."""


@dataclass(frozen=True, eq=False)
class MeasuredRecord:
    """The measurements; ``signals`` gives the table of u at values of the parameters."""

    name: str
    times: Floats
    """(N,) the start first."""
    y: Floats
    """(N, ny), NaN where not measured."""
    weights: Floats
    """(N, ny), factors of residuals: R is divided by them squared."""
    signals: Callable[[Floats], SignalTable]


@dataclass(frozen=True, eq=False)
class RecordCells:
    """Boundaries (K + 1,), the sample at each (−1: none), u(s) = Σ_k coefficients[cell, signal, k] s^k, s ∈ [0, 1]."""

    bounds: Floats
    sample_at: NDArray[np.int64]
    coefficients: Floats
    end: Floats
    """u at the last instant: the value after a jump there."""

    @property
    def lengths(self) -> Floats:
        return np.diff(self.bounds)

    def at(self, s: Floats) -> tuple[Floats, Floats]:
        """Return times (K, len(s)) and signals (K, len(s), nu) at fractions of every cell."""
        t = self.bounds[:-1, None] + self.lengths[:, None] * s
        powers = s[:, None] ** np.arange(self.coefficients.shape[2])
        return t, np.einsum("kud,sd->ksu", self.coefficients, powers)

    @property
    def at_samples(self) -> Floats:
        """Signals (N, nu) at all samples, after a jump there."""
        at_bounds = np.concatenate([self.at(np.zeros(1))[1][:, 0], self.end[None]])
        return np.asarray(at_bounds[np.flatnonzero(self.sample_at >= 0)])


def cut_into_cells(times: Floats, table: SignalTable) -> RecordCells:
    """Return the cells of a record."""
    inner = table.breaks[(table.breaks > times[0]) & (table.breaks < times[-1])]
    near = np.abs(inner[:, None] - times[np.clip(np.searchsorted(times, inner)[:, None] - [1, 0], 0, len(times) - 1)])
    inner = inner[near.min(axis=1, initial=np.inf) > SAME_TIME * (times[-1] - times[0])]
    bounds = np.union1d(times, inner)
    sample_at = np.full(len(bounds), -1, dtype=np.int64)
    sample_at[np.searchsorted(bounds, times)] = np.arange(len(times))
    lengths = np.diff(bounds)
    # the piece is that of the middle: rounding of a break does not matter
    middle = bounds[:-1] + lengths / 2
    local = shifted_coefficients(table.breaks, table.coef, middle)
    return RecordCells(bounds, sample_at, _recentred(local, lengths), table.at(float(times[-1])))


def _recentred(local: Floats, lengths: Floats) -> Floats:
    """Return polynomials in t − middle as polynomials in s = (t − left)/length."""
    moved = np.zeros_like(local)
    half = lengths[:, None]
    for k in range(local.shape[2]):
        for j in range(k + 1):
            moved[:, :, j] += comb(k, j) * local[:, :, k] * (-0.5) ** (k - j) * half**k
    return moved
