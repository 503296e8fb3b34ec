"""What errors of integration do to estimates, and steps that are short enough for the noise of the data.

Tolerances say how far simulated outputs may be off; noise says how far that is felt. Outputs ŷ that are off by δ move
the least-squares estimates, in their standard errors, by

    Δθ / s = J⁺ (w δ / σ) / s,       s² = diag (JᵀJ)⁻¹,

where J is the Jacobian of the standardized residuals; under a robust loss the rows of J and δ are multiplied by √ψ′,
what a residual still counts with. δ is the difference from a run with steps half as long (or a tenth of the tolerance),
which is made only where the tolerance itself does not rule a noticeable shift out. It costs two simulations without
derivatives, where a search takes many with derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimation.uncertainty import gauss_newton_covariance
from grisaille.estimators.output_error.fallback_searches import is_minimum, keep_if_stage_fails
from grisaille.estimators.output_error.least_squares_minimum import LeastSquaresMinimum, Squares
from grisaille.simulation.runner import ADAPTIVE_TOLERANCE_SHARE, Runner
from grisaille.simulation.simulation_steps import SimulationSteps

Free = Callable[[Squares, Evaluation], np.ndarray]
Counted = Callable[[np.ndarray], np.ndarray]
"""Residuals → √ψ′ of each."""
NOTICED, WANTED = 0.1, 0.03
"""Standard errors from which on steps are made shorter, and what is aimed at then."""
MAX_TAME_ERROR = 1e-4
"""Largest relative error of outputs that do not run away from small errors."""
MAX_ROUNDS = 3
"""In which steps are made shorter, at most."""
ACCUMULATION_FACTOR = 100.0
"""How much larger than one step's tolerance errors at the end of a record are taken to be, before that is computed."""
MIN_TRUSTED_ERROR = 1e-2
"""Least part of a tolerance that an error estimate of equal steps is believed to be."""


@dataclass(frozen=True, eq=False)
class IntegrationShift:
    """By how many standard errors the errors of integration change estimates."""

    name: str
    """Of the unknown that is moved most."""
    worst: float
    cases: tuple[float, ...]
    """Length of the errors of each experiment, in units of the noise."""
    relative: float
    """Largest error, of the largest value of its output."""

    def note(self, rtol: float) -> str:
        """Return the note on a fit that could not be made more accurate."""
        other = max(rtol * WANTED / self.worst, 1e-13)
        remedy = (
            f"use a smaller tolerance, gr.OutputError(rtol={other:.0e})"
            if other < 0.9 * rtol
            else "the noise is smaller than what simulations can resolve: declare a larger one"
        )
        return (
            f"integration: errors of the simulation move {self.name} by about {self.worst:.2g} standard errors, which "
            f"do not contain them; {remedy}."
        )


def integrate_finely(
    search: Squares,
    found: LeastSquaresMinimum,
    free: Free,
    solve_on: Callable[[EstimationProblem, LeastSquaresMinimum, Squares], LeastSquaresMinimum],
    counted: Counted | None = None,
) -> tuple[LeastSquaresMinimum, list[str]]:
    """Solve again with steps that are short enough for the noise, and say what is left where none are.

    solve_on : the minimum with another discretisation, from a solution on
    counted : where the loss is robust
    """
    ended = found.outcome.settled and found.outcome.stopped_well and found.evaluation.completed
    if not (is_minimum(search, found) if counted is None else ended):
        return found, []
    for rounds_left in range(MAX_ROUNDS, -1, -1):
        at = found.evaluation
        shift = integration_shift(found.problem, at, free(search, at) & search.moving(at), counted)
        if shift is None or shift.worst <= NOTICED:
            break
        finer = with_smaller_tolerance(found.problem, at, shift) if rounds_left and search.left else None
        kept = (
            keep_if_stage_fails(search, found, partial(solve_on, finer, found, search)) if finer is not None else None
        )
        if kept is None or kept.reason:
            return found, [shift.note(found.problem.cases[0].runner.rtol)]
        found = kept.solved
    return found, []


