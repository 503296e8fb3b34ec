"""Intervals of a fit: what they are, and Wald's, from the covariance alone (``limits.py``).

Profiles and what stands in the table (``"auto"``) are in ``assessment``, the bootstrap in ``study``; which name stands
for which is in ``results/intervals.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.interval_limits import interval_limits
from grisaille.estimation.uncertainty import half_width

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted


@dataclass(frozen=True, eq=False)
class Intervals:
    """Limits of all unknowns, in the order of the fit."""

    lower: np.ndarray
    upper: np.ndarray
    kinds: tuple[str, ...]
    """Of each: ``"Wald"``, ``"profile"``, ``"one-sided"`` or ``"bootstrap"``."""
    said: str = ""
    """How they were made, where that is not told by the kinds."""
    notes: tuple[str, ...] = ()
    """What is to be known about single ones, in words."""


def covariance_intervals(fit: Fitted, level: float) -> Intervals:
    """Return Wald's, where nothing but the covariance is asked."""
    return replace(wald_intervals(fit, level), said="from the covariance alone")


def wald_intervals(fit: Fitted, level: float) -> Intervals:
    """Estimate ± quantile · standard error; levels in their logarithm; one-sided at a bound, two-sided at a kink."""
    half = half_width(fit.std_errors, level, fit.student)
    lower, upper = interval_limits(fit.estimate, half, level)
    two_sided = fit.estimate.free | fit.estimate.at_kink
    return Intervals(lower, upper, tuple("Wald" if sides else "one-sided" for sides in two_sided))
