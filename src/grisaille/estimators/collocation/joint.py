"""The minimum over unknowns and trajectories together, and what it says of the unknowns.

A joint descent first. With nearly no disturbance the minimum lies in a narrow curved valley, which such a descent
follows in short steps: then trajectories are solved for at each step of a search over the unknowns alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grisaille.collocation import descent
from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.errors import EstimationError
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.optimization import scoring
from grisaille.optimization.journal import Journal
from grisaille.optimization.search import Search

Progress = Callable[[int, float], None]
JOINT = 60
"""Steps over unknowns and trajectories together after which the trajectories are solved for at each step instead."""
FROZEN = 1e-6
"""Relative change of noise formulas below which they count as settled."""


@dataclass
class Answer:
    """A minimum before it is dressed as an estimate."""

    evaluation: CollocationEvaluation
    covariance: np.ndarray
    free: np.ndarray
    converged: bool
    reason: str
    notes: list[str] = field(default_factory=list)
    trace: Sequence[dict[str, float]] = ()


def settled(method: Any, problem: CollocationProblem, theta: np.ndarray, progress: Progress | None) -> Any:
    """The joint minimum, with noise formulas that contain states evaluated on it until they stay."""
    found = _joint(method, problem, theta, progress)
    for _ in range(30):
        q = found.quadratic
        changes = [p.refreeze(b, g) for p, b, g in zip(problem.programs, q.betas, q.given, strict=True)]
        if max(changes) < FROZEN:
            break
        found = _joint(method, problem, q.theta, progress)
    return found


def _joint(method: Any, problem: CollocationProblem, theta: np.ndarray, progress: Progress | None) -> Any:
    """Unknowns (without levels) and trajectories together; where that is slow, trajectories solved for at each step.

    With nearly no disturbance the minimum lies in a narrow curved valley, which a joint descent follows in short steps.
    """
    found = _descended(method, problem, theta, problem.betas, progress)
    problem.evaluations += found.iterations
    problem.keep(found.quadratic, found.converged)
    return found if found.converged else _profiled(method, problem, theta, found, progress)


def _profiled(
    method: Any, problem: CollocationProblem, theta: np.ndarray, found: Any, progress: Progress | None
) -> Any:
    """From the guess, and from where the joint descent stopped; whatever is better."""
    asked, best = problem.unknowns, found
    for start in (found.quadratic.theta, theta):
        try:
            problem.with_guess(start)
            outcome = scoring.minimize(
                Search(problem, Journal.of(progress)), max_evaluations=method.max_iterations, tolerance=method.tolerance
            )
        except EstimationError:
            continue
        finally:
            problem.unknowns = asked
        at: Any = outcome.evaluation
        if outcome.stopped_well and at.objective <= best.quadratic.objective:
            best = _polished(method, problem, descent.Solution(at.quadratic, True, outcome.reason, 0, found.trace))
            break
    problem.keep(best.quadratic, best.converged)
    return best


def _polished(method: Any, problem: CollocationProblem, found: Any) -> Any:
    """The last digits, by Newton's method over everything."""
    task, q = problem.task(), found.quadratic
    last = descent.minimize(
        task, problem.inner(q.theta), q.betas, wanted=~problem.levels, near=True, tolerance=method.tolerance, most=20
    )
    return last if last.converged and last.quadratic.objective <= q.objective else found


def _descended(
    method: Any, problem: CollocationProblem, theta: np.ndarray, betas: Any, progress: Progress | None
) -> Any:
    task, wanted = problem.task(), ~problem.levels
    if method.optimizer == "ipopt":
        from grisaille.collocation.ipopt import minimize

        return minimize(
            task, problem.inner(theta), betas, wanted=wanted, tolerance=method.tolerance, most=method.max_iterations
        )
    return descent.minimize(
        task, problem.inner(theta), betas, wanted=wanted, near=problem.solved_before, tolerance=method.tolerance,
        most=min(JOINT, method.max_iterations), progress=progress, better=Journal.of(progress).reach,
    )  # fmt: skip


def from_quadratic(problem: CollocationProblem, found: Any, free: np.ndarray | None = None) -> Answer:
    """What a solution says; ``free``: the unknowns that no bound decides, where another criterion says so."""
    evaluation = problem.at_trajectories(found.quadratic)
    every = np.ones(len(evaluation.theta), dtype=bool)
    if free is None:
        free = found.quadratic.free(every) | (np.diag(found.quadratic.corner) <= 0)
    counted = free & ~problem.levels
    information = evaluation.curvature.copy()
    covariance, lost = inverse_information(information, counted)
    covariance = without_undetermined(covariance, lost)
    _level_variances(problem, evaluation, covariance)
    return Answer(evaluation, covariance, free, found.converged, found.reason, [], found.trace)


def _level_variances(problem: CollocationProblem, evaluation: CollocationEvaluation, covariance: np.ndarray) -> None:
    """A level has the information of its own freedom: var(log σ) = 1/(2γ)."""
    if not problem.levels.any() or evaluation.quadratic is None:
        return
    _, _, information = problem.marginal_at(evaluation.quadratic, evaluation.curvature, True)
    for k in np.flatnonzero(problem.levels):
        covariance[k, k] = 1.0 / information[k, k]


def refuse_nothing(found: Any) -> None:
    """Trajectories that were not found, or that nothing determines."""
    if not np.isfinite(found.quadratic.objective):
        raise EstimationError(
            f"The trajectories cannot be solved for at the guess: {found.reason}. Give another guess=, or start values "
            f"nearer to the data."
        )
    try:
        found.quadratic.factors()
    except NotPositiveDefinite:
        raise EstimationError(
            "The trajectories are not determined: the data and the model leave some of their coefficients free. Take "
            "more quadrature points (quadrature='gauss'), fewer knots, or fix a start."
        ) from None
