"""Covariances of output-error estimates, by what is assumed of the residuals.

plain, covariance="gauss-newton"   independent, of the variance that they have or were declared to have
plain, covariance="sandwich"       independent, of any variances
plain, with a robust loss          independent, of any law
robust                             none of these (``estimation/hac``)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.hac.robust_errors import RobustErrors, ScoreSeries, robust_errors
from grisaille.estimation.problem import Evaluation
from grisaille.estimation.uncertainty import (
    gauss_newton_covariance,
    inverse_information,
    root_of_covariance,
    sandwich_covariance,
    without_undetermined,
)
from grisaille.estimators.output_error.robust_losses import LOSSES, robust_covariance

Errors = Literal["plain", "robust"]
ROBUST_NOTE_PREFIX = "robust errors:"
"""Begins the notes that belong to robust errors."""


@dataclass(frozen=True, eq=False)
class FitResiduals:
    """What a fit leaves, and how it was made."""

    evaluation: Evaluation
    cases: Sequence[ExperimentTerm]
    count: int
    """Of data; what follows are priors."""
    told: np.ndarray
    """Unknowns that no bound holds and that the residuals move with."""
    names: Sequence[str]
    loss: str
    loss_scale: float
    covariance: str


@dataclass(frozen=True, eq=False)
class EstimatedCovariance:
    """A covariance, its notes, and what else an estimate stores of it."""

    covariance: np.ndarray
    notes: tuple[str, ...] = ()
    robust: RobustErrors | None = None


def estimate_covariance(left: FitResiduals, errors: str, *, calibrated: bool = True) -> EstimatedCovariance:
    """Return the covariance of the estimates.

    calibrated : whether robust errors are also asked how well they are known, which takes longer
    """
    if errors == "robust":
        return _robust(left, calibrated)
    e, data = left.evaluation, slice(0, left.count)
    if e.has_upward_priors and left.loss == "linear" and left.covariance != "sandwich":
        return EstimatedCovariance(without_undetermined(*inverse_information(e.information, left.told)))
    if e.covariance is not None:
        return EstimatedCovariance(np.where(np.outer(left.told, left.told), e.covariance, 0.0))
    J, r, beliefs = e.jacobian[data], e.residuals[data], e.curved[left.count :]
    if left.loss != "linear":
        return EstimatedCovariance(robust_covariance(J, r, left.told, left.loss, left.loss_scale, beliefs))
    if left.covariance == "sandwich":
        return EstimatedCovariance(sandwich_covariance(J, r, left.told, beliefs))
    return EstimatedCovariance(gauss_newton_covariance(e.curved, left.told))


def _robust(left: FitResiduals, calibrated: bool) -> EstimatedCovariance:
    e, data = left.evaluation, slice(0, left.count)
    r = e.residuals[data]
    if left.loss == "linear":
        bread, score, taken = gauss_newton_covariance(e.curved, left.told), r, 1.0
    else:
        z, form = (r / left.loss_scale) ** 2, LOSSES[left.loss]
        slope = form.slope(z) + 2 * z * form.bend(z)
        information = (e.jacobian[data] * slope[:, None]).T @ e.jacobian[data]
        information += e.curved[left.count :].T @ e.curved[left.count :]
        bread = without_undetermined(*inverse_information(information, left.told))
        score, taken = form.slope(z) * r, float(np.mean(slope))
    lost = np.isinf(np.diag(bread))
    found = robust_errors(
        left.cases, ScoreSeries(e.curved, score, root_of_covariance(bread), taken), left.names, calibrated=calibrated
    )
    return EstimatedCovariance(without_undetermined(found.covariance, lost), found.notes, found.known(left.names))
