"""The largest likelihood of measurements by laws, and the estimate there.

Standard errors are those of the expected information (Fisher's) at the estimates, with the curvature of priors, or, by
``covariance="sandwich"``, of the scores of the samples around its inverse, which hold where samples are independent and
scatter otherwise than the laws say.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.measurements.measured_problem import MeasuredEvaluation, MeasuredProblem
from grisaille.estimation.uncertainty import inverse_information, root_of, sandwich_product, without_undetermined
from grisaille.estimators.output_error.by_law.correlated import begin_beside_independent
from grisaille.estimators.output_error.by_law.unbounded_parameters import find_unbounded_parameter
from grisaille.estimators.output_error.difference_steps import has_jumps
from grisaille.optimization import scoring
from grisaille.optimization.convergence import ROUNDING_OFFSET
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.optimization.search import Search, SearchOutcome, arrival_reason
from grisaille.simulation.runner import MAX_ERROR_IN_TOLERANCES

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

Likely = Search[MeasuredEvaluation]
TOO_LONG, ROUNDS = 3.0, 4
"""Error estimate of simulations, in tolerances, from which on steps are shortened, and how often."""
KINK_WIDTHS = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Of a law's size, over which its kink is rounded in turn."""
OBJECTIVE_TOLERANCE = 1e-7
"""Of the objective, relative to 1 + its size."""


def fit_by_law(method: OutputError, problem: MeasuredProblem, progress: Progress | None) -> Estimate:
    """Return the largest likelihood, on steps that are short enough there.

    Where laws have kinks, these are rounded over ever smaller shares of the law's size, each search beginning where the
    last one ended.
    """
    begin, problem = time.perf_counter(), problem.discretised_problem
    _refuse_jumps(problem)
    has_kinks = any(not law.law.is_smooth for law in problem.laws.values())
    widths = KINK_WIDTHS if has_kinks else (0.0,)
    problem = problem.replace(smoothing=widths[0])
    search: Likely = Search(problem, SearchJournal.of(progress), method.max_evaluations)
    search.find_endless = partial(find_unbounded_parameter, problem)
    begin_beside_independent(search, problem)
    problem, outcome = _on_fine_steps(method, problem, search)
    for width in widths[1:]:
        if not search.left:
            break
        problem = problem.replace(smoothing=width)
        search.restart(outcome.evaluation.theta, problem)
        outcome = scoring.minimize(search, tolerance=method.tolerance)
    near = outcome.evaluation
    if has_kinks:
        problem = problem.replace(smoothing=0.0)
        search.restart(near.theta, problem)
        outcome = replace(outcome, evaluation=search.evaluate(near.theta))
    search.journal.kept = problem
    free = scoring.free_unknowns(search, outcome.evaluation)
    return _conclude(method, problem, search, outcome, near, free, time.perf_counter() - begin)


def _on_fine_steps(
    method: OutputError, problem: MeasuredProblem, search: Likely
) -> tuple[MeasuredProblem, SearchOutcome[MeasuredEvaluation]]:
    """Return a maximum where simulations keep their tolerance, and the problem with the steps that they take there."""
    outcome = scoring.minimize(search, tolerance=method.tolerance)
    for _ in range(ROUNDS):
        if outcome.evaluation.discretisation <= TOO_LONG or not search.left:
            break
        problem = problem.refined(outcome.evaluation).discretised_problem
        search.journal.kept = problem
        search.restart(outcome.evaluation.theta, problem)
        outcome = scoring.minimize(search, tolerance=method.tolerance)
    return problem, outcome


