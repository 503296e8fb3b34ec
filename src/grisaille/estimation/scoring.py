"""Fisher scoring with damping for likelihoods, and Newton's method on exact gradients for the last digits.

    (I + λ diag I) Δξ = −∇f,        I = expected information in ξ

Steps that lower f are taken and λ falls, others raise it; a bound holds an unknown as long as the gradient pushes it
out. At the end the Hessian of f is formed by central differences of exact gradients: it gives the covariance, and Newton
steps with it reach the minimum to rounding. Reference: A. C. Harvey,
Forecasting, Structural Time Series Models and the Kalman Filter (1989), section 3.4 (scoring).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.search import Outcome, Search

LONGEST = 2.0
"""A step changes the logarithm of an unknown, or an unknown relative to its size, by no more than this."""
DIFFERENCE = 1e-3
"""Steps of the differences, in standard errors, and at most relative to 1 + |ξ|."""


def minimize(search: Search, *, max_evaluations: int, tolerance: float) -> Outcome:
    """Minimise −log L + priors from the problem's guess."""
    now = _likelihood(search.first())
    lower, upper = search.inner_bounds()
    xi, damping = np.clip(search.where(now), lower, upper), 1e-2
    limit = search.problem.evaluations + max_evaluations
    while search.problem.evaluations < limit:
        g, H = scaled_model(search, now)
        step = _damped_step(xi, g, H, damping, lower, upper)
        predicted = -float(g @ step + 0.5 * step @ H @ step)
        if predicted <= tolerance * (1 + abs(now.objective)) and damping <= 1e3:
            return search.finish(True, "the predicted gain vanished")
        trial = _likelihood(search.at(xi + step))
        gained = now.objective - trial.objective if trial.completed else -np.inf
        if gained > 1e-4 * predicted:
            xi, now = xi + step, trial
            damping = max(damping / 6 if gained > 0.5 * predicted else damping, 1e-9)
        else:
            damping = max(5 * damping, 1e-3)
            if damping > 1e12:
                return search.finish(True, "no step lowers the objective, however short")
    return search.finish(False, "the limit of evaluations was reached")


@dataclass(frozen=True, eq=False)
class Polished:
    """A point, the Hessian of f in ξ there, and the Newton decrement ∇fᵀH⁻¹∇f that is left."""

    evaluation: LikelihoodEvaluation
    hessian: np.ndarray
    decrement: float
    is_minimum: bool
    """Whether the Hessian of the free unknowns is positive definite."""


def polish(search: Search, evaluation: LikelihoodEvaluation, free: np.ndarray, most: int = 6) -> Polished:
    """Newton steps from a point that is nearly a minimum; unknowns that are not free stay."""
    hessian = hessian_at(search, evaluation, free)
    lower, upper = search.inner_bounds()
    decrement, is_minimum = _decrement(search, evaluation, hessian, free)
    for _ in range(most):
        if not is_minimum or decrement < 1e-14:
            break
        g, _ = scaled_model(search, evaluation)
        xi = search.where(evaluation)
        step = np.zeros_like(xi)
        step[free] = -_solve(hessian[np.ix_(free, free)], g[free])
        trial = search.problem.evaluate(search.problem.outer(np.clip(xi + step, lower, upper)))
        left = _decrement(search, _likelihood(trial), hessian, free)[0] if trial.completed else np.inf
        if not left < decrement or trial.objective > evaluation.objective + 1e-9 * (1 + abs(evaluation.objective)):
            break
        evaluation, decrement = _likelihood(trial), left
    return Polished(evaluation, hessian, decrement, is_minimum)


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
    free = ~(((xi <= lower) & (g > 0)) | ((xi >= upper) & (g < 0)))
    step = np.zeros_like(xi)
    diagonal = np.diag(H)
    size = np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=1e-300)))[free]
    scaled = H[np.ix_(free, free)] / np.outer(size, size) + damping * np.eye(int(free.sum()))
    step[free] = -_solve(scaled, g[free] / size) / size
    step = np.clip(step, -LONGEST, LONGEST)
    return np.asarray(np.clip(xi + step, lower, upper) - xi)


def _decrement(
    search: Search, evaluation: LikelihoodEvaluation, hessian: np.ndarray, free: np.ndarray
) -> tuple[float, bool]:
    g = scaled_model(search, evaluation)[0][free]
    H = hessian[np.ix_(free, free)]
    if not len(g):
        return 0.0, True
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    lowest = float(np.linalg.eigvalsh(H / np.outer(size, size)).min())
    return abs(float(g @ _solve(H, g))), lowest > 1e-10


def _solve(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    return np.asarray(np.linalg.lstsq(H / np.outer(size, size), g / size, rcond=1e-14)[0] / size)


def _likelihood(evaluation: object) -> LikelihoodEvaluation:
    assert isinstance(evaluation, LikelihoodEvaluation)
    return evaluation
