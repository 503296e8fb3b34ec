"""From the minimum of a search to an estimate: errors, what the data determine, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.density.least_squares import normal_log_likelihood
from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimation.uncertainty import gauss_newton_covariance, without_undetermined
from grisaille.estimators.output_error import robust_losses
from grisaille.estimators.output_error.bounds import on_bounds
from grisaille.estimators.output_error.difference_steps import caution, crossings_at, has_jumps
from grisaille.estimators.output_error.errors_by_option import errors_of
from grisaille.estimators.output_error.event_order import order_notes
from grisaille.estimators.output_error.held_disturbances import shifted_means
from grisaille.estimators.output_error.least_squares_minimum import Ending, LeastSquaresMinimum, Squares
from grisaille.estimators.output_error.least_squares_stages import TOO_LONG
from grisaille.estimators.output_error.level_updates import rescale_levels, settle_levels
from grisaille.estimators.output_error.notes import (
    correlation_notes,
    growth_note,
    minima_note,
    nothing_moves_note,
    same_as,
    weighting_note,
)
from grisaille.optimization.convergence import OFFSET_TOLERANCE_OF_DIFFERENCES, ROUNDING_OFFSET, relative_offset
from grisaille.optimization.search import arrival_reason
from grisaille.simulation.runner import MAX_ERROR_IN_TOLERANCES

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError


def conclude(
    method: OutputError, solved: LeastSquaresMinimum, search: Squares, unconfirmed: list[str], seconds: float
) -> Estimate:
    """Return the estimate with standard errors, and with the diagnosis in words."""
    problem, outcome, evaluation, journal = solved.problem, solved.outcome, solved.evaluation, search.journal
    evaluation, free = on_bounds(search, evaluation, moves=method.shooting == "single")
    seen = search.moving(evaluation)
    told = free & seen
    offset = relative_offset(search, evaluation) if method.loss == "linear" else 0.0
    runaway = growth_note(problem, search, evaluation) if method.shooting == "single" else []
    enough = ROUNDING_OFFSET if problem.differences is None else OFFSET_TOLERANCE_OF_DIFFERENCES
    is_there = offset < enough or outcome.edge is not None
    converged = (is_there if method.loss == "linear" else outcome.stopped_well) and not runaway
    converged = converged and evaluation.discretisation < MAX_ERROR_IN_TOLERANCES and outcome.joins and outcome.settled
    nothing_moves = nothing_moves_note(search, seen)
    converged = converged and not nothing_moves
    found, sought = evaluation, problem
    if problem.sigma and method.loss == "linear":
        problem = problem.replace(sigma=settle_levels(problem, evaluation, told))
        evaluation = rescale_levels(problem, evaluation, sought.sigma)
    reckoned = errors_of(method, search.unknowns, evaluation, problem.cases, problem.count, told)
    covariance = without_undetermined(reckoned.covariance, free & ~seen)
    # what the data determine is told by the curvature, also where correlation leaves no errors
    curved = covariance
    if method.errors == "robust":
        curved = without_undetermined(gauss_newton_covariance(evaluation.curved, told), free & ~seen)
    notes = describe_determination(
        search.unknowns, evaluation.theta, evaluation.curved, curved, free, same_as(search, found), ~seen,
    )  # fmt: skip
    flat, careful = problem.cases[0].trial.flat, ""
    notes += [weighting_note(n) for n in sorted(problem.moving)]
    notes += runaway + (correlation_notes(method, problem) if flat.noise_covariance else [])
    notes += minima_note(problem, evaluation) if converged and not flat.disturbances else []
    if flat.disturbances:
        careful = next(iter(shifted := shifted_means(problem, evaluation, curved)), "")
        notes += shifted[1:]
    if method.shooting == "single" and flat.whens:
        notes += order_notes(problem, evaluation, covariance)
    if problem.differences is not None or (method.shooting == "multiple" and has_jumps(problem)):
        crossed = crossings_at(problem, evaluation.theta)
        careful = caution(crossed, differenced=problem.differences is not None)
    if journal.failures:
        notes.append(f"{len(journal.failures)} simulations failed on the way; the last: {journal.failures[-1]}")
    notes += unconfirmed
    if evaluation.discretisation > TOO_LONG and not unconfirmed:
        notes.append(
            f"discretisation: the frozen steps miss the tolerance by a factor {evaluation.discretisation:.1f}; use "
            f"a smaller rtol in gr.OutputError."
        )
    return Estimate(
        unknowns=search.unknowns,
        theta=evaluation.theta,
        covariance=covariance,
        free=free,
        noise={n: float(s) for n, s in problem.sigma.items()},
        log_likelihood=normal_log_likelihood(problem, evaluation) if method.is_likelihood else np.nan,
        is_likelihood=method.is_likelihood,
        count=problem.count,
        objective=_objective(method, problem, evaluation),
        evaluation=evaluation,
        cases=problem.cases,
        converged=converged,
        status=f"NOT converged: {runaway[0] if runaway else nothing_moves}"
        if runaway or nothing_moves
        else _sentence(converged, outcome, evaluation, offset, journal.evaluations),
        notes=(*reckoned.notes, *notes),
        trace=tuple(journal.trace),
        evaluations=journal.evaluations,
        failures=tuple(journal.failures),
        seconds=seconds,
        offset=offset,
        caution=careful,
        robust=reckoned.robust,
    )


def _objective(method: OutputError, problem: EstimationProblem, evaluation: Evaluation) -> float:
    """Return what was minimised, at the levels of noise that are reported."""
    if method.loss == "linear":
        return evaluation.objective
    value = robust_losses.of_data(method.loss, problem.count)((evaluation.residuals / method.loss_scale) ** 2)[0]
    return 0.5 * method.loss_scale**2 * float(np.sum(value))


def _sentence(converged: bool, outcome: Ending, evaluation: Evaluation, offset: float, evaluations: int) -> str:
    if converged:
        return f"converged: {arrival_reason(outcome, offset)}, {evaluations} evaluations"
    if not outcome.settled:
        return (
            f"NOT converged after {evaluations} evaluations: {outcome.reason} while noise levels still move. Try a "
            f"larger max_evaluations"
        )
    if not outcome.joins:
        return f"NOT converged after {evaluations} evaluations: {outcome.reason}. Try more pieces, or another guess"
    if offset < ROUNDING_OFFSET and evaluation.discretisation >= MAX_ERROR_IN_TOLERANCES:
        return (
            f"NOT converged: the minimum was reached in {evaluations} evaluations, but simulations miss their "
            f"tolerance there by a factor {evaluation.discretisation:.2g}. Use a smaller rtol in gr.OutputError"
        )
    return (
        f"NOT converged after {evaluations} evaluations: {outcome.reason}; the point is {offset:.2g} standard errors "
        f"from a minimum. Try another guess, gr.multistart, or a larger max_evaluations"
    )
