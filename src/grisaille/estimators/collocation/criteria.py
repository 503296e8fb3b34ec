"""How each criterion of collocation is minimised on meshes that become fine enough, and what becomes of the result.

amle       descent over unknowns and trajectories together; scales, where wanted, as roots around it; debiased, where
           wanted, by scoring on −log L from there on
ipda       trajectories for given unknowns, then unknowns for given trajectories, until they stay
smoothing  least squares over the unknowns, the trajectories following
laplace    scoring on −log L, from where the descent leads
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.measurements.output_law import have_laws
from grisaille.estimation.measurements.reseeding import with_quantile_residuals
from grisaille.estimation.uncertainty import root_of
from grisaille.estimators.collocation.collocation_problem import CollocationProblem
from grisaille.estimators.collocation.collocation_result import CollocationResult, answer_of, describe_lean
from grisaille.estimators.collocation.intensities import find_intensities
from grisaille.estimators.collocation.ipda import minimize_in_turn
from grisaille.estimators.collocation.marginal_likelihood import approach_likelihood, maximize_likelihood, remove_bias
from grisaille.estimators.collocation.smoothing import minimize_misfit
from grisaille.optimization.journal import Progress, SearchJournal

if TYPE_CHECKING:
    from grisaille.estimators.collocation.collocation import Collocation


def solve(method: Collocation, problem: CollocationProblem, progress: Progress | None) -> Estimate:
    """Return the estimate of a posed problem, on a mesh that is refined as the method requires."""
    journal, guessed, rounds = SearchJournal.of(progress), problem.unknowns, 0
    most = problem.trajectories.rounds(method.refine)
    if most:
        problem = problem.on(problem.trajectories.prepared(problem))
    search, limit, journal.kept = SEARCH_BY_CRITERION[method.criterion], method.max_iterations, problem
    answer = search(problem, journal, False, limit)
    judged = problem.trajectories.with_tested_residuals(problem, answer.solution, answer.covariance, None, most)
    while rounds < most and answer.converged and not judged.is_enough:
        coarse, before, rounds = problem, answer, rounds + 1
        journal.reach(before.evaluation.theta)
        journal.kept = problem = coarse.on(coarse.trajectories.finer(before.solution))
        problem.go_on_from(before.evaluation.theta)
        answer = search(problem, journal, True, limit)
        if not answer.converged and judged.note:
            journal.kept, problem, answer = coarse, coarse, before
            break
        judged = problem.trajectories.with_tested_residuals(
            problem, answer.solution, answer.covariance, before.evaluation.theta, most
        )
    answer = _finished(method, problem, answer, guessed, journal)
    if not judged.is_enough and not answer.is_exact:
        answer.notes += [judged.note] if judged.note else []
        if judged.reason:
            answer = replace(answer, converged=False, reason=judged.reason)
    return _dressed(method, problem, guessed, answer, rounds, journal)


def _amle(problem: CollocationProblem, journal: SearchJournal, near: bool, most: int) -> CollocationResult:
    intensities = find_intensities(problem, journal) if problem.levels.any() else None
    theta = problem.guess if intensities is None else intensities.theta
    answer = answer_of(problem, problem.trajectories.minimize(problem, theta, ~problem.levels, journal))
    if intensities is not None:
        answer.notes += intensities.notes
        intensities.store_errors(answer.covariance)
    return answer


SEARCH_BY_CRITERION: dict[str, Callable[[CollocationProblem, SearchJournal, bool, int], CollocationResult]] = {
    "amle": _amle, "ipda": minimize_in_turn, "smoothing": minimize_misfit, "laplace": approach_likelihood,
}  # fmt: skip
"""How each criterion is minimised on one mesh, from near by or not, in so many evaluations."""
BIASED_CRITERIA = ("amle", "ipda")
"""Criteria whose minimum over trajectories and unknowns together is biased, and by the same way."""


def _finished(
    method: Collocation,
    problem: CollocationProblem,
    answer: CollocationResult,
    guessed: Sequence[Unknown],
    journal: SearchJournal,
) -> CollocationResult:
    """Return what is done once, on the last mesh."""
    if method.criterion == "laplace":
        return maximize_likelihood(problem, answer, guessed, journal, method.max_iterations)
    if method.criterion not in BIASED_CRITERIA or not answer.converged:
        return answer
    if method.debias or problem.trajectories.is_biased:
        return remove_bias(problem, answer, journal, method.max_iterations)
    at, known = answer.evaluation, np.where(np.isfinite(answer.covariance), answer.covariance, 0.0)
    try:
        slope = problem.marginal_at(answer.solution, at.curvature)[1] - at.slope
    except NotPositiveDefinite:  # nothing is known about the scatter of trajectories
        return answer
    leaning = np.asarray(known @ np.where(problem.levels, 0.0, slope))
    answer.notes += describe_lean(problem.unknowns, leaning, known, criterion=method.criterion)
    return answer


def _dressed(
    method: Collocation,
    problem: CollocationProblem,
    guessed: Sequence[Unknown],
    answer: CollocationResult,
    rounds: int,
    journal: SearchJournal,
) -> Estimate:
    evaluation, alive = answer.evaluation, answer.free | problem.levels
    if have_laws(problem.cases[0].trial.flat, problem.outputs):
        evaluation = with_quantile_residuals(evaluation, problem.unknowns, problem.cases)
    notes = describe_determination(
        problem.unknowns, evaluation.theta, root_of(evaluation.curvature), answer.covariance, alive
    )
    known = np.isfinite(np.diag(answer.covariance))
    dead = tuple(
        f"dead: no output depends on {u.name};"
        for u, k in zip(problem.unknowns, known, strict=True)
        if u.kind in ("scale", "start") or (u.kind == "noise" and k)
    )
    notes = [n for n in notes if not (dead and n.startswith(dead))]
    notes += [*problem.trajectories.notes(answer.solution), *answer.notes]
    held = answer.solution.held_states() if method.criterion == "laplace" else []
    is_likelihood = method.criterion == "laplace" and not held
    return Estimate.at(
        problem.on(problem.trajectories), evaluation, answer.covariance, unknowns=tuple(guessed), free=answer.free,
        log_likelihood=np.nan if held else evaluation.log_likelihood, is_likelihood=is_likelihood,
        caution=about_held_states(held) if held else "",
        converged=answer.converged, status=_sentence(answer, journal), notes=tuple(dict.fromkeys(notes)),
        trace=tuple(journal.trace), evaluations=journal.evaluations, failures=tuple(journal.failures),
        seconds=journal.seconds,
        compared=evaluation.objective, explained_exactly=answer.is_exact,
        mesh=replace(problem.trajectories.mesh(answer.solution), refinements=rounds),
    )  # fmt: skip


def about_held_states(names: Sequence[str]) -> str:
    """Say what declared bounds that hold trajectories do to the marginal likelihood."""
    which = ", ".join(names)
    return (
        f"bounds: declared bounds hold {which}, which are not part of the model: the criterion is no likelihood "
        f"of the model (no log-likelihood, AIC, test or profile), and standard errors are approximate. Without "
        f"bounds= of {which} it is one; gr.KalmanML() leaves bounds aside"
    )


def _sentence(answer: CollocationResult, journal: SearchJournal) -> str:
    if answer.converged:
        return f"converged: {answer.reason}, {journal.evaluations} iterations"
    if answer.is_exact:
        return f"NOT converged after {journal.evaluations} iterations: {answer.reason}"
    return (
        f"NOT converged after {journal.evaluations} iterations: {answer.reason}. Try another guess=, bounds, or "
        f"gr.multistart"
    )
