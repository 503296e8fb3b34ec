"""Adds the uncertainty of the unknowns to variances that hold for given unknowns.

A quantity that has the mean m(θ) and the variance V(θ) for given unknowns is off by

    T = V + var m,   var m ≈ Σᵢ ((m₊ − m)² + (m₋ − m)²)/2h²,   ± = θ̂ ± h rᵢ,

rᵢ the columns of a root of the covariance Σ of θ̂ and h = √3, the outer points of the rule of Gauss and Hermite. T is
itself known as well as the levels of noise are that were estimated: V and Σ grow with them, and a band from levels that
came out small is too narrow at every instant. log T is therefore averaged along each rᵢ, T₊ with V and the expected
information at θ₊, with the weights 1/6, 2/3, 1/6 times what the likelihood, integrated over the other directions, has
there beyond a normal one; its variance gives, as in mixed models,

    ν = 2/var log T,   log T̄ = E log T − 1/ν,

the degrees of freedom and the size of a χ² with the same two moments, and bands by Student's t (F. E. Satterthwaite,
Biometrics Bulletin 2 (1946) 110; M. G. Kenward, J. H. Roger, Biometrics 53 (1997) 983). Unknowns move in the
coordinates in which they are searched, levels in their logarithm. A side that lies outside the bounds, or where the
model cannot be followed, is taken nearer by, or left out.

Of a level that came out as zero only a one-sided limit is known: V, m and Σ are taken where it is at this limit, with
ν = 2, the least. Bands are then wide rather than narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import inverse_information, root_of_covariance, without_undetermined

Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Mean and variance, arrays of one shape, at values of all unknowns."""
Information = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""−log L, NaN where the criterion is no likelihood, and the expected information at values of all unknowns."""

MAX_DEVIATIONS = np.sqrt(3.0)
MAX_HALVINGS = 10
MIN_FREEDOM = 2.0
MAX_BEYOND_NORMAL = 2.0
"""Of the logarithm of weights: a likelihood that is further from normal is not averaged over by three points."""


@dataclass(frozen=True)
class PosteriorPoint:
    """What is found h standard deviations away from the estimate."""

    h: float
    mean: np.ndarray
    variance: np.ndarray
    criterion: float
    covariance: np.ndarray
    """Of estimates there, along the directions, in units of that at the estimate."""


def spread_over_unknowns(
    estimate: Estimate, mine: Sequence[int], moments: Moments, information: Information
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance T̄ that contains the uncertainty of the unknowns numbered ``mine``, and ν.

    Not checked: that their standard errors are finite.
    """
    raised = _with_levels_above_zero(estimate, information)
    if raised is not estimate:
        total, freedom = spread_over_unknowns(raised, mine, moments, information)
        return total + (moments(raised.theta)[0] - moments(estimate.theta)[0]) ** 2, np.full_like(freedom, MIN_FREEDOM)
    directions = PosteriorDirections(estimate, mine, information)
    here = directions.place(0.0, estimate.theta, moments)
    pairs = [_sides(directions, i, moments) for i in range(len(directions))]
    spread, slopes = np.zeros_like(here.variance), np.zeros((len(pairs), *here.variance.shape))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, sides in enumerate(pairs):
            for side in sides:
                spread += (side.mean - here.mean) ** 2 / (len(sides) * side.h**2)
            slopes[i] = (sides[0].mean - here.mean) / sides[0].h
            if len(sides) == 2:
                slopes[i] = (sides[0].mean - sides[1].mean) / (sides[0].h + sides[1].h)
        shift, looseness = np.zeros_like(spread), np.zeros_like(spread)
        for i, sides in enumerate(pairs):
            if len(sides) == 2:
                average, square = _averaged(here, sides, slopes, i)
                shift, looseness = shift + average, looseness + square
        freedom = np.maximum(2 / looseness, MIN_FREEDOM)
        total = (here.variance + spread) * np.exp(np.maximum(shift - 1 / freedom, 0.0))
        return np.where(np.isfinite(here.variance), total, here.variance), freedom


def levels_at_zero(estimate: Estimate) -> dict[str, float]:
    """Return the one-sided limits of levels that came out as zero, by name."""
    limits = {u.name: estimate.limits.get(u.name, np.nan) for u in estimate.unknowns}
    zero = [
        u.name for u, v, f in zip(estimate.unknowns, estimate.theta, estimate.free, strict=True) if v == 0 and not f
    ]
    return {name: limits[name] for name in zero if np.isfinite(limits[name])}


def _with_levels_above_zero(estimate: Estimate, information: Information) -> Estimate:
    """Return the estimate with levels that came out as zero at their limits, and the covariance there."""
    zero = levels_at_zero(estimate)
    if not zero:
        return estimate
    theta = np.array([zero.get(u.name, v) for u, v in zip(estimate.unknowns, estimate.theta, strict=True)])
    covariance, lost = inverse_information(information(theta)[1], estimate.free)
    return replace(estimate, theta=theta, covariance=without_undetermined(covariance, lost))


