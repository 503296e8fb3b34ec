"""Fisher scoring with damping for likelihoods, and Newton's method on exact gradients for the last digits.

    (I + λ diag I) Δξ = −∇f,        I = expected information in ξ

Steps are those of ``newton``. Where scoring ends on a saddle, or I does not tell what a step gains (robust losses,
models that are not quite right), the Hessian takes the place of I, formed by central differences of exact gradients and
kept up to date by BFGS. At the end it is formed anew: it gives the covariance, and Newton steps with it reach the
minimum to rounding. Those are judged by the gradient, ∇fᵀ H⁻¹ ∇f: near the minimum f is flat to its last digits, or its
values scatter more than that.
Reference: A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989), section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from grisaille.numerics.quadratic import HessianQuadratic, Quadratic
from grisaille.optimization.criterion import E
from grisaille.optimization.damped_newton import GAIN_VANISHED, NO_STEP_LOWERS, MarquardtDamping, StepModel, descend
from grisaille.optimization.hessian import hessian_at, inverse
from grisaille.optimization.search import LIMIT_STATUS, Search, SearchOutcome

SLOW_GAIN = 0.1
"""Steps that gain less log-likelihood than this, and not what was predicted, say that the model of f is poor."""
POLISHING_DECREMENT = 1e-6
"""Newton decrement below which a point is near enough to be polished."""
MAX_LOG_STEP = 2.0
"""A step changes the logarithm of an unknown, or an unknown relative to its size, by no more than this."""
FIRST_DAMPING = 1e-2
"""Damping to begin with."""
BOUND_TOLERANCE = 1e-6
"""A part of the range: unknowns searched by a logit count as on a bound below it."""
ENOUGH, NOTHING = 1e-10, 1e-14
"""Newton decrements below which halved steps or another Hessian, or any step, are not worth their cost."""
OBJECTIVE_ROUNDING = 1e-9
"""Of f, relative to 1 + |f|: a rise below it is none."""
STEP_SHARES = tuple(0.5**k for k in range(7))
MAX_HESSIANS = 12
"""Hessians of one polish, as long as each takes half of the decrement away."""


def minimize(search: Search[E], *, tolerance: float) -> SearchOutcome[E]:
    """Minimise −log L + priors from the guess."""
    search.first()
    ended = _descends(search, _Expected(), tolerance)
    for _ in range(4):
        now = search.lowest
        free = free_unknowns(search, now)
        hessian = hessian_at(search, now, free).matrix
        covariance, is_minimum, _ = inverse(hessian, free, search.model(now)[1])
        is_near = is_minimum and _decrement(search, now, covariance) < POLISHING_DECREMENT
        if not search.left or (ended and is_near):
            break
        # a saddle, or a valley that the expected information does not show
        ended = _descends(search, _QuasiNewton(hessian), tolerance)
    return search.finish(bool(search.left), GAIN_VANISHED if search.left else LIMIT_STATUS)


def score(search: Search[E], *, tolerance: float) -> SearchOutcome[E]:
    """Minimise by the expected information alone, where that leads to an end; for criteria that it describes well."""
    search.first()
    if _descends(search, _Expected(), tolerance):
        return search.finish(True, GAIN_VANISHED)
    return minimize(search, tolerance=tolerance)


def approach(search: Search[E], held: Sequence[int], *, tolerance: float) -> E:
    """Return the best point that steps by the expected information reach, some unknowns held at their guess."""
    unknowns = search.unknowns
    search.unknowns = tuple(
        replace(u, lower=u.guess, upper=u.guess, logit=False) if k in held else u for k, u in enumerate(unknowns)
    )
    search.first()
    _descends(search, _Expected(), tolerance)
    search.unknowns = unknowns
    return search.lowest


def _descends(search: Search[E], model: StepModel[E], tolerance: float) -> bool:
    """Take damped steps from the best point; return False where a limit of evaluations or of failed steps ended
    them.
    """
    return descend(search, model, MarquardtDamping(FIRST_DAMPING), tolerance).reason in (GAIN_VANISHED, NO_STEP_LOWERS)


class _Expected(StepModel[E]):
    """The expected information; gives up where it no longer predicts what a step gains."""

    longest = MAX_LOG_STEP
    patience = 6

    def __init__(self) -> None:
        self.slow = 0

    def first(self, search: Search[E], now: E) -> Quadratic:
        return HessianQuadratic(*search.model(now))

    def gain_scale(self, now: E) -> float:
        return 1 + abs(now.objective)

    def learn_gain(self, gained: float, predicted: float) -> bool:
        is_foretold = gained >= SLOW_GAIN or 0.8 < gained / predicted < 1.2
        self.slow = max(self.slow - 1, 0) if is_foretold else self.slow + 1
        return self.slow < self.patience


class _QuasiNewton(_Expected[E]):
    """The Hessian of the first point, brought up to date by the gradients of the next ones (BFGS, damped by Powell)."""

    patience = 10**6

    def __init__(self, hessian: np.ndarray) -> None:
        super().__init__()
        self.hessian = hessian

    def first(self, search: Search[E], now: E) -> Quadratic:
        return HessianQuadratic(search.model(now)[0], self.hessian)

    def after(self, search: Search[E], before: E, now: E, model: Quadratic) -> Quadratic:
        H, s, g = self.hessian, search.where(now) - search.where(before), search.model(now)[0]
        y, Hs = g - search.model(before)[0], H @ s
        bend, expected = float(s @ y), float(s @ Hs)
        if expected <= 0 or bend <= 0:
            # where it bends down there is nothing to be positive about: the symmetric rank-one update
            rest = y - Hs
            size = float(rest @ s)
            if abs(size) > 1e-8 * np.linalg.norm(rest) * np.linalg.norm(s):
                self.hessian = H + np.outer(rest, rest) / size
        else:
            share = 1.0 if bend >= 0.2 * expected else 0.8 * expected / (expected - bend)
            r = share * y + (1 - share) * Hs
            self.hessian = np.asarray(H - np.outer(Hs, Hs) / expected + np.outer(r, r) / float(s @ r))
        return HessianQuadratic(g, self.hessian)


@dataclass(frozen=True, eq=False)
class PolishedMinimum(Generic[E]):
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


def polish(search: Search[E], evaluation: E, free: np.ndarray, most: int = 6) -> PolishedMinimum[E]:
    """Take Newton steps from a point that is nearly a minimum; unknowns that are not free stay.

    Where they converge slowly, or not in full length, the Hessian is formed again where they have led.
    """
    for _ in range(MAX_HESSIANS):
        begin = evaluation
        expected = search.model(begin)[1]
        bent = hessian_at(search, begin, free)
        covariance, is_minimum, lost = inverse(bent.matrix, free, expected)
        decrement = left = _decrement(search, begin, covariance)
        if is_minimum:
            evaluation, left = _newton(search, begin, covariance, most)
        if left < ENOUGH or left > 0.5 * decrement or not search.left:
            break
    return PolishedMinimum(evaluation, covariance, left, is_minimum, bent.edges, lost)


def _newton(search: Search[E], evaluation: E, covariance: np.ndarray, most: int) -> tuple[E, float]:
    """Take steps with one Hessian as long as each removes most of the decrement."""
    decrement = _decrement(search, evaluation, covariance)
    for _ in range(most):
        found = _nearer(search, evaluation, covariance, decrement) if decrement >= NOTHING and search.left else None
        if found is None:
            break
        evaluation, before, decrement = found[0], decrement, found[1]
        if decrement > max(ENOUGH, 0.1 * before):
            break
    return evaluation, decrement


def _nearer(search: Search[E], evaluation: E, covariance: np.ndarray, decrement: float) -> tuple[E, float] | None:
    """Return the Newton step, halved as long as it does not lower the decrement; with the decrement that is left."""
    lower, upper = search.inner_bounds()
    xi, step = search.where(evaluation), -covariance @ search.model(evaluation)[0]
    highest = evaluation.objective + OBJECTIVE_ROUNDING * (1 + abs(evaluation.objective))
    for share in (STEP_SHARES if decrement >= ENOUGH else STEP_SHARES[:1])[: search.left]:
        trial = search.evaluate(search.outer(np.clip(xi + share * step, lower, upper)))
        left = _decrement(search, trial, covariance) if trial.completed else np.inf
        if left < decrement and trial.objective <= highest:
            return trial, left
    return None


def free_unknowns(search: Search[E], evaluation: E) -> np.ndarray:
    """Return False for unknowns that a bound holds."""
    xi = search.where(evaluation)
    lower, upper = search.inner_bounds()
    near = 1e-9 * (1 + np.abs(xi))
    g, _ = search.model(evaluation)
    held = ((xi <= lower + near) & (g > 0)) | ((xi >= upper - near) & (g < 0))
    return np.asarray(~(held | _at_unreachable_bounds(search, evaluation)))


def _at_unreachable_bounds(search: Search[E], evaluation: E) -> np.ndarray:
    """Return unknowns that a logit has brought as close to a bound as makes no difference."""
    held = []
    for u, value, slope in zip(search.unknowns, evaluation.theta, evaluation.gradient, strict=True):
        span = u.upper - u.lower
        low, high = (
            (value - u.lower) < BOUND_TOLERANCE * span and slope > 0,
            (u.upper - value) < BOUND_TOLERANCE * span and slope < 0,
        )
        held.append(u.logit and (low or high))
    return np.array(held, dtype=bool)


def _decrement(search: Search[E], evaluation: E, covariance: np.ndarray) -> float:
    g = search.model(evaluation)[0]
    return float(g @ covariance @ g)
