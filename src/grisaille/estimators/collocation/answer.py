"""A minimum before it is dressed as an estimate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.estimators.collocation.trajectories import Solution


@dataclass
class Answer:
    """Where a search ended; ``free``: which unknowns no bound decides."""

    evaluation: CollocationEvaluation
    covariance: np.ndarray
    free: np.ndarray
    converged: bool
    reason: str
    notes: list[str] = field(default_factory=list)

    @property
    def solution(self) -> Solution:
        assert self.evaluation.solution is not None
        return self.evaluation.solution


def answer_of(problem: CollocationProblem, found: Solution, free: np.ndarray | None = None) -> Answer:
    """What a joint minimum says; ``free``, where another criterion decides which unknowns a bound holds."""
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
    return Answer(evaluation, covariance, free, found.converged, found.reason)
