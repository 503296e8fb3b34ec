"""Laws of the whole line with more in their tails than the normal one: Student's and Laplace's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.laws import checks
from grisaille.laws.law import Law
from grisaille.laws.law_derivatives import Derivatives, assemble_derivatives
from grisaille.laws.measured import Partials
from grisaille.laws.stirling import digamma_error, log1p_minus, stirling_error, trigamma_error
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI, absolute, log, log1p, log_gamma

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


LOG_PI = math.log(math.pi)
NEARLY_NORMAL = 100.0
"""Degrees of freedom above which the formula, with a difference of two log Γ, loses digits."""


@dataclass(frozen=True)
class Student(Law):
    """Student's law: normal in the middle, with tails of a power.

    mean : where it lies (its mean if df > 1), in the unit of the parameter; None where predictions are
    df : degrees of freedom; 1 is Cauchy's law, above 30 it is hardly told from the normal one
    scale : its size, in the unit of the parameter
    """

    mean: float | None
    df: float
    scale: float

    location: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        checks.location(self, "mean")
        checks.positive(self, "df")
        checks.positive(self, "scale")

    def formula(self, value: Formula) -> Formula:
        assert self.mean is not None
        z, half = (value - self.mean) / self.scale, 0.5 * (self.df + 1)
        constant = log_gamma(half) - log_gamma(0.5 * self.df) - 0.5 * (log(self.df) + LOG_PI) - log(self.scale)
        return constant - half * log1p(z**2 / self.df)

    @property
    def peak(self) -> Formula:
        return self._mean

    @property
    def mode(self) -> float:
        return float(self._mean)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.df, (np.asarray(value, dtype=float) - self._mean) / self.scale))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        from scipy.special import stdtrit

        return np.asarray(self._mean + self.scale * stdtrit(self.df, probability))

    @property
    def deviation(self) -> Values:
        df = np.asarray(self.df, dtype=float)
        with np.errstate(all="ignore"):
            return self.scale * np.where(df > 2, np.sqrt(df / (df - 2)), np.inf)

    def _numbers(self, value: np.ndarray) -> Formula:
        df = np.asarray(self.df, dtype=float)
        if not (df > NEARLY_NORMAL).any():
            return self.formula(value)
        a, z = 0.5 * df, (value - self._mean) / self.scale
        gammas = a * log1p_minus(0.5 / a) + stirling_error(a + 0.5) - stirling_error(a)
        near = gammas - HALF_LOG_TWO_PI - log(self.scale) - 0.5 * (df + 1) * log1p(z**2 / df)
        return np.where(df > NEARLY_NORMAL, near, self.formula(value))

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        s, n = self.scale, self.df
        z = (value - self._mean) / s
        q = z * z / n
        pull, rest = (n + 1) * z / (n * (1 + q)), (n + 1) * (1 - q) / (n * (1 + q) ** 2)
        first = {"mean": pull / s, "scale": (z * pull - 1) / s}
        second = {
            ("mean", "mean"): -rest / s**2,
            ("mean", "scale"): -(pull + z * rest) / s**2,
            ("scale", "scale"): (1 - 2 * z * pull - z * z * rest) / s**2,
        }
        if "df" in names:
            turn = z * (z * z - 1) / (n * (1 + q)) ** 2
            first["df"] = self._of_gammas(n) + 0.5 * (q / (n * (1 + q)) - log1p_minus(q) - q * q / (1 + q))
            second[("mean", "df")] = turn / s
            second[("df", "scale")] = z * turn / s
            second[("df", "df")] = self._of_gammas_again(n) + 0.5 * q / (n * (1 + q) ** 2) * (q - (2 + q) / n)
        return first, second

    @staticmethod
    def _of_gammas(n: Values) -> Formula:
        """Return the derivative of log Γ((n + 1)/2) − log Γ(n/2) − ½ log n."""
        a = 0.5 * n
        shift = digamma_error(a + 0.5) - digamma_error(a)
        return 0.5 * (log1p_minus(0.5 / a) + 1 / (2 * a * (2 * a + 1)) + shift)

    @staticmethod
    def _of_gammas_again(n: Values) -> Formula:
        """Return its derivative."""
        return 0.25 * (-2 / (n * (n + 1) ** 2) + trigamma_error(0.5 * (n + 1)) - trigamma_error(0.5 * n))

    def _information(self, names: tuple[str, ...]) -> ByPair:
        s, n = self.scale, self.df
        found: ByPair = {("mean", "mean"): (n + 1) / ((n + 3) * s**2), ("scale", "scale"): 2 * n / ((n + 3) * s**2)}
        if "df" in names:
            shift = 0.25 * (trigamma_error(0.5 * n) - trigamma_error(0.5 * (n + 1)))
            found[("df", "df")] = shift + (5 * n + 3) / (2 * n**2 * (n + 1) ** 2 * (n + 3))
            found[("df", "scale")] = -2 / ((n + 1) * (n + 3) * s)
        return found

    @property
    def _mean(self) -> Values:
        self.refuse_open()
        assert self.mean is not None
        return self.mean


@dataclass(frozen=True)
class Laplace(Law):
    """Laplace's law, exp(−|value − mean| / scale) / (2 scale): its density has a kink at the mean.

    mean : in the unit of the parameter; None where predictions are the means
    scale : the mean distance from it, in the same unit
    """

    mean: float | None
    scale: float

    location: ClassVar[str] = "mean"
    is_smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.location(self, "mean")
        checks.positive(self, "scale")

    def formula(self, value: Formula) -> Formula:
        assert self.mean is not None
        return -absolute(value - self.mean) / self.scale - log(2 * self.scale)

    @property
    def kinks(self) -> tuple[float, ...]:
        return (float(self._mean),)

    @property
    def peak(self) -> Formula:
        return self._mean

    @property
    def mode(self) -> float:
        return float(self._mean)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        z = (np.asarray(value, dtype=float) - self._mean) / self.scale
        below = 0.5 * np.exp(-np.abs(z))
        return np.asarray(np.where(z < 0, below, 1 - below))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        p = np.asarray(probability, dtype=float)
        with np.errstate(divide="ignore"):
            return np.asarray(self._mean + self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))))

    @property
    def deviation(self) -> Values:
        return math.sqrt(2) * self.scale

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        s = self.scale
        z = (value - self._mean) / s
        side, size = np.sign(z), np.abs(z)
        second = {("mean", "scale"): -side / s**2, ("scale", "scale"): (1 - 2 * size) / s**2}
        return {"mean": side / s, "scale": (size - 1) / s}, second

    def smoothed(self, width: float) -> Any:
        return _RoundedLaplace(self.mean, self.scale, width * np.asarray(self.scale, dtype=float))

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        return super().log_interval(low, high)

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        """Return log P with derivatives; a kink inside the interval adds its jump of slope, −1/(scale² P)."""
        found, names = super().interval_by_arguments(low, high, names), tuple(names)
        if "mean" not in names:
            return found
        has_kink = (np.asarray(low) < self._mean) & (self._mean < np.asarray(high))
        k, hessian = names.index("mean"), found.hessian.copy()
        hessian[..., k, k] -= np.where(has_kink, np.exp(-found.value) / np.square(self.scale), 0.0)
        return Derivatives(names, found.value, found.gradient, hessian)

    def _information(self, names: tuple[str, ...]) -> ByPair:
        return {("mean", "mean"): 1 / self.scale**2, ("scale", "scale"): 1 / self.scale**2}

    @property
    def _mean(self) -> Values:
        self.refuse_open()
        assert self.mean is not None
        return self.mean


@dataclass(frozen=True)
class _RoundedLaplace(Laplace):
    """Laplace's law with √(e² + w²) in place of |e|: a kink as a search sees it. It is not normalised.

    width : w, in the unit of the value; held
    """

    width: Any = 0.0

    def __post_init__(self) -> None:
        """Check nothing: it is made of a law whose arguments are numbers already."""

    def formula(self, value: Formula) -> Formula:
        assert self.mean is not None
        e = value - self.mean
        return -((e**2 + self.width**2) ** 0.5) / self.scale - log(2 * self.scale)

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials:
        s, e = self.scale, value - self._mean
        far = np.sqrt(e**2 + self.width**2)
        first = {"mean": e / (far * s), "scale": (far / s - 1) / s}
        second = {
            ("mean", "mean"): -(self.width**2) / (far**3 * s),
            ("mean", "scale"): -e / (far * s**2),
            ("scale", "scale"): (1 - 2 * far / s) / s**2,
        }
        return first, second

    def search_information(self, value: ArrayLike, names: Sequence[str]) -> np.ndarray:
        """Return the curvature of the parabola that touches −log p at the value and lies above it everywhere else."""
        far = np.sqrt((np.asarray(value, dtype=float) - self._mean) ** 2 + self.width**2)
        known = {("mean", "mean"): 1 / (far * self.scale), ("scale", "scale"): 1 / self.scale**2 + 0 * far}
        return assemble_derivatives(tuple(names), 0 * far, {}, known).hessian
