"""One number by which minima of the same data are compared; each estimator says what can be."""

from __future__ import annotations

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator


def comparable_criterion(estimate: Estimate, method: Estimator) -> float:
    """Lower is better."""
    return method.comparable(estimate)
