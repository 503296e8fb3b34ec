"""A minimum before it becomes an estimate, and the bias of a joint minimum (amle, ipda) there.

Its criterion J(β, θ) is minimised over trajectories where a likelihood integrates over them:

    −log L(θ) ≈ min_β J(β, θ) + D(θ),       D = ½ log|H| − ½ log|G|     (``collocation.laplace``)

H, the curvature of J by the trajectories, moves with θ, so that leaving D out moves the estimate by  C ∇D,  C its
covariance: the first Newton step from one criterion to the other, backwards. Of the stirred tank's parameters it
predicts the way to a tenth. To take it off, −log L is minimised from there on, the intensities staying as they are.
Reference for corrections by such steps: D. Firth, Biometrika 80 (1993) 27.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.collocation_problem import CollocationEvaluation, CollocationProblem
from grisaille.estimators.collocation.trajectory_basis import Solution

NOTICED, MOVED = 0.25, 0.01
"""Standard errors from which on it is told, and from which on it is told to have been taken off."""


@dataclass
class CollocationResult:
    """Where a search ended; ``free``: which unknowns no bound decides."""

    evaluation: CollocationEvaluation
    covariance: np.ndarray
    free: np.ndarray
    converged: bool
    reason: str
    notes: list[str] = field(default_factory=list)
    is_exact: bool = False
    """Whether data are explained exactly while levels of noise are estimated, which have no estimate then."""

    @property
    def solution(self) -> Solution:
        assert self.evaluation.solution is not None
        return self.evaluation.solution


def answer_of(problem: CollocationProblem, found: Solution, free: np.ndarray | None = None) -> CollocationResult:
    """Return the result at a joint minimum; ``free``, where another criterion decides which unknowns a bound holds."""
    evaluation = problem.at(found)
    free = (found.free() if free is None else free) | problem.levels
    covariance, lost = inverse_information(evaluation.curvature, free & ~problem.levels)
    covariance = without_undetermined(covariance, lost)
    if problem.levels.any():
        try:
            information = problem.marginal_at(found, evaluation.curvature)[2]
            for k in np.flatnonzero(problem.levels):
                covariance[k, k] = 1.0 / information[k, k]
        except NotPositiveDefinite:  # nothing is known about the scatter of trajectories
            pass
    return CollocationResult(evaluation, covariance, free, found.converged, found.reason)


def describe_lean(
    unknowns: Sequence[Unknown], leaning: np.ndarray, covariance: np.ndarray, criterion: str = ""
) -> list[str]:
    """Say in one sentence by how much estimates lean, where that is noticeable.

    covariance : of the estimates that are printed beside it
    criterion : the one that leans; empty where the lean was taken off
    """
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((errors > 0) & np.isfinite(errors), leaning / errors, 0.0)
    told = [k for k in np.argsort(-np.abs(share)) if abs(share[k]) > (NOTICED if criterion else MOVED)]
    if not told:
        return []
    much = ", ".join(f"{unknowns[k].name} by {share[k]:+.2g}" for k in told).replace("-", "−")
    if not criterion:
        return [f"bias: this criterion is biased, {much} standard errors; this was subtracted."]
    remedy = "debias=True takes it off" if criterion == "amle" else "criterion='amle' with debias=True takes it off"
    return [
        f"bias: this criterion is biased, {much} standard errors to first order; criterion='laplace' (the "
        f"default) does not, {remedy}."
    ]
