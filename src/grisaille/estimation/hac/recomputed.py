"""A fit with other standard errors, from the residuals that it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted


def with_errors(fit: Fitted, errors: str) -> Fitted:
    """The same estimates with the errors of another option of the method."""
    if "errors" not in fit.method.options:
        raise EstimationError(
            f"{type(fit.method).__name__} has one kind of standard errors; fit.with_errors(…) is for fits by "
            "gr.OutputError."
        )
    method: Any = fit.method
    other = replace(method, errors=errors)
    made = Fitted(fit.initial_model, fit.experiments, other, other.reckoned(fit.estimate), fit.why)
    made.kept = fit.kept
    return made
