"""A penalty that keeps unknowns away from their bounds, as in CTSM.

    p(θ) = λ Σ_i ( |a_i| / (θ_i − a_i) + |b_i| / (b_i − θ_i) − 1 ),        a_i < θ_i < b_i

together with the search in log((θ − a)/(b − θ)). It decides where unknowns stay that the data do not see, and pulls
others by about λ |b| / (b − θ)² standard errors squared; a bound at zero does not repel. Estimates are those of
−log L + p; log L itself is reported without it. Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40
(2004) 225, eqs. (38)–(40).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError

MIN_BOUND_DISTANCE = 1e-90
"""To a bound; the penalty is then beyond all others, and its second derivative still finite."""


@dataclass(frozen=True)
class BoundPenalty:
    """λ; zero for none."""

    weight: float = 0.0

    def at(self, unknowns: Sequence[Unknown], theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return value, gradient and second derivatives by each unknown."""
        value, slope, bend = 0.0, np.zeros(len(theta)), np.zeros(len(theta))
        for k, u in enumerate(unknowns):
            if not (self.weight and _is_two_sided(u)):
                continue
            below, above = max(theta[k] - u.lower, MIN_BOUND_DISTANCE), max(u.upper - theta[k], MIN_BOUND_DISTANCE)
            a, b = abs(u.lower), abs(u.upper)
            value += self.weight * (a / below + b / above - 1)
            slope[k] = self.weight * (b / above**2 - a / below**2)
            bend[k] = 2 * self.weight * (b / above**3 + a / below**3)
        return value, slope, bend


def with_logit_search(unknowns: Sequence[Unknown]) -> list[Unknown]:
    """Return the unknowns with those that have two bounds searched by their logit; guesses must lie inside."""
    found = []
    for u in unknowns:
        if _is_two_sided(u):
            if np.isfinite(u.guess) and not u.lower < u.guess < u.upper:
                raise EstimationError(
                    f"bounds='transform' needs guesses inside the bounds, but '{u.name}' starts at {u.guess:g} on one "
                    f"of ({u.lower:g}, {u.upper:g}): give guess={{'{u.name}': …}}."
                )
            u = replace(u, logarithmic=False, logit=True)
        found.append(u)
    return found


def _is_two_sided(unknown: Unknown) -> bool:
    return bool(np.isfinite(unknown.lower) and np.isfinite(unknown.upper))
