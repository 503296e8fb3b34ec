"""Deviances around a likelihood fit: D(θ) = 2 (f(θ) − f(θ̂)), f = −log L − log prior, with some unknowns held.

The counterpart of ``criterion.Criterion`` for fits whose criterion is a likelihood of its own (Kalman filters; for
collocation see ``collocation_criterion``): what profiles, surfaces and likelihood-ratio tests are made of. What they
are compared with is in ``law``: χ² where no level of noise is among the unknowns, otherwise F, as in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from grisaille.assessment.at_estimates import at_estimates
from grisaille.assessment.law import Law, law_of
from grisaille.assessment.points import Local, Point
from grisaille.assessment.restricted import Restricted
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.optimization import scoring
from grisaille.optimization.search import Search

TOLERANCE, MOST = 1e-12, 300
LEAST = 0.1
"""Of the limit of a level that is zero: where a search for it begins."""


class LikelihoodCriterion:
    """Deviances on the filters of the fit itself."""

    def __init__(self, fit: Fitted) -> None:
        self.theta = fit.estimate.theta
        self.problem = self._posed(fit)
        self.zeros = {
            k: LEAST * fit.estimate.limits[u.name]
            for k, u in enumerate(fit.estimate.unknowns)
            if u.name in fit.estimate.limits
        }
        """Levels that are zero, and what a search begins with: at zero itself log L has no slope in them."""
        self.problem.unknowns = tuple(
            replace(u.begun_at(self.zeros[k]), logarithmic=True) if k in self.zeros else u
            for k, u in enumerate(self.problem.unknowns)
        )
        self._law = law_of(fit)
        best = self.problem.evaluate(self.theta, sensitive=False)
        if not best.completed:
            raise EstimationError(f"The data cannot be followed at the estimates: {best.failure}")
        self._best = best.objective

    def _posed(self, fit: Fitted) -> Problem:
        unknowns = at_estimates(fit.estimate)
        return LikelihoodProblem(unknowns, fit.estimate.cases, fit.method.bound_penalty)

    def deviance(self, evaluation: Evaluation) -> float:
        return 2 * (evaluation.objective - self._best) if evaluation.completed else np.inf

    def local(self, theta: np.ndarray) -> Local:
        """Half the deviance around a point."""
        found = self.problem.evaluate(theta)
        if not found.completed:
            return Local(np.inf, np.zeros(0), np.zeros((0, 0)), found.failure)
        return Local(found.objective - self._best, found.gradient, found.information)

    def scaled(self, deviance: float) -> float:
        """Of a deviance, what is compared with ``reached``."""
        return deviance

    def reached(self, level: float, k: int | None = None) -> float:
        """Twice the value of ``local`` at the ends of an interval."""
        return self.threshold(level)

    def threshold(self, level: float, kind: str = "t", among: Sequence[int] | None = None) -> float:
        """The deviance that a region of some unknowns with the given confidence reaches; of one by default."""
        law = Law() if kind == "chi2" else self._law
        return law.threshold(level, 1 if among is None else len(among))

    def radius(self, level: float, among: Sequence[int]) -> float:
        """Of the joint ellipse of some unknowns, squared, in units of the covariance."""
        return self.threshold(level, among=among)

    def spread(self, covariance: np.ndarray) -> np.ndarray:
        """The inverse of the curvature of ``local`` at the estimate."""
        return covariance

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        if len(held) == len(theta):
            found = self.problem.evaluate(theta, sensitive=False)
            return Point(theta, self.deviance(found), found.failure)
        for k in self.zeros.keys() - held.keys():
            theta[k] = max(theta[k], self.zeros[k])
        restricted = Restricted(self.problem, theta, list(held))
        try:
            outcome = scoring.minimize(Search(restricted, most=MOST), tolerance=TOLERANCE)
        except EstimationError as error:
            return Point(theta, np.inf, str(error))
        return Point(restricted.whole(outcome.evaluation.theta), self.deviance(outcome.evaluation))