def _averaged(
    here: PosteriorPoint, sides: list[PosteriorPoint], slopes: np.ndarray, i: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the variance of log T, less its value at the estimate, along one direction."""
    base = _log_total(here, slopes)
    logs = [_log_total(side, slopes) - base for side in sides]
    ahead, behind = (np.where(np.isfinite(v), v, 0.0) for v in logs)
    if min(side.h for side in sides) < MAX_DEVIATIONS:
        return np.zeros_like(base), ((ahead - behind) / (sides[0].h + sides[1].h)) ** 2
    left, right = (_beyond_normal(here, side, i) for side in sides)
    whole = 4 + left + right
    mean = (left * ahead + right * behind) / whole
    return mean, np.maximum((left * ahead**2 + right * behind**2) / whole - mean**2, 0.0)


def _log_total(place: PosteriorPoint, slopes: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(place.variance + np.einsum("i...,ij,j...->...", slopes, place.covariance, slopes)))


def _beyond_normal(here: PosteriorPoint, side: PosteriorPoint, i: int) -> float:
    """Return the likelihood at a side, integrated over the other directions, by that of a normal one."""
    fallen = here.criterion - side.criterion
    height = fallen + side.h**2 / 2 if np.isfinite(fallen) else 0.0
    others = [_log_volume(place.covariance, i) for place in (side, here)]
    return float(np.exp(np.clip(height + others[0] - others[1], -MAX_BEYOND_NORMAL, MAX_BEYOND_NORMAL)))


def _log_volume(covariance: np.ndarray, i: int) -> float:
    """Return half the log-determinant of the covariance of the other directions, given this one."""
    information = np.delete(np.delete(np.linalg.pinv(covariance), i, axis=0), i, axis=1)
    return float(-0.5 * np.linalg.slogdet(information)[1])


class PosteriorDirections:
    """The principal directions in which the estimates are uncertain."""

    def __init__(self, estimate: Estimate, mine: Sequence[int], information: Information) -> None:
        self.estimate, self.information = estimate, information
        self.some = [k for k in mine if estimate.free[k] and estimate.covariance[k, k] > 0]
        slopes = self._slopes(estimate.theta)
        covariance = estimate.covariance[np.ix_(self.some, self.some)] / np.outer(slopes, slopes)
        root = root_of_covariance(covariance)
        self.columns = root[:, np.abs(root).max(axis=0, initial=0.0) > 0]
        self.inverse = np.linalg.pinv(self.columns)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def moved(self, i: int, by: float) -> np.ndarray | None:
        """Return θ̂ shifted by so many standard deviations along a direction; None outside the bounds."""
        theta = self.estimate.theta.copy()
        for k, step in zip(self.some, by * self.columns[:, i], strict=True):
            u = self._coordinate(k)
            theta[k] = u.outer(u.inner(float(theta[k])) + float(step))
            if not u.lower <= theta[k] <= u.upper:
                return None
        return theta

    def place(self, h: float, theta: np.ndarray, moments: Moments) -> PosteriorPoint:
        """Return what is found at θ; raises where the model cannot be followed."""
        criterion, information = self.information(theta)
        whole = inverse_information(information, self.estimate.free)[0]
        slopes = self._slopes(theta)
        own = whole[np.ix_(self.some, self.some)] / np.outer(slopes, slopes)
        return PosteriorPoint(h, *moments(theta), criterion, self.inverse @ own @ self.inverse.T)

    def _slopes(self, theta: np.ndarray) -> np.ndarray:
        return np.array([self._coordinate(k).slope(float(theta[k])) for k in self.some])

    def _coordinate(self, k: int) -> Unknown:
        """Return the unknown in the coordinate in which it is varied."""
        u = self.estimate.unknowns[k]
        is_level = u.kind in ("scale", "noise") and self.estimate.theta[k] > 0
        return replace(u, logarithmic=True, logit=False) if is_level else u


def _sides(directions: PosteriorDirections, i: int, moments: Moments) -> list[PosteriorPoint]:
    """Return the sides of a direction that can be followed."""
    sides = [s for sign in (1.0, -1.0) if (s := _side(directions, i, sign, moments)) is not None]
    if not sides:
        raise EstimationError(
            "bands='all' moves the unknowns within their standard errors, and the model cannot be followed there; "
            "bands='noise' leaves their uncertainty out."
        )
    return sides


def _side(directions: PosteriorDirections, i: int, sign: float, moments: Moments) -> PosteriorPoint | None:
    """Return the side of a direction as far out as it goes, at most ``MAX_DEVIATIONS``."""
    h = float(MAX_DEVIATIONS)
    for _ in range(MAX_HALVINGS):
        theta = directions.moved(i, sign * h)
        if theta is not None:
            try:
                return directions.place(h, theta, moments)
            except GrisailleError:
                pass
        h = h / 2
    return None
