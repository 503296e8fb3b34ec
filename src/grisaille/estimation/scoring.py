"""Fisher scoring with damping for likelihoods, and Newton's method on exact gradients for the last digits.

    (I + λ diag I) Δξ = −∇f,        I = expected information in ξ

Steps that lower f are taken and λ falls, others raise it; a bound holds an unknown as long as the gradient pushes it
out. Where scoring ends on a saddle, or I does not tell what a step gains (robust losses, models that are not quite
right), the Hessian takes the place of I, formed by central differences of exact gradients and kept up to date by BFGS.
At the end it is formed anew: it gives the covariance, and Newton steps with it reach the minimum to rounding.
Reference: A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989), section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.search import Outcome, Search

LONGEST = 2.0
"""A step changes the logarithm of an unknown, or an unknown relative to its size, by no more than this."""
DEAD = 1e-6
"""Unknowns whose change by an e-fold, or by their own size, moves the objective by less than this are not seen."""
BENT_UP, FLAT = -1e-6, 1e-9
"""Eigenvalues of the Hessian with unit diagonal: below the first the point is no minimum; below the second a direction
is not determined."""
SLOW = 0.1
"""Steps that gain less log-likelihood than this, and not what was predicted, say that the model of f is poor."""
ENDED = 1e-6
"""Newton decrement below which a point is near enough to be polished."""
SMALLEST = 1e-9
"""Damping that is none."""
CLOSE = 1e-6
"""A part of the range: unknowns searched by a logit count as on a bound below it."""
DIFFERENCE = 1e-3
"""Steps of the differences, in standard errors, and at most relative to 1 + |ξ|."""


def minimize(search: Search, *, max_evaluations: int, tolerance: float) -> Outcome:
    """Minimise −log L + priors from the problem's guess."""
    _likelihood(search.first())
    limit = search.problem.evaluations + max_evaluations
    ended = _descend(search, _Expected(search), limit, tolerance)
    for _ in range(4):
        now = _likelihood(search.best)
        free = free_unknowns(search, now)
        hessian = hessian_at(search, now, free)
        inverse, is_minimum = _inverse(hessian, free)
        if search.problem.evaluations >= limit or (ended and is_minimum and _decrement(search, now, inverse) < ENDED):
            break
        # a saddle, or a valley that the expected information does not show
        ended = _descend(search, _QuasiNewton(search, hessian), limit, tolerance)
    well = search.problem.evaluations < limit
    return search.finish(well, "the predicted gain vanished" if well else "the limit of evaluations was reached")


class _Expected:
    """The expected information; gives up where it no longer predicts what a step gains."""

    patience = 6

    def __init__(self, search: Search) -> None:
        self.search = search

    def first(self, now: LikelihoodEvaluation) -> np.ndarray:
        return scaled_model(self.search, now)[1]

    def after(self, before: LikelihoodEvaluation, now: LikelihoodEvaluation, H: np.ndarray) -> np.ndarray:
        return self.first(now)


class _QuasiNewton:
    """The Hessian of the first point, brought up to date by the gradients of the next ones (BFGS, damped by Powell)."""

    patience = 10**6

    def __init__(self, search: Search, hessian: np.ndarray) -> None:
        self.search, self.hessian = search, hessian

    def first(self, now: LikelihoodEvaluation) -> np.ndarray:
        return self.hessian

    def after(self, before: LikelihoodEvaluation, now: LikelihoodEvaluation, H: np.ndarray) -> np.ndarray:
        s = self.search.where(now) - self.search.where(before)
        y = scaled_model(self.search, now)[0] - scaled_model(self.search, before)[0]
        Hs = H @ s
        bend, expected = float(s @ y), float(s @ Hs)
        if expected <= 0 or bend <= 0:
            # where it bends down there is nothing to be positive about: the symmetric rank-one update
            rest = y - Hs
            size = float(rest @ s)
            return H + np.outer(rest, rest) / size if abs(size) > 1e-8 * np.linalg.norm(rest) * np.linalg.norm(s) else H
        share = 1.0 if bend >= 0.2 * expected else 0.8 * expected / (expected - bend)
        r = share * y + (1 - share) * Hs
        return np.asarray(H - np.outer(Hs, Hs) / expected + np.outer(r, r) / float(s @ r))


