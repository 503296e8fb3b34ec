"""One number by which minima of the same data are compared.

The objective ½Σr² of a fit is taken at its own noise level; where that is estimated, every minimum has the same. What
can be compared is −log L − log prior, and for robust losses the loss itself, C² Σ ρ((w e / σC)²), with unknown σ at 1.
Estimators of other criteria say themselves what can be compared (``extra["criterion"]``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grisaille.estimation.estimate import Estimate

LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.maximum(z, 1)) - 1),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


def comparable_criterion(estimate: Estimate, method: Any) -> float:
    """Lower is better."""
    beyond = estimate.evaluation.residuals[estimate.count :]
    penalty = 0.5 * float(beyond @ beyond)
    if "criterion" in estimate.extra:
        return estimate.extra["criterion"]
    if estimate.is_likelihood:
        return penalty - estimate.log_likelihood
    scale = getattr(method, "loss_scale", 1.0)
    residuals = estimate.evaluation.residuals[: estimate.count] * _levels(estimate)
    return penalty + 0.5 * scale**2 * float(np.sum(LOSSES[getattr(method, "loss", "linear")]((residuals / scale) ** 2)))


def _levels(estimate: Estimate) -> np.ndarray:
    """σ of each residual where it was estimated, else 1."""
    parts = [np.full(len(s.values), estimate.noise.get(s.output, 1.0)) for c in estimate.cases for s in c.samples]
    return np.concatenate(parts)
