"""What the samples of one output add to a log-likelihood: values, scores and expected information by the unknowns.

With η the location and the arguments of the law that move, a sample adds

    ℓ(y; η),      ∂ℓ/∂θ = (∂η/∂θ)ᵀ s,      I(θ) = (∂η/∂θ)ᵀ E[s sᵀ] ∂η/∂θ,      s = ∂ℓ/∂η
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from grisaille.laws import Law
from grisaille.trial.data_matrix import Samples

MIDDLE = (0.15865525393145707, 0.8413447460685429)
"""Probabilities one standard deviation of a normal law around its mean."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The samples of one output beside their law at a point.

    slopes : ∂η/∂θ, (N, n) for each argument of the law that moves, by path; empty where derivatives are not wanted
    observed : which samples have limits that are not known for the others
    """

    samples: Samples
    law: Law
    slopes: Mapping[str, np.ndarray]
    observed: np.ndarray | None = None

    @property
    def location(self) -> np.ndarray:
        """Return ŷ."""
        return np.asarray(self.law.arguments[self.law.location_path])

    @property
    def errors(self) -> np.ndarray:
        """Return y − ŷ."""
        return np.asarray(self.samples.values - self.location)

    @property
    def located(self) -> np.ndarray:
        """Return ∂ŷ/∂θ."""
        return np.asarray(self.slopes[self.law.location_path])

    def terms(self, count: int) -> LawTerms:
        """Return what the samples add where outputs are independent; ``count`` of unknowns, or 0 for values alone."""
        values = self.samples.values
        if not count:
            return LawTerms(self.law, self.law.log_density(values))
        return LawTerms.of(self.law, values, self.slopes, count, self.observed)


@dataclass(frozen=True, eq=False)
class LawTerms:
    """Of the samples of one output.

    law : with numbers in place of its arguments
    log_density : (N,)
    scores : (N, n) by the unknowns
    information : (n, n), expected; of laws that are smoothed for a search, what stands for it there
    """

    law: Law
    log_density: np.ndarray
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    information: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(
        cls, law: Law, values: np.ndarray, slopes: Mapping[str, np.ndarray], count: int,
        observed: np.ndarray | None = None,
    ) -> LawTerms:  # fmt: skip
        """Return values and derivatives.

        slopes : ∂η/∂θ, (N, count) for each argument that moves, by path
        observed : which samples add −∂²ℓ, where nobody knows what others of their kind could have been
        """
        names = list(slopes)
        found = law.by_arguments(values, names)
        jacobian = np.stack([slopes[n] for n in names], axis=1) if names else np.zeros((len(values), 0, count))
        felt = np.abs(jacobian).max(axis=2, initial=0.0) > 0
        # a prediction may rest at an edge of what the law allows, such as a mean of zero counts, where nothing moves it
        gradient = np.where(felt, found.gradient, 0.0)
        both = felt[:, :, None] & felt[:, None, :]
        expected = np.where(both, law.search_information(values, names), 0.0)
        if observed is not None:
            expected[observed] = _positive_part(np.where(both, -found.hessian, 0.0)[observed])
        scores = np.einsum("ik,ikn->in", gradient, jacobian)
        weighed = np.einsum("ikl,iln->ikn", expected, jacobian)
        rows = len(values) * len(names)
        information = jacobian.reshape(rows, count).T @ weighed.reshape(rows, count)
        return cls(law, found.value, scores, information)


def _positive_part(matrices: np.ndarray) -> np.ndarray:
    """Return the nearest matrices (N, k, k) without negative eigenvalues."""
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, 1, 2)))
    return np.asarray(np.einsum("ijk,ik,ilk->ijl", vectors, np.maximum(values, 0.0), vectors))


def spread_of(law: Law) -> np.ndarray:
    """Return the size of a law's scatter: its standard deviation, or half its middle 68 % where it has none."""
    deviation = np.asarray(law.deviation, dtype=float)
    is_there = np.isfinite(deviation) & (deviation > 0)
    if is_there.all():
        return deviation
    low, high = (np.asarray(law.quantile(p), dtype=float) for p in MIDDLE)
    wide = 0.5 * (high - low)
    return np.where(is_there, deviation, np.where(np.isfinite(wide) & (wide > 0), wide, 1.0))
