"""Standard errors by the option ``errors=``, of a search that ends and of an estimate that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.other_errors import OtherErrors
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import ReviewedEstimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import Evaluation
from grisaille.estimation.uncertainty import without_undetermined
from grisaille.estimators.output_error.covariances import (
    ROBUST_NOTE_PREFIX,
    EstimatedCovariance,
    FitResiduals,
    estimate_covariance,
)

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError


def errors_of(
    method: OutputError,
    unknowns: Sequence[Unknown],
    evaluation: Evaluation,
    cases: Sequence[ExperimentTerm],
    count: int,
    told: np.ndarray,
) -> EstimatedCovariance:
    """Return the covariance of the kind that a method has.

    told : unknowns that no bound holds and that the residuals move with
    """
    names = [u.name for u in unknowns]
    left = FitResiduals(evaluation, cases, count, told, names, method.loss, method.loss_scale, method.covariance)
    return estimate_covariance(left, method.errors)


@dataclass(frozen=True)
class ErrorsByOption(OtherErrors):
    """Plain errors, and robust ones."""

    method: OutputError

    def by(self, estimate: Estimate, errors: Any) -> ReviewedEstimate:
        if not estimate.evaluation.is_least_squares:
            raise EstimationError(
                f"fit.with_errors({errors!r}) is made for squares of errors, and this fit maximised a likelihood by "
                f"the laws of outputs. gr.OutputError(covariance='sandwich') has standard errors that hold where "
                f"samples scatter otherwise than the laws say; none hold under correlation beside laws."
            )
        method = replace(self.method, errors=errors)
        evaluation, free = estimate.evaluation, estimate.free
        seen = np.abs(evaluation.jacobian).max(axis=0, initial=0.0) > 0
        found = errors_of(method, estimate.unknowns, evaluation, estimate.cases, estimate.count, free & seen)
        made = replace(
            estimate,
            covariance=without_undetermined(found.covariance, free & ~seen),
            notes=(*found.notes, *(n for n in estimate.notes if not n.startswith(ROBUST_NOTE_PREFIX))),
            robust=found.robust,
        )
        return ReviewedEstimate(method, made)
