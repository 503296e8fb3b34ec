"""What profiles and log-densities of collocation are made of, on one mesh.

    laplace      log p(θ) = log L(θ) + log prior(θ) by Laplace's method: a log-density
    amle, ipda   minus the least sum over the trajectories: a criterion, which is maximised over them and the other
                 unknowns together. Near the estimate its deviance is ((θ − θ̂)/s)² with the standard error s of the fit

Around a fit, knots and elements are those that it ended with, trajectories follow from one point to the next, and noise
formulas that contain states stay as they were there. A log-density without ``guess=`` a fit has a mesh that follows the
model at the guess; fits go on to finer ones, as their estimates need them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.collocation.laplace import Marginal
from grisaille.errors import EstimationError
from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.density_search import density_from_objective
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum, ProfileCriterion
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.collocation.collocation_problem import UNDETERMINED, CollocationProblem
from grisaille.estimators.collocation.criteria import about_held_states
from grisaille.estimators.collocation.trajectory_basis import Solution
from grisaille.estimators.collocation.trajectory_states import solved_again


class LaplaceDensity(LogDensity):
    """The marginal likelihood of a problem."""

    def __init__(self, problem: CollocationProblem) -> None:
        self.problem: CollocationProblem = problem
        prior = prior_part(self.unknowns, self.start, False)
        self._constant = 0.0 if prior is None else prior.log_density + problem.prior(self.start).value

    @classmethod
    def discretised(cls, problem: CollocationProblem, fit: Fitted | None, refine: int | str) -> LaplaceDensity:
        """Return that of a problem that has a density at its guess.

        fit : of the same experiments, whose mesh is taken where its unknowns are the same
        refine : as in ``gr.Collocation``
        """
        own = problem.renewed()
        if fit is not None and tuple(u.name for u in own.unknowns) == tuple(fit.names):
            own = _on_mesh_of(fit, own)
        elif own.trajectories.rounds(refine):
            own = own.on(own.trajectories.prepared(own))
        made = cls(own)
        first = made.value(made.start, False)
        if first.failure:
            raise EstimationError(f"There is no marginal likelihood at the guess: {first.failure}")
        return made

    @classmethod
    def around(cls, fit: Fitted) -> LaplaceDensity:
        """Return that of a fit."""
        return cls(_following(fit, "laplace"))

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; its information is that of the criterion of trajectories, and of levels."""
        problem = self.problem
        found = problem.follow_at(theta)
        if isinstance(found, str):
            return DensityValue.failed(theta, found)
        try:
            marginals = found.marginals(derivatives)
            information = self._information(found, marginals) if derivatives else None
        except NotPositiveDefinite:
            return DensityValue.failed(theta, UNDETERMINED)
        parts = [
            DensityPart(case.name, "experiment", -m.value, -m.slope)
            for case, m in zip(problem.cases, marginals, strict=True)
        ]
        prior = prior_part(self.unknowns, theta)
        every = (*parts, *(() if prior is None else (prior,)))
        return DensityValue.summed(theta, every, derivatives, information, constant=self._constant)

    def value(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ inside the bounds; a failure in words where declared bounds hold trajectories."""
        value = super().value(theta, derivatives)
        may_hold = any(v.bounds is not None for v in self.problem.cases[0].trial.flat.variables.values())
        found = self.problem.follow_at(value.theta) if may_hold and not value.failure else ""
        held = [] if isinstance(found, str) else found.held_states()
        return DensityValue.failed(value.theta, about_held_states(held)) if held else value

    def _information(self, found: Solution, marginals: Sequence[Marginal]) -> np.ndarray:
        freedom = np.sum([m.freedom for m in marginals], axis=0)
        return self.problem.with_levels(self.problem.least(found)[1], freedom, found)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Search by Fisher scoring."""
        return density_from_objective(self.problem, start, held, nearly, self._constant)


class TrajectoryCriterion(ProfileCriterion):
    """The least criterion of trajectories, noise levels included."""

    def __init__(self, problem: CollocationProblem) -> None:
        self.problem: CollocationProblem = problem

    @classmethod
    def around(cls, fit: Fitted) -> TrajectoryCriterion:
        """Return that of a fit."""
        return cls(_following(fit, "amle"))

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return minus the criterion at θ."""
        found = self.problem.evaluate(theta, sensitive=derivatives)
        if found.solution is None:
            return DensityValue.failed(theta, found.failure)
        cost = found.solution.at.cost
        return DensityValue(theta, -cost, -found.gradient, found.information, found.residuals, objective=cost)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Minimise over trajectories and unknowns together; noise levels stay."""
        problem = self.problem
        wanted = ~problem.levels
        wanted[list(held)] = False
        found = problem.trajectories.minimize(problem, start, wanted, near=True)
        if not found.converged:
            return Maximum.failed(start, f"trajectories were not found: {found.reason}")
        return Maximum(found.theta, -found.at.cost)


def _following(fit: Fitted, criterion: str) -> CollocationProblem:
    """Return a problem whose trajectories follow from one evaluation to the next."""
    evaluation, cases = solved_again(fit), fit.estimate.cases
    trajectories, solution = evaluation.trajectories, evaluation.solution
    assert trajectories is not None and solution is not None
    trajectories = trajectories.renewed(cases)
    trajectories.keep(solution, True)
    return CollocationProblem(at_estimates(fit.estimate), cases, trajectories, criterion).replace(
        keeps_trajectories=True
    )


def _on_mesh_of(fit: Fitted, problem: CollocationProblem) -> CollocationProblem:
    """Return a problem on the mesh of a fit, whose trajectories begin where those of the fit are."""
    found = _following(fit, problem.criterion).trajectories.renewed(problem.cases)
    return problem.on(found)
