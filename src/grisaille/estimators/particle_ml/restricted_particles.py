"""A problem of particle filters in which some unknowns are held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.laws.term import PriorTerm


class RestrictedParticles(ParticleProblem):
    """Its unknowns are those that are kept; experiments are those of the full problem."""

    def __init__(self, full: ParticleProblem, theta: np.ndarray, held: Sequence[int]) -> None:
        self.full, self.theta = full, np.array(theta, dtype=float)
        self.kept = [k for k in range(len(theta)) if k not in held]
        inside = np.clip(self.theta, *full.bounds)
        unknowns = [full.unknowns[k].starting_from(inside[k]) for k in self.kept]
        super().__init__(unknowns, full.discretised_problem.cases, full.seed)

    def whole(self, theta: np.ndarray) -> np.ndarray:
        """Return values of all unknowns."""
        values = self.theta.copy()
        values[self.kept] = theta
        return values

    def parts_at(self, theta: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
        return self.full.parts_at(self.whole(theta), seed)

    def prior(self, theta: np.ndarray) -> PriorTerm:
        return self.full.prior(self.whole(theta))
