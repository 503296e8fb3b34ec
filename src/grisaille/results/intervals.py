"""Which name stands for which intervals (``fit.intervals(method=…)``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grisaille.assessment.profile_intervals import auto_intervals, profile_intervals
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals, wald_intervals
from grisaille.study.bootstrap_intervals import bootstrap_intervals

METHODS: Mapping[str, Callable[[Fitted, float], Intervals]] = {
    "auto": auto_intervals,
    "profile": profile_intervals,
    "wald": wald_intervals,
}
"""Those that are made of the fit itself; ``"bootstrap"`` draws data."""


def find_intervals(
    fit: Fitted, level: float, method: str, samples: int | None = None, seed: int | None = None
) -> Intervals:
    """Return intervals by one of the methods that there are."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    if method == "bootstrap":
        first = fit.limits(float(level), "auto")
        return bootstrap_intervals(fit, float(level), first, samples, seed or 0)
    if method not in METHODS:
        raise EstimationError(
            f"method is {method!r}; give one of {', '.join(map(repr, sorted((*METHODS, 'bootstrap'))))}."
        )
    for name, value in (("samples", samples), ("seed", seed)):
        if value is not None:
            raise EstimationError(f"{name}= goes with method='bootstrap', not with {method!r}.")
    return METHODS[method](fit, float(level))