def integration_shift(
    problem: EstimationProblem, at: Evaluation, told: np.ndarray, counted: Counted | None = None
) -> IntegrationShift | None:
    """Return what errors of integration do to the estimates; None where they are too small, or not known.

    told : unknowns that are free and seen
    """
    if not told.any() or not at.completed or not _may_be_felt(problem, at):
        return None
    off = np.zeros(len(at.residuals))
    first, lengths, relative = 0, [], 0.0
    for case, prediction in zip(problem.cases, at.predictions, strict=True):
        mine = slice(first, first + case.count)
        first = mine.stop
        finer = None
        if isinstance(case.runner, Runner) and isinstance(case.discretisation, SimulationSteps):
            finer = case.runner.predict_finer(case.own(at.theta), case.discretisation)
        if finer is not None and finer.completed:
            error = np.concatenate([(finer.y - prediction.y)[s.rows, case.column(s.output)] for s in case.samples])
            sizes = [np.full(len(s.values), _size(prediction.y, case.column(s.output))) for s in case.samples]
            relative = max(relative, float(np.abs(error / np.maximum(np.concatenate(sizes), 1e-300)).max(initial=0.0)))
            off[mine] = error * _per_unit(problem, case, at)[: len(error)]
        lengths.append(float(np.linalg.norm(off[mine])))
    J = at.jacobian
    if counted is not None:
        weights = counted(at.residuals)
        J, off = weights[:, None] * J, weights * off
    moved = np.linalg.lstsq(J[:, told], off, rcond=1e-13)[0]
    errors = np.sqrt(np.clip(np.diag(gauss_newton_covariance(J, told))[told], 0.0, None))
    shares = np.divide(np.abs(moved), errors, out=np.zeros(len(moved)), where=errors > 0)
    k = int(np.argmax(shares))
    name = problem.unknowns[int(np.flatnonzero(told)[k])].name
    return IntegrationShift(name, float(shares[k]), tuple(lengths), relative)


def notes_of_pieces(problem: EstimationProblem, at: Evaluation, told: np.ndarray) -> list[str]:
    """Say what errors of integration do to estimates from a record in pieces; these are not integrated again.

    One run along the whole record tells nothing where small errors run away.
    """
    shift, rtol = integration_shift(problem, at, told), problem.cases[0].runner.rtol
    if shift is None or shift.worst <= NOTICED:
        return []
    if shift.relative < MAX_TAME_ERROR:
        return [shift.note(rtol)]
    if not _may_be_felt(problem, at, 1.0):
        return []
    return [
        f"integration: it is not known what errors of the simulation, whose tolerance of {rtol:.0e} matters beside "
        f"this noise, do to the estimates, because small errors grow along the record; compare with a smaller "
        f"tolerance, gr.OutputError(rtol={max(rtol / 100, 1e-13):.0e})."
    ]


def with_smaller_tolerance(
    problem: EstimationProblem, at: Evaluation, shift: IntegrationShift
) -> EstimationProblem | None:
    """Return the problem with steps that are short enough where errors matter; None where none can be shorter."""
    share = 0.5 * WANTED / shift.worst
    cases = []
    for case, length in zip(problem.cases, shift.cases, strict=True):
        steps, runner = case.discretisation, case.runner
        if isinstance(steps, SimulationSteps) and isinstance(runner, Runner) and length > WANTED / len(problem.cases):
            case = replace(case, discretisation=runner.tightened(case.own(at.theta), steps, share))
        cases.append(case)
    if all(new.discretisation == old.discretisation for new, old in zip(cases, problem.cases, strict=True)):
        return None
    return problem.replace(cases=tuple(cases))


def _may_be_felt(problem: EstimationProblem, at: Evaluation, accumulated: float = ACCUMULATION_FACTOR) -> bool:
    """Return whether errors as large as the tolerance allows, so many times, would change the estimates noticeably."""
    total = 0.0
    for case, prediction in zip(problem.cases, at.predictions, strict=True):
        steps, runner = case.discretisation, case.runner
        if not isinstance(steps, SimulationSteps) or not isinstance(runner, Runner):
            continue
        tolerance = (steps.tolerance or runner.rtol) * (
            max(prediction.discretisation, MIN_TRUSTED_ERROR) if steps.step else ADAPTIVE_TOLERANCE_SHARE
        )
        sizes = np.concatenate(
            [np.full(len(s.values), _size(prediction.y, case.column(s.output))) for s in case.samples]
        )
        total += float(np.sum((accumulated * tolerance * sizes * _per_unit(problem, case, at)) ** 2))
    return bool(np.sqrt(total) > NOTICED)


def _size(y: np.ndarray, column: int) -> float:
    return float(np.nanmax(np.abs(y[:, column]), initial=0.0))


def _per_unit(problem: EstimationProblem, case: ExperimentTerm, at: Evaluation) -> np.ndarray:
    """Return standardized residual by unit of each sample of a case."""
    k = problem.cases.index(case)
    first = sum(c.count for c in problem.cases[:k])
    deviations = [problem.deviations(case, s.output, s.rows, at.predictions[k], at.theta) for s in case.samples]
    return np.asarray(problem.weights[first : first + case.count] / np.concatenate(deviations))
