"""What a chain is made of: a target density, and a kernel that moves a point so that the target is kept.

The point carries the log-density at which it was accepted. A kernel compares other points with this number and never
evaluates the same point again, so that it is also right for a target whose value is an unbiased estimate with noise
(C. Andrieu, G. Roberts, The Annals of Statistics 37, 2009), provided that it uses no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Target(Protocol):
    """A log-density of coordinates on the whole line."""

    @property
    def names(self) -> tuple[str, ...]:
        """The unknowns in the order of the coordinates."""
        ...

    def value_and_gradient(self, xi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log-density and its gradient; −∞ where there is none."""
        ...


@dataclass(slots=True, eq=False)
class Point:
    """A place with what is known there, in the coordinates of a kernel.

    z : where
    log_density, gradient : of the target
    """

    z: np.ndarray
    log_density: float
    gradient: np.ndarray


@dataclass(slots=True, eq=False)
class Transition:
    """One step of a chain.

    point : where it ends
    acceptance : mean probability with which the points on the way would be accepted
    energy : −log-density and kinetic energy at the beginning
    evaluations : of the target and its gradient
    depth : how often the trajectory was doubled
    diverged : where the integration of the trajectory failed; None where it did not
    """

    point: Point
    acceptance: float
    energy: float
    evaluations: int
    depth: int
    diverged: np.ndarray | None = None
