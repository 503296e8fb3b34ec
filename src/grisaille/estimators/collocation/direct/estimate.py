"""The estimate of a problem of direct collocation: intensities as roots around it, elements short enough, its lean."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from grisaille.collocation.direct.direct import DirectSolution
from grisaille.collocation.direct.marginal import marginal
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import without_undetermined
from grisaille.estimators.collocation.bias import describe_lean, lean
from grisaille.estimators.collocation.direct.discretisation import ROUNDS, elements_to_begin_with, on_short_elements
from grisaille.estimators.collocation.direct.intensities import find_direct_intensities
from grisaille.estimators.collocation.direct.notes import direct_notes, vanished_levels
from grisaille.estimators.collocation.direct.problem import DirectProblem
from grisaille.estimators.collocation.direct.programs import by_marginal_likelihood, on_elements, with_held
from grisaille.estimators.collocation.intensity_roots import Intensities
from grisaille.optimization.journal import Journal, Progress


def estimate_direct(
    problem: DirectProblem, progress: Progress | None = None, debias: bool = False,
    refine: int | str = "auto",
) -> Estimate:  # fmt: skip
    """Solve a problem; ``refine`` says how often elements may be halved."""
    begin = time.perf_counter()
    scales = [k for k, u in enumerate(problem.unknowns) if u.kind == "scale"]
    solution, found, intensities = _solved(
        problem, scales, ROUNDS if isinstance(refine, str) else refine, Journal.of(progress)
    )
    solution, leaning = _told_of_lean(problem, solution, scales, debias)
    evaluation = problem.at(solution)
    problem.evaluations += max(solution.iterations, 1)
    if progress is not None:
        progress(problem.evaluations, evaluation.objective)
    free = solution.inside.copy()
    covariance = without_undetermined(np.nan_to_num(solution.covariance), free & np.isnan(np.diag(solution.covariance)))
    if problem.program.options.criterion == "amle":
        free[scales] = True
        _add_scale_variances(solution, scales, covariance)
        if intensities is not None:
            intensities.put_errors(covariance)
    is_likelihood = problem.program.options.criterion == "laplace"
    word = "converged" if solution.converged else "NOT converged"
    hint = "" if solution.converged else ". Try another guess=, bounds, or gr.multistart"
    return Estimate(
        unknowns=problem.unknowns,
        theta=np.where(vanished_levels(problem, solution.theta, free), 0.0, solution.theta),
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=evaluation.log_likelihood,
        is_likelihood=is_likelihood,
        count=problem.count,
        objective=evaluation.objective,
        evaluation=evaluation,
        cases=problem.cases,
        converged=solution.converged,
        status=f"{word}: {solution.result.message}, {solution.iterations} iterations{hint}",
        notes=(*direct_notes(problem, evaluation, covariance, free), *found, *leaning),
        trace=({"evaluation": float(problem.evaluations), "objective": evaluation.objective},),
        evaluations=problem.evaluations,
        failures=tuple(problem.failures),
        seconds=time.perf_counter() - begin,
        extra={
            "elements": float(sum(len(m.lengths) for m in solution.program.meshes)),
            "pieces": float(solution.pieces),
        },
    )


def _solved(
    problem: DirectProblem, scales: list[int], rounds: int, journal: Journal
) -> tuple[DirectSolution, list[str], Intensities | None]:
    """The solution, with scales as roots around it where the criterion cannot have them as unknowns."""
    program = problem.program
    pieces = elements_to_begin_with(program, problem.guess) if rounds else 1
    if not scales or program.options.criterion != "amle":
        first = on_elements(program, pieces).solve(problem.guess)
        journal.reach(first.theta)
        return *on_short_elements(program, first, lambda p: p, rounds), None
    found = find_direct_intensities(problem)
    theta = found.theta
    journal.reach(theta)
    held = {k: float(theta[k]) for k in scales}
    solution, short = on_short_elements(
        program, with_held(program, held).solve(theta), lambda p: with_held(p, held), rounds
    )
    return solution, [*found.notes, *short], found


def _add_scale_variances(solution: DirectSolution, scales: list[int], covariance: np.ndarray) -> None:
    """A scale has the information of its own freedom γ: var(log σ) = 1/(2γ)."""
    found = marginal(solution.program, solution.point, 1e-10, solution.result.multipliers) if scales else None
    if found is None:
        return
    for k in scales:
        freedom = max(abs(found.freedom[k]) * solution.theta[k], 0.5)
        covariance[k, k] = solution.theta[k] ** 2 / (2 * freedom)


def _told_of_lean(
    problem: DirectProblem, solution: DirectSolution, scales: list[int], debias: bool
) -> tuple[DirectSolution, list[str]]:
    """A note on how far approximate maximum likelihood leans, or the solution without that (``collocation_bias``)."""
    if problem.program.options.criterion != "amle" or not solution.converged:
        return solution, []
    # an unknown that decides how strongly noise acts leans as a level would: by any number of standard errors
    if debias or problem.program.functions.gain_slots:
        return _debiased(problem, solution, {k: float(solution.theta[k]) for k in scales})
    found = marginal(solution.program, solution.point, 1e-10, solution.result.multipliers)
    covariance = np.nan_to_num(solution.covariance)
    return solution, [] if found is None else describe_lean(
        problem.unknowns, lean(covariance, found.freedom), covariance, False
    )


def _debiased(
    problem: DirectProblem, solution: DirectSolution, scales: dict[int, float]
) -> tuple[DirectSolution, list[str]]:
    """Where the marginal likelihood is largest at the same intensities, from the minimum of the criterion on."""
    program = by_marginal_likelihood(on_elements(problem.program, solution.pieces))
    there = with_held(program, scales).solve(solution.theta, solution.point)
    if not there.converged:
        result = replace(solution.result, message=f"the bias could not be taken off: {there.result.message}")
        return replace(solution, converged=False, result=result), [f"bias: it could not be taken off: {there.status}."]
    moved = replace(there, iterations=solution.iterations + there.iterations)
    return moved, describe_lean(problem.unknowns, solution.theta - there.theta, np.nan_to_num(there.covariance), True)
