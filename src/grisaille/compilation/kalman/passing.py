"""One pass of a nonlinear filter over a record: what it is given, and what it answers (gr_filter.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DEGREE = 12
"""Of the Taylor series of a linearised step, as in gr_filter_linearized.h: 2⁻¹³/13! is 2e-14, and where the doublings
were chosen the norm is an eighth, not a half."""
ALONG = 1_000_000
"""Numbers that a pass may keep of every step."""


@dataclass(frozen=True, eq=False)
class FilterPass:
    """K cells with signals at halves of their steps; a sample at each bound, or −1."""

    bounds: Floats
    stages: Floats
    """(Σ (2 steps + 1), nu), cell after cell."""
    signals: Floats
    """(K + 1, nu) at the bounds."""
    sample: NDArray[np.int64]
    y: Floats
    mask: Floats
    scale: Floats
    """(samples, ny): values with zeros where there are none, one where there are, and factors of noise deviations."""
    q: Floats
    nominal: Floats
    steps: NDArray[np.int64]
    """(K,) steps of each cell."""
    robust: float = np.inf
    """Huber's threshold in standard deviations; −c for the smooth loss."""
    condition: bool = False
    doublings: int = 0
    """Frozen, of a linearised step."""
    given: Floats | None = None
    """(K + 1, size): what the filter carries at a bound before its update, not what it arrives with; NaN: keep."""
    terms: int = DEGREE
    """Of the series of a linearised step; fewer for passes without derivatives that decide about steps."""

    @property
    def edges(self) -> NDArray[np.int64]:
        """(K + 1,) where the stages of each cell begin."""
        return np.concatenate([[0], np.cumsum(2 * self.steps + 1)])

    def part(self, first: int, last: int, sample: NDArray[np.int64] | None = None) -> FilterPass:
        """Return cells first … last − 1 alone, with no samples or those given at their bounds."""
        none = np.full(last - first + 1, -1, dtype=np.int64)
        edges = self.edges
        return replace(
            self, bounds=self.bounds[first : last + 1], stages=self.stages[edges[first] : edges[last]],
            signals=self.signals[first : last + 1], sample=none if sample is None else sample,
            steps=self.steps[first:last], given=None if self.given is None else self.given[first : last + 1],
        )  # fmt: skip

    def step_by_step(self) -> FilterPass:
        """Return the same pass with a bound after every step, so that all that is carried can be kept."""
        first = np.concatenate([[0], np.cumsum(self.steps)])
        lengths, number = np.diff(self.bounds), np.concatenate([np.arange(m) for m in self.steps])
        cell = np.repeat(np.arange(len(self.steps)), self.steps)
        bounds = np.append(self.bounds[cell] + lengths[cell] * (number / self.steps[cell]), self.bounds[-1])
        rows = self.edges[:-1][cell] + 2 * number
        sample, signals = np.full(len(bounds), -1, dtype=np.int64), np.empty((len(bounds), self.signals.shape[1]))
        signals[:-1], sample[first] = self.stages[rows], self.sample
        signals[first] = self.signals
        given = None
        if self.given is not None:
            given = np.full((len(bounds), self.given.shape[1]), np.nan)
            given[first] = self.given
        stages = self.stages[(rows[:, None] + np.arange(3)).ravel()]
        return replace(
            self, bounds=bounds, stages=stages, signals=signals, sample=sample, given=given,
            steps=np.ones(len(cell), dtype=np.int64),
        )  # fmt: skip


@dataclass(eq=False)
class PassResult:
    """Sums over the samples (``filtering.kalman.Sums``), and what the filter carries at the end."""

    s: Floats
    ds: Floats
    """(ns, size); after a reverse pass the adjoint of the start, (size,)."""
    base: Floats
    information: Floats
    innovations: Floats
    variances: Floats
    slopes: Floats
    kept: Floats | None = None
    """(K + 1, 2, size) before and after each update."""
    along: Floats | None = None
    """(all steps, size) after each step, where both are kept and there is room."""
    lq: Floats | None = None
    count: int = 0
    failed: int = -1

    @classmethod
    def empty(cls, given: FilterPass, s: Floats, ds: Floats, keep: bool) -> PassResult:
        ns, shape = len(ds), given.y.shape
        kept = np.full((len(given.bounds), 2, len(s)), np.nan) if keep else None
        steps = int(given.steps.sum())
        along = np.full((steps, len(s)), np.nan) if keep and steps * len(s) <= ALONG else None
        return cls(
            s.copy(), ds.copy(), np.zeros(1 + ns), np.zeros((ns, ns)), np.full(shape, np.nan), np.full(shape, np.nan),
            np.zeros((shape[0], ns, shape[1])), kept, along,
        )  # fmt: skip
