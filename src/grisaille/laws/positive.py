"""Laws of positive values: gamma, and the halves of the normal and of Cauchy's law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.laws import checks
from grisaille.laws.law import Law
from grisaille.laws.measured import Partials
from grisaille.laws.stirling import digamma_error, log_ratio_minus, stirling_error, trigamma_error
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI, log, log1p, log_gamma, times_log

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


LOG_TWO_OVER_PI = math.log(2 / math.pi)
NARROW_SHAPE = 100.0
"""Shape above which the formula loses digits, as a difference of large numbers."""


class _Positive(Law):
    """A law of positive values."""

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf


@dataclass(frozen=True)
class Gamma(_Positive):
    """A gamma law: positive, with a relative spread of 1/√shape.

    mean : in the unit of the parameter; None where predictions are the means
    shape : 1 is the exponential law; below, the density is infinite at zero, and a prior has no maximum
    """

    mean: float | None
    shape: float

    location: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        checks.location(self, "mean", is_positive=True)
        checks.positive(self, "shape")

    def formula(self, value: Formula) -> Formula:
        rate = self.shape / self.mean  # type: ignore[operator]
        return times_log(self.shape - 1, value) - rate * value + self.shape * log(rate) - log_gamma(self.shape)

    @property
    def peak(self) -> Formula:
        return self._mean * np.maximum(1 - 1 / np.asarray(self.shape), 0.0)

    @property
    def mode(self) -> float:
        return float(self._mean * max(1 - 1 / self.shape, 0.0))

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape, np.maximum(value, 0.0) * self.shape / self._mean))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.shape, probability) * self._mean / self.shape)

    @property
    def deviation(self) -> Formula:
        return self._mean / np.sqrt(self.shape)

    def _numbers(self, value: np.ndarray) -> Formula:
        a = np.asarray(self.shape, dtype=float)
        if not (a > NARROW_SHAPE).any():
            return self.formula(value)
        narrow = (
            a * log_ratio_minus(value / self._mean, value / self._mean - 1)
            + 0.5 * log(a)
            - HALF_LOG_TWO_PI
            - stirling_error(a)
            - log(value)
        )
        return np.where(a > NARROW_SHAPE, np.where(value > 0, narrow, -np.inf), self.formula(value))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        a, m = self.shape, self._mean
        x = value / m - 1
        first, second = {"mean": a * x / m}, {("mean", "mean"): -a * (1 + 2 * x) / m**2, ("mean", "shape"): x / m}
        if "shape" in names:
            first["shape"] = log_ratio_minus(value / m, x) + 0.5 / a - digamma_error(a)
            second[("shape", "shape")] = np.broadcast_to(-0.5 / a**2 - trigamma_error(a), np.shape(x))
        return first, second

    def _information(self, names: tuple[str, ...]) -> ByPair:
        found = {("mean", "mean"): self.shape / self._mean**2}
        if "shape" in names:
            found[("shape", "shape")] = 0.5 / self.shape**2 + trigamma_error(self.shape)
        return found

    @property
    def _mean(self) -> Values:
        self.refuse_open()
        assert self.mean is not None
        return self.mean


@dataclass(frozen=True)
class HalfNormal(_Positive):
    """The positive half of a normal law around zero: for what is small, such as levels of disturbances.

    scale : the standard deviation of the whole, in the unit of the parameter
    """

    scale: float

    def __post_init__(self) -> None:
        checks.positive(self, "scale")

    def formula(self, value: Formula) -> Formula:
        return -0.5 * (value / self.scale) ** 2 - log(self.scale) + 0.5 * LOG_TWO_OVER_PI

    @property
    def peak(self) -> Values:
        return 0.0

    @property
    def mode(self) -> float:
        return 0.0

    def standardised(self, value: Formula) -> Any:
        return value / self.scale

    def residual(self, value: float) -> tuple[float, float] | None:
        return self.standardised(value), 1.0 / self.scale

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import erf

        return np.asarray(erf(np.maximum(value, 0.0) / (self.scale * math.sqrt(2))))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import erfinv

        return np.asarray(self.scale * math.sqrt(2) * erfinv(probability))


@dataclass(frozen=True)
class HalfCauchy(_Positive):
    """The positive half of Cauchy's law around zero: for what is small, and may be large all the same.

    scale : the median, in the unit of the parameter
    """

    scale: float

    def __post_init__(self) -> None:
        checks.positive(self, "scale")

    def formula(self, value: Formula) -> Formula:
        return LOG_TWO_OVER_PI - log(self.scale) - log1p((value / self.scale) ** 2)

    @property
    def peak(self) -> Values:
        return 0.0

    @property
    def mode(self) -> float:
        return 0.0

    def distribution(self, value: ArrayLike) -> np.ndarray:
        return np.asarray(2 / math.pi * np.arctan(np.maximum(value, 0.0) / self.scale))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        return np.asarray(self.scale * np.tan(0.5 * math.pi * np.asarray(probability, dtype=float)))
