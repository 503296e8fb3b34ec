"""The warm-up of a chain: its step is searched throughout, and windows of draws show whether the metric fits.

The first eighth and the last are for the step alone. Windows between them have 25, 50, 100, … transitions. At the end
of one the sample covariance S of its n draws z, which is the identity where the metric is right, is compared with what
so many draws make of the identity (V. A. Marchenko, L. A. Pastur, 1967): with d unknowns its eigenvalues lie between
(1 ∓ √(d/n))². Where they lie outside by more than a factor three, the metric is corrected by

    S^w,      w = n/(n + κ),      κ = d + 5,

which takes the metric so far as κ draws, in whatever units; by (n S + κ 1)/(n + κ) where n < 2d and S is nearly
singular. A metric that fits is exact where a sample covariance has errors, so it stays. One that has been corrected is
learned from every further window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FIRST_WINDOW = 25
OUTER_SHARE = 8
"""Part of the warm-up at either end that searches the step alone."""
MISFIT = 3.0
"""Factor by which a variance may differ from what the metric expects, beside the error of the draws."""
EXTRA_WEIGHT = 5


def window_ends(tune: int) -> tuple[int, ...]:
    """Return after how many transitions the windows of a warm-up end; the first window begins after the first part."""
    begin, end = tune // OUTER_SHARE, tune - tune // OUTER_SHARE
    ends, length = [], FIRST_WINDOW
    while begin + length <= end:
        # a last window that would be followed by a shorter one takes its place, too
        begin = begin + length if begin + 3 * length <= end else end
        ends.append(begin)
        length *= 2
    return tuple(ends)


def learned_covariance(draws: Sequence[np.ndarray], was_corrected: bool = False) -> np.ndarray | None:
    """Return the covariance of z to correct a metric by; None where the metric fits.

    was_corrected : whether it is learned, and not the one that a fit gives
    """
    z = np.array(draws)
    n, d = z.shape
    sample = np.atleast_2d(np.cov(z.T))
    if not np.isfinite(sample).all():
        return None
    spread = np.sqrt(d / n)
    low, high = max(1 - spread, 0.0) ** 2 / MISFIT, (1 + spread) ** 2 * MISFIT
    values, vectors = np.linalg.eigh(sample)
    if not was_corrected and low <= max(values[0], 0.0) and values[-1] <= high:
        return None
    weight = d + EXTRA_WEIGHT
    if n < 2 * d or values[0] <= 0:
        return np.asarray((n * sample + weight * np.eye(d)) / (n + weight))
    return np.asarray((vectors * values ** (n / (n + weight))) @ vectors.T)
