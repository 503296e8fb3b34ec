"""What the priors of all unknowns add to a criterion at one point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PriorTerm:
    """Priors at one point: one residual for each, several for a joint one."""

    residuals: np.ndarray
    """½ Σ r² is what the criterion contains."""
    slopes: np.ndarray
    """∂ residuals / ∂θ."""
    rows: np.ndarray
    """What stands for the slopes in standard errors: the sum of their squares is the curvature of the priors."""

    @property
    def value(self) -> float:
        """What a criterion contains."""
        return 0.5 * float(self.residuals @ self.residuals)

    @property
    def gradient(self) -> np.ndarray:
        """Its gradient."""
        return np.asarray(self.slopes.T @ self.residuals)

    @property
    def curvature(self) -> np.ndarray:
        """Λ."""
        return np.asarray(self.rows.T @ self.rows)

    @property
    def search_curvature(self) -> np.ndarray:
        """A positive curvature to search with: that of the residuals where Λ is zero."""
        rows = np.where(self.rows.any(axis=1, keepdims=True), self.rows, self.slopes)
        return np.asarray(rows.T @ rows)
