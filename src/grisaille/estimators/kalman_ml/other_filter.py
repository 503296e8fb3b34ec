"""The fit by another filter, where the one that was taken approximates too much."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import ReviewedEstimate
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.estimators.kalman_ml.filter_check import check_filter, fitted_filter
from grisaille.estimators.kalman_ml.likelihood_posing import discretised, filter_case
from grisaille.optimization.journal import Progress, SearchJournal

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML


def compare_with_other_filter(
    method: KalmanML, problem: LikelihoodProblem, estimate: Estimate, progress: Progress | None, *, may_change: bool
) -> ReviewedEstimate:
    """Compare the filter with another one; ``filter="auto"`` then takes the unscented one where results differ
    noticeably.
    """
    check = None if estimate.explained_exactly else check_filter(problem, estimate)
    if check is None:
        return ReviewedEstimate(method, estimate)
    is_extended = method.filter == "auto" and fitted_filter(estimate.cases) == "extended"
    if may_change and is_extended and check.is_noted and not check.other_is_blind:
        found = _by_unscented(method, problem, estimate, progress)
        if found is not None:
            names = [u.name for u in estimate.unknowns]
            because = f"because {check.described(names)}"
            note = f"filter: the unscented one was taken, {because}."
            found = replace(found, estimate=replace(found.estimate, notes=(*found.estimate.notes, note)))
            return replace(found, reason=f"chosen: the unscented filter, {because}")
    return ReviewedEstimate(method, replace(estimate, approximation=check))


def _by_unscented(
    method: KalmanML, problem: LikelihoodProblem, before: Estimate, progress: Progress | None
) -> ReviewedEstimate | None:
    """Return the fit by the unscented filter, from where the extended one ended; None where it has no maximum there."""
    unscented, begin = replace(method, filter="unscented"), time.perf_counter()
    try:
        cases = [filter_case(unscented, c.experiment, c.trial, c.unknowns) for c in problem.cases]
        other = LikelihoodProblem(problem.unknowns, cases, method.bound_penalty)
        other.with_guess(np.where(before.theta == 0, problem.guess, before.theta))
        other = other.replace(cases=tuple(discretised(c, other.guess) for c in cases))
        found = unscented.estimate(other, _journal_after(progress))
    except (EstimationError, np.linalg.LinAlgError):
        return None
    if before.converged and not (found.converged and _determines_as_much(before, found)):
        return None
    seconds = before.seconds + time.perf_counter() - begin
    found = replace(found, evaluations=before.evaluations + found.evaluations, seconds=seconds)
    return ReviewedEstimate(unscented, replace(found, approximation=check_filter(other, found)))


def _determines_as_much(before: Estimate, after: Estimate) -> bool:
    """Return whether a fit determines every unknown that the one before it did."""
    known, still = (np.isfinite(np.diag(e.covariance)) for e in (before, after))
    return bool((still | ~known).all())


def _journal_after(progress: Progress | None) -> SearchJournal:
    """Return a new journal that reports to whom the one before did."""
    before = SearchJournal.of(progress)
    return SearchJournal(before.report, before.watch)
