"""The criterion over two unknowns: a picture of the valley an optimizer has to find its way in.

The others stay at their estimates (``others="held"``) or follow to their conditional minimum (``"profiled"``). With
them the confidence ellipse of the linearised model,

    (θ − θ̂)ᵀ C⁻¹ (θ − θ̂) = 2 F(level; 2, N − n)       (χ² instead of 2F where the noise is known),

with C the 2 × 2 block of the covariance. With two unknowns, or the others profiled, contour and ellipse of one level
agree as far as the model is linear; with others held, contours are sections of the region and the ellipse its shadow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from grisaille.assessment.deviances import Deviances, check_level, deviances_of, index_of
from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.memory import BYTES_PER_DOUBLE, require_memory

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

COPIES_PER_POINT = 4
"""Numbers that are held for each point, at most."""
WIDTH_IN_STANDARD_ERRORS = 4.0
"""Standard errors to each side, where no range is given."""


@dataclass(frozen=True)
@checked_methods
class CostSurface:
    """The criterion on a grid of two unknowns."""

    names: tuple[str, str]
    units: tuple[str, str]
    estimate: tuple[float, float]
    level: float
    threshold: float
    """The deviance of the joint confidence region."""
    others: str
    data: xr.Dataset
    """``objective`` (½ Σ r², noise levels as estimated) and ``deviance``; NaN where the simulation failed."""
    ellipse: np.ndarray
    """(points, 2), of the linearised model."""

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot contours of √deviance, the confidence region, and the ellipse of the linearised model.

        ax : axes to draw on instead of a new figure
        """
        from grisaille.assessment.plotting import draw_surface

        return draw_surface(self, ax)

    def __str__(self) -> str:
        d = self.data["deviance"]
        inside, failed = float((d <= self.threshold).mean()), int(np.isnan(d).sum())
        size = " × ".join(map(str, d.shape))
        return (
            f"surface over {' × '.join(self.names)}: {size} points, {100 * inside:.1f} % of them inside the "
            f"{100 * self.level:g} % region" + (f", {failed} without a simulation" if failed else "")
        )

    __repr__ = __str__


def surface(
    fit: Fitted,
    first: str,
    second: str,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    points: int = 31,
    level: float = 0.95,
    others: Literal["held", "profiled"] = "held",
) -> CostSurface:
    """Return the cost surface over two unknowns; arguments as in ``Fit.surface``."""
    check_level(level)
    if first == second:
        raise EstimationError(f"A surface needs two different unknowns, not '{first}' twice.")
    if others not in ("held", "profiled"):
        raise EstimationError(f"others is {others!r}; it must be 'held' or 'profiled'.")
    require_memory(
        COPIES_PER_POINT * BYTES_PER_DOUBLE * points**2, f"A surface of {points} by {points} points",
        lambda available: f"{isqrt(available // (COPIES_PER_POINT * BYTES_PER_DOUBLE))} by as many would fit: give "
        "fewer points=.",
    )  # fmt: skip
    k = (index_of(fit, first), index_of(fit, second))
    unknowns = [fit.estimate.unknowns[i] for i in k]
    deviances = deviances_of(fit, first, second)
    axes = [_axis(fit, u, i, ranges or {}, points) for u, i in zip(unknowns, k, strict=True)]
    threshold = deviances.threshold(level, among=k)
    return CostSurface(
        names=(first, second), units=(unknowns[0].unit, unknowns[1].unit),
        estimate=(float(deviances.theta[k[0]]), float(deviances.theta[k[1]])), level=level, threshold=threshold,
        others=others, data=_grid(deviances, k, (first, second), axes, others == "profiled"),
        ellipse=_ellipse(fit, k, deviances.radius(level, k)),
    )  # fmt: skip


def _axis(fit: Fitted, unknown: Unknown, k: int, ranges: Mapping[str, tuple[float, float]], points: int) -> np.ndarray:
    for name in ranges:
        index_of(fit, name)
    value, error = float(fit.estimate.theta[k]), float(fit.std_errors[k])
    half = WIDTH_IN_STANDARD_ERRORS * error if error > 0 else 0.1 * unknown.size
    low, high = ranges.get(unknown.name, (max(value - half, unknown.lower), min(value + half, unknown.upper)))
    if not low < high:
        raise EstimationError(
            f"The range of '{unknown.name}' is ({low:g}, {high:g}): the first must be below the second."
        )
    return np.linspace(low, high, points)


def _grid(
    deviances: Deviances,
    k: tuple[int, int],
    names: tuple[str, str],
    axes: list[np.ndarray],
    profiled: bool,
) -> xr.Dataset:
    import xarray as xr

    objective = np.full((len(axes[0]), len(axes[1])), np.nan)
    deviance = objective.copy()
    for i, a in enumerate(axes[0]):
        for j, b in enumerate(axes[1]):
            theta = deviances.theta.copy()
            theta[list(k)] = a, b
            if profiled:
                theta = deviances.minimize({k[0]: float(a), k[1]: float(b)}, deviances.theta).theta
            found, above = deviances.at(theta)
            if not found.failure:
                objective[i, j], deviance[i, j] = found.objective, above
    return xr.Dataset(
        {"objective": (names, objective), "deviance": (names, deviance)}, dict(zip(names, axes, strict=True))
    )


def _ellipse(fit: Fitted, k: tuple[int, int], squared: float) -> np.ndarray:
    block = fit.estimate.covariance[np.ix_(k, k)]
    values, vectors = np.linalg.eigh(block)
    angle = np.linspace(0.0, 2 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return np.asarray(fit.estimate.theta[list(k)] + np.sqrt(squared) * (root @ circle).T)
