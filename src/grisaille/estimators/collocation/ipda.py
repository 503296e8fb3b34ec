"""Iteratively refined principal differential analysis: trajectories and unknowns in turn, until neither changes.

Step one finds trajectories for given unknowns, step two the unknowns that suit these trajectories best. The limit is
the joint minimum, reached by many cheap steps. Reference: M. S. Varziri, Parameter Estimation in Stochastic Dynamic
Models (2008), Fig. 3.1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.collocation.arrow_descent import ArrowQuadratic, ArrowStep, ReducedCriterion, unknowns_step
from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.collocation.trajectory_newton import StepSource, descend
from grisaille.errors import EstimationError
from grisaille.estimators.collocation.collocation_problem import CollocationProblem
from grisaille.estimators.collocation.collocation_result import CollocationResult, answer_of
from grisaille.estimators.collocation.spline_solution import SplineSolution
from grisaille.estimators.collocation.spline_trajectories import Splines
from grisaille.optimization.journal import SearchJournal

SETTLED_MOVE = 4e-6
"""Standard errors, at fixed trajectories, that unknowns move by when they move no more."""


def minimize_in_turn(problem: CollocationProblem, journal: SearchJournal, near: bool, most: int) -> CollocationResult:
    """Minimise over trajectories and unknowns in turn; for splines only."""
    theta, reason, settled = problem.guess, "the limit of iterations was reached", False
    for k in range(most * 10):
        found = _followed(problem, theta, k)
        journal.add()
        journal.accept(problem.unknowns, theta, found.objective)
        after = _second_step(found.at)
        errors = 1 / np.sqrt(np.maximum(np.diag(found.at.corner), 1e-300))
        moved = (np.abs(problem.inner(after) - problem.inner(theta)) / errors).max()
        theta = after
        if moved < SETTLED_MOVE:
            reason, settled = "neither step moves the unknowns any more", True
            break
    final = _followed(problem, theta, k)
    if settled:  # steps in turn shrink slowly: what they leave is taken at once
        assert isinstance(problem.trajectories, Splines)
        final = problem.trajectories.polished(problem, np.ones(len(theta), dtype=bool), final)
    return answer_of(problem, replace(final, converged=settled, reason=reason, iterations=k))


def _followed(problem: CollocationProblem, theta: np.ndarray, k: int) -> SplineSolution:
    found = problem.trajectories.follow(problem, theta)
    if isinstance(found, str):
        raise EstimationError(f"iPDA stopped in iteration {k + 1}: {found}")
    assert isinstance(found, SplineSolution)
    return found


def _second_step(found: ArrowQuadratic) -> np.ndarray:
    """Return the unknowns that suit the trajectories best."""
    return descend(AtTrajectories(found), found, damping=0.0, tolerance=1e-11, most=60).theta


class AtTrajectories(StepSource[ReducedCriterion, ArrowStep]):
    """Steps of the unknowns alone."""

    def __init__(self, found: ArrowQuadratic) -> None:
        self.task, self.betas = found.task, found.betas
        self.wanted = np.ones(len(found.xi), dtype=bool)

    def propose(self, now: ReducedCriterion, damping: float) -> ArrowStep | None:
        try:
            dxi, predicted = unknowns_step(now, now.corner, now.slope, now.free(self.wanted), damping)
        except (NotPositiveDefinite, np.linalg.LinAlgError):
            return None
        return ArrowStep(now.xi + dxi, self.betas, predicted)

    def after_share_of_step(
        self, now: ReducedCriterion, step: ArrowStep, share: float, small: bool
    ) -> ReducedCriterion:
        return self.task.on_trajectories(step.xi, self.betas)

    def gain_scale(self, now: ReducedCriterion) -> float:
        return 1 + now.cost
