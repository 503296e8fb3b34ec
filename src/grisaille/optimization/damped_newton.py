"""One bounded, damped Newton method: for sums of squares, likelihoods, and whatever else has a quadratic model.

A step minimises the model inside the bounds (``quadratic``). It is taken where the criterion falls by a part of what
was predicted; otherwise it is made shorter, along the same line (``BacktrackingDamping``) or by turning it towards the
gradient
(``MarquardtDamping``). Unknowns that nothing moves with where the search stands are held there, until something does:
along a
saturated parameter a step would have any length. References: J. Nocedal, S. Wright, Numerical Optimization (2006),
sections 10.3 and 16.7; J. J. Moré, The Levenberg–Marquardt algorithm (1978); H. B. Nielsen's
steering of λ (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np

from grisaille.numerics.quadratic import Quadratic, SquaresQuadratic, bounded_step
from grisaille.optimization.criterion import E
from grisaille.optimization.search import LIMIT_STATUS, STALLED_STATUS, Search, SearchOutcome

GAIN_VANISHED = "the predicted decrease is below the tolerance"
NO_STEP_LOWERS = "no step lowers the objective, however short"
MODEL_FAILED = "the model no longer predicts what a step gains"
MIN_GAIN_RATIO = 1e-4
"""Part of the predicted gain that a step must bring."""
LARGEST, SHORTEST = 1e20, 2.0**-20
"""Damping, and part of a step, at which none is left."""


class Damping(Protocol):
    """How steps are made shorter."""

    factor: float
    """λ of the steps."""
    share: float
    """Of a step, that is taken."""

    def worked(self, ratio: float) -> None:
        """Update the damping after a step that gained this part of what was predicted."""
        ...

    def failed(self, completed: bool) -> bool:
        """Increase the damping after a rejected step; return whether a shorter one is worth trying."""
        ...


@dataclass
class BacktrackingDamping:
    """A search along the line of the step."""

    factor: float = 0.0
    share: float = 1.0
    shortest: float = SHORTEST

    def worked(self, ratio: float) -> None:
        self.share = 1.0

    def failed(self, completed: bool) -> bool:
        self.share /= 2 if completed else 4
        return self.share > self.shortest


@dataclass
class MarquardtDamping:
    """Damping steered by how much of its gain a step has brought: it grows faster with every failure in a row."""

    factor: float = 1e-3
    share: float = 1.0
    growth: float = 2.0

    def worked(self, ratio: float) -> None:
        self.factor, self.growth = self.factor * max(1 / 3, 1 - (2 * ratio - 1) ** 3), 2.0

    def failed(self, completed: bool) -> bool:
        self.factor, self.growth = self.factor * self.growth, self.growth * 2
        return self.factor <= LARGEST


class StepModel(Generic[E]):
    """A local model of the criterion around a point; this one is for sums of squares."""

    longest: float | np.ndarray = np.inf
    """Of a step, in ξ."""
    size: np.ndarray | float = 0.0
    """The largest columns of J so far: an unknown that fades does not go astray (Moré)."""

    def first(self, search: Search[E], now: E) -> Quadratic:
        J = search.jacobian(now)
        self.size = size = np.maximum(self.size, np.linalg.norm(J, axis=0))
        return SquaresQuadratic(J, now.residuals, size)

    def after(self, search: Search[E], before: E, now: E, model: Quadratic) -> Quadratic:
        """Return the model after a step."""
        return self.first(search, now)

    def gain_scale(self, now: E) -> float:
        """Return the scale with which gains are compared."""
        return now.objective

    def learn_gain(self, gained: float, predicted: float) -> bool:
        """Record what a step gained; return False where the model has predicted it wrongly too often."""
        return True


@dataclass(frozen=True)
class DescentEnd:
    """Why steps ended, and what the next one would have gained."""

    reason: str
    predicted: float


def descend(search: Search[E], model: StepModel[E], damping: Damping, tolerance: float) -> DescentEnd:
    """Take steps from the best point of a search."""
    now, predicted = search.lowest, np.inf
    lower, upper = search.inner_bounds()
    xi, around, step = np.clip(search.where(now), lower, upper), model.first(search, now), None
    while search.left:
        if search.has_stalled:
            return DescentEnd(STALLED_STATUS, predicted)
        if step is None:
            low, high = np.maximum(lower - xi, -model.longest), np.minimum(upper - xi, model.longest)
            step = bounded_step(around, low, high, damping.factor, ~search.alive(around.seen))
        part = damping.share * step
        predicted = -float(around.slope @ part + 0.5 * around.bend(part))
        if abs(predicted) <= tolerance * model.gain_scale(now) or _is_nothing(part, xi, tolerance):
            return DescentEnd(GAIN_VANISHED, predicted)
        part = np.clip(xi + part, lower, upper) - xi
        trial = search.at(xi + part) if predicted > 0 else None
        gained = now.objective - trial.objective if trial is not None and trial.completed else -np.inf
        trusted = model.learn_gain(gained, predicted)
        if trial is not None and gained > MIN_GAIN_RATIO * predicted:
            around, now, xi, step = model.after(search, now, trial, around), trial, xi + part, None
            damping.worked(gained / predicted)
        elif not damping.failed(trial is not None and trial.completed):
            return DescentEnd(NO_STEP_LOWERS, predicted)
        elif damping.share == 1:
            step = None
        if not trusted:
            return DescentEnd(MODEL_FAILED, predicted)
    return DescentEnd(LIMIT_STATUS, predicted)


def minimize(search: Search[E], damping: Damping, *, tolerance: float) -> SearchOutcome[E]:
    """Minimise ½|r|² from the guess."""
    search.first()
    reason = descend(search, StepModel(), damping, tolerance).reason
    return search.finish(reason == GAIN_VANISHED, reason)


def _is_nothing(step: np.ndarray, xi: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(step).max(initial=0.0) <= tolerance * (1 + np.abs(xi).max(initial=0.0)))
