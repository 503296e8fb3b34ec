"""``fit.intervals(method="bootstrap")``: intervals by tests that are inverted, each at its own law.

A value v of an unknown stays in the interval if the signed root of the deviance,

    r(v) = sign(θ̂ − v) √D(v),

lies between the quantiles that it has over records drawn from the model with the unknown at v and the others at their
best there. Where estimates are biased or not normal (near a unit root, in short records with an estimated mean) these
quantiles are not ± 1.96, and move with v; that is why they are found where the limits are. From the profile's limit the
quantile there gives a second value, the quantile at that a third (a secant; both from the same random numbers).
Reference: B. E. Hansen, Review of Economics and Statistics 81 (1999) 594 (the grid bootstrap).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.assessment.criterion import criterion_of
from grisaille.assessment.likelihood_criterion import LikelihoodCriterion
from grisaille.assessment.profile_limits import Limits
from grisaille.assessment.restricted import Restricted
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.optimization import scoring
from grisaille.optimization.search import Search
from grisaille.study.redrawn_records import draw_records

SAMPLES = 200
TOLERANCE, MOST = 1e-7, 80
LOST = 0.2
"""Share of records that could not be fitted, above which there is no interval."""


def bootstrap_intervals(
    fit: Fitted, level: float, first: Intervals, samples: int = SAMPLES, seed: int = 0
) -> Intervals:
    """Inverted tests for all unknowns that no bound holds; others as in the table.

    first : those of the table
    samples : records drawn for each limit, half of them at each of two values
    """
    # the outermost of half of them must lie beyond the quantile
    least = int(np.ceil(4 / (1 - level) - 1e-9))
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < least:
        raise EstimationError(
            f"samples is {samples!r}; limits at {100 * level:g} % need a whole number, at least {least}."
        )
    if fit.method.no_bootstrap:
        raise EstimationError(fit.method.no_bootstrap)
    inversion = Inversion(fit, level, samples, seed)
    lower, upper, kinds, notes = first.lower.copy(), first.upper.copy(), list(first.kinds), []
    for k, name in enumerate(fit.names):
        if not fit.estimate.free[k] or not 0 < fit.std_errors[k] < np.inf:
            continue
        try:
            lower[k], upper[k] = inversion.interval(k)
            kinds[k] = "bootstrap"
        except GrisailleError as error:
            notes.append(f"interval: {kinds[k]} for {name}: {error}")
    return Intervals(lower, upper, tuple(kinds), f"{samples} records for each limit, seed {seed}", tuple(notes))


class Inversion:
    """Tests around one fit."""

    def __init__(self, fit: Fitted, level: float, samples: int, seed: int) -> None:
        self.fit, self.level, self.half, self.seed = fit, level, samples // 2, seed
        self.criterion = criterion_of(fit)
        e = fit.estimate
        zero = np.array([e.extra.get(f"limit({u.name})", np.nan) for u in e.unknowns])
        self.limits = Limits(self.criterion.local, e.unknowns, self.criterion.theta, e.covariance, zero)

    def interval(self, k: int) -> tuple[float, float]:
        """Both limits of one unknown."""
        lower, upper = (self._limit(k, side) for side in (-1, 1))
        return min(lower, upper), max(lower, upper)

    def _limit(self, k: int, side: int) -> float:
        u = self.fit.estimate.unknowns[k]
        q = float(np.sqrt(self.criterion.reached(self.level)))
        first = self._at_root(k, -side * q)
        if not np.isfinite(first):
            return first
        here = self.quantile(k, first, side)
        root = self.root(k, first)
        # inside even at the bound
        if first in (u.lower, u.upper) and side * (here - root) < 0:
            return first
        second = self._at_root(k, here)
        if not np.isfinite(second) or second == first:
            return second
        there = self.quantile(k, second, side)
        before, after = root - here, here - there
        share = np.clip(-after / (after - before), -0.5, 1.0) if after != before else 0.0
        third = second + float(share) * (second - first)
        return float(np.clip(third, u.lower, u.upper))

    def quantile(self, k: int, value: float, side: int) -> float:
        """Of the signed root over records drawn where the unknown has this value: what a limit on this side needs."""
        roots = self.roots(k, value)
        probability = 0.5 - side * self.level / 2
        return float(np.quantile(roots, probability, method="weibull"))

    def roots(self, k: int, value: float) -> np.ndarray:
        """Signed roots of drawn records, each fitted with and without the unknown held at the value."""
        at = self._held(k, value)
        found = []
        for values in draw_records(self.fit, at, self.half, self.seed):
            root = self._root_of(values, k, at)
            if np.isfinite(root):
                found.append(root)
        if len(found) < (1 - LOST) * self.half:
            raise EstimationError(f"{self.half - len(found)} of {self.half} records drawn there could not be fitted.")
        return np.array(found)

    def root(self, k: int, value: float) -> float:
        """Of the record itself."""
        point = self.criterion.minimize({k: value}, self.limits.follow_to(k, value))
        return float(
            np.sign(self.criterion.theta[k] - value) * np.sqrt(max(self.criterion.scaled(point.deviance), 0.0))
        )

    def _at_root(self, k: int, wanted: float) -> float:
        """The value at which the signed root of the record itself is the wanted one."""
        theta, error = float(self.criterion.theta[k]), float(self.fit.std_errors[k])
        if abs(wanted) < 0.05:
            return theta - wanted * error
        is_level = self.fit.estimate.unknowns[k].kind in ("scale", "noise") and theta > 0
        wald = theta * np.exp(np.clip(-wanted * error / theta, -5, 5)) if is_level else theta - wanted * error
        found = self.limits.find(k, float(wald), wanted**2)
        if found.failure:
            raise EstimationError(found.failure)
        return found.value

    def _held(self, k: int, value: float) -> np.ndarray:
        point = self.criterion.minimize({k: value}, self.limits.follow_to(k, value))
        if point.failure:
            raise EstimationError(point.failure)
        return np.asarray(np.clip(point.theta, *self.criterion.problem.bounds))

    def _root_of(self, values: list[np.ndarray], k: int, at: np.ndarray) -> float:
        e = self.fit.estimate
        if isinstance(self.criterion, LikelihoodCriterion):
            assert isinstance(self.criterion.problem, LikelihoodProblem)
            problem = self.criterion.problem.renewed(values, at)
            try:
                free, held = (_least(problem, at, fixed) for fixed in ([], [k]))
            except GrisailleError:
                return np.nan
            return float(np.sign(free[1][k] - at[k]) * np.sqrt(max(2 * (held[0] - free[0]), 0.0)))
        drawn = replace(e, cases=self.criterion.problem.renewed(values).cases, theta=at)
        criterion = criterion_of(Fitted(self.fit.initial_model, self.fit.experiments, self.fit.method, drawn))
        best, other = criterion.minimize({}, at), criterion.minimize({k: float(at[k])}, at)
        if best.failure or other.failure:
            return np.nan
        scaled = self.criterion.scaled(other.deviance - best.deviance)
        return float(np.sign(best.theta[k] - at[k]) * np.sqrt(max(scaled, 0.0)))


def _least(problem: LikelihoodProblem, start: np.ndarray, held: list[int]) -> tuple[float, np.ndarray]:
    """The least −log L with some unknowns held, and where."""
    if len(held) == len(start):
        return problem.evaluate(start, sensitive=False).objective, start
    restricted = Restricted(problem, start, held)
    outcome = scoring.score(Search(restricted, most=MOST), tolerance=TOLERANCE)
    return outcome.evaluation.objective, restricted.whole(outcome.evaluation.theta)
