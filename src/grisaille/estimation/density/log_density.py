"""What a likelihood method makes of a problem: log L(θ) + log prior(θ) as a function of the unknowns.

Each prior counts in its own measure (``laws.law``), so that the maximum is that of the fit. Evaluating leaves nothing
behind, and gives the same bits from every thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.density.priors import counts_by_logarithm
from grisaille.estimation.density.value import DensityValue
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True, eq=False)
class Maximum:
    """The largest log-density with some unknowns held, and where."""

    theta: np.ndarray
    """All unknowns."""
    log_density: float
    failure: str = ""


class LogDensity(ABC):
    """A log-density of unknowns."""

    unknowns: tuple[Unknown, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The unknowns by name, in the order of θ."""
        return tuple(u.name for u in self.unknowns)

    @property
    def start(self) -> np.ndarray:
        """The guess."""
        return np.array([u.guess for u in self.unknowns])

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Of each unknown, infinite where there is none."""
        return tuple((float(u.lower), float(u.upper)) for u in self.unknowns)

    @property
    def counts_by_logarithm(self) -> tuple[bool, ...]:
        """Of each unknown, whether the density is one per unit of its logarithm, as a LogNormal prior counts."""
        return tuple(counts_by_logarithm(u) for u in self.unknowns)

    def value(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the log-density at θ, with its gradient; a failure in words outside of the bounds."""
        theta = np.asarray(theta, dtype=float)
        reason = self._outside(theta)
        if reason:
            return DensityValue.failed(theta, reason)
        return self._value(theta, derivatives)

    @abstractmethod
    def _value(self, theta: np.ndarray, derivatives: bool) -> DensityValue:
        """Return the log-density at a θ inside the bounds."""

    @abstractmethod
    def maximize(self, held: Mapping[int, float], start: np.ndarray) -> Maximum:
        """Return the largest density with the unknowns of some indices held at values, sought from ``start``."""

    def _outside(self, theta: np.ndarray) -> str:
        """Say which unknown lies outside of its bounds; empty where none does."""
        for u, v in zip(self.unknowns, theta, strict=True):
            if not u.lower <= v <= u.upper:
                return f"{u.name} = {v:g} lies outside of ({u.lower:g}, {u.upper:g})"
        return ""


def held_at(theta: np.ndarray, held: Mapping[int, float]) -> np.ndarray:
    """Return a copy of θ with some unknowns at other values."""
    values = np.array(theta, dtype=float)
    values[list(held)] = list(held.values())
    return values
