"""Intervals by profiles, and those of the table: profiles where Wald's would be misleading.

The deviance is computed once at each of Wald's limits, the others where the covariance says that they follow, and what
its model there foretells of the profile is compared (``profile_limits``). Where that is further away than a twentieth
of the interval's width, the profile is followed to its limits; where those differ from Wald's by more than a tenth of
the width, they take its place. A fit that is nearly linear in its unknowns pays two evaluations for each.

What a bound holds has its limit where the deviance, the others following, has reached the one-sided quantile; what the
kink of a prior holds has two limits. Where Newton's steps do not follow a profile, as across a kink of another unknown,
it is walked point by point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.assessment.deviances import deviances_of
from grisaille.assessment.profile import profile
from grisaille.assessment.profile_limits import ProfileLimit, ProfileLimits
from grisaille.assessment.slow_modes import slow_modes
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import why_no_profiles
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals, wald_intervals

DISAGREE, SUSPECT = 0.1, 0.05
"""Of the width: differences between Wald's limits and the profile's that count, and that are worth a closer look."""
EXACT_RELATIVE_ERROR = 1e-10
"""Relative standard errors that are rounding."""
FREE_EVALUATIONS = 40
"""Evaluations that are spent on the comparison in any case; more only where the fit itself took as many."""
MAX_LOCAL_UNKNOWNS = 20
"""Unknowns of single experiments from which on theirs are not compared: each takes a pass over all experiments, where a
fit itself passes over one."""


def auto_intervals(fit: Fitted, level: float) -> Intervals:
    """Return Wald's, and profiles where these disagree by more than a tenth of the width."""
    found = _compared(fit, level)
    return replace(found, notes=(*(mode.sentence for mode in slow_modes(fit)), *found.notes))


def _compared(fit: Fitted, level: float) -> Intervals:
    wald = wald_intervals(fit, level)
    reason = _why_wald(fit)
    if reason:
        return replace(wald, said=reason)
    try:
        return _WaldComparison(fit, level, wald).compared(always=False)
    except EstimationError as error:
        return replace(wald, said=f"not compared with profiles: {_first(str(error))}")


def profile_intervals(fit: Fitted, level: float) -> Intervals:
    """Return profiles of all unknowns; the bound or infinity on a side that the data leave open."""
    if fit.method.density.refits:
        return _walked(fit, level)
    return _WaldComparison(fit, level, wald_intervals(fit, level)).compared(always=True)


def _walked(fit: Fitted, level: float) -> Intervals:
    """Return profiles computed point by point, where only the estimator itself can fit again."""
    wald = wald_intervals(fit, level)
    lower, upper, kinds = wald.lower.copy(), wald.upper.copy(), list(wald.kinds)
    for k, name in enumerate(fit.names):
        if fit.estimate.free[k] or fit.estimate.at_kink[k]:
            lower[k], upper[k] = _walked_limits(fit, k, name, level)
            kinds[k] = "profile"
    return Intervals(lower, upper, tuple(kinds))


def _walked_limits(fit: Fitted, k: int, name: str, level: float) -> tuple[float, float]:
    u = fit.estimate.unknowns[k]
    low, high = profile(fit, name, level=level, points=4).interval
    return u.lower if low is None else low, u.upper if high is None else high


