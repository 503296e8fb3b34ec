"""A fit with other standard errors, from the residuals that it has."""

from __future__ import annotations

from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.fitted import Fitted


def with_errors(fit: Fitted, errors: str) -> Fitted:
    """Return the same estimates with the errors of another option of the method."""
    if fit.method.other_errors is None:
        raise missing_ability_error(fit.method, "other_errors")
    other = fit.method.other_errors.by(fit.estimate, errors)
    made = Fitted(fit.initial_model, fit.experiments, other.method, other.estimate, fit.why)
    made.kept = fit.kept
    return made
