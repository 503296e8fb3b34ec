"""Laws between limits: uniform and beta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks
from grisaille.laws.law import Law
from grisaille.laws.measured import Partials
from grisaille.laws.stirling import digamma_error, log_ratio, log_ratio_minus, stirling_error, trigamma_error
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI, log, log1p, log_gamma, times_log

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


NARROW_PRECISION = 100.0
"""Precision above which the formula loses digits, as a difference of large numbers."""


@dataclass(frozen=True)
class Uniform(Law):
    """Equally likely everywhere between two values.

    low, high : these, in the unit of the parameter
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        checks.finite(self, "low")
        checks.finite(self, "high")
        if checks.is_number(self.low) and checks.is_number(self.high) and not self.low < self.high:
            raise ModelError(f"Uniform: low = {self.low:g} must be below high = {self.high:g}.")

    def formula(self, value: Formula) -> Formula:
        return -log(self.high - self.low)

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def mode(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def peak(self) -> Values:
        return 0.5 * (self.low + self.high)

    @property
    def central(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def is_flat(self) -> bool:
        return True

    def distribution(self, value: ArrayLike) -> np.ndarray:
        return np.asarray(np.clip((np.asarray(value, dtype=float) - self.low) / (self.high - self.low), 0.0, 1.0))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        return np.asarray(self.low + (self.high - self.low) * np.asarray(probability, dtype=float))

    @property
    def held_arguments(self) -> tuple[str, ...]:
        return "low", "high"

    @property
    def deviation(self) -> Values:
        return (self.high - self.low) / math.sqrt(12)


@dataclass(frozen=True)
class Beta(Law):
    """A beta law: for shares, between 0 and 1.

    mean : between 0 and 1; None where predictions are the means
    precision : a + b of the usual exponents a = mean · precision, b = (1 − mean) · precision; the variance is
        mean (1 − mean) / (1 + precision)
    """

    mean: float | None
    precision: float

    location: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        checks.location(self, "mean", is_positive=True)
        checks.positive(self, "precision")
        if checks.is_number(self.mean) and not self.mean < 1:  # type: ignore[operator]
            raise ModelError(f"Beta: mean must be below 1, got {self.mean!r}.")

    def formula(self, value: Formula) -> Formula:
        a, b = self.mean * self.precision, (1 - self.mean) * self.precision  # type: ignore[operator]
        constant = log_gamma(self.precision) - log_gamma(a) - log_gamma(b)
        return times_log(a - 1, value) + times_log(b - 1, 1 - value) + constant

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def mode(self) -> float:
        a, b = self._exponents
        if a > 1 and b > 1:
            return float((a - 1) / (a + b - 2))
        return 0.0 if a < b else 1.0

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import betainc

        return np.asarray(betainc(*self._exponents, np.clip(value, 0.0, 1.0)))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(*self._exponents, probability))

    @property
    def peak(self) -> Values:
        a, b = self._exponents
        with np.errstate(all="ignore"):
            inside = (a - 1) / (a + b - 2)
        return np.where((a > 1) & (b > 1), inside, np.where(np.less(a, b), 0.0, 1.0))

    @property
    def deviation(self) -> Formula:
        return np.sqrt(self._mean * (1 - self._mean) / (1 + self.precision))

    def _numbers(self, value: np.ndarray) -> Formula:
        n = np.asarray(self.precision, dtype=float)
        if not (n > NARROW_PRECISION).any():
            return self.formula(value)
        (a, b), (low, high) = self._exponents, self._log_ratios(value)[1]
        errors = stirling_error(n) - stirling_error(a) - stirling_error(b)
        near = a * low + b * high + 0.5 * log(a * b / n) - HALF_LOG_TWO_PI + errors
        narrow = near - log(value) - log1p(-value)
        return np.where(n > NARROW_PRECISION, np.where((value > 0) & (value < 1), narrow, -np.inf), self.formula(value))

    def _log_ratios(self, value: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the logarithms of value / mean and of (1 − value) / (1 − mean), and these less the ratios plus one."""
        m = self._mean
        pairs = ((value / m, (value - m) / m), ((1 - value) / (1 - m), (m - value) / (1 - m)))
        return tuple(log_ratio(*pair) for pair in pairs), tuple(log_ratio_minus(*pair) for pair in pairs)

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        (a, b), n, m = self._exponents, self.precision, self._mean
        (x, y), (low, high) = self._log_ratios(value)
        slope = x - y + _digamma_rest(b) - _digamma_rest(a)
        errors = _digamma_rest(n) - m * _digamma_rest(a) - (1 - m) * _digamma_rest(b)
        first = {"mean": n * slope, "precision": m * low + (1 - m) * high + errors}
        second = {k: np.broadcast_to(-v, np.shape(x)) for k, v in self._information(names).items()}
        return first, {**second, ("mean", "precision"): slope + second[("mean", "precision")]}

    def _information(self, names: tuple[str, ...]) -> ByPair:
        (a, b), n, m = self._exponents, self.precision, self._mean
        at_a, at_b = _trigamma_rest(a), _trigamma_rest(b)
        return {
            ("mean", "mean"): n * n * (at_a + at_b + 1 / a + 1 / b),
            ("mean", "precision"): n * (m * at_a - (1 - m) * at_b),
            ("precision", "precision"): m * m * at_a + (1 - m) ** 2 * at_b - _trigamma_rest(n),
        }

    @property
    def _mean(self) -> Values:
        self.refuse_open()
        assert self.mean is not None
        return self.mean

    @property
    def _exponents(self) -> tuple[Formula, Formula]:
        return self._mean * self.precision, (1 - self._mean) * self.precision


def _digamma_rest(z: Values) -> Values:
    """Return ψ(z) − log z."""
    return digamma_error(z) - 0.5 / z


def _trigamma_rest(z: Values) -> Values:
    """Return ψ'(z) − 1/z."""
    return trigamma_error(z) + 0.5 / z**2
