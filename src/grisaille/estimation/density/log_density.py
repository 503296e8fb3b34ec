"""What a likelihood method makes of a problem: log L(θ) + log prior(θ) as a function of the unknowns.

Each prior counts in its own measure (``laws.law``), so that the maximum is that of the fit. Evaluating leaves nothing
behind, and gives the same bits from every thread.
"""

from __future__ import annotations

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import INDEPENDENT_OF_VALUES, GrisailleError
from grisaille.estimation.density.density_value import DensityValue
from grisaille.estimation.density.log_priors import counts_by_logarithm
from grisaille.estimation.density.profile_criterion import ProfileCriterion
from grisaille.laws import Law


class LogDensity(ProfileCriterion):
    """A log-density of unknowns."""

    @property
    def counts_by_logarithm(self) -> tuple[bool, ...]:
        """Of each unknown, whether the density is one per unit of its logarithm, as a LogNormal prior counts."""
        return tuple(counts_by_logarithm(u) for u in self.unknowns)

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """Of each unknown, its bounds within the support of its prior, above zero where its logarithm is searched."""
        return tuple(_range(u) for u in self.unknowns)

    def value(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the log-density at θ, with its gradient; a failure in words outside of the bounds."""
        theta = np.asarray(theta, dtype=float)
        for name, v, (low, high) in zip(self.names, theta, self.ranges, strict=True):
            if not low <= v <= high:
                return DensityValue.failed(theta, f"{name} = {v:g} lies outside of ({low:g}, {high:g})")
        try:
            return self.evaluate(theta, derivatives)
        except INDEPENDENT_OF_VALUES:
            raise
        except (GrisailleError, np.linalg.LinAlgError) as error:  # a formula has no value there
            return DensityValue.failed(theta, str(error))


def _range(unknown: Unknown) -> tuple[float, float]:
    low, high = unknown.prior.support if isinstance(unknown.prior, Law) else (-np.inf, np.inf)
    low = max(low, 0.0) if unknown.logarithmic else low
    return max(float(unknown.lower), float(low)), min(float(unknown.upper), float(high))
