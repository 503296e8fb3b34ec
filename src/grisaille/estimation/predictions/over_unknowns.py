"""Adds the uncertainty of the unknowns to variances that hold for given unknowns.

A quantity that has the mean m(θ) and the variance V(θ) for given unknowns is off by

    T = V + var m,   var m ≈ Σᵢ ((m₊ − m)² + (m₋ − m)²)/2h²,   ± = θ̂ ± h rᵢ,

rᵢ the columns of a root of the covariance Σ of θ̂ and h = √3, the outer points of the rule of Gauss and Hermite. T is
itself known as well as the levels of noise are that were estimated: V and Σ grow with them, and a band from levels that
came out small is too narrow at every instant. As in mixed models, bands are therefore by Student's t with

    ν = 2/var log T,   var log T ≈ Σᵢ ((log T₊ − log T₋)/2h)²,   T₊ with V and the expected information at θ₊,

degrees of freedom: those of a χ² with the same relative spread (F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110;
M. G. Kenward, J. H. Roger, Biometrics 53 (1997) 983). Unknowns move in the coordinates in which they are searched,
levels in their logarithm. A side that lies outside the bounds, or where the model cannot be followed, is taken nearer
by, or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import inverse_information, root_of_covariance
from grisaille.trial.unknown import Unknown

Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Mean and variance, arrays of one shape, at values of all unknowns."""
Information = Callable[[np.ndarray], np.ndarray]
"""The expected information about all unknowns at values of them."""

REACH = np.sqrt(3.0)
HALVINGS = 10
LEAST_FREEDOM = 2.0


@dataclass(frozen=True)
class Side:
    """Mean and variance h standard deviations away, and the covariance of the estimates there."""

    h: float
    mean: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray
    """Along the directions, in units of that at the estimate."""


def spread_over_unknowns(
    estimate: Estimate, mine: Sequence[int], moments: Moments, information: Information
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance T that contains the uncertainty of the unknowns numbered ``mine``, and ν.

    Not checked: that their standard errors are finite.
    """
    mean, variance = moments(estimate.theta)
    directions = Directions(estimate, mine, information)
    pairs = [_sides(directions, i, moments) for i in range(len(directions))]
    spread, slopes = np.zeros_like(variance), np.zeros((len(pairs), *variance.shape))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, sides in enumerate(pairs):
            for side in sides:
                spread += (side.mean - mean) ** 2 / (len(sides) * side.h**2)
            ahead, behind = sides[0], sides[-1]
            if len(sides) == 2:
                slopes[i] = (ahead.mean - behind.mean) / (ahead.h + behind.h)
            else:
                slopes[i] = (ahead.mean - mean) / ahead.h  # of either sign
        looseness = np.zeros_like(variance)
        for ahead, behind in (sides for sides in pairs if len(sides) == 2):
            logs = [
                np.log(s.variance + np.einsum("i...,ij,j...->...", slopes, s.covariance, slopes))
                for s in (ahead, behind)
            ]
            change = (logs[0] - logs[1]) / (ahead.h + behind.h)
            looseness += np.where(np.isfinite(change), change, 0.0) ** 2
        total = np.where(np.isfinite(variance), variance + spread, variance)
        return total, np.maximum(2 / looseness, LEAST_FREEDOM)


class Directions:
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
        """Return θ̂ moved by so many standard deviations along a direction; None outside the bounds."""
        theta = self.estimate.theta.copy()
        for k, step in zip(self.some, by * self.columns[:, i], strict=True):
            u = self._coordinate(k)
            theta[k] = u.outer(u.inner(float(theta[k])) + float(step))
            if not u.lower <= theta[k] <= u.upper:
                return None
        return theta

    def covariance(self, theta: np.ndarray) -> np.ndarray:
        """Return the covariance that estimates have at θ, along the directions in units of their length."""
        whole = inverse_information(self.information(theta), self.estimate.free)[0]
        slopes = self._slopes(theta)
        own = whole[np.ix_(self.some, self.some)] / np.outer(slopes, slopes)
        return np.asarray(self.inverse @ own @ self.inverse.T)

    def _slopes(self, theta: np.ndarray) -> np.ndarray:
        return np.array([self._coordinate(k).slope(float(theta[k])) for k in self.some])

    def _coordinate(self, k: int) -> Unknown:
        """Return the unknown in the coordinate in which it moves."""
        u = self.estimate.unknowns[k]
        is_level = u.kind in ("scale", "noise") and self.estimate.theta[k] > 0
        return replace(u, logarithmic=True, logit=False) if is_level else u


def _sides(directions: Directions, i: int, moments: Moments) -> list[Side]:
    """Return the sides of a direction that can be followed."""
    sides = [s for sign in (1.0, -1.0) if (s := _side(directions, i, sign, moments)) is not None]
    if not sides:
        raise EstimationError(
            "bands='all' moves the unknowns within their standard errors, and the model cannot be followed there; "
            "bands='noise' leaves their uncertainty out."
        )
    return sides


def _side(directions: Directions, i: int, sign: float, moments: Moments) -> Side | None:
    """Return the side of a direction as far out as it goes, at most ``REACH``."""
    h = float(REACH)
    for _ in range(HALVINGS):
        theta = directions.moved(i, sign * h)
        if theta is not None:
            try:
                return Side(h, *moments(theta), directions.covariance(theta))
            except GrisailleError:
                pass
        h = h / 2
    return None
