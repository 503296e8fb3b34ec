"""How each criterion of collocation is minimised, and what becomes of the result.

amle       descent over unknowns and trajectories together; scales, where wanted, as roots around it; debiased, where
           wanted, by scoring on −log L from there on
ipda       trajectories for given unknowns, then unknowns for given trajectories, until they stay
smoothing  least squares over the unknowns, the trajectories following
laplace    scoring on −log L, from where the descent leads
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.collocation.descent import Quadratic, Solution
from grisaille.errors import EstimationError
from grisaille.estimation.determination import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import root_of
from grisaille.estimators.collocation.bias import describe_lean, lean
from grisaille.estimators.collocation.intensities import find_intensities
from grisaille.estimators.collocation.ipda import minimize_in_turn
from grisaille.estimators.collocation.joint import Answer, Progress, from_quadratic, refuse_nothing, settled
from grisaille.estimators.collocation.problem import CollocationProblem
from grisaille.estimators.collocation.profiling import approach_likelihood, maximize_likelihood, minimize_misfit
from grisaille.estimators.collocation.refinement import NEGLIGIBLE, left_over, prepared, refined
from grisaille.optimization import scoring
from grisaille.optimization.search import Search
from grisaille.trial.unknown import Unknown

COARSE = 0.1
"""Of the criterion: knots that cost more are refined further, and mentioned where they are not."""
DEBIASED = 1e-9
"""Predicted gain of −log L, relative to 1 + |log L|, at which a debiased estimate has arrived: within a thousandth of a
standard error for a few hundred samples."""
SETTLED = 0.05
"""Standard errors: estimates that move less with more knots have stopped moving."""


def solve(method: Any, problem: CollocationProblem, progress: Progress | None) -> Estimate:
    """The estimate of a posed problem, on knots that are refined as the method says."""
    begin = time.perf_counter()
    guessed, rounds, most = problem.unknowns, 0, method.refinements
    own = not isinstance(method.knots, str)  # knots of the user's own are added to, not judged
    if most and not own:
        problem = prepared(problem, method.quadrature)
    search, finish = CRITERIA[method.criterion]
    answer = search(method, problem, progress, False)
    left, still = left_over(problem, _trajectories(answer)), False
    while rounds < most and answer.converged and left > NEGLIGIBLE and not still:
        rounds, before = rounds + 1, answer.evaluation.theta
        problem = refined(problem, _trajectories(answer), method.quadrature)
        problem.with_guess(before)
        answer = search(method, problem, progress, True)
        left = left_over(problem, _trajectories(answer))
        errors = np.sqrt(np.clip(np.diag(answer.covariance), 0.0, None))
        moved = np.abs(answer.evaluation.theta - before) / np.where(errors > 0, errors, np.inf)
        still = moved.max(initial=0.0) < SETTLED and (own or left < COARSE)
    answer = finish(method, problem, answer, guessed, progress)
    if not still:
        answer.notes += _coarse(left, own, most)
        if rounds and not own and left > COARSE:
            answer = replace(answer, converged=False, reason="estimates still move as knots are added")
    return _dressed(method, problem, guessed, answer, rounds, time.perf_counter() - begin)


def _trajectories(answer: Answer) -> Quadratic:
    found = answer.evaluation.quadratic
    assert found is not None
    return found


def _coarse(left: float, own: bool, rounds: int) -> list[str]:
    """Whether the knots were too far apart."""
    if left <= COARSE:
        return []
    further = f"gr.Collocation(refine={max(2 * rounds, 10)})"
    advice = f"use knots='auto', more of them, or {further}" if own else f"use {further}, or knots=times of your own"
    return [f"knots: about {left:.2g} of the criterion is due to knots that are too far apart; {advice}."]


def _amle(method: Any, problem: CollocationProblem, progress: Progress | None, near: bool) -> Answer:
    notes: list[str] = []
    theta, intensities = problem.guess, None
    if problem.levels.any():
        intensities = find_intensities(method, problem, progress)
        theta, notes = intensities.theta, intensities.notes
    found = settled(method, problem, theta, progress)
    refuse_nothing(found)
    answer = from_quadratic(problem, found)
    answer.notes += notes
    if intensities is not None:
        intensities.put_errors(answer.covariance)
    return answer


def _told_of_lean(
    method: Any, problem: CollocationProblem, answer: Answer, guessed: Sequence[Unknown], progress: Progress | None
) -> Answer:
    """With a note on how far the criterion leans, or without the lean."""
    if not answer.converged:
        return answer
    if method.debias:
        return _debiased(method, problem, answer)
    at = answer.evaluation
    try:
        slope = problem.marginal_at(_trajectories(answer), at.curvature, True)[1] - at.slope
    except NotPositiveDefinite:  # nothing is known about the scatter of trajectories
        return answer
    leaning = lean(answer.covariance, np.where(problem.levels, 0.0, slope))
    answer.notes += describe_lean(problem.unknowns, leaning, answer.covariance, False)
    return answer


def _debiased(method: Any, problem: CollocationProblem, answer: Answer) -> Answer:
    """Where the marginal likelihood is largest at the same intensities, from the minimum of the criterion on."""
    asked, criterion, theta = problem.unknowns, problem.criterion, answer.evaluation.theta
    try:
        problem.with_guess(theta)
        problem.criterion = "laplace"
        problem.unknowns = tuple(
            replace(u, lower=v, upper=v) if level else u
            for u, v, level in zip(problem.unknowns, theta.tolist(), problem.levels, strict=True)
        )
        search = Search(problem)
        outcome = scoring.score(search, max_evaluations=method.max_iterations, tolerance=DEBIASED)
        there = outcome.evaluation
        free = scoring.free_unknowns(search, there) | problem.levels
    except EstimationError as error:
        answer.notes.append(f"bias: it could not be taken off: {error}")
        return replace(answer, converged=False, reason="the bias could not be taken off")
    finally:
        problem.unknowns, problem.criterion = asked, criterion
    assert there.quadratic is not None
    ended = Solution(there.quadratic, outcome.stopped_well, outcome.reason, 0, list(answer.trace))
    moved = from_quadratic(problem, ended, free)
    kept = np.diag(problem.levels)
    moved.covariance[kept] = answer.covariance[kept]
    leaning = np.where(problem.levels, 0.0, theta - there.theta)
    moved.notes += [*answer.notes, *describe_lean(problem.unknowns, leaning, moved.covariance, True)]
    return moved


def _as_it_is(
    method: Any, problem: CollocationProblem, answer: Answer, guessed: Sequence[Unknown], progress: Progress | None
) -> Answer:
    return answer


CRITERIA: dict[str, tuple[Callable[..., Answer], Callable[..., Answer]]] = {
    "amle": (_amle, _told_of_lean),
    "ipda": (minimize_in_turn, _as_it_is),
    "smoothing": (minimize_misfit, _as_it_is),
    "laplace": (approach_likelihood, maximize_likelihood),
}
"""How each criterion is minimised on given knots, from near by or not, and what is done once on the last ones."""


def _dressed(
    method: Any, problem: CollocationProblem, guessed: Any, answer: Answer, rounds: int, seconds: float
) -> Estimate:
    evaluation = answer.evaluation
    root = root_of(evaluation.curvature)
    alive = answer.free | problem.levels
    notes = describe_determination(problem.unknowns, evaluation.theta, root, answer.covariance, alive)
    dead = [f"dead: no output moves with {u.name};" for u in problem.unknowns if u.kind in ("scale", "start")]
    notes = [n for n in notes if not n.startswith(tuple(dead))] if dead else notes
    knots = sum(len(p.mesh.bounds) for p in problem.programs)
    return Estimate(
        unknowns=tuple(guessed),
        theta=evaluation.theta,
        covariance=answer.covariance,
        free=answer.free,
        noise={},
        log_likelihood=evaluation.log_likelihood,
        is_likelihood=method.criterion == "laplace",
        count=problem.count,
        objective=evaluation.objective,
        evaluation=evaluation,
        cases=problem.cases,
        converged=answer.converged,
        status=_sentence(answer, problem),
        notes=tuple(dict.fromkeys((*notes, *answer.notes))),
        trace=tuple(answer.trace),
        evaluations=problem.evaluations,
        failures=tuple(problem.failures),
        seconds=seconds,
        extra={
            "criterion": evaluation.objective,
            "knots": float(knots),
            "coefficients": float(sum(p.mesh.count for p in problem.programs)),
            "refinements": float(rounds),
        },
    )


def _sentence(answer: Answer, problem: CollocationProblem) -> str:
    if answer.converged:
        return f"converged: {answer.reason}, {problem.evaluations} iterations"
    return (
        f"NOT converged after {problem.evaluations} iterations: {answer.reason}. Try another guess=, bounds, or "
        f"gr.multistart"
    )
