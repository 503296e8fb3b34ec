"""A log-density at one point, with the parts that it is the sum of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np


@dataclass(frozen=True, eq=False)
class DensityPart:
    """One term of a log-density.

    name : the experiment's; ``"prior"`` or ``"penalty"``
    gradient : by all unknowns; empty where derivatives were not asked for
    """

    name: str
    kind: Literal["experiment", "prior", "penalty"]
    log_density: float
    gradient: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class DensityValue:
    """A log-density at θ.

    gradient, information : by the unknowns; None where they were not asked for or do not exist. The information is the
        expected curvature of −log p, or Gauss and Newton's
    residuals : standardised, where there are any
    failure : why there is no density, in words; empty where there is one
    objective : what a fit minimises there: half the squares of residuals at the levels of noise that it found, or minus
        the log-density without the constants of priors
    """

    theta: np.ndarray
    log_density: float
    gradient: np.ndarray | None = None
    information: np.ndarray | None = None
    residuals: np.ndarray | None = None
    parts: tuple[DensityPart, ...] = ()
    failure: str = ""
    objective: float = np.nan

    @classmethod
    def failed(cls, theta: np.ndarray, reason: str) -> DensityValue:
        """Return the value of a point without a density."""
        return cls(theta, -np.inf, failure=reason)

    @classmethod
    def summed(
        cls,
        theta: np.ndarray,
        parts: tuple[DensityPart, ...],
        derivatives: bool,
        information: np.ndarray | None = None,
        constant: float = 0.0,
    ) -> DensityValue:
        """Return the sum of parts; a part that is no number has no density.

        constant : what the objective has more than minus the log-density
        """
        total = float(sum(p.log_density for p in parts))
        if not np.isfinite(total):
            worst = next(p for p in parts if not np.isfinite(p.log_density))
            where = f"experiment '{worst.name}'" if worst.kind == "experiment" else f"the {worst.name}"
            return cls.failed(theta, f"{where}: the log-density is {worst.log_density:g}")
        gradient = sum((p.gradient for p in parts), np.zeros(len(theta))) if derivatives else None
        return cls(theta, total, gradient, information, parts=parts, objective=constant - total)
