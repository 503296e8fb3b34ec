"""What is still tried where the default search has not ended in a minimum, and stages after a search that fail.

The trust region may stop where the criterion has edges: events that pass samples, a body that sticks. Then
Levenberg–Marquardt goes on from the best point and, where that does not end in a minimum either, begins anew at the
guess; where the equations jump with states, the edges themselves are followed (``gradient_sampling``). The lowest point
is the answer. Each of these searches has a limited number of evaluations.

Stages after a search, on finer steps or beside the minimum, may fail where the search itself did not. They take nothing
with them: the solution before them is kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error.kink_descent import lies_on_kinks
from grisaille.estimators.output_error.least_squares_minimum import LeastSquaresMinimum, Squares
from grisaille.optimization.convergence import OFFSET_TOLERANCE_OF_DIFFERENCES, ROUNDING_OFFSET, relative_offset
from grisaille.optimization.gradient_sampling import descend_along_edges

Solve = Callable[[EstimationProblem, Squares], LeastSquaresMinimum]
EVALUATIONS, PER_UNKNOWN = 100, 40
"""Of each of the other searches, and further ones for each unknown."""
OBJECTIVE_TOLERANCE = 1e-7
"""Of the objective, relative to 1 + its size: differences that do not count between two ends."""
IN_EDGE = 0.05
"""Standard errors from a minimum, by the gradients on all sides, that count as none."""


@dataclass(frozen=True)
class StageFailure:
    """A solution, and why a stage after it failed."""

    solved: LeastSquaresMinimum
    reason: str = ""


def is_minimum(search: Squares, found: LeastSquaresMinimum) -> bool:
    """Return whether a solution is near enough to a minimum to count as converged."""
    if not found.outcome.settled or not found.evaluation.completed:
        return False
    enough = ROUNDING_OFFSET if found.problem.differences is None else OFFSET_TOLERANCE_OF_DIFFERENCES
    return found.outcome.edge is not None or relative_offset(search, found.evaluation) < enough


def keep_if_stage_fails(
    search: Squares, found: LeastSquaresMinimum, stage: Callable[[], LeastSquaresMinimum]
) -> StageFailure:
    """Return what a stage makes of a solution; the solution itself where the stage fails."""
    try:
        other = stage()
        reason = other.evaluation.failure
    except (GrisailleError, np.linalg.LinAlgError, ArithmeticError) as error:
        other, reason = found, str(error)
    if reason:
        go_back(search, found)
    return StageFailure(found if reason else other, reason)


def unconfirmed_steps(found: LeastSquaresMinimum, rtol: float, reason: str) -> str:
    """Return the note on a solution whose steps are too long for the tolerance, and which finer ones could not confirm.

    An error of the outputs moves no estimate by more of its standard errors than its own length in units of the noise.
    """
    at, problem = found.evaluation, found.problem
    first, parts = 0, []
    for case, prediction in zip(problem.cases, at.predictions, strict=True):
        for s in case.samples:
            error = prediction.discretisation * rtol * np.abs(prediction.y[:, case.column(s.output)]).max()
            r, e = (x[first : first + len(s.values)] for x in (at.residuals, at.errors))
            per_unit = np.divide(r, e, out=np.zeros_like(r), where=e != 0)
            parts.append(float(np.sum((error * per_unit) ** 2)))
            first += len(s.values)
    level = 2 * at.objective / max(len(at.residuals) - len(at.theta), 1) if problem.sigma else 1.0
    shift = np.sqrt(sum(parts) / level) if level > 0 else np.inf
    return (
        f"discretisation: the estimates were not confirmed on finer steps, which failed ({reason.rstrip('.')}). The "
        f"steps that they were found on miss the tolerance by a factor {at.discretisation:.1f}: simulated outputs may "
        f"be off by {at.discretisation * rtol:.1g} of their size, and estimates by up to {shift:.2g} standard errors."
    )


def go_back(search: Squares, found: LeastSquaresMinimum) -> None:
    """Reset a search to the point where a solution was found."""
    search.restart(found.evaluation.theta, found.problem)
    search.best = search.last = found.evaluation
    search.journal.kept = found.problem


def try_other_searches(
    search: Squares,
    found: LeastSquaresMinimum,
    guess: np.ndarray,
    marquardt: Solve,
    free: Callable[[Squares, Evaluation], np.ndarray],
) -> LeastSquaresMinimum:
    """Return the best of what other searches find where the default one has not ended in a minimum.

    guess : where that began
    marquardt : solves a problem by Levenberg–Marquardt from where the search stands
    """
    short = relative_offset(search, found.evaluation)
    after = f"after the trust region had stopped {short:.2g} standard errors from a minimum"
    most, each = search.most, EVALUATIONS + PER_UNKNOWN * len(search.unknowns)
    for theta in (found.evaluation.theta, guess):
        if not search.left or is_minimum(search, found):
            break
        search.most = min(most, search.evaluations + each)
        search.restart(theta, found.problem)
        other = keep_if_stage_fails(search, found, partial(marquardt, found.problem, search)).solved
        found, search.most = _better(search, found, _by(other, f"Levenberg–Marquardt, {after}")), most
        go_back(search, found)
    if search.left and not is_minimum(search, found) and lies_on_kinks(found):
        found = _along_edges(search, found, free, each, after)
    return found


def _along_edges(
    search: Squares,
    found: LeastSquaresMinimum,
    free: Callable[[Squares, Evaluation], np.ndarray],
    most: int,
    after: str,
) -> LeastSquaresMinimum:
    at = found.evaluation
    edge = descend_along_edges(search, at, free(search, at) & search.moving(at), most)
    if edge is None:
        return found
    way = f"gradients on both sides of the edges, {after}"
    is_there = edge.offset <= IN_EDGE and relative_offset(search, edge.evaluation) >= ROUNDING_OFFSET
    outcome = replace(
        found.outcome, evaluation=edge.evaluation, edge=edge.offset if is_there else None, way=way, stopped_well=False
    )
    found = replace(found, outcome=outcome, evaluation=edge.evaluation)
    go_back(search, found)
    return found


def _better(search: Squares, one: LeastSquaresMinimum, other: LeastSquaresMinimum) -> LeastSquaresMinimum:
    """Return the lower of two solutions; of equal ones that which is a minimum."""
    differ = one.whole - other.whole
    if abs(differ) <= OBJECTIVE_TOLERANCE * (1 + abs(one.whole)):
        return other if is_minimum(search, other) else one
    return other if differ > 0 else one


def _by(found: LeastSquaresMinimum, way: str) -> LeastSquaresMinimum:
    return replace(found, outcome=replace(found.outcome, way=way))
