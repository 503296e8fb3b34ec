"""From the maximum of a filter's likelihood to an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.predictions.horizons import horizon_text
from grisaille.estimation.residuals.exact_data import explained_exactly
from grisaille.estimators.kalman_ml.fit_diagnosis import (
    covariance_of,
    describe,
    discretisation_notes,
    edge_notes,
    failure_note,
    off_a_maximum,
    status_sentence,
)
from grisaille.estimators.kalman_ml.likelihood_search import LikelihoodOptimum, is_near
from grisaille.estimators.kalman_ml.score_sandwich import score_sandwich

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML


def conclude(method: KalmanML, found: LikelihoodOptimum, guessed: Sequence[Unknown], seconds: float) -> Estimate:
    """Return the estimate with its standard errors, and with the diagnosis in words.

    guessed : the unknowns with the guesses that the search began at
    """
    problem, search, polished, free, zeros = found.problem, found.search, found.polished, found.free, found.zeros
    evaluation = polished.evaluation
    refusal = problem.refusal(evaluation.theta)
    if refusal:
        raise EstimationError(f"{refusal} {_where(problem.unknowns, evaluation.theta)}")
    exactly = search.endless or explained_exactly(problem, evaluation)
    converged = is_near(polished) and not exactly
    limits = {
        u.name: float(limit) for u, limit in zip(problem.unknowns, zeros.limits, strict=True) if np.isfinite(limit)
    }
    covariance, journal = covariance_of(search, polished), search.journal
    if not method.is_likelihood:
        reach = max(c.runner.reach for c in problem.cases)
        covariance = score_sandwich(problem, evaluation.theta, covariance, reach)
    notes = describe(search, evaluation, covariance, free, zeros) + edge_notes(problem, polished)
    if not polished.is_minimum:
        notes = off_a_maximum(problem, notes)
    notes += discretisation_notes(problem, search, evaluation)
    if journal.failures:
        notes.append(failure_note(journal.failures))
    notes += _conventions(method, problem, evaluation)
    return Estimate(
        unknowns=tuple(guessed),
        theta=evaluation.theta,
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=evaluation.log_likelihood,
        is_likelihood=method.is_likelihood,
        count=problem.count,
        objective=evaluation.objective,
        evaluation=replace(evaluation, curvature=evaluation.curvature + problem.prior(evaluation.theta).correction),
        cases=problem.cases,
        converged=converged,
        status=f"NOT converged: {exactly}"
        if exactly
        else status_sentence(converged, found.outcome, polished, journal.evaluations),
        notes=tuple(notes),
        trace=tuple(journal.trace),
        evaluations=journal.evaluations,
        failures=tuple(journal.failures),
        seconds=seconds,
        offset=float(np.sqrt(polished.decrement)),
        penalty=evaluation.penalty if method.bounds == "transform" else 0.0,
        explained_exactly=bool(exactly),
        limits=limits,
    )


def _conventions(method: KalmanML, problem: LikelihoodProblem, evaluation: LikelihoodEvaluation) -> list[str]:
    """Return what makes the criterion something other than a likelihood, and what is computed by differences."""
    notes = []
    if problem.cases[0].runner.lacks_derivatives:
        notes.append(
            f"derivatives: the filter {type(method.own_filter).__name__} has none, so the gradient is made of central "
            f"differences, two passes over the record for each unknown."
        )
    if method.robust is not None:
        kind, c = ("smoothly, ", method.robust[1]) if isinstance(method.robust, tuple) else ("", method.robust)
        notes.append(
            f"robust: innovations beyond {c:g} standard deviations count {kind}linearly; standard errors are those "
            f"of the sandwich.{_smaller_levels(method.robust)}"
        )
    if method.horizon != 1:
        notes.append(
            f"horizon: predictions {horizon_text(method.horizon)} were fitted; their errors are not independent, so "
            f"this is no likelihood and standard errors are those of the sandwich."
        )
    if method.bounds == "transform":
        notes.append(f"penalty: bounds are kept by a penalty of {evaluation.penalty:.3g}, not in the log-likelihood.")
    return notes


def _smaller_levels(robust: Any) -> str:
    """Return what linear counting makes of the levels of normal noise: s times their size, with E ψ(e/s) e/s = 1."""
    e = np.linspace(-10, 10, 4001)
    density = np.exp(-(e**2) / 2) / np.sum(np.exp(-(e**2) / 2))
    c, size = robust[1] if isinstance(robust, tuple) else robust, 1.0
    for _ in range(50):
        r = e / size
        weight = 1 / np.sqrt(1 + (r / c) ** 2) if isinstance(robust, tuple) else c / np.maximum(np.abs(r), c)
        size *= float(np.sqrt(np.sum(weight * r**2 * density)))
    return f" Levels of normal noise come out at about {size:.2g} of their size." if size < 0.99 else ""


def _where(unknowns: Sequence[Unknown], theta: np.ndarray) -> str:
    """Return where the search had ended, in words."""
    found = ", ".join(f"{u.name} = {v:.4g}" for u, v in zip(unknowns, theta, strict=True))
    return f"(The search ended at {found}.)"
