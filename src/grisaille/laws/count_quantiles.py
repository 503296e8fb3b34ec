"""Quantiles of laws of counts: the smallest count whose distribution function reaches a probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.measured import Measured


MAX_HALVINGS = 64
"""Halvings of a bracket, more than a count has bits."""


def count_quantile(law: Measured, probability: ArrayLike) -> np.ndarray:
    """Return the smallest whole numbers k with P(Y ≤ k) ≥ probability, by bisection of a bracket that grows."""
    p = np.asarray(probability, dtype=float)
    (first, last), middle = law.support, np.asarray(law.mean, dtype=float)
    p, middle, last, first = np.broadcast_arrays(
        p, middle, np.asarray(last, dtype=float), np.asarray(first, dtype=float)
    )
    with np.errstate(all="ignore"):
        low, high = _bracket(law, p, middle, first, last)
        for _ in range(MAX_HALVINGS):
            if not (high - low > 1).any():
                break
            at = np.floor(0.5 * (low + high))
            is_reached = law.distribution(at) >= p
            low, high = np.where(is_reached, low, at), np.where(is_reached, at, high)
    found = np.where(p <= 0, first, np.where(p >= 1, last, high))
    return np.where((p >= 0) & (p <= 1), found, np.nan)


def _bracket(
    law: Measured, p: np.ndarray, middle: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of which the lower does not reach the probability and the upper does."""
    from scipy.special import ndtri

    spread = np.broadcast_to(np.asarray(law.deviation, dtype=float), p.shape) + 1.0
    guess = middle + ndtri(np.clip(p, 1e-300, 1 - 1e-16)) * spread
    guess, width = np.clip(np.round(guess), first, last), np.ceil(0.1 * spread)
    low, high = guess - width, guess + width
    is_in_question = (p > 0) & (p < 1)
    for _ in range(MAX_HALVINGS):
        low = np.maximum(low, first - 1)
        is_high = is_in_question & (low >= first) & (law.distribution(low) >= p)
        if not is_high.any():
            break
        low, high, width = (
            np.where(is_high, low - width, low),
            np.where(is_high, low, high),
            np.where(is_high, 2 * width, width),
        )
    width = high - low
    for _ in range(MAX_HALVINGS):
        high = np.minimum(high, last)
        is_low = is_in_question & (high < last) & (law.distribution(high) < p)
        if not is_low.any():
            break
        low, high, width = (
            np.where(is_low, high, low),
            np.where(is_low, high + width, high),
            np.where(is_low, 2 * width, width),
        )
    return low, high
