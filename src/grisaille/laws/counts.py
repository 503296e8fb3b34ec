"""Laws of counts: Poisson's, the negative binomial and the binomial law, each around its mean count.

log-probabilities are written as C. Loader's saddle point ("Fast and accurate computation of binomial probabilities",
2000): deviances and what Stirling's formula leaves out, so that nothing cancels at large counts, means and sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks
from grisaille.laws.count_quantiles import count_quantile
from grisaille.laws.law import Law
from grisaille.laws.measured import Partials
from grisaille.laws.stirling import deviance, digamma_error, log1p_minus, stirling_error, trigamma_error
from grisaille.laws.symbolic_functions import log, log1p, log_gamma, times_log

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


TWO_PI = 2 * np.pi


class _Counts(Law):
    """A law of whole numbers from 0 up, around a mean."""

    is_discrete: ClassVar[bool] = True
    location: ClassVar[str] = "mean"
    mean: float | None

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        return count_quantile(self, probability)

    @property
    def peak(self) -> Values:
        return self._mean

    @property
    def _mean(self) -> Values:
        self.refuse_open()
        assert self.mean is not None
        return self.mean


@dataclass(frozen=True)
class Poisson(_Counts):
    """Poisson's law, mean^k exp(−mean) / k!: of counts of independent events.

    mean : the expected count; None where predictions are the means. Its square root is the standard deviation
    """

    mean: float | None

    def __post_init__(self) -> None:
        checks.location(self, "mean", is_positive=True)

    def formula(self, value: Formula) -> Formula:
        assert self.mean is not None
        return times_log(value, self.mean) - self.mean - log_gamma(value + 1)

    def _numbers(self, value: np.ndarray) -> Formula:
        m = self._mean
        some = -0.5 * np.log(TWO_PI * value) - stirling_error(value) - deviance(value, m, value - m)
        return np.where(value == 0, -m, np.where(np.equal(m, 0), -np.inf, some))

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import gammaincc

        k = np.floor(np.asarray(value, dtype=float))
        return np.where(k < 0, 0.0, gammaincc(np.maximum(k, 0) + 1, self._mean))

    @property
    def deviation(self) -> Values:
        return np.sqrt(self._mean)

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        m = self._mean
        ratio = np.where(value == 0, 0.0, value / m)
        return {"mean": ratio - 1}, {("mean", "mean"): -np.where(value == 0, 0.0, ratio / m)}

    def _information(self, names: tuple[str, ...]) -> ByPair:
        return {("mean", "mean"): np.where(np.equal(self._mean, 0), 1.0, 1 / np.asarray(self._mean, dtype=float))}


@dataclass(frozen=True)
class NegativeBinomial(_Counts):
    """The negative binomial law: of counts that spread more than Poisson's, with the variance mean + mean²/size.

    mean : the expected count; None where predictions are the means
    size : the larger, the closer to Poisson's law; Poisson means that follow a gamma law with this shape
    """

    mean: float | None
    size: float

    def __post_init__(self) -> None:
        checks.location(self, "mean", is_positive=True)
        checks.positive(self, "size")

    def formula(self, value: Formula) -> Formula:
        m, r = self.mean, self.size
        ways = log_gamma(value + r) - log_gamma(r) - log_gamma(value + 1)
        return ways + times_log(value, m) - times_log(value, r) - (r + value) * log1p(m / r)  # type: ignore[operator]

    def _numbers(self, value: np.ndarray) -> Formula:
        m, r = self._mean, self.size
        n, apart = r + value, r * (value - m) / (r + m)
        errors = stirling_error(n) - stirling_error(value) - stirling_error(r)
        away = deviance(r, n * r / (r + m), -apart) + deviance(value, n * m / (r + m), apart)
        some = errors - away - 0.5 * np.log(TWO_PI * value) - 0.5 * np.log1p(value / r)
        return np.where(value == 0, -r * np.log1p(m / r), np.where(np.equal(m, 0), -np.inf, some))

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import betaincc

        k, m = np.floor(np.asarray(value, dtype=float)), self._mean
        return np.where(k < 0, 0.0, betaincc(np.maximum(k, 0) + 1, self.size, m / (self.size + m)))

    @property
    def peak(self) -> Values:
        return self._mean * np.maximum(1 - 1 / np.asarray(self.size), 0.0)

    @property
    def deviation(self) -> Values:
        return np.sqrt(self._mean * (1 + self._mean / self.size))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        k, m, r = value, self._mean, self.size
        ratio = np.where(k == 0, 0.0, k / m)
        first: dict[str, Any] = {"mean": ratio - (r + k) / (r + m)}
        second: dict[tuple[str, str], Any] = {
            ("mean", "mean"): (r + k) / (r + m) ** 2 - np.where(k == 0, 0.0, ratio / m),
            ("mean", "size"): (k - m) / (r + m) ** 2,
        }
        if "size" in names:
            x, y, n = k / r, m / r, r + k
            rest = k / (2 * r * n) + digamma_error(n) - digamma_error(r)
            first["size"] = log1p_minus(x) - log1p_minus(y) + y * (x - y) / (1 + y) + rest
            bend = trigamma_error(n) - trigamma_error(r) - 0.5 * k * (r + n) / (r * n) ** 2
            second[("size", "size")] = (k - m) ** 2 / (n * (r + m) ** 2) + bend
        return first, second

    def _information(self, names: tuple[str, ...]) -> ByPair | None:
        m, r = np.asarray(self._mean, dtype=float), self.size
        return None if "size" in names else {("mean", "mean"): np.where(m == 0, 1.0, r / (m * (r + m)))}


@dataclass(frozen=True)
class Binomial(_Counts):
    """The binomial law: of counts out of n, each counted with the probability mean / n.

    mean : the expected count, between 0 and n; None where predictions are the means
    n : out of how many, a whole number
    """

    mean: float | None
    n: float

    def __post_init__(self) -> None:
        checks.location(self, "mean", is_positive=True)
        checks.positive(self, "n")
        if checks.is_number(self.n) and self.n != round(self.n):
            raise ModelError(f"Binomial: n must be a whole number, got {self.n!r}.")
        if checks.is_number(self.mean) and checks.is_number(self.n) and not self.mean <= self.n:  # type: ignore[operator]
            raise ModelError(f"Binomial: mean is the expected count out of n = {self.n:g}, got {self.mean!r}.")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, self.n

    @property
    def held_arguments(self) -> tuple[str, ...]:
        return ("n",)

    def refused_arguments(self) -> tuple[int, str] | None:
        n = np.ravel(np.asarray(self.n, dtype=float))
        is_none = ~((n > 0) & (n == np.round(n)))
        if not is_none.any():
            return None
        at = int(np.argmax(is_none))
        return at, f"n = {n[at]:g} is not a whole number from 1 up"

    def formula(self, value: Formula) -> Formula:
        n, m = self.n, self.mean
        ways = log_gamma(n + 1) - log_gamma(value + 1) - log_gamma(n - value + 1)
        return ways + times_log(value, m) + times_log(n - value, n - m) - n * log(n)  # type: ignore[operator]

    def _numbers(self, value: np.ndarray) -> Formula:
        m, n = self._mean, np.asarray(self.n, dtype=float)
        left = n - value
        errors = stirling_error(n) - stirling_error(value) - stirling_error(left)
        away = deviance(value, m, value - m) + deviance(left, n - m, m - value)
        some = errors - away - 0.5 * np.log(TWO_PI * value * (left / n))
        some = np.where((m > 0) & (m < n), some, np.where(m >= 0, np.where(m <= n, -np.inf, np.nan), np.nan))
        some = np.where(left == 0, n * np.log(m / n), some)
        return np.where(value == 0, n * np.log1p(-m / n), some)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import betaincc

        k, n = np.floor(np.asarray(value, dtype=float)), self.n
        inside = betaincc(np.maximum(k, 0) + 1, np.maximum(n - k, 1), self._mean / n)
        return np.where(k < 0, 0.0, np.where(k >= n, 1.0, inside))

    @property
    def deviation(self) -> Values:
        return np.sqrt(self._mean * (1 - self._mean / self.n))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        m, left, rest = self._mean, self.n - value, self.n - self._mean
        one, other = np.where(value == 0, 0.0, value / m), np.where(left == 0, 0.0, left / rest)
        bend = np.where(value == 0, 0.0, one / m) + np.where(left == 0, 0.0, other / rest)
        return {"mean": one - other}, {("mean", "mean"): -bend}

    def _information(self, names: tuple[str, ...]) -> ByPair:
        m = np.asarray(self._mean, dtype=float)
        at_end = (m == 0) | (m == self.n)
        return {("mean", "mean"): np.where(at_end, 1.0, self.n / (m * (self.n - m)))}
