"""Searches for the minimum of a simulated criterion: Gauss–Newton, a grid, and the simplex where there are no slopes.

Gauss–Newton works on ξ, the scaled unknowns, and minimises its quadratic model inside the bounds,

    min_d  gᵀd + ½ dᵀHd   subject to   lower ≤ ξ + d ≤ upper,

then shortens d until the criterion falls: with common random numbers the criterion is a smooth function of θ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimators.simulated_pem.criterion import MeanCriterion, MeanValue

LONGEST = 2.0
"""A step of a logarithm, at most."""


@dataclass(frozen=True)
class Ending:
    """Where a search ended and why."""

    value: MeanValue
    is_minimum: bool
    reason: str


@dataclass
class MeanSearch:
    """A criterion with the best point so far."""

    criterion: MeanCriterion
    keep: Callable[[np.ndarray], None] | None = None
    """Called with every better point."""
    best: MeanValue | None = None

    def accept(self, value: MeanValue) -> None:
        """A point that the search goes on from."""
        self.best = value
        if self.keep is not None:
            self.keep(value.theta)
        self.criterion.journal.kept = self
        self.criterion.journal.accept(self.criterion.problem.unknowns, value.theta, value.objective)

    def restart(self, criterion: MeanCriterion) -> None:
        """Go on with a criterion that has changed."""
        self.criterion, self.best = criterion, None


def gauss_newton(search: MeanSearch, start: np.ndarray, *, most: int, tolerance: float) -> Ending:
    """Damped Gauss–Newton steps until the predicted gain is nothing beside the statistical error."""
    criterion, problem = search.criterion, search.criterion.problem
    now = criterion.at(start)
    if not now.completed:
        raise EstimationError(f"The model cannot be simulated at the guess: {now.failure} Give another by guess=.")
    search.accept(now)
    for _ in range(most):
        step, gain = bounded_step(criterion, now)
        size = max(1.0, float(now.residuals @ now.residuals) / len(now.residuals))
        if gain <= tolerance * size:
            return Ending(now, True, "the predicted gain vanished")
        xi, length = problem.inner(now.theta), 1.0
        while length > 1e-6:
            trial = criterion.at(problem.outer(xi + length * step))
            if trial.completed and trial.objective <= now.objective - 1e-4 * length * gain:
                break
            length /= 2 if trial.completed else 4
        else:
            return Ending(now, gain < 1e-4 * size, "no step lowers the criterion")
        now = trial
        search.accept(now)
    return Ending(now, False, f"{most} iterations were used up")


def bounded_step(criterion: MeanCriterion, value: MeanValue) -> tuple[np.ndarray, float]:
    """The minimum of the quadratic model inside the bounds, as a step of ξ, and the gain −(gᵀd + ½dᵀHd)·2."""
    from scipy.optimize import lsq_linear

    problem = criterion.problem
    slopes = problem.slopes(value.theta)
    g, H = value.gradient * slopes, value.curvature * np.outer(slopes, slopes)
    lower, upper = problem.inner_bounds()
    xi = problem.inner(value.theta)
    low, high = lower - xi, upper - xi
    logs = np.array([u.logarithmic for u in problem.unknowns])
    low, high = np.where(logs, np.maximum(low, -LONGEST), low), np.where(logs, np.minimum(high, LONGEST), high)
    scale = np.sqrt(np.clip(np.diag(H), 1e-300, None))
    scale[scale <= 1e-150] = 1.0
    # a ridge at the rounding of H keeps directions that nothing determines where they are
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale) + 1e-12 * np.eye(len(g)))
    values = np.maximum(values, 1e-12)
    root = np.sqrt(values)[:, None] * vectors.T
    target = -(vectors.T @ (g / scale)) / np.sqrt(values)
    bounds = (np.minimum(low, 0.0) * scale - 1e-12, np.maximum(high, 0.0) * scale + 1e-12)
    found = lsq_linear(root, target, bounds, method="bvls").x
    step = np.clip(found / scale, np.minimum(low, 0.0), np.maximum(high, 0.0))
    return np.asarray(step), max(0.0, -float(g @ step))


def free_unknowns(criterion: MeanCriterion, value: MeanValue) -> np.ndarray:
    """False where a bound holds an unknown against the slope of the criterion."""
    lower, upper = criterion.problem.bounds
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    low = (value.theta <= lower + 1e-9 * span) & (value.gradient >= 0)
    high = (value.theta >= upper - 1e-9 * span) & (value.gradient <= 0)
    return np.asarray(~(low | high))


def grid(search: MeanSearch, points: int) -> Ending:
    """The best of equally spaced values of one bounded unknown."""
    criterion, problem = search.criterion, search.criterion.problem
    lower, upper = problem.bounds
    if len(problem.unknowns) != 1 or not np.isfinite([*lower, *upper]).all():
        raise EstimationError("search='grid' needs exactly one unknown, with bounds on both sides.")
    best: MeanValue | None = None
    for theta in np.linspace(lower[0], upper[0], points):
        value = criterion.at(np.array([theta]), sensitive=False)
        if not value.completed:
            continue
        if best is None or value.objective < best.objective:
            best = value
        search.accept(value)
        search.best = best
    if best is None:
        raise EstimationError(f"No point of the grid could be simulated; the last: {criterion.journal.failures[-1]}")
    inside = bool(lower[0] < best.theta[0] < upper[0])
    return Ending(criterion.at(best.theta), inside, f"best of {points} grid points")


def nelder_mead(search: MeanSearch, start: np.ndarray, *, most: int, tolerance: float) -> Ending:
    """The simplex method on the same criterion: slow, but it needs no derivatives."""
    from scipy.optimize import minimize

    criterion, problem = search.criterion, search.criterion.problem
    first = criterion.at(start, sensitive=False)
    if not first.completed:
        raise EstimationError(f"The model cannot be simulated at the guess: {first.failure} Give another by guess=.")
    search.accept(first)
    wall = first.objective + 1e6 * (1 + abs(first.objective))

    def objective(xi: np.ndarray) -> float:
        value = criterion.at(problem.outer(xi), sensitive=False)
        if not value.completed:
            return wall
        if search.best is None or value.objective < search.best.objective:
            search.accept(value)
        return value.objective

    lower, upper = problem.inner_bounds()
    bounds = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in zip(lower, upper, strict=True)]
    options = {"maxfev": most, "xatol": 1e-6, "fatol": max(tolerance, 1e-8), "adaptive": True}
    found = minimize(objective, problem.inner(start), method="Nelder-Mead", bounds=bounds, options=options)
    assert search.best is not None
    reason = "the simplex has shrunk" if found.success else f"{most} evaluations were used up"
    return Ending(criterion.at(search.best.theta), bool(found.success), reason)
