"""Fisher scoring with damping for likelihoods, and Newton's method on exact gradients for the last digits.

    (I + λ diag I) Δξ = −∇f,        I = expected information in ξ

Steps that lower f are taken and λ falls, others raise it; a bound holds an unknown as long as the gradient pushes it
out. Where scoring ends on a saddle the Hessian takes the place of I. At the end the Hessian of f is formed by central
differences of exact gradients: it gives the covariance, and Newton steps with it reach the minimum to rounding.
Reference: A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989), section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.search import Outcome, Search

LONGEST = 2.0
"""A step changes the logarithm of an unknown, or an unknown relative to its size, by no more than this."""
DEAD = 1e-6
"""Unknowns whose change by an e-fold, or by their own size, moves the objective by less than this are not seen."""
BENT_UP, FLAT = -1e-6, 1e-9
"""Eigenvalues of the Hessian with unit diagonal: below the first the point is no minimum; below the second a direction
is not determined."""
SMALLEST = 1e-9
"""Damping that is none."""
DIFFERENCE = 1e-3
"""Steps of the differences, in standard errors, and at most relative to 1 + |ξ|."""


def minimize(search: Search, *, max_evaluations: int, tolerance: float) -> Outcome:
    """Minimise −log L + priors from the problem's guess."""
    _likelihood(search.first())
    limit = search.problem.evaluations + max_evaluations
    ended = _descend(search, lambda now: scaled_model(search, now)[1], limit, tolerance)
    for _ in range(3):
        now = _likelihood(search.best)
        free = free_unknowns(search, now)
        if not ended or _inverse(hessian_at(search, now, free), free)[1]:
            break
        # a saddle, or a ridge that the expected information does not show: Newton's method leaves it
        ended = _descend(search, lambda now: hessian_at(search, now, free_unknowns(search, now)), limit, tolerance)
    return search.finish(ended, "the predicted gain vanished" if ended else "the limit of evaluations was reached")


def _descend(
    search: Search, curvature: Callable[[LikelihoodEvaluation], np.ndarray], limit: int, tolerance: float
) -> bool:
    """Damped steps from the best point; False where the limit of evaluations ended them."""
    now = _likelihood(search.best)
    lower, upper = search.inner_bounds()
    xi, damping, H = np.clip(search.where(now), lower, upper), 1e-2, curvature(now)
    while search.problem.evaluations < limit:
        g = scaled_model(search, now)[0]
        step = _damped_step(xi, g, H, damping, lower, upper)
        predicted = -float(g @ step + 0.5 * step @ H @ step)
        if abs(predicted) <= tolerance * (1 + abs(now.objective)):
            if damping <= SMALLEST or damping > 1e3:
                return True
            damping = max(damping * 1e-3, SMALLEST)
            continue
        trial = _likelihood(search.at(xi + step)) if predicted > 0 else None
        gained = now.objective - trial.objective if trial is not None and trial.completed else -np.inf
        if trial is not None and gained > 1e-4 * predicted:
            xi, now, H = xi + step, trial, curvature(trial)
            damping = max(damping / 6 if gained > 0.5 * predicted else damping, SMALLEST)
        else:
            damping = max(5 * damping, 1e-4)
            if damping > 1e12:
                return True
    return False


@dataclass(frozen=True, eq=False)
class Polished:
    """A point and the curvature of f there."""

    evaluation: LikelihoodEvaluation
    covariance: np.ndarray
    """Pseudo-inverse of the Hessian in ξ; zero for unknowns that are held or not seen."""
    decrement: float
    """∇fᵀ H⁻¹ ∇f that is left: twice the gain still to be had, the squared distance in standard errors."""
    is_minimum: bool
    """Whether f bends upwards in every direction that the data see."""


def polish(search: Search, evaluation: LikelihoodEvaluation, free: np.ndarray, most: int = 6) -> Polished:
    """Newton steps from a point that is nearly a minimum; unknowns that are not free stay."""
    hessian = hessian_at(search, evaluation, free)
    covariance, is_minimum = _inverse(hessian, free)
    lower, upper = search.inner_bounds()
    decrement = _decrement(search, evaluation, covariance)
    for _ in range(most):
        if not is_minimum or decrement < 1e-14:
            break
        xi = search.where(evaluation)
        step = -covariance @ scaled_model(search, evaluation)[0]
        trial = search.problem.evaluate(search.problem.outer(np.clip(xi + step, lower, upper)))
        left = _decrement(search, _likelihood(trial), covariance) if trial.completed else np.inf
        if not left < decrement or trial.objective > evaluation.objective + 1e-9 * (1 + abs(evaluation.objective)):
            break
        evaluation, decrement = _likelihood(trial), left
    return Polished(evaluation, covariance, decrement, is_minimum)


