"""Mean and standard deviation of a law that gives its log-density alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.intervals.interval_pieces import cut_at_peak
from grisaille.laws.intervals.interval_quadrature import average_of_all, scale_and_reach
from grisaille.laws.law_arguments import shape_of

if TYPE_CHECKING:
    from grisaille.laws.measured import Measured


HEAVY_TAIL_SCALES = 1e4
"""Scales that only a tail of a power reaches."""
TAIL_MARGIN = 1e-3


def mean_of(law: Measured) -> np.ndarray:
    """Return the mean (N,); not a number where the tails are too heavy for one."""
    law.refuse_open()
    mean = average_of_all(law, lambda law, x: x[..., None], 1)[:, 0].reshape(shape_of(law))
    return np.where(_tail_power(law) > 2 + TAIL_MARGIN, mean, np.nan)


def deviation_of(law: Measured) -> np.ndarray:
    """Return the standard deviation (N,); infinite where the tails are too heavy for one."""
    law.refuse_open()
    shape = shape_of(law)
    mean, square = average_of_all(law, lambda law, x: np.stack([x, x * x], axis=-1), 2).T.reshape(2, *shape)
    with np.errstate(all="ignore"):
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return np.where(_tail_power(law) > 3 + TAIL_MARGIN, spread, np.inf)


def _tail_power(law: Measured) -> np.ndarray:
    """Return the power of y by which the density falls in its heavier tail; infinite where it falls faster than any."""
    shape = shape_of(law)
    count = int(np.prod(shape))
    found, everything = np.full(count, np.inf), np.full(count, np.inf)
    if law.is_discrete:
        return found.reshape(shape)
    with np.errstate(all="ignore"):
        pieces = cut_at_peak(law, -everything, everything)
        scale, reach = scale_and_reach(pieces)
        slope = pieces.log_density(reach / np.e) - pieces.log_density(reach)
        is_power = (reach > HEAVY_TAIL_SCALES * scale) & (reach < pieces.length)
    np.minimum.at(found, pieces.rows, np.where(is_power, slope, np.inf))
    return found.reshape(shape)
