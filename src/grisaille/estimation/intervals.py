"""Intervals of a fit, and who computes them.

Wald's are here, from the covariance alone (``limits.py``). Later folders add others with ``interval_method``: profiles
and what stands in the table (``"auto"``) in ``assessment``, the bootstrap in ``study``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.limits import interval_limits
from grisaille.estimation.uncertainty import half_width

if TYPE_CHECKING:
    from grisaille.estimation.fit import Fit


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


Method = Callable[..., Intervals]
_methods: dict[str, Method] = {}


def interval_method(name: str) -> Callable[[Method], Method]:
    """Makes a function of the fit and the level, in a later folder, a ``method=`` of ``fit.intervals``."""

    def keep(function: Method) -> Method:
        _methods[name] = function
        return function

    return keep


def find_intervals(fit: Fit, level: float, method: str, **options: Any) -> Intervals:
    """Intervals by one of the methods that there are."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    if method not in _methods:
        raise EstimationError(f"method is {method!r}; give one of {', '.join(map(repr, sorted(_methods)))}.")
    if options and method != "bootstrap":
        raise EstimationError(f"{next(iter(options))}= goes with method='bootstrap', not with {method!r}.")
    return _methods[method](fit, float(level), **options)


@interval_method("wald")
def wald_intervals(fit: Fit, level: float) -> Intervals:
    """Estimate ± quantile · standard error; levels in their logarithm; one-sided at a bound."""
    half = half_width(fit.std_errors, level, fit.student)
    lower, upper = interval_limits(fit.estimate, half, level)
    return Intervals(lower, upper, tuple("Wald" if f else "one-sided" for f in fit.estimate.free))
