"""Deviances around collocation fits: D(θ) = 2 (f(θ) − f(θ̂)), trajectories following from one point to the next.

    amle, ipda   f = least sum over the trajectories: minimised over them and the other unknowns together. Not a
                 likelihood; near the estimate D = ((θ − θ̂)/s)² with the standard error s of the fit
    laplace      f = −log L − log prior

Knots and elements are those that the fit ended with; noise formulas that contain states stay as they were there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.assessment.likelihood_criterion import LikelihoodCriterion, at_estimates
from grisaille.assessment.points import Point
from grisaille.collocation import descent
from grisaille.collocation.direct.direct import DirectProgram, DirectSolution
from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimators.collocation.again import solved_again
from grisaille.estimators.collocation.direct.problem import DirectEvaluation, DirectProblem
from grisaille.estimators.collocation.direct.programs import evaluated_program, on_elements, with_held
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.trial.unknown import Unknown

STEPS = 60
"""Over unknowns and trajectories together, after which trajectories are solved for at each step instead."""


def collocation_criterion(fit: Fitted, held: tuple[str, ...] = ()) -> LikelihoodCriterion:
    """Deviances around a fit by splines or by direct collocation; ``held``: unknowns that will be given values."""
    method: Any = fit.method
    if method.criterion == "smoothing":
        raise EstimationError(
            "criterion='smoothing' has no profiles or regions: its parameters minimise the misfit of trajectories that "
            "follow the data themselves, and differences of that misfit say nothing about confidence. Fit with "
            "criterion='amle' or 'laplace', or see gr.monte_carlo(fit.model, fit.experiments, …)."
        )
    if method.debias:
        raise EstimationError(
            "debias=True moved the estimates off the minimum of their criterion, so there are no profiles or regions "
            "around them: fit with criterion='laplace', or without debias."
        )
    found = [u.name for u in fit.estimate.unknowns if u.kind == "scale" and u.name in held]
    if found and method.criterion != "laplace":
        raise EstimationError(
            f"'{found[0]}' was found from the misfit of the outputs and does not minimise the criterion, so it has no "
            f"profile: fit with gr.Collocation(criterion='laplace', intensities='estimate')."
        )
    evaluation = solved_again(fit)
    return DirectCriterion(fit, evaluation) if isinstance(evaluation, DirectEvaluation) else SplineCriterion(fit)


class SplineCriterion(LikelihoodCriterion):
    """Deviances on the splines of the fit."""

    problem: CollocationProblem

    def _posed(self, fit: Fitted) -> CollocationProblem:
        evaluation = solved_again(fit)
        assert isinstance(evaluation, CollocationEvaluation) and evaluation.quadratic is not None
        found = evaluation.quadratic
        unknowns = at_estimates(fit.estimate.unknowns, self.theta)
        criterion = "laplace" if fit.estimate.is_likelihood else "amle"
        problem = CollocationProblem(unknowns, fit.estimate.cases, found.task.programs, found.betas, criterion)
        problem.keep(found, True)
        return problem

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        if self.problem.criterion == "laplace":
            return super().minimize(held, start)
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        wanted = ~self.problem.levels
        wanted[list(held)] = False
        task, xi = self.problem.task(), self.problem.inner(theta)
        for near in (True, False):
            found = descent.minimize(task, xi, self.problem.betas, wanted=wanted, near=near, most=STEPS)
            if found.converged:
                self.problem.keep(found.quadratic, True)
                return Point(found.quadratic.theta, 2 * (found.quadratic.objective - self._best))
        levels = {int(k): float(theta[k]) for k in np.flatnonzero(self.problem.levels)}
        return super().minimize({**levels, **held}, start)


class DirectCriterion(LikelihoodCriterion):
    """Deviances on the elements of the fit."""

    problem: PathProblem

    def __init__(self, fit: Fitted, evaluation: DirectEvaluation) -> None:
        self.evaluation = evaluation
        super().__init__(fit)

    def _posed(self, fit: Fitted) -> PathProblem:
        solution, program = self.evaluation.solution, self.evaluation.program
        assert solution is not None and program is not None
        # a level reported as zero has ended at a small number
        self.theta = np.where(fit.estimate.theta == 0, solution.theta, fit.estimate.theta)
        unknowns = at_estimates(fit.estimate.unknowns, self.theta)
        return PathProblem(unknowns, fit.estimate.cases, on_elements(program, solution.pieces), solution)

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        theta = np.array(start, dtype=float)
        if self.problem.program.options.criterion != "laplace":
            scales = [k for k, u in enumerate(self.problem.unknowns) if u.kind == "scale"]
            held = {**{k: float(self.theta[k]) for k in scales}, **held}
        theta[list(held)] = list(held.values())
        if len(held) == len(theta):
            return super().minimize(held, start)
        found = self.problem.followed(with_held(self.problem.program, held), theta, free=True)
        if not found.converged:
            return Point(theta, np.inf, f"the path {found.status}")
        value = found.result.costs.total if found.log_likelihood is None else -found.log_likelihood
        return Point(found.theta, 2 * (value - self._best))


class PathProblem(DirectProblem):
    """Direct collocation that goes on from the last path."""

    def __init__(
        self, unknowns: Sequence[Unknown], cases: Sequence[Case], program: DirectProgram, solution: DirectSolution
    ) -> None:
        super().__init__(unknowns, cases, evaluated_program(program))
        self.last = solution.point

    def followed(self, program: DirectProgram, theta: np.ndarray, *, free: bool) -> DirectSolution:
        """The solution from the last path, or from the beginning where that does not lead to one."""
        found = program.solve(theta, self.last, free=free)
        if not found.converged:
            found = program.solve(theta, free=free)
        if found.converged:
            self.last = found.point
        return found

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        """The criterion at θ, noise levels included."""
        self.evaluations += 1
        found = self.followed(self.program, theta, free=False)
        if not found.converged:
            self.failures.append(found.status)
            return self._broken(theta, f"the path {found.status}")
        at = self.at(found)
        return at if self.program.options.criterion == "laplace" else replace(at, value=found.result.costs.total)
