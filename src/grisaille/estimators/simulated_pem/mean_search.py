"""Searches for the minimum of a simulated criterion: Gauss–Newton, a grid, and the simplex where there are no slopes.

With common random numbers the criterion is a smooth function of θ, and Gauss–Newton is that of
``optimization.damped_newton``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from grisaille.bound_experiment.unknown import describe_start
from grisaille.errors import EstimationError
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.numerics.quadratic import HessianQuadratic, Quadratic, bounded_step
from grisaille.optimization import nelder_mead as simplex
from grisaille.optimization.damped_newton import (
    GAIN_VANISHED,
    MODEL_FAILED,
    NO_STEP_LOWERS,
    BacktrackingDamping,
    StepModel,
    descend,
)
from grisaille.optimization.search import LIMIT_STATUS, Search

MAX_LOG_STEP = 2.0
"""A step of a logarithm, at most."""
RIDGE_FACTOR = 1e-12
"""Keeps directions that nothing determines where they are."""
ROUNDING_GAIN = 1e-4
"""Gain that rounding may hide."""


@dataclass(frozen=True)
class MeanSearchEnd:
    """Where a search ended and why."""

    value: MeanValue
    is_minimum: bool
    reason: str


@dataclass(frozen=True)
class BestPoint:
    """The best point so far, and its criterion."""

    criterion: MeanCriterion
    value: MeanValue


@dataclass
class MeanSearch(Search[MeanValue]):
    """A search whose criterion is renewed on the way.

    iterations : steps in all
    """

    criterion: MeanCriterion
    iterations: int = 10**9
    keep: Callable[[np.ndarray], None] | None = field(default=None, kw_only=True)
    """Called with every better point."""

    @property
    def is_spent(self) -> bool:
        """Return whether the limit of steps or of ensembles has been reached, over all searches."""
        return self.iterations <= 0 or not self.left

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True, quietly: bool = False) -> MeanValue:
        return self.criterion.at(theta, sensitive=sensitive)

    def accept(self, value: MeanValue) -> None:
        """Accept a point from which the search continues."""
        self.best = self.last = value
        if self.keep is not None:
            self.keep(value.theta)
        self.journal.kept = BestPoint(self.criterion, value)
        self.journal.accept(self.unknowns, value.theta, value.objective)

    def _kept(self, evaluation: MeanValue) -> MeanValue:
        self.last = evaluation
        if evaluation.completed and (self.best is None or evaluation.objective < self.best.objective):
            self.accept(evaluation)
        return evaluation

    def renew(self, criterion: MeanCriterion) -> None:
        """Go on with a criterion that has changed."""
        self.criterion, self.best, self.last = criterion, None, None

    def begin(self, theta: np.ndarray, *, sensitive: bool = True) -> None:
        """Start from a point."""
        self.best = self.last = None
        self.go_on_from(theta)
        found = self._kept(self.evaluate(theta, sensitive=sensitive))
        if not found.completed:
            there = describe_start(self.unknowns)
            raise EstimationError(f"The model cannot be simulated at {there}: {found.failure} Give another by guess=.")


class _Averaged(StepModel[MeanValue]):
    """Averaged sensitivities."""

    def __init__(self, search: MeanSearch) -> None:
        self.search, self.size = search, 1.0
        self.longest = np.where([u.logarithmic for u in search.unknowns], MAX_LOG_STEP, np.inf)

    def first(self, search: Search[MeanValue], now: MeanValue) -> Quadratic:
        return HessianQuadratic(*search.model(now), now.level)

    def gain_scale(self, now: MeanValue) -> float:
        return self.search.criterion.gain_scale(now)

    def learn_gain(self, gained: float, predicted: float) -> bool:
        self.search.iterations -= gained > 0
        return self.search.iterations > 0


def gauss_newton(search: MeanSearch, start: np.ndarray, *, tolerance: float) -> MeanSearchEnd:
    """Take damped Gauss–Newton steps until the predicted gain is negligible beside the statistical error."""
    search.begin(start)
    if search.is_spent:
        return MeanSearchEnd(search.lowest, False, LIMIT_STATUS)
    ended = descend(search, _Averaged(search), BacktrackingDamping(RIDGE_FACTOR, shortest=1e-6), 0.5 * tolerance)
    now, reason = search.lowest, LIMIT_STATUS if ended.reason == MODEL_FAILED else ended.reason
    if reason == NO_STEP_LOWERS and ended.predicted < 0.5 * ROUNDING_GAIN * search.criterion.gain_scale(now):
        reason = GAIN_VANISHED
    return MeanSearchEnd(now, reason == GAIN_VANISHED, reason)


def step_to_minimum(criterion: MeanCriterion, value: MeanValue) -> tuple[np.ndarray, float]:
    """Return the step of ξ to the minimum of the quadratic model inside the bounds, and twice the gain of it."""
    search = MeanSearch(criterion)
    model, xi = _Averaged(search), search.inner(value.theta)
    lower, upper = search.inner_bounds()
    around = model.first(search, value)
    low, high = np.maximum(lower - xi, -model.longest), np.minimum(upper - xi, model.longest)
    step = bounded_step(around, low, high, RIDGE_FACTOR, ~search.alive(around.seen))
    return step, max(0.0, -float(around.slope @ step))


def seen_unknowns(search: MeanSearch, value: MeanValue) -> np.ndarray:
    """Return unknowns that the criterion depends on."""
    return search.alive(_Averaged(search).first(search, value).seen)


def free_unknowns(criterion: MeanCriterion, value: MeanValue) -> np.ndarray:
    """Return False where a bound holds an unknown against the slope of the criterion."""
    lower, upper = criterion.problem.bounds
    near = 1e-9 * np.minimum(upper - lower, [u.size for u in criterion.unknowns])
    low = (value.theta <= lower + near) & (value.gradient >= 0)
    high = (value.theta >= upper - near) & (value.gradient <= 0)
    return np.asarray(~(low | high))


def grid_search(search: MeanSearch, points: int) -> MeanSearchEnd:
    """Return the best of equally spaced values of one bounded unknown."""
    criterion, problem = search.criterion, search.criterion.problem
    lower, upper = problem.bounds
    if len(problem.unknowns) != 1 or not np.isfinite([*lower, *upper]).all():
        raise EstimationError("search='grid' needs exactly one unknown, with bounds on both sides.")
    best: MeanValue | None = None
    thetas = np.linspace(lower[0], upper[0], points)[:, None]
    for value in criterion.at_each(list(thetas)):
        if not value.completed:
            continue
        if best is None or value.objective < best.objective:
            best = value
        search.accept(value)
        search.best = best
    if best is None:
        raise EstimationError(f"No point of the grid could be simulated; the last: {criterion.journal.failures[-1]}")
    inside = bool(lower[0] < best.theta[0] < upper[0])
    return MeanSearchEnd(criterion.at(best.theta), inside, f"best of {points} grid points")


def nelder_mead(search: MeanSearch, start: np.ndarray, *, tolerance: float) -> MeanSearchEnd:
    """Minimise the same criterion by the simplex method: slow, but it needs no derivatives."""
    search.begin(start, sensitive=False)
    reason = simplex.shrink(search, flat=max(tolerance, 1e-8), narrow=1e-6)
    return MeanSearchEnd(search.criterion.at(search.lowest.theta), reason == simplex.SHRUNK_STATUS, reason)
