"""What an estimator hands on: numbers only, no methods for users (that is ``Fit``)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grisaille.estimation.cases import Case
from grisaille.estimation.problem import Evaluation
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True)
class Estimate:
    """The result of one estimation."""

    unknowns: tuple[Unknown, ...]
    theta: np.ndarray
    covariance: np.ndarray
    """In the unknowns themselves; zero rows where a bound decided."""
    free: np.ndarray
    """False where a bound decided."""
    noise: dict[str, float]
    """Estimated standard deviation of each output whose noise was unknown."""
    log_likelihood: float
    is_likelihood: bool
    """False for criteria that are not likelihoods (robust losses): no AIC, BIC or likelihood ratio from them."""
    count: int
    """Number of measurements."""
    objective: float
    evaluation: Evaluation
    cases: tuple[Case, ...]
    converged: bool
    status: str
    notes: tuple[str, ...]
    trace: tuple[dict[str, float], ...]
    evaluations: int
    failures: tuple[str, ...]
    seconds: float
    offset: float = 0.0
    """How far from the minimum, in standard errors."""
    extra: dict[str, float] = field(default_factory=dict)
    caution: str = ""
    """Why standard errors and intervals are not to be taken at their word; empty where they are."""

    @property
    def degrees_of_freedom(self) -> int:
        return self.count - int(self.free.sum())
