"""Distribution functions and quantiles of laws that give their log-density alone, for many samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.count_quantiles import count_quantile
from grisaille.laws.intervals.averages import log_mass
from grisaille.laws.law_arguments import broadcast_together, rows_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.measured import Measured


MAX_SEARCH_STEPS = 100
"""Of a search at most."""
QUANTILE_TOLERANCE = 4e-15
"""Relative to the size of a value or to the width of its bracket, where a search ends."""


def distributions_of(law: Measured, value: ArrayLike) -> np.ndarray:
    """Return P(Y ≤ y): the mass below, or one less the mass above where that is the smaller."""
    law.refuse_open()
    law, y, shape = broadcast_together(law, value)
    below = np.exp(log_mass(law, np.full(y.shape, -np.inf), y))
    upper = np.flatnonzero(below > 0.5)
    if len(upper):
        first = np.floor(y[upper]) + 1.0 if law.is_discrete else y[upper]
        above = log_mass(rows_of(law, upper, len(y)), first, np.full(first.shape, np.inf))
        below[upper] = -np.expm1(above)
    return np.where(np.isnan(y), np.nan, below).reshape(shape)


def quantiles_of(law: Measured, probability: ArrayLike) -> np.ndarray:
    """Return the roots of the distribution functions less the probabilities, by Newton's steps inside brackets."""
    law.refuse_open()
    if law.is_discrete:
        return count_quantile(law, probability)
    law, p, shape = broadcast_together(law, probability)
    ends = [np.broadcast_to(np.asarray(end, dtype=float), p.shape) for end in law.support]
    found = np.where(p == 0, ends[0], np.where(p == 1, ends[1], np.nan))
    active = np.flatnonzero((p > 0) & (p < 1))
    if len(active):
        with np.errstate(all="ignore"):
            found[active] = _roots(rows_of(law, active, len(p)), p[active], ends[0][active], ends[1][active])
    return found.reshape(shape)


def _roots(law: Measured, p: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    middle, width = law.mean, law.deviation
    middle = np.broadcast_to(np.where(np.isfinite(middle), middle, 0.0), p.shape)
    width = np.broadcast_to(np.where(np.isfinite(width) & (width > 0), width, 1.0), p.shape)
    low, high = _bracket(law, p, first, last, np.clip(middle, first, last), width)
    x = 0.5 * (low + high)
    active = np.arange(len(p))
    for _ in range(MAX_SEARCH_STEPS):
        part, at = rows_of(law, active, len(p)), x[active]
        excess = part.distribution(at) - p[active]
        low[active], high[active] = np.where(excess < 0, at, low[active]), np.where(excess > 0, at, high[active])
        new = at - excess * np.exp(-part.log_formula(at))
        is_inside = (new > low[active]) & (new < high[active])
        x[active] = np.where(excess == 0, at, np.where(is_inside, new, 0.5 * (low[active] + high[active])))
        is_found = (np.abs(x[active] - at) <= QUANTILE_TOLERANCE * np.maximum(np.abs(at), width[active])) | (
            excess == 0
        )
        active = active[~is_found]
        if not len(active):
            break
    return np.asarray(x)


def _bracket(
    law: Measured, p: np.ndarray, first: np.ndarray, last: np.ndarray, middle: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return values below and above the quantiles, in steps that double, or half the way to an end of the support."""
    low, high, step = middle.copy(), middle.copy(), width.copy()
    for _ in range(MAX_SEARCH_STEPS):
        is_high = law.distribution(low) > p
        if not is_high.any():
            break
        low = np.where(is_high, np.maximum(low - step, 0.5 * (low + first)), low)
        step = 2 * step
    step = width.copy()
    for _ in range(MAX_SEARCH_STEPS):
        is_low = law.distribution(high) < p
        if not is_low.any():
            break
        high, step = np.where(is_low, np.minimum(high + step, 0.5 * (high + last)), high), 2 * step
    return low, high
