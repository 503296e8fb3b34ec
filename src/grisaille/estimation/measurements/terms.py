"""What the samples of one output add to a log-likelihood: values, scores and expected information by the unknowns.

With η the location and the arguments of the law that move, a sample adds

    ℓ(y; η),      ∂ℓ/∂θ = (∂η/∂θ)ᵀ s,      I(θ) = (∂η/∂θ)ᵀ E[s sᵀ] ∂η/∂θ,      s = ∂ℓ/∂η
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.laws import Law

INFORMATION_ROUNDING = 1e-9
"""Of information in units of its diagonal: a negative eigenvalue that is none."""


@dataclass(frozen=True, eq=False)
class SamplesUnderLaw:
    """The samples of one output beside their law at a point.

    slopes : ∂η/∂θ, (N, n) for each argument of the law that moves, by path; empty where derivatives are not wanted
    observed : which samples have limits that are not known for the others
    """

    samples: OutputSamples
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
        """Return the values of the terms and their derivatives.

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
        scores = np.einsum("ik,ikn->in", gradient, jacobian)
        if observed is None:
            return cls(law, found.value, scores, _carried(expected, jacobian))
        rest = _carried(expected[~observed], jacobian[~observed])
        bend = _carried(np.where(both, -found.hessian, 0.0)[observed], jacobian[observed])
        return cls(law, found.value, scores, _with_observed(rest, bend, scores[observed]))


def _carried(information: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """Return Σ Jᵀ I J over samples, (n, n), of information (N, k, k) and slopes (N, k, n)."""
    samples, names, count = jacobian.shape
    weighed = np.einsum("ikl,iln->ikn", information, jacobian)
    with np.errstate(invalid="ignore"):  # where a number of the law is none, values say so
        return np.asarray(jacobian.reshape(samples * names, count).T @ weighed.reshape(samples * names, count))


def _with_observed(rest: np.ndarray, bend: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the information with what is observed in some samples.

    −∂²ℓ may be no information far from a maximum, where the samples beyond limits bend the other way: there Σ s sᵀ,
    which has the same expectation.
    """
    outer = scores.T @ scores
    size = np.sqrt(np.maximum(np.diag(rest + outer), np.finfo(float).tiny))
    lowest = np.linalg.eigvalsh((rest + bend) / np.outer(size, size))[0] if len(size) else 0.0
    return np.asarray(rest + (bend if lowest > -INFORMATION_ROUNDING else outer))
