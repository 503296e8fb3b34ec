"""An interrupted search keeps the best point that it has reached.

``gr.fit`` gives the fit as far as it came, marked as not converged, from which ``guess=fit`` goes on; studies stop.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.problem import EstimationProblem
from grisaille.optimization.journal import SearchJournal


def interrupted_estimate(problem: EstimationProblem, journal: SearchJournal) -> Estimate | None:
    """Return the best point so far, with standard errors from the curvature of the criterion there; None without
    one.
    """
    if journal.reached is None:
        return None
    if isinstance(journal.kept, EstimationProblem):
        # with the levels and discretisations that the search had come to
        problem = journal.kept
    evaluation = problem.evaluate(journal.reached)
    if not evaluation.completed:
        return None
    return Estimate.at(
        problem, evaluation, _covariance(evaluation.information), converged=False, status=interrupted_status(journal),
        seconds=journal.seconds, trace=tuple(journal.trace), evaluations=journal.evaluations,
        failures=tuple(journal.failures),
    )  # fmt: skip


def interrupted_status(journal: SearchJournal) -> str:
    """Return the one sentence."""
    return (
        f"INTERRUPTED after {journal.evaluations} evaluations; gr.fit(…, guess=fit) continues from here, and what the "
        f"data determine comes with the end of the search"
    )


def _covariance(information: np.ndarray) -> np.ndarray:
    """Return the inverse of an information matrix that may be singular: infinite for undetermined unknowns."""
    size = np.sqrt(np.diag(information))
    seen = size > 0
    covariance = np.diag(np.where(seen, 0.0, np.inf))
    scaled = information[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])
    covariance[np.ix_(seen, seen)] = np.linalg.pinv(scaled, hermitian=True) / np.outer(size[seen], size[seen])
    return covariance
