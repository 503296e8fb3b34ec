"""The posterior as a density of coordinates on the whole line, and as data from which any process makes it again."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import log_density_of
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.unbounded import Unbounded
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.fitted import Fitted
from grisaille.laws import Law
from grisaille.laws.prior_measure import log_prior
from grisaille.posteriors.proper_priors import describe_prior, level_priors

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.experiment.experiment import Experiment
    from grisaille.model.classes import Model


class PosteriorTarget:
    """Likelihood × priors, per unit of unbounded coordinates ξ.

    density : of the unknowns, with the priors that they have
    levels : priors of noise levels beside these, by name
    """

    def __init__(self, density: LogDensity, levels: Mapping[str, Law]) -> None:
        self.unbounded, self.levels = Unbounded(density), dict(levels)
        self._levels = [(density.names.index(n), law) for n, law in self.levels.items()]

    @property
    def names(self) -> tuple[str, ...]:
        """The unknowns in the order of ξ."""
        return self.unbounded.density.names

    def value_and_gradient(self, xi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log-density and its gradient; −∞ where there is none."""
        found = self.unbounded.at(xi)
        if not self._levels or found.failure:
            return found.log_density, found.gradient
        value, gradient = found.log_density, found.gradient
        for k, law in self._levels:
            ell, slope, _ = log_prior(law, float(found.theta[k]))
            if law.measure == "log":
                ell, slope = ell - float(np.log(found.theta[k])), slope - 1 / float(found.theta[k])
            value += ell
            gradient[k] += slope * found.slopes[k]
        return value, gradient

    def failure(self, xi: np.ndarray) -> str:
        """Say why there is no density at ξ; empty where there is one."""
        return self.unbounded.at(xi, False).failure

    def theta(self, xi: np.ndarray) -> np.ndarray:
        """Return the unknowns at ξ, (…, n)."""
        outer = self.unbounded.transforms.outer
        return np.array([outer(row) for row in xi.reshape(-1, xi.shape[-1])]).reshape(xi.shape)

    def describe_priors(self) -> dict[str, str]:
        """Return the prior of each unknown in words, by name."""
        density = self.unbounded.density
        pairs = zip(density.unknowns, density.ranges, strict=True)
        return {u.name: describe_prior(u, limits, self.levels.get(u.name)) for u, limits in pairs}


@dataclass(frozen=True, eq=False)
class PosteriorTask:
    """A posterior as data.

    unknowns : what the method counts among its unknowns, each with its prior, bounds and a guess inside them
    levels : priors of noise levels that the method does not count among them, by name
    fit : whose discretisation is taken over
    """

    model: Model
    experiments: tuple[Experiment, ...]
    method: Estimator
    unknowns: tuple[Unknown, ...]
    levels: Mapping[str, Law]
    fit: Fitted

    def target(self) -> PosteriorTarget:
        """Return the density; refuse an unknown without a proper prior, and a method without a likelihood."""
        request = FitRequest.of(self.model, list(self.experiments), self.unknowns)
        density = log_density_of(self.method, self.method.pose(request), self.fit)
        return PosteriorTarget(density, level_priors(density, self.levels))

    @cached_property
    def packed(self) -> bytes:
        """The task for another process."""
        try:
            return pickle.dumps(self)
        except Exception as error:
            raise EstimationError(
                f"The chains cannot be sent to other processes: {error} Use executor='serial'."
            ) from error

    @cached_property
    def key(self) -> str:
        """A hash of the content."""
        return hashlib.sha256(self.packed).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("packed", "key")}


def unknowns_inside(
    unknowns: Sequence[Unknown], estimates: Sequence[float], limits: Mapping[str, float]
) -> tuple[Unknown, ...]:
    """Return unknowns that begin at their estimates, moved inside where these lie on a bound or outside a prior.

    limits : one-sided ones of levels whose estimate is zero, by name
    """
    return tuple(_inside(u, float(v), limits.get(u.name)) for u, v in zip(unknowns, estimates, strict=True))


INNER_SHARE = 0.05
"""Of a finite range, or of the way to the guess: how far inside a search begins whose estimate lies on a bound."""


def _inside(unknown: Unknown, value: float, limit: float | None) -> Unknown:
    low, high = unknown.lower, unknown.upper
    if isinstance(unknown.prior, Law):
        low, high = max(low, unknown.prior.support[0]), min(high, unknown.prior.support[1])
    low = max(low, 0.0) if unknown.logarithmic else low
    if low < value < high:
        return replace(unknown.starting_from(value), reach=0.0)
    if np.isfinite(low) and np.isfinite(high):
        inside = low + (INNER_SHARE if value <= low else 1 - INNER_SHARE) * (high - low)
    elif value <= low:
        other = unknown.guess if unknown.guess > low else low + max(abs(low), 1.0)
        inside = low + (limit if limit is not None and limit > 0 else INNER_SHARE * (other - low))
    else:
        other = unknown.guess if unknown.guess < high else high - max(abs(high), 1.0)
        inside = high - INNER_SHARE * (high - other)
    return replace(unknown.starting_from(inside), reach=0.0)
