"""The term that the priors of all unknowns add to a criterion at one point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class PriorTerm:
    """Priors at one point: one residual for each, several for a joint one."""

    residuals: np.ndarray
    """½ Σ r² is what the criterion contains."""
    slopes: np.ndarray
    """∂ residuals / ∂θ."""
    rows: np.ndarray
    """What stands for the slopes in standard errors, zero where a log-density is curved upward."""
    upward: np.ndarray
    """Of these, the rows whose squares are taken from the curvature."""

    @property
    def failure(self) -> str:
        """Return why there is no density at this point, in words; empty where there is one."""
        return "" if np.isfinite(self.residuals).all() else "a prior has no density there"

    def among(self, kept: Sequence[int]) -> PriorTerm:
        """Return the same as a function of some of the unknowns."""
        return replace(self, slopes=self.slopes[:, kept], rows=self.rows[:, kept], upward=self.upward[:, kept])

    @property
    def value(self) -> float:
        """Return the value that the priors add to a criterion."""
        return 0.5 * float(self.residuals @ self.residuals)

    @property
    def gradient(self) -> np.ndarray:
        """Return the gradient of this value."""
        return np.asarray(self.slopes.T @ self.residuals)

    @property
    def believed(self) -> np.ndarray:
        """Return the information of priors that have some: Λ without what is curved upward."""
        return np.asarray(self.rows.T @ self.rows)

    @property
    def curvature(self) -> np.ndarray:
        """Λ, exact."""
        return np.asarray(self.believed - self.upward.T @ self.upward)

    @property
    def search_curvature(self) -> np.ndarray:
        """Return a positive curvature to search with: that of the residuals where Λ is not."""
        rows = np.where(self.rows.any(axis=1, keepdims=True), self.rows, self.slopes)
        return np.asarray(rows.T @ rows)

    @property
    def correction(self) -> np.ndarray:
        """Return the exact curvature less that of the search; it is exactly zero for normal laws."""
        is_other = ~self.rows.any(axis=1)
        return np.asarray(-self.slopes[is_other].T @ self.slopes[is_other] - self.upward.T @ self.upward)
