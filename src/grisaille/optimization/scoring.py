"""Fisher scoring with damping for likelihoods, and Newton's method on exact gradients for the last digits.

    (I + λ diag I) Δξ = −∇f,        I = expected information in ξ

Steps that lower f are taken and λ falls, others raise it and let the next ones bend along a valley (``damped_step``);
a bound holds an unknown as long as the gradient pushes it out. Where scoring ends on a saddle, or I does not tell what
a step gains (robust losses, models that are not quite right), the Hessian takes the place of I, formed by central
differences of exact gradients and kept up to date by BFGS. At the end it is formed anew: it gives the covariance, and
Newton steps with it reach the minimum to rounding. Those are judged by the gradient, ∇fᵀ H⁻¹ ∇f: near the minimum f is
flat to its last digits, or its values scatter more than that.
Reference: A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989), section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.damped_step import acceleration, damped_step
from grisaille.optimization.hessian import hessian_at, inverse
from grisaille.optimization.search import LIMIT, Outcome, Search

SLOW = 0.1
"""Steps that gain less log-likelihood than this, and not what was predicted, say that the model of f is poor."""
ENDED = 1e-6
"""Newton decrement below which a point is near enough to be polished."""
SMALLEST, LEAST = 1e-9, 1e-6
"""Damping that is none, and the least after a step that failed."""
BENT = 3
"""Steps that failed before the next ones bend."""
CLOSE = 1e-6
"""A part of the range: unknowns searched by a logit count as on a bound below it."""
ENOUGH, NOTHING = 1e-10, 1e-14
"""Newton decrements below which halved steps or another Hessian, or any step, are not worth their cost."""
ROUNDING = 1e-9
"""Of f, relative to 1 + |f|: a rise below it is none."""
HALVES = tuple(0.5**k for k in range(7))
ROUNDS = 12
"""Hessians of one polish, as long as each takes half of the decrement away."""


def minimize(search: Search[E], *, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """Minimise −log L + priors from the problem's guess."""
    search.first()
    limit = search.evaluations + max_evaluations
    ended = _descend(search, _Expected(search), limit, tolerance)
    for _ in range(4):
        now = search.lowest
        free = free_unknowns(search, now)
        hessian = hessian_at(search, now, free).matrix
        covariance, is_minimum, _ = inverse(hessian, free, search.model(now)[1])
        is_near = is_minimum and _decrement(search, now, covariance) < ENDED
        if search.evaluations >= limit or (ended and is_near):
            break
        # a saddle, or a valley that the expected information does not show
        ended = _descend(search, _QuasiNewton(search, hessian), limit, tolerance)
    well = search.evaluations < limit
    return search.finish(well, "the predicted gain vanished" if well else LIMIT)


