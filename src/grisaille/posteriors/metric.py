"""The metric: coordinates z in which the posterior is about as wide in all directions, ξ = c + L z, metric (L Lᵀ)⁻¹."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.posteriors.kernel import Target
from grisaille.posteriors.nuts import Density


@dataclass(frozen=True, eq=False)
class Metric:
    """A centre and a factor of the covariance that is expected.

    centre : c, (n,)
    factor : L, (n, n)
    """

    centre: np.ndarray
    factor: np.ndarray

    def outer(self, z: np.ndarray) -> np.ndarray:
        """Return ξ."""
        return np.asarray(self.centre + self.factor @ z)

    def inner(self, xi: np.ndarray) -> np.ndarray:
        """Return z."""
        return np.linalg.solve(self.factor, xi - self.centre)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of ξ that it stands for."""
        return np.asarray(self.factor @ self.factor.T)

    def density(self, target: Target) -> Density:
        """Return a target as a function of z; the constant log |det L| is left out."""
        centre, factor, transposed = self.centre, self.factor, np.ascontiguousarray(self.factor.T)
        evaluate = target.value_and_gradient

        def at(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = evaluate(centre + factor @ z)
            return value, transposed @ gradient

        return at

    def corrected(self, covariance: np.ndarray) -> Metric:
        """Return the metric after a covariance of z has been learned."""
        return Metric(self.centre, self.factor @ np.linalg.cholesky(covariance))
