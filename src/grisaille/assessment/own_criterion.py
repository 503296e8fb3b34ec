"""Deviances by the estimator itself: D(θ) = 2 (f(θ) − f(θ̂)), f its objective, fitted again with some unknowns held.

For estimators whose objective is minus a log-likelihood and that bring their own search: nothing is known of them but
the contract.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.assessment.at_estimates import at_estimates
from grisaille.assessment.likelihood_criterion import LikelihoodCriterion
from grisaille.assessment.points import Point
from grisaille.assessment.restricted import Restricted
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.estimation.question import Question


class OwnCriterion(LikelihoodCriterion):
    """Deviances of a fit whose estimator is asked again."""

    def __init__(self, fit: Fitted) -> None:
        self.method = fit.method
        super().__init__(fit)
        self._best = fit.estimate.objective

    def _posed(self, fit: Fitted) -> Problem:
        unknowns = at_estimates(fit.estimate)
        return fit.method.pose(Question.of(fit.initial_model, list(fit.experiments), unknowns))

    def deviance(self, evaluation: Evaluation) -> float:
        return 2 * (self.method.objective(evaluation) - self._best) if evaluation.completed else np.inf

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        if len(held) == len(theta):
            evaluation = self.problem.evaluate(theta, sensitive=False)
            return Point(theta, self.deviance(evaluation), evaluation.failure)
        restricted = Restricted(self.problem, theta, list(held))
        try:
            found = self.method.estimate(restricted)
        except EstimationError as error:
            return Point(theta, np.inf, str(error))
        return Point(restricted.whole(found.theta), 2 * (found.objective - self._best))
