"""Weighting and unknowns estimated in turn: Λ from the errors, the minimum for that Λ, until the unknowns stay.

Λ itself creeps for many rounds that no estimate feels. So the step to the minimum of the renewed criterion,
d = −H⁻¹g, is compared with standard errors from the ensemble, and the rounds end where

    |d_i| ≤ 0.01 s_i     for every unknown.

Each round is minimised to a hundredth of a standard error of white errors, which are smaller than those of correlated
ones; the last Λ to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import MeanSearch, MeanSearchEnd, free_unknowns, step_to_minimum
from grisaille.estimators.simulated_pem.sandwich import ensemble_sandwich
from grisaille.optimization.search import LIMIT_STATUS

MAX_ROUNDS = 20
SETTLED_DISTANCE = 0.01
"""Standard errors that a changed weighting may leave between an estimate and its minimum."""
ROUND_GAIN = SETTLED_DISTANCE**2
"""Predicted gain at which a round ends."""


def alternate_weighting(
    search: MeanSearch, ending: MeanSearchEnd, minimize: Callable[[np.ndarray], MeanSearchEnd]
) -> MeanSearchEnd:
    """Renew Λ and noise formulas and minimise again, until the unknowns do not change."""
    criterion = search.criterion
    errors, free = np.zeros(0), np.zeros(0, dtype=bool)
    for _ in range(MAX_ROUNDS):
        changed = criterion.update_levels(ending.value)
        ending = replace(ending, value=criterion.renew(ending.value))
        if changed < 1e-6:
            return ending
        now = free_unknowns(criterion, ending.value)
        if not np.array_equal(now, free):
            errors, free = _standard_errors(criterion, ending.value, now), now
        if has_settled(criterion, ending.value, errors):
            return ending
        if search.is_spent:
            return replace(ending, is_minimum=False, reason=LIMIT_STATUS)
        search.renew(criterion)
        ending = minimize(ending.value.theta)
    return MeanSearchEnd(ending.value, False, f"the weighting still moved the estimates after {MAX_ROUNDS} rounds")


def has_settled(criterion: MeanCriterion, value: MeanValue, errors: np.ndarray) -> bool:
    """Return whether no unknown is farther from the minimum than a small part of its standard error."""
    step, _ = step_to_minimum(criterion, value)
    problem = criterion.problem
    moved = problem.outer(problem.inner(value.theta) + step) - value.theta
    return bool((np.abs(moved) <= SETTLED_DISTANCE * errors).all())


def _standard_errors(criterion: MeanCriterion, value: MeanValue, free: np.ndarray) -> np.ndarray:
    found = ensemble_sandwich(criterion, value, free)
    return np.asarray(np.sqrt(np.clip(np.diag(found.covariance), 0.0, None)))
