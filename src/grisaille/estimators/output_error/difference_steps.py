"""Derivatives of residuals by differences, where a trajectory crosses a switch at which its equations jump.

Runs hold relations between events, and their derivatives are exact. Elsewhere the derivatives of the pieces lack the
share of the jump: with ``a == b`` and ``a != b``, with more relations than are held (``structure/held_events.py``),
and with
events whose instants depend on more implicit unknowns than are written out.
Differences over a third of a standard error contain it: the residuals are continuous in the unknowns, and curvature
over so short a way is below the noise. Whether they are needed is found by comparing both at the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.optimization.journal import SearchJournal
from grisaille.simulation.crossings import Crossing

STEP_IN_STANDARD_ERRORS = 0.3
"""Of a standard error."""
MAX_RELATIVE_STEP = 0.01
"""Of an unknown's own size; the step where the derivatives of the pieces tell no standard error."""
DERIVATIVE_TOLERANCE = 0.01
"""Relative difference up to which the derivatives of the pieces are right."""


def has_jumps(problem: EstimationProblem) -> bool:
    """Return whether some experiment's equations jump with states in a way that derivatives do not see."""
    return any(
        (case.trial.structure.jumps.of_states or case.trial.flat.whens) and not case.runner.is_exact
        for case in problem.cases
    )


def steps_across_jumps(
    problem: EstimationProblem,
    unknowns: Sequence[Unknown],
    evaluation: Evaluation,
    journal: SearchJournal | None = None,
) -> np.ndarray | None:
    """Return steps of differences by each unknown; None where the derivatives of the pieces agree with them."""
    steps = _step_sizes(unknowns, evaluation)
    differenced = problem.differenced(evaluation.theta, steps)
    if journal is not None:
        journal.count(differenced)
    if not differenced.completed:
        return None
    away = np.linalg.norm(differenced.jacobian - evaluation.jacobian, axis=0)
    return steps if (away > DERIVATIVE_TOLERANCE * np.linalg.norm(differenced.jacobian, axis=0)).any() else None


def crossings_at(problem: EstimationProblem, theta: np.ndarray) -> list[tuple[str, Crossing]]:
    """Return experiment and crossing, in every experiment."""
    return [(case.name, crossing) for case in problem.cases for crossing in case.crossings(theta)]


def caution(found: list[tuple[str, Crossing]], *, differenced: bool) -> str:
    """Return the sentence under the table; nothing where derivatives were exact and no crossing was found."""
    if not (found or differenced):
        return ""
    where = ", ".join(f"{crossing} in '{name}'" for name, crossing in found[:3]) or "a relation of its states"
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    taken = (
        "were taken by differences over a third of a standard error: standard errors and intervals are approximate"
        if differenced
        else "lack the share of the jump: estimates, standard errors and intervals are approximate"
    )
    return f"jumps: the trajectory crosses {where}{more}, where the equations jump. Derivatives {taken}"


def _step_sizes(unknowns: Sequence[Unknown], evaluation: Evaluation) -> np.ndarray:
    information = evaluation.jacobian.T @ evaluation.jacobian
    size = np.array([max(abs(v), 1e-3 * u.size) for u, v in zip(unknowns, evaluation.theta, strict=True)])
    scaled = information * np.outer(size, size)
    error = np.sqrt(np.abs(np.diag(np.linalg.pinv(scaled, rcond=1e-10, hermitian=True)))) * size
    known = (error > 0) & (np.diag(scaled) > 0)
    return np.where(
        known, np.minimum(STEP_IN_STANDARD_ERRORS * error, MAX_RELATIVE_STEP * size), MAX_RELATIVE_STEP * size
    )
