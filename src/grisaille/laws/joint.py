"""Laws of several numbers together, normal in linear combinations of them: A θ + b are standard normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


Rows = tuple[np.ndarray, np.ndarray]


class JointLaw:
    """A law of several unknowns by name."""

    names: tuple[str, ...]

    def residual_rows(self) -> Rows:
        """Return A and b, for the names in their order."""
        raise NotImplementedError(f"{type(self).__name__} has no residual_rows().")


@dataclass(frozen=True)
class MultivariateNormal(JointLaw):
    """A joint normal distribution of several parameters, given by name.

    names : the parameters, as dotted paths
    mean : one number for each
    cov : symmetric positive definite covariance, in products of their units
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    cov: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        mean, cov = checks.array("mean", self.mean), checks.array("cov", self.cov)
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

    def residual_rows(self) -> Rows:
        matrix = np.linalg.inv(np.linalg.cholesky(np.asarray(self.cov, dtype=float)))
        return matrix, -matrix @ np.asarray(self.mean, dtype=float)

    def log_density(self, values: ArrayLike) -> np.ndarray:
        """Return log p of vectors (..., n) in the order of the names."""
        matrix, offset = self.residual_rows()
        z = np.asarray(values, dtype=float) @ matrix.T + offset
        constant = np.sum(np.log(np.diag(matrix))) - 0.5 * len(self.names) * np.log(2 * np.pi)
        return np.asarray(constant - 0.5 * np.sum(z**2, axis=-1))


@dataclass(frozen=True)
class Smoothness:
    """The values of a table lie on a curve that bends little: a prior for curves, which leaves level and slope free.

    scale : how far the middle of the curve is believed to lie off the straight line between its ends, as a standard
        deviation in the unit of the values; the penalty is ½ ∫ f″² dx · L³ / (48 scale²), L the range of the knots
    """

    scale: float

    def __post_init__(self) -> None:
        checks.positive(self, "scale")


@dataclass(frozen=True)
class SmoothCurve(JointLaw):
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

    def residual_rows(self) -> Rows:
        return np.array(self.rows), np.array(self.offset)

    def __str__(self) -> str:
        return f"Smoothness(scale={self.scale:g})"
