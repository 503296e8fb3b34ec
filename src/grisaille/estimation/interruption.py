"""A search that was interrupted keeps what it reached.

``gr.fit`` gives the fit as far as it came, marked as not converged, from which ``guess=fit`` goes on. An estimator that
knows more than its best point raises ``Interrupted``, a ``KeyboardInterrupt``: studies and scripts stop as they would.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.problem import Problem


class Interrupted(KeyboardInterrupt):
    """Raised by an estimator in place of a ``KeyboardInterrupt``, with the estimate reached so far."""

    def __init__(self, estimate: Estimate) -> None:
        super().__init__("the fit was interrupted")
        self.estimate = estimate


def interrupted_estimate(problem: Problem, seconds: float) -> Estimate | None:
    """The best point so far, with the errors that the curvature of the criterion tells there."""
    if problem.reached is None:
        return None
    evaluation = problem.evaluate(problem.reached)
    if not evaluation.completed:
        return None
    status = (
        f"INTERRUPTED after {problem.evaluations} evaluations; gr.fit(…, guess=fit) goes on from here, and what the "
        f"data determine comes with the end of the search"
    )
    return Estimate.at(
        problem, evaluation, _covariance(evaluation.information), converged=False, status=status, seconds=seconds,
        trace=({"evaluation": float(problem.evaluations), "objective": evaluation.objective},),
    )  # fmt: skip


def _covariance(information: np.ndarray) -> np.ndarray:
    """The inverse of an information that need not have one: infinite for what is not seen."""
    size = np.sqrt(np.diag(information))
    seen = size > 0
    covariance = np.diag(np.where(seen, 0.0, np.inf))
    scaled = information[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])
    covariance[np.ix_(seen, seen)] = np.linalg.pinv(scaled, hermitian=True) / np.outer(size[seen], size[seen])
    return covariance
