"""The end of a search in an edge of the criterion: steps that gradients on all sides of a point agree on.

Where an event passes a sample as θ moves, the criterion is continuous but its gradient jumps, and a minimum may lie in
the edge: the Gauss–Newton step never vanishes there, and every search by derivatives stops somewhere along the edge.
With v in standard errors (ξ = ξ₀ + s L⁻ᵀ v, JᵀJ = L Lᵀ, s² the variance of the residuals),

    d = −argmin { |g| : g in the convex hull of the gradients at v and v ± ρ e_k }

leads down along the edge. Where |d| vanishes, a minimum is as near as ρ.
Reference: J. V. Burke, A. S. Lewis, M. L. Overton, SIAM J. Optim. 15 (2005) 751.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import Search

WIDEST, NARROWEST, NARROWER = 0.1, 5e-3, 1 / 3
"""Radius ρ of the samples in standard errors: to begin with, at the end, and from one to the next."""
SMALL_GRADIENT = 0.02
"""|d| below which the radius is made smaller: standard errors from a minimum."""
MIN_SINGULAR_VALUE = 1e-8
"""Singular values of J, relative to the largest, of axes that are looked along."""
MIN_GAIN_RATIO = 1e-4
"""Part of the predicted gain that a step must bring."""
STEP_SHARES = tuple(0.5**k for k in range(8))


@dataclass(frozen=True, eq=False)
class Edge(Generic[E]):
    """The end of a descent, and its distance from a minimum in standard errors, by the gradients around it."""

    evaluation: E
    offset: float


@dataclass(frozen=True, eq=False)
class _Metric:
    """Standard errors of the unknowns that the criterion depends on, as a scale of ξ."""

    xi: np.ndarray
    free: np.ndarray
    axes: np.ndarray
    """(free, n): columns are one standard error long."""
    level: float
    """s²"""


def descend_along_edges(search: Search[E], evaluation: E, free: np.ndarray, most: int) -> Edge[E] | None:
    """Go down from a point, with so many evaluations at most; None where nothing is free or known of its curvature."""
    last, radius, offset = search.evaluations + most, WIDEST, np.inf
    while search.left and search.evaluations < last and radius >= NARROWEST:
        metric = _metric(search, evaluation, free)
        if metric is None:
            return None
        direction = -_least_gradient(np.array(_gradients(search, evaluation, metric, radius)))
        left = float(np.linalg.norm(direction))
        offset = radius if left <= SMALL_GRADIENT else offset
        lower = _lower(search, evaluation, metric, direction) if left > SMALL_GRADIENT else None
        if lower is None:
            radius *= NARROWER
        else:
            evaluation = lower
    return Edge(evaluation, offset)


def _metric(search: Search[E], evaluation: E, free: np.ndarray) -> _Metric | None:
    J = search.jacobian(evaluation)[:, free]
    if not free.any():
        return None
    level = 2 * evaluation.objective / max(len(evaluation.residuals) - J.shape[1], 1)
    _, size, axes = np.linalg.svd(J, full_matrices=False)
    seen = size > MIN_SINGULAR_VALUE * size[0]
    if not level > 0 or not seen.any():
        return None
    return _Metric(search.where(evaluation), free, np.sqrt(level) * axes[seen].T / size[seen], level)


def _moved(search: Search[E], metric: _Metric, v: np.ndarray) -> np.ndarray:
    """Return θ of a step v in standard errors."""
    xi = metric.xi.copy()
    xi[metric.free] += metric.axes @ v
    return search.outer(np.clip(xi, *search.inner_bounds()))


def _gradients(search: Search[E], evaluation: E, metric: _Metric, radius: float) -> list[np.ndarray]:
    """Return ∂(f/s²)/∂v here and beside, on both sides along every axis."""
    found = [_gradient(search, evaluation, metric)]
    for axis in np.eye(metric.axes.shape[1]):
        for side in (radius, -radius):
            beside = search.evaluate(_moved(search, metric, side * axis), quietly=True)
            if beside.completed:
                found.append(_gradient(search, beside, metric))
    return found


def _gradient(search: Search[E], evaluation: E, metric: _Metric) -> np.ndarray:
    slope = search.model(evaluation)[0][metric.free]
    return np.asarray(metric.axes.T @ slope / metric.level)


def _least_gradient(gradients: np.ndarray) -> np.ndarray:
    """Return the shortest vector of a convex hull, by least squares with nonnegative shares that sum to one."""
    from scipy.optimize import nnls

    heavy = 1e4 * (1 + np.abs(gradients).max())
    shares, _ = nnls(
        np.vstack([gradients.T, np.full(len(gradients), heavy)]), np.r_[np.zeros(gradients.shape[1]), heavy]
    )
    return np.asarray(gradients.T @ shares / shares.sum())


def _lower(search: Search[E], evaluation: E, metric: _Metric, direction: np.ndarray) -> E | None:
    """Return the first point along a direction that is low enough and has derivatives."""
    slope = float(direction @ direction) * metric.level
    for share in STEP_SHARES[: search.left]:
        theta = _moved(search, metric, share * direction)
        trial = search.evaluate(theta, sensitive=False, quietly=True)
        if trial.completed and trial.objective < evaluation.objective - MIN_GAIN_RATIO * share * slope:
            trial = search.evaluate(theta, quietly=True)
            if trial.completed:
                return trial
    return None
