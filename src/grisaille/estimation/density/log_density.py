"""What a likelihood method makes of a problem: log L(θ) + log prior(θ) as a function of the unknowns.

Each prior counts in its own measure (``laws.law``), so that the maximum is that of the fit. Evaluating leaves nothing
behind, and gives the same bits from every thread.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.density.criterion import Criterion
from grisaille.estimation.density.priors import counts_by_logarithm
from grisaille.estimation.density.value import DensityValue


class LogDensity(Criterion):
    """A log-density of unknowns."""

    @property
    def counts_by_logarithm(self) -> tuple[bool, ...]:
        """Of each unknown, whether the density is one per unit of its logarithm, as a LogNormal prior counts."""
        return tuple(counts_by_logarithm(u) for u in self.unknowns)

    def value(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the log-density at θ, with its gradient; a failure in words outside of the bounds."""
        theta = np.asarray(theta, dtype=float)
        for u, v in zip(self.unknowns, theta, strict=True):
            if not u.lower <= v <= u.upper:
                return DensityValue.failed(theta, f"{u.name} = {v:g} lies outside of ({u.lower:g}, {u.upper:g})")
        return self.evaluate(theta, derivatives)
