"""Intervals cut at the peak of a density: on each piece it falls away from a point, on a scale that is searched for.

A piece starts at c, the most likely value of its interval, and reaches over y ∈ (0, length) to one side. Its scale is
where y p(c + y), the probability per unit of log y, is largest, and its reach is where that has become negligible. So a
piece knows where its mass lies, thirty standard deviations away or in tails of a power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.law_arguments import rows_of

if TYPE_CHECKING:
    from grisaille.laws.measured import Measured
    from grisaille.laws.values import Formula


GOLDEN = 0.6180339887498949
MAX_LOG_SCALE = 230.0
"""Natural logarithm of the largest and smallest scales searched, either side of one."""
PEAK_STEPS = 44
SCALE_STEPS = 13
REACH_STEPS = 12
NEGLIGIBLE_LOG = 41.0
"""y p at the end of what counts is smaller than at its largest by this natural logarithm."""
SHORT_FALL = 0.7
"""A piece on which log p falls by less is smooth on its own length."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of intervals, each with the law of its sample."""

    law: Measured
    rows: np.ndarray
    """(P,) samples that they are of."""
    start: np.ndarray
    side: np.ndarray
    """−1 or 1."""
    length: np.ndarray

    def at(self, y: np.ndarray) -> np.ndarray:
        """Return c ± y."""
        return np.asarray(self.start + self.side * y)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return log p at c ± y, −∞ where there is none."""
        return np.asarray(self.law.log_formula(self.at(y)))

    def where(self, chosen: np.ndarray) -> Pieces:
        """Return some of them."""
        law = rows_of(self.law, chosen, len(self.rows))
        return Pieces(law, self.rows[chosen], self.start[chosen], self.side[chosen], self.length[chosen])

    def is_short(self) -> np.ndarray:
        """Return whether log p hardly falls on them."""
        with np.errstate(all="ignore"):
            return np.asarray(np.abs(self.log_density(self.length) - self.log_density(np.zeros(1))) < SHORT_FALL)

    def is_singular(self) -> np.ndarray:
        """Return whether the density is infinite at the start."""
        return np.asarray(self.log_density(np.zeros(1)) == np.inf)

    def scale(self) -> np.ndarray:
        """Return y where y p(c ± y) is largest."""
        low = np.full(self.start.shape, -MAX_LOG_SCALE)
        high = np.minimum(np.log(self.length), MAX_LOG_SCALE)
        low = np.minimum(low, high - 1.0)
        return np.asarray(np.exp(_golden(self._per_decade, low, high, SCALE_STEPS)))

    def reach(self, scale: np.ndarray) -> np.ndarray:
        """Return y from which on y p(c ± y) is negligible, at most the length."""
        low, high = np.log(scale), np.minimum(np.log(self.length), MAX_LOG_SCALE)
        top = self._per_decade(low)
        is_cut = ~(self._per_decade(high) >= top - NEGLIGIBLE_LOG) & (high > low)
        for _ in range(REACH_STEPS):
            at = 0.5 * (low + high)
            is_here = self._per_decade(at) >= top - NEGLIGIBLE_LOG
            low, high = np.where(is_here, at, low), np.where(is_here, high, at)
        end = np.where(is_cut, np.exp(high), np.exp(MAX_LOG_SCALE))
        return np.asarray(np.minimum(end, self.length))

    def _per_decade(self, log_y: np.ndarray) -> np.ndarray:
        found = self.log_density(np.minimum(np.exp(log_y), self.length)) + log_y
        return np.where(np.isnan(found), -np.inf, found)


def cut_at_peak(law: Measured, low: np.ndarray, high: np.ndarray) -> Pieces:
    """Return the pieces of intervals (N,), one or two of each that is not empty.

    Of a law of counts the upper piece starts at the peak, the lower one below it, and lengths are numbers of counts.
    """
    count = len(low)
    ends = [np.broadcast_to(np.asarray(end, dtype=float), low.shape) for end in law.support]
    low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    if law.is_discrete:
        low, high = np.ceil(low), np.floor(high)
    is_empty = low > high
    centre = np.clip(_peak(law, low, high), low, high)
    below = centre
    if law.is_discrete:
        centre = np.floor(centre)
        below, low, high = centre - 1, low - 1, high + 1
    rows, start = np.tile(np.arange(count), 2), np.concatenate([below, centre])
    length, side = np.concatenate([below - low, high - centre]), np.repeat([-1.0, 1.0], count)
    chosen = np.flatnonzero((length > 0) & np.isfinite(start) & ~np.tile(is_empty, 2))
    return Pieces(rows_of(law, rows, count), rows, start, side, length).where(chosen)


def peak_of(law: Measured, shape: tuple[int, ...]) -> np.ndarray:
    """Return where the density of a law is largest over its whole support."""
    everything = np.full(shape, np.inf)
    return _peak(law, -everything, everything)


def _peak(law: Measured, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where the density is largest: the law's own word, or a search that spreads from a middle."""
    known = law.peak
    if known is not None:
        return np.broadcast_to(np.asarray(known, dtype=float), low.shape)
    middle = np.broadcast_to(np.asarray(_middle(law), dtype=float), low.shape)
    one = np.ones_like(low)

    def at(step: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(middle + np.sign(step) * np.expm1(np.abs(step)), low, high))

    def density(step: np.ndarray) -> np.ndarray:
        found = np.asarray(law.log_formula(at(step)))
        return np.where(np.isnan(found), -np.inf, found)

    return at(_golden(density, -MAX_LOG_SCALE * one, MAX_LOG_SCALE * one, PEAK_STEPS))


def _middle(law: Measured) -> Formula:
    """Return a point near the density's mass: the location, or the middle of the support."""
    if law.location_path:
        return law.arguments[law.location_path]
    low, high = (np.asarray(end, dtype=float) for end in law.support)
    with np.errstate(invalid="ignore"):
        both = 0.5 * (low + high)
    return np.where(
        np.isfinite(both), both, np.where(np.isfinite(low), low + 1, np.where(np.isfinite(high), high - 1, 0))
    )


def _golden(function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, steps: int) -> np.ndarray:
    """Return where functions with one maximum each have it; where two values are equal, what is nearer zero is kept."""
    with np.errstate(all="ignore"):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_a, at_b = function(a), function(b)
        for _ in range(steps):
            is_left = np.where(at_a == at_b, np.abs(a) <= np.abs(b), at_a > at_b)
            low, high = np.where(is_left, low, a), np.where(is_left, b, high)
            new = np.where(is_left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            at_new = function(new)
            a, b = np.where(is_left, new, b), np.where(is_left, a, new)
            at_a, at_b = np.where(is_left, at_new, at_b), np.where(is_left, at_a, at_new)
    return np.asarray(np.where(at_a > at_b, a, b))
