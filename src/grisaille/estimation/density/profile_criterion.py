"""What profiles, surfaces and tests walk on: a function of unknowns that can be evaluated and maximised.

``LogDensity`` is the one that is a likelihood with priors. What an estimator minimises where it is none (the criterion
of trajectories) has the same methods, with minus the criterion in place of the log-density.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.density_value import DensityValue
from grisaille.estimation.problem import EstimationProblem


@dataclass(frozen=True, eq=False)
class Maximum:
    """The largest log-density with some unknowns held, and where."""

    theta: np.ndarray
    """All unknowns."""
    log_density: float
    failure: str = ""

    @classmethod
    def failed(cls, theta: np.ndarray, reason: str) -> Maximum:
        """Return what a search that failed gives."""
        return cls(theta, -np.inf, reason)


class ProfileCriterion(ABC):
    """A function of unknowns."""

    problem: EstimationProblem
    """What is evaluated."""
    concentrates: ClassVar[bool] = False
    """Whether open levels of noise are at their best at every point, and none of the unknowns."""

    @property
    def couples_levels(self) -> bool:
        """Return whether these levels, of several outputs or beside priors, add to the curvature by themselves."""
        return False

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """In the order of θ."""
        return self.problem.unknowns

    @property
    def names(self) -> tuple[str, ...]:
        """Return the unknowns by name, in the order of θ."""
        return tuple(u.name for u in self.unknowns)

    @property
    def start(self) -> np.ndarray:
        """Return the guess."""
        return np.array([u.guess for u in self.unknowns])

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Of each unknown, infinite where there is none."""
        return tuple((float(u.lower), float(u.upper)) for u in self.unknowns)

    @abstractmethod
    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ, whatever the bounds."""

    @abstractmethod
    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Return the largest value with the unknowns of some indices held, but not all of them, sought from ``start``.

        nearly : to the accuracy that a statistic of drawn records needs
        """

    def maximize(self, held: Mapping[int, float], start: np.ndarray, *, nearly: bool = False) -> Maximum:
        """Return the largest value with the unknowns of some indices held at values, sought from ``start``."""
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        if len(held) == len(theta):
            found = self.evaluate(theta, False)
            return Maximum(theta, found.log_density, found.failure)
        try:
            return self.search(theta, list(held), nearly)
        except EstimationError as error:
            return Maximum.failed(theta, str(error))

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> ProfileCriterion:
        """Return the same of other measurements, one array for each of the problem's ``samples``, starting from θ."""
        raise EstimationError(f"{type(self).__name__} has no other measurements.")
