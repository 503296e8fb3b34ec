"""Adds the uncertainty of the unknowns to variances that hold for given unknowns.

A quantity that has the mean m(θ) and the variance V(θ) for given unknowns has, over θ ~ N(θ̂, Σ), the variance

    E V + var m,   E V ≈ V + Σᵢ (V₊ − 2 V + V₋)/2h²,   var m ≈ Σᵢ ((m₊ − m)² + (m₋ − m)²)/2h²,

with ± = θ̂ ± h rᵢ, rᵢ the columns of a root of Σ and h = √3: the rule of Gauss and Hermite with three points along each
of them, exact where m is linear and V quadratic. V matters beside m where a level of noise is among the unknowns: bands
from a level that came out small are too narrow at every instant. Unknowns move in the coordinates in which they are
searched, levels in their logarithm. A side that lies outside the bounds, or where the model cannot be followed, is
taken nearer by, or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import root_of_covariance
from grisaille.trial.unknown import Unknown

Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Mean and variance, arrays of one shape, at values of all unknowns."""

REACH = np.sqrt(3.0)
HALVINGS = 10


@dataclass(frozen=True)
class Side:
    """Mean and variance h standard deviations away."""

    h: float
    mean: np.ndarray
    variance: np.ndarray


def variance_over_unknowns(estimate: Estimate, mine: Sequence[int], moments: Moments) -> np.ndarray:
    """Return the variance that contains the uncertainty of the unknowns numbered ``mine``.

    Not checked: that their standard errors are finite.
    """
    mean, variance = moments(estimate.theta)
    total, spread, least = variance.copy(), np.zeros_like(variance), variance.copy()
    for direction in _directions(estimate, mine):
        sides = [s for sign in (1.0, -1.0) if (s := _side(estimate, direction, sign, moments)) is not None]
        if not sides:
            raise EstimationError(
                "bands='all' moves the unknowns within their standard errors, and the model cannot be followed there; "
                "bands='noise' leaves their uncertainty out."
            )
        with np.errstate(invalid="ignore"):
            for side in sides:
                spread += (side.mean - mean) ** 2 / (len(sides) * side.h**2)
                least = np.minimum(least, side.variance)
            if len(sides) == 2:
                near, far = sorted(sides, key=lambda s: s.h)
                bend = (near.variance - variance) / near.h + (far.variance - variance) / far.h
                total += bend / (near.h + far.h)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(variance), np.maximum(total, least) + spread, variance)


def _directions(estimate: Estimate, mine: Sequence[int]) -> Iterator[np.ndarray]:
    """Columns of the root of the covariance of ξ, as long as the unknowns; those that move something."""
    some = [k for k in mine if estimate.free[k] and estimate.covariance[k, k] > 0]
    slopes = np.array([_coordinate(estimate, k).slope(float(estimate.theta[k])) for k in some])
    covariance = estimate.covariance[np.ix_(some, some)] / np.outer(slopes, slopes)
    for column in root_of_covariance(covariance).T:
        if np.any(column):
            whole = np.zeros(len(estimate.theta))
            whole[some] = column
            yield whole


def _coordinate(estimate: Estimate, k: int) -> Unknown:
    """The unknown in the coordinate in which it moves."""
    u = estimate.unknowns[k]
    is_level = u.kind in ("scale", "noise") and estimate.theta[k] > 0
    return replace(u, logarithmic=True, logit=False) if is_level else u


def _side(estimate: Estimate, direction: np.ndarray, sign: float, moments: Moments) -> Side | None:
    """The side of a direction as far out as it goes, at most ``REACH``."""
    h = REACH
    for _ in range(HALVINGS):
        theta = _moved(estimate, sign * h * direction)
        if theta is not None:
            try:
                mean, variance = moments(theta)
            except GrisailleError:
                pass
            else:
                return Side(float(h), mean, variance)
        h = h / 2
    return None


def _moved(estimate: Estimate, step: np.ndarray) -> np.ndarray | None:
    """θ̂ moved by a step of ξ; None outside the bounds."""
    theta = estimate.theta.copy()
    for k in np.flatnonzero(step):
        u = _coordinate(estimate, int(k))
        theta[k] = u.outer(u.inner(float(theta[k])) + float(step[k]))
        if not u.lower <= theta[k] <= u.upper:
            return None
    return theta
