"""Laws of the whole line with more in their tails than the normal one: Student's and Laplace's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from grisaille.laws import checks
from grisaille.laws.formulas import absolute, log, log1p, log_gamma
from grisaille.laws.law import Law

LOG_PI = math.log(math.pi)


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

    def formula(self, value: Any) -> Any:
        z, half = (value - self.mean) / self.scale, 0.5 * (self.df + 1)
        constant = log_gamma(half) - log_gamma(0.5 * self.df) - 0.5 * (log(self.df) + LOG_PI) - log(self.scale)
        return constant - half * log1p(z**2 / self.df)

    @property
    def mode(self) -> float:
        return float(self._mean)

    def distribution(self, value: Any) -> np.ndarray:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.df, (np.asarray(value, dtype=float) - self._mean) / self.scale))

    def quantile(self, probability: Any) -> np.ndarray:
        from scipy.special import stdtrit

        return np.asarray(self._mean + self.scale * stdtrit(self.df, probability))

    @property
    def _mean(self) -> Any:
        self.refuse_open()
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

    def __post_init__(self) -> None:
        checks.location(self, "mean")
        checks.positive(self, "scale")

    def formula(self, value: Any) -> Any:
        return -absolute(value - self.mean) / self.scale - log(2 * self.scale)

    @property
    def kinks(self) -> tuple[float, ...]:
        return (float(self._mean),)

    @property
    def mode(self) -> float:
        return float(self._mean)

    def distribution(self, value: Any) -> np.ndarray:
        z = (np.asarray(value, dtype=float) - self._mean) / self.scale
        below = 0.5 * np.exp(-np.abs(z))
        return np.asarray(np.where(z < 0, below, 1 - below))

    def quantile(self, probability: Any) -> np.ndarray:
        p = np.asarray(probability, dtype=float)
        with np.errstate(divide="ignore"):
            return np.asarray(self._mean + self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))))

    @property
    def _mean(self) -> Any:
        self.refuse_open()
        return self.mean
