"""The step of the leapfrog method: found by dual averaging, so that trajectories are accepted as often as wanted.

    x_{t+1} = µ − (√t/γ) · (1/(t + t₀)) Σ (δ − α_i),        x̄_{t+1} = t^{−κ} x_{t+1} + (1 − t^{−κ}) x̄_t,        ε = e^x

α_i the mean acceptance of transition i, δ the one wanted. Reference: Hoffman and Gelman (2014), section 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grisaille.posteriors.kernel import Point
from grisaille.posteriors.nuts import Density

ACCEPTANCE = 0.8
"""The mean acceptance that is aimed at."""
GAMMA, OFFSET, KAPPA = 0.05, 10.0, 0.75
"""γ, t₀ and κ."""
GUESS = 10.0
"""e^µ, in steps at the beginning: longer ones are tried first."""
MAX_DOUBLINGS = 50


@dataclass(frozen=True)
class DualAveraging:
    """The state of the search.

    centre : µ
    count, error, log_step, log_mean : t, the mean of δ − α, x and x̄
    """

    centre: float
    count: int = 0
    error: float = 0.0
    log_step: float = 0.0
    log_mean: float = 0.0

    @classmethod
    def beginning(cls, step: float) -> DualAveraging:
        """Return a search that begins with a step."""
        return cls(math.log(GUESS * step), log_step=math.log(step), log_mean=math.log(step))

    @property
    def step(self) -> float:
        """The step to try next."""
        return math.exp(self.log_step)

    @property
    def found(self) -> float:
        """The averaged step, which a chain keeps after its warm-up."""
        return math.exp(self.log_mean)

    def learned(self, acceptance: float, wanted: float = ACCEPTANCE) -> DualAveraging:
        """Return the search after a transition."""
        t = self.count + 1
        share = 1 / (t + OFFSET)
        error = (1 - share) * self.error + share * (wanted - acceptance)
        log_step = self.centre - math.sqrt(t) / GAMMA * error
        weight = t**-KAPPA
        return DualAveraging(self.centre, t, error, log_step, weight * log_step + (1 - weight) * self.log_mean)


def first_step(density: Density, point: Point, rng: np.random.Generator, step: float = 1.0) -> tuple[float, int]:
    """Return a step at which one leap is accepted with probability 0.8 or so, and how many evaluations that took."""
    r = rng.standard_normal(len(point.z))
    energy = 0.5 * float(r @ r) - point.log_density
    wanted, direction = -math.log(ACCEPTANCE), 0
    for count in range(1, MAX_DOUBLINGS + 1):
        half = r + 0.5 * step * point.gradient
        value, gradient = density(point.z + step * half)
        if value > -math.inf:
            end = half + 0.5 * step * gradient
            error = 0.5 * float(end @ end) - value - energy
        else:
            error = math.inf
        here = 1 if error <= wanted else -1  # whether it may be longer
        if direction not in (0, here):
            return step, count
        direction = here
        step *= 2.0**here
    return step, MAX_DOUBLINGS