def hessian_at(search: Search, evaluation: LikelihoodEvaluation, free: np.ndarray) -> np.ndarray:
    """∂²f/∂ξ² of the free unknowns by central differences of exact gradients; zero elsewhere."""
    xi = search.where(evaluation)
    _, H = scaled_model(search, evaluation)
    steps = np.minimum(DIFFERENCE / np.sqrt(np.maximum(np.diag(H), 1e-300)), DIFFERENCE * (1 + np.abs(xi)))
    hessian = np.zeros_like(H)
    for k in np.flatnonzero(free):
        ends = []
        for side in (1, -1):
            moved = xi.copy()
            moved[k] += side * steps[k]
            # not through the bounds: an unknown may sit close to one
            point = np.array([u.outer(v) for u, v in zip(search.problem.unknowns, moved, strict=True)])
            found = search.problem.evaluate(point)
            if not found.completed:
                return H
            ends.append(scaled_model(search, _likelihood(found))[0])
        hessian[k] = (ends[0] - ends[1]) / (2 * steps[k])
    hessian[:, ~free] = 0.0
    return np.asarray((hessian + hessian.T) / 2)


def scaled_model(search: Search, evaluation: LikelihoodEvaluation) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and expected information in ξ."""
    slopes = search.problem.slopes(evaluation.theta)
    return evaluation.slope * slopes, evaluation.curvature * np.outer(slopes, slopes)


def free_unknowns(search: Search, evaluation: LikelihoodEvaluation) -> np.ndarray:
    """False for unknowns that a bound holds."""
    xi = search.where(evaluation)
    lower, upper = search.inner_bounds()
    near = 1e-9 * (1 + np.abs(xi))
    g, _ = scaled_model(search, evaluation)
    return np.asarray(~(((xi <= lower + near) & (g > 0)) | ((xi >= upper - near) & (g < 0))))


def _damped_step(
    xi: np.ndarray, g: np.ndarray, H: np.ndarray, damping: float, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """−(H + λ D²)⁻¹ g with λ large enough for a positive definite matrix and a step no longer than ``LONGEST``."""
    free = ~(((xi <= lower) & (g > 0)) | ((xi >= upper) & (g < 0)))
    step = np.zeros_like(xi)
    if not free.any():
        return step
    part = H[np.ix_(free, free)]
    size = np.sqrt(np.maximum(np.abs(np.diag(part)), DEAD))
    values, vectors = np.linalg.eigh(part / np.outer(size, size))
    slope = vectors.T @ (g[free] / size)
    damping = max(damping, damping - 1.5 * float(values.min()))
    step[free] = -(vectors @ (slope / (values + damping))) / size
    while np.abs(step).max() > LONGEST:
        damping *= 3
        step[free] = -(vectors @ (slope / (values + damping))) / size
    return np.asarray(np.clip(xi + step, lower, upper) - xi)


def _inverse(hessian: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, bool]:
    """Pseudo-inverse over the directions that are seen, and whether none of them bends the wrong way."""
    inverse = np.zeros_like(hessian)
    seen = np.flatnonzero(free & (np.abs(np.diag(hessian)) > DEAD))
    if not len(seen):
        return inverse, True
    part = hessian[np.ix_(seen, seen)]
    size = np.sqrt(np.abs(np.diag(part)))
    values, vectors = np.linalg.eigh(part / np.outer(size, size))
    kept = values > FLAT
    root = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]
    inverse[np.ix_(seen, seen)] = root @ root.T
    return inverse, bool(values.min() > BENT_UP)


def _decrement(search: Search, evaluation: LikelihoodEvaluation, covariance: np.ndarray) -> float:
    g = scaled_model(search, evaluation)[0]
    return float(g @ covariance @ g)


def _likelihood(evaluation: object) -> LikelihoodEvaluation:
    assert isinstance(evaluation, LikelihoodEvaluation)
    return evaluation
