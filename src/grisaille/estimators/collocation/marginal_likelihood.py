"""The marginal likelihood, by scoring from where the joint descent leads; and the same with intensities held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.determination.descriptions import DEAD
from grisaille.estimation.noise_levels import ONE_SIDED
from grisaille.estimation.residuals.exact_data import find_unbounded_likelihood
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.collocation_problem import CollocationEvaluation, CollocationProblem
from grisaille.estimators.collocation.collocation_result import CollocationResult, answer_of, describe_lean
from grisaille.optimization import scoring
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.search import Search, arrival_reason

SAME_LOG_LIKELIHOOD = 1e-3
"""Of the log-likelihood: no difference."""
VANISHED_LEVEL = 0.1
"""Standard errors: a level below is zero."""
RAN_AWAY = 1e-2
"""Of its guess: a level below that the likelihood does not see is zero, too."""
DEBIASED_GAIN = 1e-9
"""Predicted gain of −log L, relative to 1 + |log L|, at which a debiased estimate has arrived: within a thousandth of a
standard error for a few hundred samples."""


def approach_likelihood(
    problem: CollocationProblem, journal: SearchJournal, near: bool, most: int
) -> CollocationResult:
    """Return a maximum to the accuracy of the expected information.

    Unless ``near``, from where the joint descent leads, levels held: at a guess that is far from the data the best
    trajectory may leave what the model means, and the search would end there. Where that leads nowhere, from the guess.
    """
    asked, starts = problem.unknowns, [problem.guess]
    if not near and not problem.levels.all():
        joint = problem.trajectories.minimize(problem, problem.guess, ~problem.levels, journal)
        starts.insert(0, np.where(problem.levels, problem.guess, joint.theta))
    found: list[CollocationResult] = []
    for k, start in enumerate(starts):
        problem.go_on_from(start)
        search = _search(problem, journal, most)
        try:
            outcome = scoring.score(search, tolerance=1e-10)
        except EstimationError:
            if not found and k == len(starts) - 1:
                raise
            continue
        finally:
            problem.unknowns = asked
        evaluation = outcome.evaluation
        free = scoring.free_unknowns(search, evaluation)
        covariance = without_undetermined(*inverse_information(evaluation.curvature, free))
        found.append(CollocationResult(evaluation, covariance, free, outcome.stopped_well, outcome.reason))
        if outcome.stopped_well or search.endless:
            break
    return min(found, key=lambda answer: (not answer.converged, answer.evaluation.objective))


def _search(problem: CollocationProblem, journal: SearchJournal, most: int) -> Search[CollocationEvaluation]:
    """Return a search that ends where data are explained exactly, so that levels of noise would go to zero without
    end.
    """
    search = Search(problem, journal, journal.evaluations + most)
    search.find_endless = partial(find_unbounded_likelihood, problem, smooths=True)
    return search


def maximize_likelihood(
    problem: CollocationProblem,
    nearly: CollocationResult,
    guessed: Sequence[Unknown],
    journal: SearchJournal,
    most: int,
) -> CollocationResult:
    """Return the maximum itself, and the curvature there."""
    asked = problem.unknowns
    problem.go_on_from(nearly.evaluation.theta)
    search = _search(problem, journal, most)
    outcome = scoring.minimize(search, tolerance=1e-10)
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
    gone = unseen & (evaluation.theta < RAN_AWAY * np.array([u.guess for u in guessed]))
    covariance = without_undetermined(covariance, (unseen & ~gone) | dead | flat)
    notes = [*nearly.notes, *_level_notes(problem, evaluation, covariance, unseen | dead, gone)]
    problem.unknowns = asked
    if search.endless:
        return CollocationResult(evaluation, covariance, free & ~gone, False, search.endless, notes, is_exact=True)
    converged = polished.is_minimum and polished.decrement < 1e-6
    reason = outcome.reason if polished.is_minimum else "the point is not a maximum of the likelihood"
    if converged:
        reason = arrival_reason(outcome, float(np.sqrt(polished.decrement)))
    return CollocationResult(evaluation, covariance, free & ~gone, converged, reason, notes)


def remove_bias(
    problem: CollocationProblem, answer: CollocationResult, journal: SearchJournal, most: int
) -> CollocationResult:
    """Return the maximum of the marginal likelihood at the same intensities, from the minimum of the criterion on."""
    theta = answer.evaluation.theta
    search = Search(problem.holding(theta, problem.levels, "laplace"), journal, journal.evaluations + most)
    try:
        outcome = scoring.score(search, tolerance=DEBIASED_GAIN)
    except EstimationError as error:
        answer.notes.append(f"bias: it could not be taken off: {error}")
        return replace(answer, converged=False, reason="the bias could not be taken off")
    there, free = outcome.evaluation, scoring.free_unknowns(search, outcome.evaluation)
    polished = scoring.polish(search, there, free & ~problem.levels) if problem.trajectories.is_exact else None
    there = there if polished is None else polished.evaluation
    assert there.solution is not None
    moved = answer_of(problem, there.solution, free)
    if polished is not None:
        slopes = search.slopes(there.theta)
        moved.covariance = without_undetermined(polished.covariance * np.outer(slopes, slopes), polished.lost)
    kept = np.diag(problem.levels)
    moved.covariance[kept] = answer.covariance[kept]
    leaning = np.where(problem.levels, 0.0, theta - there.theta)
    moved.notes += [*answer.notes, *describe_lean(problem.unknowns, leaning, moved.covariance)]
    return replace(moved, converged=outcome.stopped_well, reason=outcome.reason)


def _left_alone(
    problem: CollocationProblem, evaluation: CollocationEvaluation, dead: np.ndarray, asked: Sequence[Unknown]
) -> CollocationEvaluation:
    """Return the evaluation with unknowns that affect no output back at their guesses, from which rounding alone has
    moved them.
    """
    if not dead.any():
        return evaluation
    back = problem.evaluate(np.where(dead, [u.guess for u in asked], evaluation.theta))
    return back if back.completed and back.objective < evaluation.objective + SAME_LOG_LIKELIHOOD else evaluation


def _level_notes(
    problem: CollocationProblem, evaluation: CollocationEvaluation, covariance: np.ndarray, unseen: np.ndarray,
    gone: np.ndarray,
) -> list[str]:  # fmt: skip
    """Return unknowns that no output depends on, and levels that are as good as zero."""
    notes, errors = [], np.sqrt(np.diag(covariance))
    for k in map(int, np.flatnonzero(problem.levels | unseen)):
        name = problem.unknowns[k].name
        if unseen[k] and not gone[k]:
            notes.append(f"dead: no output depends on {name}; fix it, or measure something that depends on it.")
        elif gone[k] or 0 < evaluation.theta[k] < VANISHED_LEVEL * errors[k]:
            rate = _rate(problem, evaluation, k, float(errors[k]) if errors[k] > 0 else problem.unknowns[k].size)
            limit = f"; one-sided 95 % limit about {np.sqrt(ONE_SIDED / rate):.3g}" if rate > 0 else ""
            notes.append(f"zero: {name} is zero to all digits that the data have{limit}.")
    return notes


def _rate(problem: CollocationProblem, evaluation: CollocationEvaluation, k: int, level: float) -> float:
    """Return ∂(−log L)/∂(σ²) near zero, from a level that is not too small for the knots."""
    theta = evaluation.theta.copy()
    theta[k] = level
    trial = problem.evaluate(theta, sensitive=False)
    return (trial.objective - evaluation.objective) / level**2 if trial.completed else 0.0
