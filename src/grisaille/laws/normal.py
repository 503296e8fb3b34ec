"""The normal law, and the one whose logarithm is normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from grisaille.laws import checks
from grisaille.laws.intervals.normal_intervals import (
    Moments,
    derivatives_of_moments,
    normal_moments,
    squares_of_moments,
)
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import for_each
from grisaille.laws.law_derivatives import Derivatives
from grisaille.laws.measured import Partials
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI, log

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


@dataclass(frozen=True)
class Normal(Law):
    """A normal distribution.

    mean : in the unit of the parameter; None where predictions are the means
    std : its standard deviation, in the same unit
    """

    mean: float | None
    std: float

    location: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        checks.location(self, "mean")
        checks.positive(self, "std")

    def formula(self, value: Formula) -> Formula:
        assert self.mean is not None
        return -0.5 * ((value - self.mean) / self.std) ** 2 - log(self.std) - HALF_LOG_TWO_PI

    @property
    def peak(self) -> Values:
        return _given(self, self.mean)

    @property
    def mode(self) -> float:
        return float(_given(self, self.mean))

    @property
    def central(self) -> tuple[float, float]:
        mean = _given(self, self.mean)
        return mean - 2 * self.std, mean + 2 * self.std

    @property
    def deviation(self) -> Values:
        return self.std

    def standardised(self, value: Formula) -> Any:
        return (value - _given(self, self.mean)) / self.std

    def residual(self, value: float) -> tuple[float, float] | None:
        return self.standardised(value), 1.0 / self.std

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.asarray(value, dtype=float) - _given(self, self.mean)) / self.std))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import ndtri

        return np.asarray(_given(self, self.mean) + self.std * ndtri(probability))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        z, s = self.standardised(value), self.std
        first = {"mean": z / s, "std": (z * z - 1) / s}
        second = {
            ("mean", "mean"): np.broadcast_to(-1 / s**2, np.shape(z)),
            ("mean", "std"): -2 * z / s**2,
            ("std", "std"): (1 - 3 * z * z) / s**2,
        }
        return first, second

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        return self._inside(low, high, half)[0]

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        return derivatives_of_moments(*self._inside(low, high, half), self.std, tuple(names))

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        log_p, moments = self._inside(low, high)
        return log_p, squares_of_moments(moments, self.std, tuple(names))

    def _inside(self, low: Values, high: Values, half: Values | None = None) -> Moments:
        """Return log P and moments of standardised intervals."""
        low, high, half = for_each(self, low, high, half)
        return normal_moments(
            self.standardised(low), self.standardised(high), None if half is None else half / self.std
        )

    def _information(self, names: tuple[str, ...]) -> ByPair:
        return {("mean", "mean"): 1 / self.std**2, ("std", "std"): 2 / self.std**2}


@dataclass(frozen=True)
class LogNormal(Law):
    """The logarithm is normal around log(median): for what is positive and known to a factor.

    median : in the unit of the parameter; None where predictions are the medians
    log_std : standard deviation of the natural logarithm; 0.1 is about 10 %

    As a prior it counts per unit of log θ, so that the median is most likely.
    """

    median: float | None
    log_std: float

    location: ClassVar[str] = "median"
    measure: ClassVar[Literal["value", "log"]] = "log"

    def __post_init__(self) -> None:
        checks.location(self, "median", is_positive=True)
        checks.positive(self, "log_std")

    def formula(self, value: Formula) -> Formula:
        assert self.median is not None
        z = (log(value) - log(self.median)) / self.log_std
        return -0.5 * z**2 - log(value) - log(self.log_std) - HALF_LOG_TWO_PI

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def peak(self) -> Formula:
        return _given(self, self.median) * np.exp(-np.square(self.log_std))

    @property
    def mode(self) -> float:
        return float(_given(self, self.median))

    @property
    def central(self) -> tuple[float, float]:
        median = _given(self, self.median)
        return median * float(np.exp(-2 * self.log_std)), median * float(np.exp(2 * self.log_std))

    @property
    def mean(self) -> Formula:
        """Return the mean, which is above the median."""
        return _given(self, self.median) * np.exp(0.5 * np.square(self.log_std))

    @property
    def deviation(self) -> Formula:
        return self.mean * np.sqrt(np.expm1(np.square(self.log_std)))

    def standardised(self, value: Formula) -> Any:
        return log(value / _given(self, self.median)) / self.log_std

    def residual(self, value: float) -> tuple[float, float] | None:
        return float(self.standardised(value)), 1.0 / (value * self.log_std)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            z = np.log(np.maximum(value, 0.0) / _given(self, self.median)) / self.log_std
        return np.asarray(ndtr(z))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import ndtri

        return np.asarray(_given(self, self.median) * np.exp(self.log_std * ndtri(probability)))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        z, s, m = self.standardised(value), self.log_std, _given(self, self.median)
        first = {"median": z / (s * m), "log_std": (z * z - 1) / s}
        second = {
            ("median", "median"): -(1 / s + z) / (s * m**2),
            ("median", "log_std"): -2 * z / (s * s * m),
            ("log_std", "log_std"): (1 - 3 * z * z) / s**2,
        }
        return first, second

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        return self._inside(low, high, half)[0]

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        """Return log P with derivatives: those of the normal law by log(median), and the chain rule."""
        found = derivatives_of_moments(*self._inside(low, high, half), self.log_std, of_logarithm(names))
        at = [k for k, name in enumerate(names) if name == "median"]
        gradient, hessian, median = found.gradient.copy(), found.hessian.copy(), np.asarray(_given(self, self.median))
        for k in at:
            hessian[..., k, k] -= gradient[..., k]
            gradient[..., k] /= median
            hessian[..., k, :] /= median[..., None]
            hessian[..., :, k] /= median[..., None]
        return Derivatives(tuple(names), found.value, gradient, hessian)

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        log_p, moments = self._inside(low, high)
        found, median = (
            squares_of_moments(moments, self.log_std, of_logarithm(names)),
            np.asarray(_given(self, self.median)),
        )
        for k in (k for k, name in enumerate(names) if name == "median"):
            found[..., k, :] /= median[..., None]
            found[..., :, k] /= median[..., None]
        return log_p, found

    def _inside(self, low: Values, high: Values, half: Values | None = None) -> Moments:
        """Return log P and moments of the logarithms of intervals, standardised."""
        low, high, half = for_each(self, np.maximum(low, 0.0), np.maximum(high, 0.0), half)
        with np.errstate(all="ignore"):
            first, last = self.standardised(low), self.standardised(high)
            if half is None:
                return normal_moments(first, last)
            exact = 0.5 * np.log1p(2 * half / low) / self.log_std
            is_whole = (low > 0) & np.isclose(high - low, 2 * half, rtol=0.1)
            return normal_moments(first, last, np.where(is_whole, exact, 0.5 * (last - first)))

    def _information(self, names: tuple[str, ...]) -> ByPair:
        width = self.log_std * _given(self, self.median)
        return {("median", "median"): 1 / width**2, ("log_std", "log_std"): 2 / self.log_std**2}


def _given(law: Law, location: float | None) -> float:
    law.refuse_open()
    assert location is not None
    return location


def of_logarithm(names: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of the normal law that those of its exponential are."""
    return tuple({"median": "mean", "log_std": "std"}[name] for name in names)