def _conclude(
    method: OutputError,
    problem: MeasuredProblem,
    search: Likely,
    outcome: SearchOutcome[MeasuredEvaluation],
    near: MeasuredEvaluation,
    free: np.ndarray,
    seconds: float,
) -> Estimate:
    """Return the estimate; ``near``: the evaluation whose slope gives the distance from a maximum."""
    evaluation, journal = outcome.evaluation, search.journal
    prior = evaluation.prior
    information = evaluation.curvature
    if prior is not None:
        information = information - prior.search_curvature + prior.curvature
    seen = np.abs(evaluation.curvature).max(axis=0, initial=0.0) > 0
    inverse, undetermined = inverse_information(information, free & seen)
    expected = without_undetermined(without_undetermined(inverse, undetermined), free & ~seen)
    covariance = expected
    if method.covariance == "sandwich":
        around = _sandwich(evaluation, inverse, free & seen)
        covariance = without_undetermined(without_undetermined(around, undetermined), free & ~seen)
    has_kinks = any(not law.law.is_smooth for law in problem.laws.values())
    decrement = (_beside_kinks if has_kinks else _decrement)(near, expected, free & seen)
    converged = (
        not search.endless and decrement < ROUNDING_OFFSET and evaluation.discretisation < MAX_ERROR_IN_TOLERANCES
    )
    notes = describe_determination(
        search.unknowns, evaluation.theta, root_of(evaluation.curvature), covariance, free,
        lambda theta: _is_same(search, evaluation, theta), ~seen,
    )  # fmt: skip
    if journal.failures:
        notes.append(f"{len(journal.failures)} evaluations failed on the way; the last: {journal.failures[-1]}")
    if evaluation.discretisation > TOO_LONG:
        notes.append(
            f"discretisation: the frozen steps miss the tolerance by a factor {evaluation.discretisation:.1f}; use a "
            f"smaller rtol in gr.OutputError."
        )
    return Estimate(
        unknowns=search.unknowns,
        theta=evaluation.theta,
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=evaluation.log_likelihood,
        is_likelihood=True,
        count=problem.count,
        objective=evaluation.objective,
        evaluation=problem.with_tested_residuals(replace(evaluation, curvature=information)),
        cases=problem.cases,
        converged=converged,
        status=_sentence(converged, outcome, decrement, journal.evaluations, search.endless),
        notes=tuple(notes),
        trace=tuple(journal.trace),
        evaluations=journal.evaluations,
        failures=tuple(journal.failures),
        seconds=seconds,
        offset=decrement,
    )


def _decrement(evaluation: MeasuredEvaluation, covariance: np.ndarray, told: np.ndarray) -> float:
    """Return how far from the maximum a point is, in standard errors."""
    known = told & np.isfinite(np.diag(covariance))
    slope = np.where(known, evaluation.slope, 0.0)
    inner = np.where(np.outer(known, known), covariance, 0.0)
    return float(np.sqrt(max(float(slope @ inner @ slope), 0.0)))


def _beside_kinks(evaluation: MeasuredEvaluation, covariance: np.ndarray, told: np.ndarray) -> float:
    """Return the length of Newton's step in standard errors where kinks are rounded: slopes change within a rounding
    there.
    """
    known = told & np.isfinite(np.diag(covariance))
    if not known.any():
        return 0.0
    both = np.ix_(known, known)
    bend, slope = evaluation.curvature[both], evaluation.slope[known]
    size = np.sqrt(np.diag(bend))
    step = np.linalg.lstsq(bend / np.outer(size, size), slope / size, rcond=None)[0] / size
    return float(np.sqrt(max(float(step @ np.linalg.solve(covariance[both], step)), 0.0)))


def _sandwich(evaluation: MeasuredEvaluation, inverse: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Return I⁻¹ (N/(N − n) Σ s sᵀ + priors) I⁻¹ with the scores s of the samples, which need not be as laws say."""
    assert evaluation.scores is not None
    prior = evaluation.prior
    believed = np.zeros_like(inverse) if prior is None else prior.curvature
    return sandwich_product(inverse, evaluation.scores, root_of(believed), int(told.sum()))


def _is_same(search: Likely, evaluation: MeasuredEvaluation, theta: np.ndarray) -> bool:
    there = search.evaluate(theta, sensitive=False, quietly=True)
    return there.completed and abs(there.objective - evaluation.objective) < OBJECTIVE_TOLERANCE * (
        1 + abs(evaluation.objective)
    )


def _sentence(
    converged: bool, outcome: SearchOutcome[MeasuredEvaluation], decrement: float, evaluations: int, endless: str
) -> str:
    if endless:
        return f"NOT converged after {evaluations} evaluations: {endless}"
    if converged:
        return f"converged: {arrival_reason(outcome, decrement)}, {evaluations} evaluations"
    return (
        f"NOT converged after {evaluations} evaluations: {outcome.reason}; the point is {decrement:.2g} standard "
        f"errors from a maximum. Try another guess, gr.multistart, or a larger max_evaluations"
    )


def _refuse_jumps(problem: MeasuredProblem) -> None:
    """Refuse equations that jump with states in a way that derivatives do not see."""
    if has_jumps(problem):
        jumps = "The equations jump with states in a way that derivatives do not see, and a likelihood"
        smooth = "is maximised with exact ones. Write the jump as gr.where or gr.when of a smooth condition"
        laws: Sequence[str] = [type(law.law).__name__ for law in problem.laws.values()]
        if set(laws) == {"Normal"} and problem.shared:
            raise EstimationError(
                f"{jumps} of noise that outputs share {smooth}, or use gr.OutputError(errors='robust'), which takes "
                f"differences and covariances between residuals from the data."
            )
        raise EstimationError(
            f"{jumps} by laws ({', '.join(dict.fromkeys(laws))}) {smooth}, or give the outputs normal noise, for which "
            f"differences are taken."
        )