def _descend(search: Search, model: _Expected | _QuasiNewton, limit: int, tolerance: float) -> bool:
    """Damped steps from the best point; False where the limit of evaluations or the model's patience ended them."""
    now = _likelihood(search.best)
    lower, upper = search.inner_bounds()
    xi, damping, H, slow = np.clip(search.where(now), lower, upper), 1e-2, model.first(now), 0
    relaxed = False
    while search.problem.evaluations < limit and slow < model.patience:
        g = scaled_model(search, now)[0]
        step = _damped_step(xi, g, H, damping, lower, upper)
        predicted = -float(g @ step + 0.5 * step @ H @ step)
        if abs(predicted) <= tolerance * (1 + abs(now.objective)):
            if damping <= SMALLEST or damping > 1e3:
                return True
            damping, relaxed = max(damping * 1e-3, SMALLEST), True
            continue
        trial = _likelihood(search.at(xi + step)) if predicted > 0 else None
        gained = now.objective - trial.objective if trial is not None and trial.completed else -np.inf
        slow += gained < SLOW and not 0.8 < gained / predicted < 1.2
        if trial is not None and gained > 1e-4 * predicted:
            before, xi, now, relaxed = now, xi + step, trial, False
            H = model.after(before, now, H)
            damping = max(damping / 6 if gained > 0.5 * predicted else damping, SMALLEST)
        elif relaxed or damping > 1e12:
            return True
        else:
            damping = max(5 * damping, 1e-4)
    return search.problem.evaluations < limit and slow < model.patience


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
    """∂²f/∂ξ² of the free unknowns by central differences of exact gradients; zero elsewhere.

    That of an evaluation is kept with it: search and polish ask for the same one.
    """
    key = (free.tobytes(), *((u.logarithmic, u.logit) for u in search.problem.unknowns))
    if key not in evaluation.hessians:
        evaluation.hessians[key] = _differences(search, evaluation, free)
    return evaluation.hessians[key].copy()


def _differences(search: Search, evaluation: LikelihoodEvaluation, free: np.ndarray) -> np.ndarray:
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
            slope = _gradient(search, point)
            if slope is None:
                return H
            ends.append(slope)
        hessian[k] = (ends[0] - ends[1]) / (2 * steps[k])
    hessian[:, ~free] = 0.0
    return np.asarray((hessian + hessian.T) / 2)


def _gradient(search: Search, theta: np.ndarray) -> np.ndarray | None:
    """∇f in ξ, in reverse mode where the problem has it; None where f has no value."""
    problem = search.problem
    if isinstance(problem, LikelihoodProblem):
        value, slope = problem.gradient(theta)
        return slope * problem.slopes(theta) if np.isfinite(value) else None
    found = problem.evaluate(theta)
    return scaled_model(search, _likelihood(found))[0] if found.completed else None


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
    held = ((xi <= lower + near) & (g > 0)) | ((xi >= upper - near) & (g < 0))
    return np.asarray(~(held | _at_unreachable_bounds(search, evaluation)))


def _at_unreachable_bounds(search: Search, evaluation: LikelihoodEvaluation) -> np.ndarray:
    """Unknowns that a logit has brought as close to a bound as makes no difference."""
    held = []
    for u, value, slope in zip(search.problem.unknowns, evaluation.theta, evaluation.slope, strict=True):
        span = u.upper - u.lower
        low, high = (value - u.lower) < CLOSE * span and slope > 0, (u.upper - value) < CLOSE * span and slope < 0
        held.append(u.logit and (low or high))
    return np.array(held, dtype=bool)


def _damped_step(
    xi: np.ndarray, g: np.ndarray, H: np.ndarray, damping: float, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """−(H + λ D²)⁻¹ g inside the bounds and a box of side ``LONGEST``; λ is at least what makes the matrix definite.

    Components that leave the box go to its side and the others are solved for again, so that a direction that the data
    hardly see does not shorten the whole step.
    """
    low, high = np.maximum(lower - xi, -LONGEST), np.minimum(upper - xi, LONGEST)
    free = ~(((xi <= lower) & (g > 0)) | ((xi >= upper) & (g < 0)))
    step = np.zeros_like(xi)
    for _ in range(len(xi)):
        if not free.any():
            break
        part, slope = H[np.ix_(free, free)], g[free] + H[np.ix_(free, ~free)] @ step[~free]
        wanted = _solve_damped(part, slope, damping)
        step[free] = np.clip(wanted, low[free], high[free])
        outside = np.flatnonzero(free)[wanted != step[free]]
        if not len(outside):
            break
        free[outside] = False
    return step


def _solve_damped(H: np.ndarray, g: np.ndarray, damping: float) -> np.ndarray:
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), DEAD))
    values, vectors = np.linalg.eigh(H / np.outer(size, size))
    damping = max(damping, damping - 1.5 * float(values.min()))
    return np.asarray(-(vectors @ ((vectors.T @ (g / size)) / (values + damping))) / size)


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
