"""``fit.intervals(method="bootstrap")``: intervals by tests that are inverted, each at its own law.

A value v of an unknown stays in the interval if the signed root of the deviance,

    r(v) = sign(θ̂ − v) √D(v),

lies between the quantiles that it has over records drawn from the model with the unknown at v and the others at their
best there. Where estimates are biased or not normal (near a unit root, in short records with an estimated mean) these
quantiles are not ± 1.96, and move with v; that is why they are found where the limits are. From the profile's limit the
quantile there gives a second value, the quantile at that the limit, with the slope that the quantiles of the same
random numbers have between the two. The limit's Monte Carlo error is that of the second quantile: unless a number of
records is given, they are drawn until it is small. It is stated with the intervals.
Reference: B. E. Hansen, Review of Economics and Statistics 81 (1999) 594 (the grid bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from grisaille.assessment.deviances import deviances_of
from grisaille.assessment.profile_limits import ProfileLimits
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.density.criterion_kinds import why_no_inversion
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals
from grisaille.estimation.prior_terms import says_more_than_limits
from grisaille.study.redrawn_records import draw_records

FIRST, BATCH, MAX_SAMPLES = 100, 50, 999
"""Records for each limit unless a number is given: so many at the first value, then batches at the second one."""
LIMIT_ACCURACY = 0.2
"""Of a standard error: how well limits are known when no more records are drawn."""
SLOPES, FLAT = (-1.0, 0.5), 0.02
"""Slopes of quantiles that are followed, by that of the signed root, and a change of the root that has none."""
MAX_FAILED_SHARE = 0.2
"""Share of records that could not be fitted, above which there is no interval."""


def bootstrap_intervals(
    fit: Fitted, level: float, first: Intervals, samples: int | None = None, seed: int = 0
) -> Intervals:
    """Return inverted tests for all unknowns that no bound holds; others as in the table.

    first : those of the table
    samples : records drawn for each limit, half of them at each of two values; as many as are needed, but at most 999,
        unless given
    """
    # the outermost of half of them must lie beyond the quantile
    least = int(np.ceil(4 / (1 - level) - 1e-9))
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int) or samples < least):
        raise EstimationError(
            f"samples is {samples!r}; limits at {100 * level:g} % need a whole number, at least {least}."
        )
    if fit.method.redraw is None:
        raise missing_ability_error(fit.method, "redraw")
    if why := why_no_inversion(fit.method):
        raise EstimationError(why)
    inversion = Inversion(fit, level, samples, seed)
    lower, upper, kinds, notes, done = first.lower.copy(), first.upper.copy(), list(first.kinds), [], []
    for k, name in enumerate(fit.names):
        if not fit.estimate.free[k] or not 0 < fit.std_errors[k] < np.inf:
            continue
        try:
            lower[k], upper[k] = inversion.interval(k)
            kinds[k] = "bootstrap"
            done.append(name)
        except GrisailleError as error:
            notes.append(f"interval: {kinds[k]} for {name}: {error}")
    drawn = f"{inversion.most} records for each limit{'' if samples else ' at most'}, seed {seed}"
    if done:
        notes.append(_about_error(done, inversion))
        known = [u.name for u in fit.estimate.unknowns if says_more_than_limits(u.prior)]
        if known:
            notes.append(
                f"interval: bootstrap limits do not take the priors of {', '.join(known)} for true: a value is tested "
                f"with records in which it is the truth, wherever its prior lies, so that they are wider than profiles."
            )
    return Intervals(lower, upper, tuple(kinds), drawn, tuple(notes))


def _about_error(names: list[str], inversion: Inversion) -> str:
    """Say how well the limits are known, and what more records would do."""
    error, more = inversion.worst, 4 * inversion.most
    return (
        f"interval: bootstrap limits of {', '.join(names)} have a Monte Carlo error of up to {error:.2g} standard "
        f"errors (one standard deviation over seeds) from {inversion.most} records for each limit; samples={more} "
        f"would make that {error / 2:.2g}."
    )


@dataclass(frozen=True)
class Quantile:
    """The distribution of the signed root over drawn records."""

    probability: float
    roots: np.ndarray
    begun: int
    """Roots among them of the records that were drawn first."""
    records: int

    @property
    def value(self) -> float:
        return self._of(self.roots)

    @property
    def first(self) -> float:
        """Return the quantile from the records that were drawn first only."""
        return self._of(self.roots[: self.begun])

    @property
    def error(self) -> float:
        """Return one standard deviation over seeds."""
        return quantile_error(self.roots, self.probability)

    def _of(self, roots: np.ndarray) -> float:
        return float(np.quantile(roots, self.probability, method="weibull"))


class Inversion:
    """Tests around one fit."""

    def __init__(self, fit: Fitted, level: float, samples: int | None, seed: int) -> None:
        self.fit, self.level, self.samples, self.seed = fit, level, samples, seed
        self.most, self.worst = 0, 0.0
        """Records that were drawn for one limit, and its Monte Carlo error in standard errors, at most."""
        self.deviances = deviances_of(fit)
        e = fit.estimate
        zero = np.array([e.limits.get(u.name, np.nan) for u in e.unknowns])
        self.limits = ProfileLimits(self.deviances.local, e.unknowns, self.deviances.theta, e.covariance, zero)

    def interval(self, k: int) -> tuple[float, float]:
        """Return both limits of one unknown."""
        lower, upper = (self._limit(k, side) for side in (-1, 1))
        return min(lower, upper), max(lower, upper)

    def _limit(self, k: int, side: int) -> float:
        u = self.fit.estimate.unknowns[k]
        q = float(np.sqrt(self.deviances.reached(self.level)))
        first = self._at_root(k, -side * q)
        if not np.isfinite(first):
            return first
        count = max(FIRST, int(np.ceil(2 / (1 - self.level)))) if self.samples is None else self.samples // 2
        here = self.quantile(k, first, side, [count])
        root = self.root(k, first)
        # inside even at the bound
        if first in (u.lower, u.upper) and side * (here.value - root) < 0:
            self._count(count, here.error)
            return first
        second = self._at_root(k, here.value)
        if not np.isfinite(second) or second == first:
            self._count(count, here.error)
            return second
        further = list(range(count, max(MAX_SAMPLES - count, count) + 1, BATCH)) if self.samples is None else [count]
        there = self.quantile(k, second, side, further)
        self._count(count + there.records, there.error)
        grown = here.value - root
        slope = float(np.clip((there.first - here.value) / grown, *SLOPES)) if abs(grown) > FLAT else 0.0
        third = self._at_root(k, there.value)
        if not np.isfinite(third):
            return third
        return float(np.clip(second + (third - second) / (1 - slope), u.lower, u.upper))

    def _count(self, records: int, error: float) -> None:
        self.most, self.worst = max(self.most, records), max(self.worst, error)

    def quantile(self, k: int, value: float, side: int, counts: Sequence[int]) -> Quantile:
        """Return the quantile of the signed root that a limit on this side needs.

        Records are drawn where the unknown has this value, up to the first of the counts with which the error is small.
        """
        probability = 0.5 - side * self.level / 2
        at, done, first = self._held(k, value), 0, 0
        roots: list[float] = []
        drawing = draw_records(self.fit, at, counts[-1], self.seed)
        for count in counts:
            for values in islice(drawing, count - done):
                root = self._root_of(values, k, at)
                if np.isfinite(root):
                    roots.append(root)
            done = count
            if len(roots) < (1 - MAX_FAILED_SHARE) * count:
                raise EstimationError(f"{count - len(roots)} of {count} records drawn there could not be fitted.")
            first = first or len(roots)
            if quantile_error(np.array(roots), probability) <= LIMIT_ACCURACY:
                break
        return Quantile(probability, np.array(roots), first, done)

    def root(self, k: int, value: float) -> float:
        """Return the signed root of the record itself."""
        point = self.deviances.minimize({k: value}, self.limits.follow_to(k, value))
        return float(
            np.sign(self.deviances.theta[k] - value) * np.sqrt(max(self.deviances.scaled(point.deviance), 0.0))
        )

    def _at_root(self, k: int, wanted: float) -> float:
        """Return the value at which the signed root of the record itself is the wanted one."""
        theta, error = float(self.deviances.theta[k]), float(self.fit.std_errors[k])
        if abs(wanted) < 0.05:
            return theta - wanted * error
        is_level = self.fit.estimate.unknowns[k].kind in ("scale", "noise") and theta > 0
        wald = theta * np.exp(np.clip(-wanted * error / theta, -5, 5)) if is_level else theta - wanted * error
        found = self.limits.find(k, float(wald), wanted**2)
        if found.failure:
            raise EstimationError(found.failure)
        return found.value

    def _held(self, k: int, value: float) -> np.ndarray:
        point = self.deviances.minimize({k: value}, self.limits.follow_to(k, value))
        if point.failure:
            raise EstimationError(point.failure)
        return np.asarray(np.clip(point.theta, *self.deviances.bounds))

    def _root_of(self, values: list[np.ndarray], k: int, at: np.ndarray) -> float:
        drawn = self.deviances.criterion.redrawn(values, at)
        best, other = (drawn.maximize(held, at, nearly=True) for held in ({}, {k: float(at[k])}))
        if best.failure or other.failure:
            return np.nan
        scaled = self.deviances.scaled(2 * (best.log_density - other.log_density))
        return float(np.sign(best.theta[k] - at[k]) * np.sqrt(max(scaled, 0.0)))


def quantile_error(values: np.ndarray, probability: float) -> float:
    """Return the standard deviation of an empirical quantile, √(p (1 − p)/n)/f.

    1/f from the values as far to both sides as the quantile is uncertain, or by the density f of a normal law with the
    spread of the values, whichever is larger: single values in a tail tell little.
    """
    from scipy.stats import norm

    n, p = len(values), probability
    uncertain = np.sqrt(p * (1 - p) / n)
    normal = np.std(values, ddof=1) * uncertain / norm.pdf(norm.ppf(p)) if n > 1 else np.inf
    low, high = np.quantile(values, np.clip([p - uncertain, p + uncertain], 0.0, 1.0), method="weibull")
    return float(max(normal, (high - low) / 2))
