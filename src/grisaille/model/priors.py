"""Prior knowledge about parameters: what is believed before the data are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.errors import ModelError


@dataclass(frozen=True)
class Normal:
    """A normal distribution.

    mean, std : its mean and standard deviation, in the unit of the parameter
    """

    mean: float
    std: float

    def __post_init__(self) -> None:
        _finite(self, "mean")
        _positive(self, "std")


@dataclass(frozen=True)
class LogNormal:
    """The logarithm is normal around log(median): for what is positive and known to a factor.

    median : in the unit of the parameter
    log_std : standard deviation of the natural logarithm; 0.1 is about 10 %
    """

    median: float
    log_std: float

    def __post_init__(self) -> None:
        _positive(self, "median")
        _positive(self, "log_std")


@dataclass(frozen=True)
class Uniform:
    """Equally likely everywhere between two values.

    low, high : these, in the unit of the parameter
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _finite(self, "low")
        _finite(self, "high")
        if not self.low < self.high:
            raise ModelError(f"Uniform: low = {self.low:g} must be below high = {self.high:g}.")


@dataclass(frozen=True)
class MultivariateNormal:
    """A joint normal distribution of several parameters, given by name.

    names : the parameters, as dotted paths
    mean : one number for each
    cov : symmetric positive definite covariance, in products of their units
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    cov: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        mean, cov = _array("mean", self.mean), _array("cov", self.cov)
        names: Any = self.names
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ModelError(f"MultivariateNormal: names must be a list of parameter names, got {names!r}.")
        n = len(names)
        if mean.shape != (n,) or cov.shape != (n, n):
            raise ModelError(
                f"MultivariateNormal: {n} names need a mean of shape ({n},) and a covariance of shape ({n}, {n}); "
                f"got {mean.shape} and {cov.shape}."
            )
        if not np.allclose(cov, cov.T, rtol=1e-10, atol=0.0):
            raise ModelError("MultivariateNormal: the covariance is not symmetric.")
        smallest = float(np.linalg.eigvalsh(cov)[0]) if n else 1.0
        if not smallest > 0:
            raise ModelError(
                f"MultivariateNormal: the covariance is not positive definite (smallest eigenvalue {smallest:.3g})."
            )
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "mean", tuple(mean.tolist()))
        object.__setattr__(self, "cov", tuple(tuple(row) for row in cov.tolist()))


@dataclass(frozen=True)
class Smoothness:
    """The values of a table lie on a curve that bends little: a prior for curves, which leaves level and slope free.

    scale : how far the middle of the curve is believed to lie off the straight line between its ends, as a standard
        deviation in the unit of the values; the penalty is ½ ∫ f″² dx · L³ / (48 scale²), L the range of the knots
    """

    scale: float

    def __post_init__(self) -> None:
        _positive(self, "scale")


@dataclass(frozen=True)
class SmoothCurve:
    """``Smoothness`` written out for one table: rows · values + offset are standard normal.

    scale : as in ``Smoothness``
    names : the unknowns in the table's values
    rows, offset : one row for each knot that the curve can bend at
    """

    scale: float
    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))
        object.__setattr__(self, "offset", tuple(self.offset))

    def __str__(self) -> str:
        return f"Smoothness(scale={self.scale:g})"


Prior = Normal | LogNormal | Uniform | MultivariateNormal | Smoothness


def _finite(prior: Any, field: str) -> None:
    value = getattr(prior, field)
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"{type(prior).__name__}: {field} must be a finite number, got {value!r}.")
    object.__setattr__(prior, field, float(value))


def _positive(prior: Any, field: str) -> None:
    _finite(prior, field)
    if not getattr(prior, field) > 0:
        raise ModelError(f"{type(prior).__name__}: {field} must be positive, got {getattr(prior, field)!r}.")


def _array(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"MultivariateNormal: {name} must be numbers, got {values!r}.") from None
    if not np.all(np.isfinite(array)):
        raise ModelError(f"MultivariateNormal: {name} must be finite.")
    return array
