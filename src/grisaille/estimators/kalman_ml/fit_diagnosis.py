"""The diagnosis of a likelihood fit: covariance, what the data determined, discretisation, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.noise_levels import LevelsAtZero
from grisaille.estimation.uncertainty import root_of, without_undetermined
from grisaille.filtering.filter_steps import steps_of
from grisaille.model.expression import Call, Name, postorder
from grisaille.model.table_functions import table_arguments
from grisaille.optimization import scoring
from grisaille.optimization.search import Search, SearchOutcome, arrival_reason

Likely = Search[LikelihoodEvaluation]
MAX_ADVISED_STEPS = 100_000
"""Steps between samples that can be advised."""
MAX_STEP_EFFECT = 1e-2
"""Change of the log-likelihood with shorter steps from which on a fit says so."""

OBJECTIVE_TOLERANCE = 1e-7
"""Of the objective, relative to 1 + its size."""

MAX_EDGE_DISTANCE = 1.0
"""Standard errors; edges further away do not matter."""


def covariance_of(search: Likely, polished: scoring.PolishedMinimum[LikelihoodEvaluation]) -> np.ndarray:
    """Return inverse Hessian in the unknowns themselves, infinite for what the data leave open."""
    slopes = search.slopes(polished.evaluation.theta)
    return without_undetermined(polished.covariance * np.outer(slopes, slopes), polished.lost)


def describe(
    search: Likely,
    evaluation: LikelihoodEvaluation,
    covariance: np.ndarray,
    free: np.ndarray,
    zeros: LevelsAtZero,
) -> list[str]:
    """Return what the data determined; levels at zero are named as such, not as dead."""
    names = [u.name for u, z in zip(search.unknowns, zeros.zero, strict=True) if z]
    root = root_of(evaluation.curvature)
    seen = free | zeros.zero
    notes = describe_determination(
        search.unknowns, evaluation.theta, root, covariance, seen, _same_as(search, evaluation)
    )
    known = tuple(f"dead: no output depends on {name};" for name in names)
    kept = [n for n in notes if not n.startswith(known)] if known else notes
    return zeros.sentences(search.unknowns) + kept


def _same_as(search: Likely, evaluation: LikelihoodEvaluation) -> Callable[[np.ndarray], bool]:
    """Return whether other values have the likelihood of an evaluation."""

    def same(theta: np.ndarray) -> bool:
        there = search.evaluate(theta, sensitive=False, quietly=True)
        return there.completed and abs(there.objective - evaluation.objective) < OBJECTIVE_TOLERANCE * (
            1 + abs(evaluation.objective)
        )

    return same


def discretisation_notes(problem: LikelihoodProblem, search: Likely, evaluation: LikelihoodEvaluation) -> list[str]:
    """Return whether the steps chosen at the guess are short enough at the estimate."""
    most = max(steps_of(c.discretisation).most for c in problem.cases)
    if not most:
        return []
    passed = _passed_notes(problem, evaluation.theta, most)
    finer = problem.replace(cases=tuple(map(_halved, problem.cases))).evaluate(evaluation.theta, sensitive=False)
    search.journal.count(finer, quietly=True)
    change = abs(finer.log_likelihood - evaluation.log_likelihood)
    if change < MAX_STEP_EFFECT:
        return passed
    if not finer.completed:
        return [
            *passed,
            f"discretisation: with steps half as long the filter breaks down at the estimate: {finer.failure}",
        ]
    shorter = f"discretisation: steps half as long change log L by {change:.2g}; use gr.KalmanML(substeps={2 * most})."
    return [*passed, shorter]


def _passed_notes(problem: LikelihoodProblem, theta: np.ndarray, most: int) -> list[str]:
    """Return what the steps pass without meeting it: no shorter ones that were tried show it."""
    found = [(c, b) for c in problem.cases for b in c.runner.passed(c.own(theta), c.discretisation)]
    if not found:
        return []
    case, bump = max(found, key=lambda f: f[1].more)
    more = "" if len(found) == 1 else f" (the narrowest of {len(found)})"
    enough = most * bump.more
    remedy = f"use gr.KalmanML(substeps={enough}), or make it wider" if enough <= MAX_ADVISED_STEPS else "make it wider"
    return [
        f"discretisation: near t = {bump.time:.6g} of '{case.name}' the mean passes a bump or a short condition, which "
        f"begins or ends where {bump.text} is zero, in {bump.width:.2g}, {bump.share:.2g} of a step{more}. The filter "
        f"does not meet it, and estimates ignore it: {remedy}."
    ]


def _halved(case: ExperimentTerm) -> ExperimentTerm:
    return replace(case, discretisation=steps_of(case.discretisation).halved()) if case.discretisation else case


def off_a_maximum(problem: LikelihoodProblem, notes: Sequence[str]) -> list[str]:
    """Return the notes of a search that ended where the likelihood has no maximum: no curvature shows what is
    determined.

    Where straight lines meet, the slope that a filter follows jumps, and the best point may lie on such an edge.
    """
    kept = [n for n in notes if not n.startswith("not determined:")]
    flat = problem.cases[0].trial.flat
    formulas = [side for e in flat.equations for side in (e.left, e.right)]
    for node in postorder([*formulas, *(o.definition for o in flat.outputs.values())]):
        if isinstance(node, Call) and node.operation in ("table", "table2") and node.data[0] == "linear":
            looked_up, _ = table_arguments(node)
            if any(isinstance(n, Name) and n.path in flat.variables for n in postorder(looked_up)):
                kept.append(
                    f"edge: straight lines of a table over {', '.join(map(str, looked_up))} meet in knots, where the "
                    f"slope that a filter follows jumps, and the search may have ended on one: kind='cubic' or "
                    f"'monotone' has none."
                )
                break
    return kept


def edge_notes(problem: LikelihoodProblem, polished: scoring.PolishedMinimum[LikelihoodEvaluation]) -> list[str]:
    """Return whether values close to the estimate have no likelihood, which no curvature shows."""
    errors = np.sqrt(np.diag(polished.covariance))
    seen = np.flatnonzero(errors > 0)
    if not polished.edges or not len(seen):
        return []
    away = np.array([np.abs(step[seen]) / errors[seen] for step in polished.edges])
    nearest = away[np.argmin(away.max(axis=1))]
    if nearest.max() > MAX_EDGE_DISTANCE:
        return []
    name = problem.unknowns[seen[np.argmax(nearest)]].name
    return [
        f"edge: {nearest.max():.1g} standard errors of {name} from the estimate the filter breaks down; intervals and "
        f"tests, which extrapolate the curvature at the estimate, say nothing about that side."
    ]


def status_sentence(
    converged: bool,
    outcome: SearchOutcome[LikelihoodEvaluation],
    polished: scoring.PolishedMinimum[LikelihoodEvaluation],
    evaluations: int,
) -> str:
    if converged:
        return f"converged: {arrival_reason(outcome, float(np.sqrt(polished.decrement)))}, {evaluations} evaluations"
    if not polished.is_minimum:
        return (
            f"NOT converged: the point is not a maximum of the likelihood, {evaluations} evaluations. Try another guess"
        )
    left = np.sqrt(polished.decrement)
    return (
        f"NOT converged after {evaluations} evaluations: {outcome.reason}; the point is {left:.2g} standard errors "
        f"from a maximum. Try another guess, gr.multistart, or a larger max_evaluations"
    )


def failure_note(failures: Sequence[str]) -> str:
    count = len(failures)
    return f"{count} evaluation{'' if count == 1 else 's'} failed on the way; the last: {failures[-1]}"
