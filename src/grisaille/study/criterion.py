"""One number by which minima of the same data are compared.

The objective ½Σr² of a fit is taken at its own noise level; where that is estimated, every minimum has the same. What
can be compared is −log L − log prior, and for robust losses Σ (½ C² ρ((w e / σC)²) + log σ), with known σ left out.
Estimators of other criteria say themselves what can be compared (``extra["criterion"]``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.robust_losses import LOSSES


def comparable_criterion(estimate: Estimate, method: Any) -> float:
    """Lower is better."""
    beyond = estimate.evaluation.residuals[estimate.count :]
    penalty = 0.5 * float(beyond @ beyond)
    if "criterion" in estimate.extra:
        return estimate.extra["criterion"]
    if estimate.is_likelihood:
        return penalty - estimate.log_likelihood
    scale = getattr(method, "loss_scale", 1.0)
    z = (estimate.evaluation.residuals[: estimate.count] / scale) ** 2
    loss = 0.5 * scale**2 * float(np.sum(LOSSES[getattr(method, "loss", "linear")].value(z)))
    return penalty + loss + float(np.sum(np.log(_levels(estimate))))


def _levels(estimate: Estimate) -> np.ndarray:
    """σ of each residual where it was estimated, else 1."""
    parts = [np.full(len(s.values), estimate.noise.get(s.output, 1.0)) for c in estimate.cases for s in c.samples]
    return np.concatenate(parts)
