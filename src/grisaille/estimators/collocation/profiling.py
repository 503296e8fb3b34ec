"""Criteria of the unknowns alone, the trajectories following: generalised smoothing, and the marginal likelihood.

Smoothing is least squares of the data misfit, with the Jacobian of the implicit function theorem; estimated starts
belong to the trajectories. The marginal likelihood is searched by scoring, from where the joint descent leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.estimation.determination import DEAD
from grisaille.estimation.levels import ONE_SIDED
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.joint import Answer, Progress, refuse_nothing, settled
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.optimization import convergence, scoring, trust_region
from grisaille.optimization.journal import Journal
from grisaille.optimization.search import Search
from grisaille.trial.unknown import Unknown

SAME = 1e-3
"""Of the log-likelihood: no difference."""
VANISHED = 0.1
"""Standard errors: a level below is zero."""


def minimize_misfit(method: Any, problem: CollocationProblem, progress: Progress | None, near: bool) -> Answer:
    search = Search(problem, Journal.of(progress))
    outcome = trust_region.minimize(
        search, loss="linear", loss_scale=1.0, max_evaluations=method.max_iterations, tolerance=1e-9
    )
    nearly = outcome.evaluation
    starts = np.array([u.kind == "start" for u in problem.unknowns], dtype=bool)
    free = scoring.free_unknowns(search, nearly)
    evaluation = scoring.polish(search, nearly, free & ~starts).evaluation
    offset = convergence.relative_offset(search, evaluation)
    covariance, lost = inverse_information(evaluation.curvature, free & ~starts)
    covariance = without_undetermined(covariance, lost)
    evaluation = _with_own_starts(problem, evaluation, covariance)
    return Answer(evaluation, covariance, free, offset < convergence.OFFSET, outcome.reason, [], search.journal.trace)


def _with_own_starts(
    problem: CollocationProblem, evaluation: CollocationEvaluation, covariance: np.ndarray
) -> CollocationEvaluation:
    """Starts that belong to the trajectories, read off them, with their variances."""
    found, theta = evaluation.quadratic, evaluation.theta.copy()
    assert found is not None
    moved, factors = problem._implicit(found), found.factors()
    shared = covariance.copy()
    for case, program, beta, factor, V in zip(
        problem.cases, problem.programs, found.betas, factors, moved, strict=True
    ):
        for row, state in program.record.start_of.items():
            k, place = case.unknowns[row], program.mesh.first[state]
            unit = np.zeros(len(beta))
            unit[place] = 1.0
            theta[k] = beta[place]
            covariance[k, :] = covariance[:, k] = -V[place] @ shared
            covariance[k, k] = factor.solve(unit)[place] + V[place] @ shared @ V[place]
    return replace(evaluation, theta=theta)


def approach_likelihood(method: Any, problem: CollocationProblem, progress: Progress | None, near: bool) -> Answer:
    """A maximum to the accuracy of the expected information; unless ``near``, from where the joint descent leads."""
    asked = problem.unknowns
    if not near:
        found = settled(method, problem, problem.guess, progress)
        refuse_nothing(found)
        problem.with_guess(np.where(problem.levels, problem.guess, found.quadratic.theta))
    search = Search(problem, Journal.of(progress))
    outcome = scoring.score(search, max_evaluations=method.max_iterations, tolerance=1e-10)
    evaluation: Any = outcome.evaluation
    free = scoring.free_unknowns(search, evaluation)
    covariance, lost = inverse_information(evaluation.curvature, free)
    problem.unknowns = asked
    return Answer(
        evaluation, without_undetermined(covariance, lost), free, outcome.stopped_well, outcome.reason, [],
        search.journal.trace,
    )  # fmt: skip


def maximize_likelihood(
    method: Any, problem: CollocationProblem, nearly: Answer, guessed: Sequence[Unknown], progress: Progress | None
) -> Answer:
    """The maximum itself, and the curvature there."""
    asked = problem.unknowns
    problem.with_guess(nearly.evaluation.theta)
    search = Search(problem, Journal.of(progress))
    outcome = scoring.minimize(search, max_evaluations=method.max_iterations, tolerance=1e-10)
    best = outcome.evaluation
    free = scoring.free_unknowns(search, best)
    polished = scoring.polish(search, best, free)
    evaluation = polished.evaluation
    slopes = search.slopes(evaluation.theta)
    covariance = np.asarray(polished.covariance * np.outer(slopes, slopes))
    unseen = free & problem.levels & (np.diag(covariance) == 0)
    flat = polished.lost & (np.diag(covariance) != 0)
    dead = ~problem.levels & (np.diag(evaluation.curvature) * slopes**2 < DEAD)
    evaluation, free = _left_alone(problem, evaluation, dead, guessed), free | dead
    covariance = without_undetermined(covariance, unseen | dead | flat)
    notes = [*nearly.notes, *_level_notes(problem, evaluation, covariance, unseen | dead)]
    problem.unknowns = asked
    converged = polished.is_minimum and polished.decrement < 1e-6
    reason = outcome.reason if polished.is_minimum else "the point is not a maximum of the likelihood"
    return Answer(evaluation, covariance, free, converged, reason, notes, search.journal.trace)


def _left_alone(
    problem: CollocationProblem, evaluation: CollocationEvaluation, dead: np.ndarray, asked: Sequence[Unknown]
) -> CollocationEvaluation:
    """With unknowns that no output sees back at their guesses, from which rounding alone has moved them."""
    if not dead.any():
        return evaluation
    back = problem.evaluate(np.where(dead, [u.guess for u in asked], evaluation.theta))
    return back if back.completed and back.objective < evaluation.objective + SAME else evaluation


def _level_notes(
    problem: CollocationProblem, evaluation: CollocationEvaluation, covariance: np.ndarray, unseen: np.ndarray
) -> list[str]:
    """Unknowns that no output sees, and levels that are as good as zero."""
    notes, errors = [], np.sqrt(np.diag(covariance))
    for k in map(int, np.flatnonzero(problem.levels | unseen)):
        name = problem.unknowns[k].name
        if unseen[k]:
            notes.append(f"dead: no output moves with {name}; fix it, or measure something that depends on it.")
        elif 0 < evaluation.theta[k] < VANISHED * errors[k]:
            rate = _rate(problem, evaluation, k, float(errors[k]))
            limit = f"; one-sided 95 % limit about {np.sqrt(ONE_SIDED / rate):.3g}" if rate > 0 else ""
            notes.append(f"zero: {name} is zero to all digits that the data have{limit}.")
    return notes


def _rate(problem: CollocationProblem, evaluation: CollocationEvaluation, k: int, level: float) -> float:
    """∂(−log L)/∂(σ²) near zero, from a level that is not too small for the knots."""
    theta, failures = evaluation.theta.copy(), list(problem.failures)
    theta[k] = level
    trial = problem.evaluate(theta, sensitive=False)
    problem.failures = failures  # one here is of no consequence
    return (trial.objective - evaluation.objective) / level**2 if trial.completed else 0.0
