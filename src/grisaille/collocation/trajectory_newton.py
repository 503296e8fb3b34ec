"""One damped Newton method over trajectories and unknowns together, in either basis.

A step minimises a quadratic model of the criterion, from which the trajectories are eliminated, under the linearised
equations of the model where these are constraints. It is taken where it lowers the criterion by a part of what it
promised or brings the trajectory nearer to its equations (a filter: a penalty would make paths creep along their
equations when they start on them, far from the data); otherwise it is cut, where there are constraints, and then
damped. References: J. Nocedal, S. Wright, Numerical Optimization (2006), section 10.3; A. Wächter, L. T. Biegler,
Mathematical Programming 106 (2006) 25.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from grisaille.collocation.array_types import Floats

ENOUGH, GOOD = 1e-4, 0.25
"""Parts of the predicted gain: with more a step is taken, with more damping is lowered."""
GROWTH, LARGEST = 4.0, 1e12
"""Of damping after a step that failed, and where none is left."""
MARGIN, FEASIBLE, FARTHEST = 1e-5, 1e-9, 1e2
"""Of the filter; residuals of equations that hold, and those beyond which no trial is taken."""
ROUNDING_OF_CRITERION = 1e-10
"""A loss, relative to 1 + J, that rounding explains."""
SHRINKS, REMAINS = 0.25, 1e-14
"""Parts of a gain to which the next one falls where steps shrink; what such steps may leave to be gained."""
GAIN_VANISHED = "the predicted decrease is below the tolerance"
MAX_STALLED, STALLED_GAIN = 20, 1e-8
"""Steps in a row with predicted gains below this that lower the criterion by rounding alone: minima lie on bends of the
equations where either side sends the search to the other."""
STALLED_ON_BEND = "no step lowers the criterion, whose minimum lies on a bend"


class SearchPoint(Protocol):
    """Trajectories and unknowns with their criterion."""

    @property
    def theta(self) -> Floats: ...

    @property
    def objective(self) -> float: ...

    @property
    def cost(self) -> float:
        """Return what is minimised: the objective and, where noise depends on trajectories, its log-determinant."""
        ...

    @property
    def away(self) -> float:
        """Mean distance from the equations; zero without any."""
        ...

    @property
    def residual(self) -> float:
        """Return the largest."""
        ...


class SearchStep(Protocol):
    """A proposed step and the gain that the quadratic model predicts of it."""

    @property
    def predicted(self) -> float:
        """Gain."""
        ...

    @property
    def slope(self) -> float:
        """Of the criterion along it."""
        ...

    @property
    def is_last(self) -> bool:
        """So close to the minimum that only the curvature of equations could refuse it."""
        ...


P = TypeVar("P", bound=SearchPoint)
S = TypeVar("S", bound=SearchStep)


class StepSource(ABC, Generic[P, S]):
    """Where steps come from."""

    shortest: ClassVar[float] = 1.0
    """Part of a step that is worth trying."""
    least: ClassVar[float] = 1e-6
    """Damping that matters."""

    @property
    def may_stall(self) -> bool:
        """Whether a search that stalls has come to a minimum: the criterion bends with trajectories, but does not
        jump.
        """
        return False

    @abstractmethod
    def propose(self, now: P, damping: float) -> S | None:
        """Propose a step; None where the curvature is not positive definite. Raises ``LinAlgError`` where no damping
        helps.
        """

    @abstractmethod
    def after_share_of_step(self, now: P, step: S, share: float, small: bool) -> P:
        """Return the point after a part of a step; ``small``: no further gain is expected of it."""

    def gain_scale(self, now: P) -> float:
        """Return what gains are compared with."""
        return 1.0

    def note_accepted(self, now: P) -> None:
        """Note a point from which the search continues."""


@dataclass
class SearchEnd(Generic[P]):
    """Where steps ended and why."""

    at: P
    converged: bool
    reason: str
    iterations: int
    trace: list[dict[str, float]] = field(default_factory=list)
    lost: tuple[str, ...] = ()
    """Unknowns that nothing moved with any more on the way: another way may lead to a lower minimum."""
    kept_limits: bool = False
    """Whether bounds of states were kept on the way."""

    @property
    def theta(self) -> Floats:
        return self.at.theta

    @property
    def objective(self) -> float:
        return self.at.objective


def descend(steps: StepSource[P, S], now: P, *, damping: float, tolerance: float, most: int) -> SearchEnd[P]:
    """Take steps from a starting point until the search ends."""
    found, filter, before = SearchEnd(now, False, f"{most} iterations were used up", 0), AcceptanceFilter(), np.inf
    lowest, stalled = np.inf, 0
    for k in range(most):
        found.at, found.iterations = now, k + 1
        steps.note_accepted(now)
        try:
            step = steps.propose(now, damping)
        except np.linalg.LinAlgError as error:
            found.reason = str(error)
            break
        if step is None:
            damping = max(10 * damping, steps.least)
        else:
            small = abs(step.predicted) <= tolerance * steps.gain_scale(now) and now.residual < FEASIBLE
            trial, share = steps.after_share_of_step(now, step, 1.0, small), 1.0
            if small and damping <= steps.least and not _is_slow(step.predicted, before):
                if now.cost - trial.cost > -ROUNDING_OF_CRITERION * (1 + abs(now.cost)) and trial.residual < FEASIBLE:
                    found.at = trial
                found.converged, found.reason = True, GAIN_VANISHED
                return found
            while not filter.takes(now, trial, step, share) and share > 0:
                share = share / 2 if share / 2 >= steps.shortest else 0.0
                trial = steps.after_share_of_step(now, step, share, small) if share else now
            if small:
                damping /= 100
            elif share == 0:
                damping = max(GROWTH * damping, steps.least)
            elif now.cost - trial.cost > GOOD * share * step.predicted or trial.away < now.away:
                damping /= 10
            fell = lowest - now.cost > ROUNDING_OF_CRITERION * (1 + abs(now.cost))
            lowest = min(lowest, now.cost)
            is_stalled = not fell and abs(step.predicted) < STALLED_GAIN and now.residual < FEASIBLE
            stalled = stalled + 1 if is_stalled else 0
            if stalled == MAX_STALLED and steps.may_stall:
                found.converged, found.reason = True, STALLED_ON_BEND
                return found
            before = step.predicted if share == 1.0 and damping <= steps.least else np.inf
            damping, now = 0.0 if damping < 1e-3 * steps.least else damping, trial
        if damping > LARGEST:
            found.reason = "the curvature is singular" if step is None else "no step lowers the criterion"
            break
    return found


def _is_slow(gain: float, before: float) -> bool:
    """Return whether steps that shrink from one to the next as the last two did leave more than ``REMAINS`` to gain.

    Gains are half the squares of steps in standard errors: after steps δ, rδ, r²δ … r/(1 − r) of the last one is left.
    """
    if not (0 < gain < SHRINKS * before < np.inf):
        return False
    rate = np.sqrt(gain / before)
    return bool(gain * (rate / (1 - rate)) ** 2 > REMAINS)


class AcceptanceFilter:
    """Pairs (distance from the equations, cost) that no later point may be worse than in both."""

    def __init__(self) -> None:
        self.pairs: list[tuple[float, float]] = []

    def takes(self, now: SearchPoint, trial: SearchPoint, step: SearchStep, share: float) -> bool:
        """Return whether a part of a step leads to somewhere better."""
        away, there, cost, after = now.away, trial.away, now.cost, trial.cost
        if not (np.isfinite(after) and there < FARTHEST):
            return False
        if step.is_last and share == 1.0:
            return True
        if any(there > (1 - MARGIN) * a and after > c - MARGIN * a for a, c in self.pairs if a > 0):
            return False
        descent = share * step.slope
        if descent < 0 and (-descent) ** 2.3 > away**1.1 and away < 1e-2:
            return bool(after <= cost + ENOUGH * descent + 1e-12 * abs(cost))
        if there <= (1 - MARGIN) * away or after <= cost - MARGIN * away:
            self.pairs.append((away, cost))
            return away > 0 or after < cost
        return False