class _WaldComparison:
    """Wald's limits beside the profile's."""

    def __init__(self, fit: Fitted, level: float, wald: Intervals) -> None:
        self.fit, self.level, self.wald = fit, level, wald
        self.deviances = deviances_of(fit)
        e = fit.estimate
        zero = np.array([e.limits.get(u.name, np.nan) for u in e.unknowns])
        spread = self.deviances.spread(e.covariance)
        reaches = np.array([_reach(fit, wald, k) for k in range(len(zero))])
        self.limits = ProfileLimits(self.deviances.local, e.unknowns, self.deviances.theta, spread, zero, reaches)
        if self.limits.failure:
            raise EstimationError(self.limits.failure)
        self.lower, self.upper = wald.lower.copy(), wald.upper.copy()
        self.kinds, self.notes = list(wald.kinds), list[str]()

    def compared(self, *, always: bool) -> Intervals:
        e = self.fit.estimate
        local = [] if always else _many_local(self.fit)
        for k, name in enumerate(self.fit.names):
            if e.at_kink[k]:
                self._around_kink(k, name)
            elif not e.free[k]:
                self._one_sided(k)
            elif k not in local and 0 < self.fit.std_errors[k] < np.inf:
                self._two_sided(k, name, always)
        said = (
            f"not compared with the profiles of {len(local)} unknowns of single experiments, which would take longer "
            "than the fit: fit.intervals(method='profile')"
        )
        return Intervals(self.lower, self.upper, tuple(self.kinds), said if local else "", tuple(self.notes))

    def _two_sided(self, k: int, name: str, always: bool) -> None:
        u = self.fit.estimate.unknowns[k]
        low, high = max(float(self.wald.lower[k]), u.lower), min(float(self.wald.upper[k]), u.upper)
        self.lower[k], self.upper[k] = low, high
        width, threshold = float(self.wald.upper[k] - self.wald.lower[k]), self.deviances.reached(self.level, k)
        ends = [self.limits.find(k, end, threshold, 0.0 if always else SUSPECT * width) for end in (low, high)]
        if not always and not self._is_suspect(k, ends, SUSPECT * width):
            return
        found = [
            self.limits.find(k, at, threshold) if end.is_extrapolated else end
            for end, at in zip(ends, (low, high), strict=True)
        ]
        failed = next((end.failure for end in found if end.failure), "")
        if failed and (always or self.fit.estimate.at_kink.any()):
            self._walk(k, name)
        elif failed:
            self.notes.append(f"interval: Wald's for {name}; its profile could not be followed: {_first(failed)}.")
        elif always or self._is_suspect(k, found, DISAGREE * width):
            self.lower[k], self.upper[k] = (end.value for end in found)
            self.kinds[k] = "profile"

    def _around_kink(self, k: int, name: str) -> None:
        """Step from the limits with the others held to those with the others following."""
        size, theta = self.limits.coordinates[k].size, self.fit.estimate.theta[k]
        threshold = self.deviances.reached(self.level, k)
        found = [self.limits.find(k, float(theta + side * size), threshold) for side in (-1, 1)]
        if any(end.failure for end in found):
            self._walk(k, name)
        else:
            self.lower[k], self.upper[k] = (end.value for end in found)
            self.kinds[k] = "profile"

    def _walk(self, k: int, name: str) -> None:
        """Follow a profile point by point."""
        self.lower[k], self.upper[k] = _walked_limits(self.fit, k, name, self.level)
        self.kinds[k] = "profile"

    def _is_suspect(self, k: int, ends: list[ProfileLimit], far: float) -> bool:
        """Return whether one of the limits is further than this from Wald's inside of the bounds; or unknown."""
        wald = self.lower[k], self.upper[k]
        return any(not abs(end.value - at) <= far for end, at in zip(ends, wald, strict=True))

    def _one_sided(self, k: int) -> None:
        """Step from the limit with the others held to the one with the others following."""
        theta = self.fit.estimate.theta[k]
        other = theta + (1 if _is_lower(self.fit, k) else -1) * self.limits.coordinates[k].size
        if not np.isfinite(other) or other == theta:
            return
        found = self.limits.find(k, float(other), self.deviances.reached(max(2 * self.level - 1, 1e-6), k))
        if found.failure:
            return
        if _is_lower(self.fit, k):
            self.upper[k] = found.value
        else:
            self.lower[k] = found.value


def _many_local(fit: Fitted) -> list[int]:
    """Return the places of unknowns that belong to one of many experiments alone, where there are many of them."""
    local = [k for k, u in enumerate(fit.estimate.unknowns) if u.experiment is not None]
    return local if len(local) > MAX_LOCAL_UNKNOWNS and len(fit.estimate.cases) > 1 else []


def _is_lower(fit: Fitted, k: int) -> bool:
    """Return whether it is the lower bound that holds an unknown."""
    u, value = fit.estimate.unknowns[k], float(fit.estimate.theta[k])
    return abs(value - u.lower) <= abs(value - u.upper)


def _reach(fit: Fitted, wald: Intervals, k: int) -> float:
    """Return how far the limit of an unknown may be from the bound that holds it; NaN of others."""
    if fit.estimate.free[k]:
        return np.nan
    u, value = fit.estimate.unknowns[k], float(fit.estimate.theta[k])
    is_above = fit.estimate.at_kink[k] or _is_lower(fit, k)
    away = float(wald.upper[k] - value if is_above else value - wald.lower[k])
    return away if 0 < away < np.inf else min(u.upper - u.lower, max(u.size, abs(u.guess)))


def _why_wald(fit: Fitted) -> str:
    """Return why profiles are not asked for, in words; empty where they are."""
    e = fit.estimate
    if not e.is_likelihood:
        errors = "with sandwich errors: " if fit.method.has_sandwich else ""
        compared = "has no profiles" if why_no_profiles(fit.method) else "is not compared with profiles"
        return f"{errors}the criterion of {type(fit.method).__name__} is not a likelihood and {compared}"
    if not e.converged:
        return "not compared with profiles, because the fit has not converged"
    if e.caution:
        return "not compared with profiles, whose derivatives would lack the share of a jump"
    if (e.free & (fit.std_errors <= EXACT_RELATIVE_ERROR * np.abs(e.theta))).any():
        return "not compared with profiles: the fit is exact to rounding"
    if fit.method.density.refits:
        return "not compared with profiles, which fit again: fit.intervals(method='profile')"
    if fit.method.has_sandwich:
        kind = "robust" if fit.estimate.student is not None else "sandwich"
        return f"with {kind} errors, which profiles do not have"
    if 2 * (len(e.unknowns) - len(_many_local(fit))) > max(FREE_EVALUATIONS, e.evaluations):
        return (
            f"not compared with the profiles of {len(e.unknowns)} unknowns, which would take longer than the fit: "
            "fit.intervals(method='profile')"
        )
    return ""


def _first(text: str) -> str:
    """Return the first sentence."""
    return text.split(". ")[0].rstrip(".")
