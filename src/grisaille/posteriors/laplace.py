"""The metric that a fit gives: the curvature of the log-density at its maximum in unbounded coordinates.

    H = −∂² log p/∂ξ²,      ξ ≈ N(c, H⁻¹),      L Lᵀ = H⁻¹

From the estimates, whose covariance says how wide to difference the gradient, Newton's method takes a few steps to the
maximum c of the density per unit of ξ, where priors, Jacobians of bounds and levels of noise count, too. For unknowns
inside their bounds this is the covariance of the fit. One that the fit holds at a bound, or at zero, has its maximum
inside, because the density per unit of ξ vanishes at a bound, and a curvature of its own there. Directions in which H
is not positive count with its absolute value, and with a least one: the warm-up corrects what is wrong (``warm_up``).
"""

from __future__ import annotations

import numpy as np

from grisaille.errors import EstimationError
from grisaille.posteriors.kernel import Target
from grisaille.posteriors.metric import Metric

DIFFERENCE = 0.02
"""Step of differences, in standard deviations."""
MAX_STEPS, ENOUGH = 12, 1e-3
"""Newton's, and the decrease of log p, twice, below which the maximum is known well enough."""
MAX_LENGTH = 3.0
"""Of a step, in standard deviations."""
MIN_CURVATURE = 1e-2
"""Of a direction, beside that which its scale stands for."""
MIN_SCALE, MAX_SCALE = 1e-8, 3.0
"""Of an unbounded coordinate."""
DISTANCES = 10.0 ** -np.arange(0.0, 9.0)
"""Parts of the way inside that are tried for an unknown that the fit holds at a bound."""


def metric_of_curvature(target: Target, start: np.ndarray, scales: np.ndarray, held: np.ndarray) -> Metric:
    """Return the metric around the maximum of a target.

    start : ξ of the estimates, those at a bound moved inside
    scales : standard deviations of ξ that are expected; others than positive numbers where nothing is known
    held : whether an unknown was at a bound
    """
    scales = np.where(np.isfinite(scales) & (scales > 0), scales, 1.0)
    scales = np.clip(scales, MIN_SCALE, MAX_SCALE * np.maximum(1.0, np.abs(start)))
    xi = _away_from_bounds(target, np.array(start, dtype=float), held)
    first = _factor(target, xi, scales)
    at, found = xi, first
    for _ in range(MAX_STEPS):
        factor, scales = found, np.sqrt(np.sum(found**2, axis=1))
        value, gradient = target.value_and_gradient(at)
        step = factor.T @ gradient  # in standard deviations
        decrement = float(step @ step)
        if decrement < ENOUGH:
            return Metric(at, factor)
        ahead = _climbed(target, at, value, factor @ step * min(1.0, MAX_LENGTH / np.sqrt(decrement)))
        if ahead is None:
            return Metric(at, factor)
        at = ahead
        found = _factor(target, at, scales)
    # no maximum within reach, as in a funnel: around the estimates
    return Metric(xi, first)


def _factor(target: Target, xi: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return L with L Lᵀ = H⁻¹, eigenvalues of H made positive in coordinates that are scaled."""
    n = len(xi)
    H = np.zeros((n, n))
    for k in range(n):
        H[k] = -_difference(target, xi, k, DIFFERENCE * float(scales[k]))
    H = scales[:, None] * (H + H.T) / 2 * scales
    values, vectors = np.linalg.eigh(np.where(np.isfinite(H), H, np.eye(n)))
    root = vectors / np.sqrt(np.maximum(np.abs(values), MIN_CURVATURE))
    return np.linalg.cholesky(scales[:, None] * (root @ root.T) * scales)


def _difference(target: Target, xi: np.ndarray, k: int, h: float) -> np.ndarray:
    """Return the derivative of the gradient by one coordinate; NaN where there is no density beside the point."""
    for _ in range(3):
        ends = []
        for side in (h, -h):
            moved = xi.copy()
            moved[k] += side
            ends.append(target.value_and_gradient(moved)[1])
        slope = (ends[0] - ends[1]) / (2 * h)
        if np.isfinite(slope).all():
            break
        h /= 10
    return np.asarray(slope)


def _climbed(target: Target, xi: np.ndarray, value: float, step: np.ndarray) -> np.ndarray | None:
    """Return the first point along a step at which the density is larger; None where it is nowhere."""
    for share in 0.5 ** np.arange(8):
        ahead = xi + share * step
        if target.value_and_gradient(ahead)[0] > value:
            return np.asarray(ahead)
    return None


def _away_from_bounds(target: Target, xi: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Move unknowns that were at a bound to where the density is largest along each; refuse a start without one."""
    best, _ = target.value_and_gradient(xi)
    for k in np.flatnonzero(held):
        start = xi[k]
        for distance in np.log(DISTANCES):
            for side in (-1.0, 1.0):
                moved = xi.copy()
                moved[k] = start + side * distance
                value, _ = target.value_and_gradient(moved)
                if value > best:
                    best, xi = value, moved
    if not np.isfinite(best):
        raise EstimationError("The posterior has no density at the estimates of the fit.")
    return xi
