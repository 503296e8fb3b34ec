"""Deviances around collocation fits: D(θ) = 2 (f(θ) − f(θ̂)), trajectories following from one point to the next.

    amle, ipda   f = least sum over the trajectories: minimised over them and the other unknowns together. Not a
                 likelihood; near the estimate D = ((θ − θ̂)/s)² with the standard error s of the fit
    laplace      f = −log L − log prior

Knots and elements are those that the fit ended with; noise formulas that contain states stay as they were there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.assessment.at_estimates import at_estimates
from grisaille.assessment.likelihood_criterion import LikelihoodCriterion
from grisaille.assessment.points import Point
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.estimators.collocation.states import solved_again


def collocation_criterion(fit: Fitted, held: tuple[str, ...] = ()) -> LikelihoodCriterion:
    """Deviances around a fit by splines or by direct collocation; ``held``: unknowns that will be given values."""
    method: Any = fit.method
    found = [u.name for u in fit.estimate.unknowns if u.kind == "scale" and u.name in held]
    if found and method.criterion != "laplace":
        raise EstimationError(
            f"'{found[0]}' was found from the misfit of the outputs and does not minimise the criterion, so it has no "
            f"profile: fit with gr.Collocation(criterion='laplace', intensities='estimate')."
        )
    if method.criterion == "laplace" and not fit.estimate.is_likelihood:
        raise EstimationError(
            "Profiles, regions and tests need a likelihood, and declared bounds that hold states leave none "
            "(fit.notes): fit a model without bounds= of these variables, or use fit.intervals(method='wald')."
        )
    return CollocationCriterion(fit)


class CollocationCriterion(LikelihoodCriterion):
    """Deviances on the mesh of the fit."""

    problem: Following

    def _posed(self, fit: Fitted) -> Following:
        evaluation = solved_again(fit)
        trajectories, solution = evaluation.trajectories, evaluation.solution
        assert trajectories is not None and solution is not None
        unknowns = at_estimates(fit.estimate)
        criterion = "laplace" if fit.estimate.is_likelihood else "amle"
        trajectories = trajectories.renewed(fit.estimate.cases)
        trajectories.keep(solution, True)
        return Following(unknowns, fit.estimate.cases, trajectories, criterion)

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        problem = self.problem
        if problem.criterion == "laplace" or len(held) == len(start):
            return super().minimize(held, start)
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        wanted = ~problem.levels
        wanted[list(held)] = False
        try:
            found = problem.trajectories.minimize(problem, theta, wanted, near=True)
        except EstimationError as error:
            return Point(theta, np.inf, str(error))
        if not found.converged:
            return Point(theta, np.inf, f"trajectories were not found: {found.reason}")
        return Point(found.theta, 2 * (found.at.cost - self._best))


class Following(CollocationProblem):
    """Collocation whose objective is what trajectories minimise, noise levels included."""

    goes_on = True

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> CollocationEvaluation:
        found = super().evaluate(theta, sensitive=sensitive)
        if found.solution is None or self.criterion == "laplace":
            return found
        return replace(found, value=found.solution.at.cost)
