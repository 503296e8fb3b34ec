"""A problem in which some unknowns are held: least squares, likelihoods and whatever has an ``Evaluation``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation


class Restricted(EstimationProblem):
    """A problem in which some unknowns are held."""

    def __init__(self, problem: EstimationProblem, theta: np.ndarray, held: Sequence[int]) -> None:
        self.full, self.theta = problem, theta
        self.kept = [k for k in range(len(theta)) if k not in held]
        inside = np.clip(theta, *problem.bounds)
        unknowns = [problem.unknowns[k].starting_from(inside[k]) for k in self.kept]
        super().__init__(unknowns, problem.discretised_problem.cases, problem.noise)
        self.sigma = problem.sigma

    @property
    def discretised_problem(self) -> Self:
        """Return itself: the full problem has been discretised."""
        return self

    def whole(self, theta: np.ndarray) -> np.ndarray:
        values = self.theta.copy()
        values[self.kept] = theta
        return values

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        return self.full.evaluate(self.whole(theta), sensitive=sensitive).among(self.kept)

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self.full.gradient(self.whole(theta))
        return value, slope[self.kept]
