"""``fit.test``: are some unknowns equal to given values? A likelihood-ratio test, right also for levels at zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from grisaille.assessment.boundary import mixture_p, mixture_weights, variance_covariance
from grisaille.assessment.deviance_law import law_of
from grisaille.assessment.deviances import deviances_of, index_of
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import why_no_ratio
from grisaille.estimation.fitted import Fitted

ROUNDING_OF_LOG_LIKELIHOOD = 1e-10
"""Of log L: smaller ratios are zero."""


@dataclass(frozen=True)
class RatioTest:
    """2 (log L − log L with the values held), and how often chance alone gives more."""

    hypothesis: dict[str, float]
    ratio: float
    degrees_of_freedom: int
    """Of the ordinary unknowns and of the levels at zero together."""
    weights: tuple[float, ...]
    """Shares of χ² with 0, 1, … more degrees of freedom than ordinary unknowns; (1,) without levels at zero."""
    p: float
    estimates: dict[str, float]
    """Of all unknowns, with the values held."""
    residual_degrees: float = np.inf
    """Of the noise, where its level was estimated: p is then that of an F test; infinite for χ²."""

    def __str__(self) -> str:
        what = ", ".join(f"{n} = {v:g}" for n, v in self.hypothesis.items())
        verdict = "is contradicted by the data" if self.p < 0.05 else "is compatible with the data"
        law = (
            "" if len(self.weights) == 1 else ", on a boundary: weights " + ", ".join(f"{w:.3g}" for w in self.weights)
        )
        degrees = f"{self.degrees_of_freedom} degree{'' if self.degrees_of_freedom == 1 else 's'} of freedom"
        law = (
            f", F with {self.residual_degrees:.4g} of the residuals{law}" if np.isfinite(self.residual_degrees) else law
        )
        return f"{what} {verdict}: likelihood ratio {self.ratio:.4g} on {degrees}{law}, p = {self.p:.3g}"

    __repr__ = __str__


def ratio_test(fit: Fitted, hypothesis: str | Iterable[str] | Mapping[str, float]) -> RatioTest:
    """Test by the likelihood ratio whether some unknowns have given values; a name alone means zero."""
    held = _values(fit, hypothesis)
    refused = why_no_ratio(fit.method)
    if refused:
        raise EstimationError(refused)
    deviances = deviances_of(fit, *held)
    at = {index_of(fit, name): value for name, value in held.items()}
    start = np.array(deviances.theta, dtype=float)
    point = deviances.minimize(at, start)
    if point.failure or not np.isfinite(point.deviance):
        raise EstimationError(
            f"The fit with {_hypothesis_text(held)} held failed: {point.failure or 'no finite likelihood'}"
        )
    levels = [k for k, v in at.items() if v == 0 and _is_level(fit.estimate.unknowns[k])]
    V = np.zeros((0, 0))
    if levels and not deviances.criterion.concentrates:
        V = variance_covariance(deviances.criterion, point.theta, levels)
    weights = mixture_weights(V)
    ordinary = len(at) - len(V)
    ratio = point.deviance if point.deviance > ROUNDING_OF_LOG_LIKELIHOOD * (1 + abs(fit.log_likelihood)) else 0.0
    law = law_of(fit, list(at))
    return RatioTest(
        held, ratio, len(at), tuple(weights.tolist()), mixture_p(ratio, ordinary, weights, law),
        dict(zip(fit.names, point.theta.tolist(), strict=True)), law.freedom,
    )  # fmt: skip


def _values(fit: Fitted, hypothesis: str | Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(hypothesis, Mapping):
        held = {str(n): float(v) for n, v in hypothesis.items()}
    else:
        held = {n: 0.0 for n in ([hypothesis] if isinstance(hypothesis, str) else hypothesis)}
    if not held:
        raise EstimationError("fit.test needs a hypothesis: a name, names, or {name: value}.")
    for name, value in held.items():
        unknown = fit.estimate.unknowns[index_of(fit, name)]
        if not unknown.lower <= value <= unknown.upper:
            raise EstimationError(f"'{name}' = {value:g} lies outside ({unknown.lower:g}, {unknown.upper:g}).")
    return held


def _is_level(unknown: Unknown) -> bool:
    return unknown.kind in ("scale", "noise") or (unknown.kind == "parameter" and unknown.lower == 0)


def _hypothesis_text(held: Mapping[str, float]) -> str:
    return ", ".join(f"{n} = {v:g}" for n, v in held.items())
