"""What the samples of one output add to a log-likelihood: values, scores and expected information by the unknowns.

With η the location and the arguments of the law that move, a sample adds

    ℓ(y; η),      ∂ℓ/∂θ = (∂η/∂θ)ᵀ s,      I(θ) = (∂η/∂θ)ᵀ E[s sᵀ] ∂η/∂θ,      s = ∂ℓ/∂η
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from grisaille.laws import Law

MIDDLE = (0.15865525393145707, 0.8413447460685429)
"""Probabilities one standard deviation of a normal law around its mean."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The samples of one output beside their law at a point.

    rows : of the grid
    slopes : ∂η/∂θ, (N, n) for each argument of the law that moves, by path; empty where derivatives are not wanted
    """

    rows: np.ndarray
    values: np.ndarray
    law: Law
    location: np.ndarray
    slopes: Mapping[str, np.ndarray]

    @property
    def errors(self) -> np.ndarray:
        """Return y − ŷ."""
        return self.values - self.location

    @property
    def located(self) -> np.ndarray:
        """Return ∂ŷ/∂θ."""
        return self.slopes[self.law.location_path]

    def terms(self, count: int) -> LawTerms:
        """Return what the samples add where outputs are independent; ``count`` of unknowns, or 0 for values alone."""
        if not count:
            return LawTerms(self.law, self.law.log_density(self.values))
        return LawTerms.of(self.law, self.values, self.slopes, count)


@dataclass(frozen=True, eq=False)
class LawTerms:
    """Of the samples of one output.

    law : with numbers in place of its arguments
    log_density : (N,)
    scores : (N, n) by the unknowns
    information : (n, n), expected
    """

    law: Law
    log_density: np.ndarray
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    information: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, law: Law, values: np.ndarray, slopes: Mapping[str, np.ndarray], count: int) -> LawTerms:
        """Return values and derivatives.

        slopes : ∂η/∂θ, (N, count) for each argument that moves, by path
        """
        names = list(slopes)
        found = law.by_arguments(values, names)
        jacobian = np.stack([slopes[n] for n in names], axis=1) if names else np.zeros((len(values), 0, count))
        felt = np.abs(jacobian).max(axis=2, initial=0.0) > 0
        # a prediction may rest at an edge of what the law allows, such as a mean of zero counts, where nothing moves it
        gradient = np.where(felt, found.gradient, 0.0)
        both = felt[:, :, None] & felt[:, None, :]
        expected = np.where(both, law.information(names), 0.0)
        scores = np.einsum("ik,ikn->in", gradient, jacobian)
        weighed = np.einsum("ikl,iln->ikn", expected, jacobian)
        rows = len(values) * len(names)
        information = jacobian.reshape(rows, count).T @ weighed.reshape(rows, count)
        return cls(law, found.value, scores, information)


def spread_of(law: Law) -> np.ndarray:
    """Return the size of a law's scatter: its standard deviation, or half its middle 68 % where it has none."""
    deviation = np.asarray(law.deviation, dtype=float)
    is_there = np.isfinite(deviation) & (deviation > 0)
    if is_there.all():
        return deviation
    low, high = (np.asarray(law.quantile(p), dtype=float) for p in MIDDLE)
    wide = 0.5 * (high - low)
    return np.where(is_there, deviation, np.where(np.isfinite(wide) & (wide > 0), wide, 1.0))
