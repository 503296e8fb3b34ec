"""Iteratively refined principal differential analysis: trajectories and unknowns in turn, until neither moves.

Step one finds trajectories for given unknowns, step two the unknowns that suit these trajectories best. The limit is
the joint minimum, reached by many cheap steps. Reference: M. S. Varziri, Parameter Estimation in Stochastic Dynamic
Models (2008), Fig. 3.1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.collocation.descent import Quadratic
from grisaille.errors import EstimationError
from grisaille.estimators.collocation.answer import Answer, answer_of
from grisaille.estimators.collocation.problem import CollocationProblem
from grisaille.estimators.collocation.spline_solution import SplineSolution
from grisaille.optimization.journal import Journal

STILL = 1e-7
"""Standard errors, at fixed trajectories, that unknowns move by when they move no more."""


def minimize_in_turn(problem: CollocationProblem, journal: Journal, near: bool, most: int) -> Answer:
    """Splines only."""
    theta, reason, settled = problem.guess, "the limit of iterations was reached", False
    for k in range(most * 10):
        found = _followed(problem, theta, k)
        journal.evaluations += 1
        journal.accept(problem.unknowns, theta, found.objective)
        after = _second_step(found.quadratic)
        errors = 1 / np.sqrt(np.maximum(np.diag(found.quadratic.corner), 1e-300))
        moved = (np.abs(problem.inner(after) - problem.inner(theta)) / errors).max()
        theta = after
        if moved < STILL:
            reason, settled = "neither step moves the unknowns any more", True
            break
    final = replace(_followed(problem, theta, k), converged=settled, reason=reason)
    return answer_of(problem, final)


def _followed(problem: CollocationProblem, theta: np.ndarray, k: int) -> SplineSolution:
    found = problem.trajectories.follow(problem, theta)
    if isinstance(found, str):
        raise EstimationError(f"iPDA stopped in iteration {k + 1}: {found}")
    assert isinstance(found, SplineSolution)
    return found


def _second_step(found: Quadratic) -> np.ndarray:
    """The unknowns that suit the trajectories best: Gauss–Newton with damping at fixed β."""
    task, now, damping = found.task, found, 0.0
    for _ in range(60):
        free = now.free(np.ones(len(now.xi), dtype=bool))
        C = now.corner[np.ix_(free, free)]
        step = np.zeros_like(now.xi)
        size = np.sqrt(np.diag(C))
        scaled = C / np.outer(size, size) + damping * np.eye(len(C))
        step[free] = -np.linalg.lstsq(scaled, now.slope[free] / size, rcond=1e-13)[0] / size
        xi = np.clip(now.xi + step, task.lower, task.upper)
        gain = -float(now.slope @ (xi - now.xi))
        if gain < 1e-14 * (1 + now.cost):
            break
        trial = task.linearised(xi, now.betas)
        if trial.cost < now.cost:
            now, damping = trial, damping / 10 if damping > 1e-9 else 0.0
        else:
            damping = max(10 * damping, 1e-6)
            if damping > 1e10:
                break
    return now.theta
