"""A log-density per unit of coordinates on the whole line: what optimizers without bounds and samplers take.

    log p(ξ) = log p(θ(ξ)) + log |dθ/dξ| − Σ log θ_k of unknowns whose prior counts per unit of its logarithm

The last term brings these to their own unit, so that the density is likelihood × prior distributions, per unit of ξ:
the same probability in whatever coordinates it is written (∫ over ξ = ∫ over θ).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.transforms import Transforms


@dataclass(frozen=True, eq=False)
class UnboundedValue:
    """A log-density at ξ.

    theta : the unknowns there
    gradient : by ξ; NaN where there is none, or it was not asked for
    slopes : dθ/dξ
    failure : why there is no density, in words; empty where there is one
    """

    theta: np.ndarray
    log_density: float
    gradient: np.ndarray
    slopes: np.ndarray
    failure: str = ""


class Unbounded:
    """A log-density of unknowns as one of coordinates ξ on the whole line."""

    def __init__(self, density: LogDensity) -> None:
        self.density = density
        self.transforms = Transforms.between(density.ranges)
        self._by_log = np.flatnonzero(density.counts_by_logarithm)

    def at(self, xi: np.ndarray, derivatives: bool = True) -> UnboundedValue:
        """Return the log-density at ξ, which need not be finite."""
        missing = np.full(len(xi), np.nan)
        if not np.isfinite(xi).all():
            return UnboundedValue(missing, -np.inf, missing, missing, "a coordinate is not finite")
        theta = self.transforms.outer(xi)
        slopes, logarithm, bend = self.transforms.jacobian(xi)
        found = self.density.value(theta, derivatives)
        if found.failure:
            return UnboundedValue(theta, -np.inf, missing, slopes, found.failure)
        value = found.log_density + logarithm
        if len(self._by_log):
            value -= float(np.log(theta[self._by_log]).sum())
        if found.gradient is None:
            return UnboundedValue(theta, value, missing, slopes)
        gradient = found.gradient * slopes + bend
        if len(self._by_log):
            gradient[self._by_log] -= slopes[self._by_log] / theta[self._by_log]
        return UnboundedValue(theta, value, gradient, slopes)