def score(search: Search[E], *, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """The same by the expected information alone, where that leads to an end; for criteria that it describes well."""
    search.first()
    limit = search.evaluations + max_evaluations
    if _descend(search, _Expected(search), limit, tolerance):
        return search.finish(True, "the predicted gain vanished")
    return minimize(search, max_evaluations=max_evaluations, tolerance=tolerance)


class _Expected(Generic[E]):
    """The expected information; gives up where it no longer predicts what a step gains."""

    patience = 6
    follows_valleys = True

    def __init__(self, search: Search[E]) -> None:
        self.search = search

    def first(self, now: E) -> np.ndarray:
        return self.search.model(now)[1]

    def after(self, before: E, now: E, H: np.ndarray) -> np.ndarray:
        return self.first(now)


class _QuasiNewton(Generic[E]):
    """The Hessian of the first point, brought up to date by the gradients of the next ones (BFGS, damped by Powell)."""

    patience = 10**6
    follows_valleys = False

    def __init__(self, search: Search[E], hessian: np.ndarray) -> None:
        self.search, self.hessian = search, hessian

    def first(self, now: E) -> np.ndarray:
        return self.hessian

    def after(self, before: E, now: E, H: np.ndarray) -> np.ndarray:
        s = self.search.where(now) - self.search.where(before)
        y = self.search.model(now)[0] - self.search.model(before)[0]
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


def _descend(search: Search[E], model: _Expected[E] | _QuasiNewton[E], limit: int, tolerance: float) -> bool:
    """Damped steps from the best point; False where the limit of evaluations or the model's patience ended them."""
    now = search.lowest
    lower, upper = search.inner_bounds()
    xi, damping, H, slow = np.clip(search.where(now), lower, upper), 1e-2, model.first(now), 0
    relaxed, failed = False, 0
    while search.evaluations < limit and slow < model.patience:
        g = search.model(now)[0]
        step = damped_step(xi, g, H, damping, lower, upper)
        predicted = -float(g @ step + 0.5 * step @ H @ step)
        if abs(predicted) <= tolerance * (1 + abs(now.objective)):
            if damping <= SMALLEST or damping > 1e3:
                return True
            damping, relaxed = max(damping * 1e-3, SMALLEST), True
            continue
        if failed >= BENT and model.follows_valleys and now.follows_valleys:
            step = np.clip(xi + step + acceleration(search, now, step, H, damping), lower, upper) - xi
        trial = search.at(xi + step) if predicted > 0 else None
        gained = now.objective - trial.objective if trial is not None and trial.completed else -np.inf
        is_foretold = gained >= SLOW or 0.8 < gained / predicted < 1.2
        slow = max(slow - 1, 0) if is_foretold else slow + 1
        if trial is not None and gained > 1e-4 * predicted:
            before, xi, now, relaxed = now, xi + step, trial, False
            H = model.after(before, now, H)
            damping = max(damping / 6 if gained > 0.5 * predicted else damping, SMALLEST)
        elif relaxed or damping > 1e12:
            return True
        else:
            damping, failed = max(5 * damping, LEAST), failed + 1
    return search.evaluations < limit and slow < model.patience


@dataclass(frozen=True, eq=False)
class Polished(Generic[E]):
    """A point and the curvature of f there."""

    evaluation: E
    covariance: np.ndarray
    """Pseudo-inverse of the Hessian in ξ; zero for unknowns that are held or not seen."""
    decrement: float
    """∇fᵀ H⁻¹ ∇f that is left: twice the gain still to be had, the squared distance in standard errors."""
    is_minimum: bool
    """Whether f bends upwards in every direction that the data see."""
    edges: tuple[np.ndarray, ...]
    """Steps in ξ, so short and yet to where f has no value."""
    lost: np.ndarray
    """Free unknowns that a direction without information moves: their variance is infinite."""


def polish(search: Search[E], evaluation: E, free: np.ndarray, most: int = 6) -> Polished[E]:
    """Newton steps from a point that is nearly a minimum; unknowns that are not free stay.

    Where they converge slowly, or not in full length, the Hessian is formed again where they have led.
    """
    for _ in range(ROUNDS):
        begin = evaluation
        expected = search.model(begin)[1]
        bent = hessian_at(search, begin, free)
        covariance, is_minimum, lost = inverse(bent.matrix, free, expected)
        decrement = left = _decrement(search, begin, covariance)
        if is_minimum:
            evaluation, left = _newton(search, begin, covariance, most)
        if left < ENOUGH or left > 0.5 * decrement:
            break
    return Polished(evaluation, covariance, left, is_minimum, bent.edges, lost)


def _newton(search: Search[E], evaluation: E, covariance: np.ndarray, most: int) -> tuple[E, float]:
    """Steps with one Hessian as long as each takes most of the decrement away."""
    decrement = _decrement(search, evaluation, covariance)
    for _ in range(most):
        found = _nearer(search, evaluation, covariance, decrement) if decrement >= NOTHING else None
        if found is None:
            break
        evaluation, before, decrement = found[0], decrement, found[1]
        if decrement > max(ENOUGH, 0.1 * before):
            break
    return evaluation, decrement


def _nearer(search: Search[E], evaluation: E, covariance: np.ndarray, decrement: float) -> tuple[E, float] | None:
    """The Newton step, halved as long as it does not lower the decrement; with the decrement that is left."""
    lower, upper = search.inner_bounds()
    xi, step = search.where(evaluation), -covariance @ search.model(evaluation)[0]
    highest = evaluation.objective + ROUNDING * (1 + abs(evaluation.objective))
    for share in HALVES if decrement >= ENOUGH else HALVES[:1]:
        trial = search.evaluate(search.outer(np.clip(xi + share * step, lower, upper)))
        left = _decrement(search, trial, covariance) if trial.completed else np.inf
        if left < decrement and trial.objective <= highest:
            return trial, left
    return None


def free_unknowns(search: Search[E], evaluation: E) -> np.ndarray:
    """False for unknowns that a bound holds."""
    xi = search.where(evaluation)
    lower, upper = search.inner_bounds()
    near = 1e-9 * (1 + np.abs(xi))
    g, _ = search.model(evaluation)
    held = ((xi <= lower + near) & (g > 0)) | ((xi >= upper - near) & (g < 0))
    return np.asarray(~(held | _at_unreachable_bounds(search, evaluation)))


def _at_unreachable_bounds(search: Search[E], evaluation: E) -> np.ndarray:
    """Unknowns that a logit has brought as close to a bound as makes no difference."""
    held = []
    for u, value, slope in zip(search.unknowns, evaluation.theta, evaluation.gradient, strict=True):
        span = u.upper - u.lower
        low, high = (value - u.lower) < CLOSE * span and slope > 0, (u.upper - value) < CLOSE * span and slope < 0
        held.append(u.logit and (low or high))
    return np.array(held, dtype=bool)


def _decrement(search: Search[E], evaluation: E, covariance: np.ndarray) -> float:
    g = search.model(evaluation)[0]
    return float(g @ covariance @ g)
