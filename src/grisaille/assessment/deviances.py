"""Deviances around a fit, with some unknowns held: what profiles, surfaces, regions and tests are made of.

    D(θ) = 2 (log p(θ̂) − log p(θ)),

on the log-density of the fit (``estimation.density``), and the law that it is compared with (``law``). For least
squares open levels of noise are at their best at every point; for the criterion of trajectories minus the criterion
takes the place of log p. Not for robust losses, which are not likelihoods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from grisaille.assessment.deviance_law import DevianceLaw, law_of
from grisaille.assessment.profile_points import LocalQuadratic, ProfilePoint
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import criterion_around
from grisaille.estimation.density.density_value import DensityValue
from grisaille.estimation.density.profile_criterion import ProfileCriterion
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.uncertainty import inverse_information
from grisaille.experiment.experiment import Experiment

Threshold = Literal["t", "chi2"]


def deviances_of(fit: Fitted, *held: str) -> Deviances:
    """Return deviances around a fit, whatever its criterion; ``held``: names of unknowns that will be given values."""
    return Deviances(fit, criterion_around(fit, held))


class Deviances:
    """Deviances of a criterion around the estimates of a fit."""

    def __init__(self, fit: Fitted, criterion: ProfileCriterion) -> None:
        self.theta, self.criterion = fit.estimate.theta, criterion
        self._law_of, self._law = partial(law_of, fit), law_of(fit)
        best = criterion.evaluate(self.theta, False)
        if best.failure:
            raise EstimationError(f"The criterion of the fit has no value at the estimates: {best.failure}")
        self._best = best.log_density

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Return the unknowns of the fit, in the coordinates in which profiles vary them from the estimates."""
        return self.criterion.unknowns

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ones."""
        lower, upper = np.array(self.criterion.bounds).reshape(-1, 2).T
        return lower, upper

    def deviance(self, log_density: float) -> float:
        """Return D of a log-density."""
        return 2 * (self._best - log_density)

    def at(self, theta: np.ndarray) -> tuple[DensityValue, float]:
        """Return the value at θ and its deviance, infinite where there is none."""
        found = self.criterion.evaluate(theta, False)
        return found, self.deviance(found.log_density)

    def local(self, theta: np.ndarray) -> LocalQuadratic:
        """Return half the statistic of the law around a point: for one output ½ (RSS − RSS at θ̂)/s².

        ½ D itself where all noise is known, and where levels are among the unknowns.
        """
        found = self.criterion.evaluate(theta)
        if found.failure:
            return LocalQuadratic(np.inf, np.zeros(0), np.zeros((0, 0)), found.failure)
        if found.gradient is None or found.information is None:
            return LocalQuadratic(np.inf, np.zeros(0), np.zeros((0, 0)), "the criterion has no derivatives")
        deviance, law = self.deviance(found.log_density), self._law
        slope, curvature = -found.gradient, found.information
        if not law.bends:
            return LocalQuadratic(0.5 * deviance, slope, curvature)
        statistic, each = law.statistic(deviance), law.factor / law.freedom
        factor = law.factor * (1 + statistic / law.freedom)
        bent = factor * (curvature + 2 * each * np.outer(slope, slope))
        return LocalQuadratic(0.5 * statistic, factor * slope, bent)

    def scaled(self, deviance: float) -> float:
        """Return what of a deviance is compared with ``reached``."""
        return self._law.statistic(deviance)

    def reached(self, level: float, k: int | None = None) -> float:
        """Return twice the value of ``local`` at the ends of an interval, of one unknown: the χ² quantile, or t²."""
        return self.scaled(self.threshold(level, among=None if k is None else (k,)))

    def threshold(self, level: float, kind: Threshold = "t", among: Sequence[int] | None = None) -> float:
        """Return the deviance that a region of some unknowns with the given confidence reaches; of one by default.

        ``"t"``: by the law of the fit (``law``), which makes regions of linear models exact; ``"chi2"``: its limit for
        many data.
        """
        law, dimension = DevianceLaw() if kind == "chi2" else self._law_of(among), 1 if among is None else len(among)
        return law.threshold(level, dimension)

    def radius(self, level: float, among: Sequence[int]) -> float:
        """Return the squared radius of the joint ellipse of some unknowns, in units of the covariance."""
        return self._law_of(among).quantile(level, len(among))

    def spread(self, covariance: np.ndarray) -> np.ndarray:
        """Return the inverse of the curvature of ``local`` at the estimate.

        The fit's covariance, unless levels of several outputs, or priors, have their own share in the law of each
        unknown.
        """
        if not self.criterion.couples_levels:
            return covariance
        told = np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0)
        return np.where(
            np.isfinite(covariance), inverse_information(self.local(self.theta).curvature, told)[0], covariance
        )

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> ProfilePoint:
        """Return the least deviance with the unknowns of some indices held at values, sought from ``start``."""
        found = self.criterion.maximize(held, start)
        return ProfilePoint(found.theta, self.deviance(found.log_density), found.failure)


def index_of(fit: Fitted, name: str) -> int:
    """Return the position of an unknown, by its name in the table."""
    if name not in fit.names:
        raise EstimationError(f"'{name}' was not estimated; choose from {', '.join(fit.names)}.")
    return fit.names.index(name)


def check_level(level: float) -> None:
    """Refuse a level of confidence that is none."""
    if isinstance(level, Experiment):
        raise EstimationError(
            "level is an experiment; a record that was not fitted is tested by fit.validate(experiment)."
        )
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
