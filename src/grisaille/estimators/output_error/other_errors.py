"""Standard errors by the option ``errors=``, of a search that ends and of an estimate that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.abilities.other_errors import OtherErrors
from grisaille.estimation.cases import Case
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Reviewed
from grisaille.estimation.problem import Evaluation
from grisaille.estimation.uncertainty import without_undetermined
from grisaille.estimators.output_error.errors import MARK, Reckoned, Residuals, reckon
from grisaille.trial.unknown import Unknown

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError


def errors_of(
    method: OutputError,
    unknowns: Sequence[Unknown],
    evaluation: Evaluation,
    cases: Sequence[Case],
    count: int,
    told: np.ndarray,
) -> Reckoned:
    """Return the covariance of the kind that a method has.

    told : unknowns that no bound holds and that the residuals move with
    """
    names = [u.name for u in unknowns]
    left = Residuals(evaluation, cases, count, told, names, method.loss, method.loss_scale, method.covariance)
    return reckon(left, method.errors)


@dataclass(frozen=True)
class ErrorsByOption(OtherErrors):
    """Plain errors, and robust ones."""

    method: OutputError

    def by(self, estimate: Estimate, errors: Any) -> Reviewed:
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
            notes=(*found.notes, *(n for n in estimate.notes if not n.startswith(MARK))),
            robust=found.robust,
        )
        return Reviewed(method, made)
