"""One limit of a profile: where the deviance has reached a threshold with the others at their best.

    f(ξ) = ½ q²,        ∂f/∂ξ_o = 0 for all others,        f = ½ (deviance above its minimum)

With the local model f + gᵀd + ½ dᵀH d and the others eliminated from it, ξ_o following ξ_k by −H_oo⁻¹ (g_o + H_ok u),

    f_r = f − ½ g_oᵀH_oo⁻¹g_o,     g_r = g_k − H_ko H_oo⁻¹g_o,     ζ = √(2 f_r),     u = (q − ζ) ζ / g_r:

Newton's method on ζ, which is nearly a straight line along a profile. H is the expected information where the point is,
corrected by what the Hessian at the estimate differs from it and, on the way, by the gradients that are met (symmetric
rank-one updates). A bound holds others as long as the gradient pushes them
out. A level that is zero at the estimate moves by its square, in which the likelihood is not flat there.
Reference: D. J. Venzon, S. H. Moolgavkar, Applied Statistics 37 (1988) 87.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.assessment.profile_points import LocalQuadratic
from grisaille.bound_experiment.unknown import Unknown

MAX_EVALUATIONS = 60
"""Evaluations of one limit."""
CLOSE, ENOUGH = 3e-4, 0.02
"""Of the threshold: how closely the deviance and the others' share of it are met, or at least when time is up."""
REACH, LOG_REACH = 1e3, 12.0
"""In sizes or logarithms: limits further away are none."""
MAX_STEP = 3.0
"""Of the distance to Wald's limit: the longest step."""
SMALLEST_LEVEL = 1e-3
"""Of its limit: what a level that is zero begins with."""
MAX_FAILURES = 6
MAX_DEVIANCE_OF_OTHERS = 0.1
"""Of the threshold: where the others could lower the deviance by more, they are moved first."""
MIN_BRACKET_WIDTH = 1e-2
"""Of the way: brackets no wider are given up where the model points beyond them."""
LONGEST, HALVES = 2.0, 6
"""The longest move of others, in logarithms or sizes, and how often it is shortened."""


@dataclass(frozen=True)
class ProfileCoordinate:
    """The coordinate in which one unknown is varied: its logarithm, its square, or itself, in units of a size."""

    kind: str
    size: float
    lower: float
    upper: float
    bounds: tuple[float, float]
    """Of the unknown itself: on the way back rounding may not leave them."""

    @classmethod
    def of(cls, unknown: Unknown, value: float, error: float, limit: float, reach: float) -> ProfileCoordinate:
        """Choose the coordinate of an unknown whose estimate is ``value`` ± ``error``.

        limit : of a level that is zero
        reach : of an unknown that a bound holds, how far away its limit may be; NaN of others. Its logarithm is not
            followed: near a bound of zero it would go on for ever
        """
        bounds = unknown.lower, unknown.upper
        if value == 0 and unknown.lower == 0 and limit > 0:
            return cls("square", limit, SMALLEST_LEVEL**2, (unknown.upper / limit) ** 2, bounds)
        if reach > 0:
            return cls("plain", reach, unknown.lower / reach, unknown.upper / reach, bounds)
        positive = value > 0 and unknown.lower >= 0
        if positive and (unknown.logarithmic or unknown.kind in ("scale", "noise")):
            low = np.log(unknown.lower / value) if unknown.lower > 0 else -np.inf
            return cls("log", value, low, np.log(unknown.upper / value), bounds)
        size = max(abs(value), error if np.isfinite(error) else 0.0) or unknown.size
        return cls("plain", size, unknown.lower / size, unknown.upper / size, bounds)

    def inner(self, value: float) -> float:
        if self.kind == "square":
            return max((value / self.size) ** 2, self.lower)
        return float(np.log(value / self.size)) if self.kind == "log" else value / self.size

    def outer(self, xi: float) -> float:
        if self.kind == "square":
            value = self.size * float(np.sqrt(xi))
        else:
            value = self.size * (float(np.exp(xi)) if self.kind == "log" else xi)
        return float(np.clip(value, *self.bounds))

    def slope(self, value: float) -> float:
        """Return dθ/dξ."""
        if self.kind == "square":
            return self.size**2 / (2 * value)
        return value if self.kind == "log" else self.size


@dataclass(frozen=True)
class ProfileLimit:
    """One end of an interval."""

    value: float
    """Infinite where the deviance does not reach the threshold; the bound where that comes first."""
    failure: str = ""
    """Why there is none."""
    is_extrapolated: bool = False
    """By one evaluation at Wald's limit, not followed."""


class ProfileLimits:
    """Limits around one estimate."""

    def __init__(
        self,
        local: Callable[[np.ndarray], LocalQuadratic],
        unknowns: Sequence[Unknown],
        theta: np.ndarray,
        covariance: np.ndarray,
        zero_limits: np.ndarray,
        reaches: np.ndarray | None = None,
    ) -> None:
        self.local, self.theta = local, theta
        reaches = np.full(len(theta), np.nan) if reaches is None else reaches
        errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
        self.coordinates = [
            ProfileCoordinate.of(u, float(v), float(s), float(m), float(r))
            for u, v, s, m, r in zip(unknowns, theta, errors, zero_limits, reaches, strict=True)
        ]
        self.lower = np.array([c.lower for c in self.coordinates])
        self.upper = np.array([c.upper for c in self.coordinates])
        self.centre = self.inner(theta)
        self.known = np.isfinite(np.diag(covariance))
        slopes = self._slopes(self.outer(self.centre))
        self.covariance = np.where(self.known[:, None] & self.known, covariance, 0.0) / np.outer(slopes, slopes)
        here = self.at(self.centre)
        self.failure = here.failure
        self.correction = np.zeros_like(covariance)
        moving = self.known & (np.diag(self.covariance) > 0)
        if not here.failure and moving.any():
            part = np.ix_(moving, moving)
            size = np.sqrt(np.diag(self.covariance)[moving])
            exact = np.linalg.pinv(self.covariance[part] / np.outer(size, size)) / np.outer(size, size)
            self.correction[part] = exact - here.curvature[part]

    def find(self, k: int, wald: float, threshold: float, enough: float = 0.0) -> ProfileLimit:
        """Return the limit of unknown k on one side, searched from Wald's limit.

        threshold : q², the deviance there
        enough : a distance; where the first evaluation foretells a limit so close to Wald's, that is the answer
        """
        return _LimitSearch(self, k, wald, float(np.sqrt(threshold)), enough).follow()

    def follow_to(self, k: int, value: float) -> np.ndarray:
        """Return where the covariance predicts the other unknowns to be when unknown k has a value."""
        way = _LimitSearch(self, k, value, 1.0, 0.0)
        moved = self.outer(way._tangent(way._within(way._inner_of(value))))
        moved[k] = value
        return moved

    def curved(self, local: LocalQuadratic, free: np.ndarray, correction: np.ndarray) -> np.ndarray:
        """Return H of the free unknowns: corrected, where that bends upwards."""
        part = np.ix_(free, free)
        for H in (local.curvature + correction, local.curvature + self.correction, local.curvature):
            size = np.sqrt(np.maximum(np.diag(H)[free], 1e-300))
            if (np.diag(H)[free] > 0).all() and np.linalg.eigvalsh(H[part] / np.outer(size, size))[0] > 1e-8:
                return np.asarray(H)
        return np.asarray(local.curvature + np.diag(1e-6 * np.diag(local.curvature) + 1e-12))

    def inner(self, theta: np.ndarray) -> np.ndarray:
        return np.array([c.inner(float(v)) for c, v in zip(self.coordinates, theta, strict=True)])

    def outer(self, xi: np.ndarray) -> np.ndarray:
        return np.array([c.outer(float(v)) for c, v in zip(self.coordinates, xi, strict=True)])

    def _slopes(self, theta: np.ndarray) -> np.ndarray:
        return np.array([c.slope(float(v)) for c, v in zip(self.coordinates, theta, strict=True)])

    def at(self, xi: np.ndarray) -> LocalQuadratic:
        theta = self.outer(xi)
        # others may be led to where the model overflows, which is an answer
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = self.local(theta)
        if not found.failure and not all(np.isfinite(v).all() for v in (found.value, found.slope, found.curvature)):
            found = replace(found, failure="the deviance has no finite slope there")
        if found.failure:
            return found
        slopes = self._slopes(theta)
        return LocalQuadratic(found.value, found.slope * slopes, found.curvature * np.outer(slopes, slopes))


class _LimitSearch:
    """From Wald's limit to the profile's."""

    def __init__(self, limits: ProfileLimits, k: int, wald: float, q: float, enough: float) -> None:
        self.limits, self.k, self.q, self.enough = limits, k, q, enough
        self.coordinate = limits.coordinates[k]
        self.side = 1.0 if wald > limits.theta[k] else -1.0
        self.wald = wald
        self.others = limits.known.copy()
        self.others[k] = False
        centre = limits.centre[k]
        reach = LOG_REACH if self.coordinate.kind == "log" else REACH
        ends = limits.lower[k], limits.upper[k]
        self.end = max(ends[0], centre - reach) if self.side < 0 else min(ends[1], centre + reach)
        self.is_bound = self.end in ends
        self.evaluations = 0
        self.correction = limits.correction.copy()
        self.before: tuple[np.ndarray, LocalQuadratic] | None = None
        self.inside, self.outside = centre, np.nan
        """Coordinates with a deviance below and above the threshold, the others nearly at their best."""

    def follow(self) -> ProfileLimit:
        k, is_first, failures = self.k, True, 0
        last = self.limits.centre
        xi = self._tangent(self._within(self._inner_of(self.wald)))
        longest = MAX_STEP * max(abs(xi[k] - last[k]), 1e-12)
        found, share, zeta, target = self._evaluate(xi), np.inf, 0.0, 0.0
        while self.evaluations < MAX_EVALUATIONS:
            if found.failure:
                failures += 1
                if failures > MAX_FAILURES:
                    return ProfileLimit(np.nan, found.failure)
                xi = last + 0.5 * (xi - last)
                found = self._evaluate(xi)
                continue
            u, zeta, share = self._step(xi, found)
            target = float(xi[k] + np.clip(u, -longest, longest))
            if is_first and share < MAX_DEVIANCE_OF_OTHERS * self.q**2:
                foretold = self.coordinate.outer(self._within(target))
                if abs(foretold - self.wald) <= self.enough:
                    return ProfileLimit(foretold, is_extrapolated=True)
            is_first = False
            if xi[k] == self.end and 2 * found.value < self.q**2:
                return ProfileLimit(self._open())
            if share > MAX_DEVIANCE_OF_OTHERS * self.q**2:
                last = xi
                xi, found = self._settled(xi, found)
                continue
            settled = share < CLOSE * self.q**2
            if settled and abs(zeta / self.q - 1) < CLOSE:
                return ProfileLimit(self.coordinate.outer(self._within(target)))
            self._narrow(float(xi[k]), found, zeta, share)
            target = self._bracketed(float(xi[k]), target)
            last, xi = xi, self._moved(xi, found, target)
            found = self._evaluate(xi)
        if not found.failure and share < ENOUGH * self.q**2 and abs(zeta / self.q - 1) < ENOUGH:
            return ProfileLimit(self.coordinate.outer(self._within(target)))
        return ProfileLimit(np.nan, "the profile was not followed to its limit")

    def _evaluate(self, xi: np.ndarray) -> LocalQuadratic:
        self.evaluations += 1
        found = self.limits.at(xi)
        if not found.failure:
            self._learn(xi, found)
            self.before = xi, found
        return found

    def _learn(self, xi: np.ndarray, found: LocalQuadratic) -> None:
        """Correct H so that it gives the observed change of the gradient (symmetric rank-one update)."""
        if self.before is None:
            return
        s, y = xi - self.before[0], found.slope - self.before[1].slope
        rest = y - (found.curvature + self.correction) @ s
        size = float(rest @ s)
        scale = np.sqrt(np.maximum(np.diag(found.curvature), 1e-12))
        if abs(size) > 1e-4 * np.linalg.norm(rest / scale) * np.linalg.norm(s * scale):
            self.correction = self.correction + np.outer(rest, rest) / size

    def _settled(self, xi: np.ndarray, found: LocalQuadratic) -> tuple[np.ndarray, LocalQuadratic]:
        """Return the others a step nearer to their best with the unknown held, shortened until f is lower."""
        whole = self._moved(xi, found, float(xi[self.k])) - xi
        longest = float(np.abs(whole).max())
        share = min(1.0, LONGEST / longest) if longest > 0 else 0.0
        for _ in range(HALVES):
            trial = xi + share * whole
            there = self._evaluate(trial)
            if not there.failure and there.value < found.value:
                return trial, there
            share *= 0.3
        self.evaluations = MAX_EVALUATIONS
        return xi, found

    def _step(self, xi: np.ndarray, found: LocalQuadratic) -> tuple[float, float, float]:
        """Return the step to the limit in the model at this point, ζ here, and twice what the others could still lower
        f by.
        """
        k = self.k
        free = self._free(xi, found)
        H = self.limits.curved(found, free | self._other_unknowns, self.correction)
        solved, pull = self._eliminated(H, found, free)
        share = float(found.slope[free] @ solved) if free.any() else 0.0
        reduced = found.value - 0.5 * share
        slope = float(found.slope[k] - H[k, free] @ solved) if free.any() else float(found.slope[k])
        bend = float(H[k, k] - H[k, free] @ pull) if free.any() else float(H[k, k])
        zeta = float(np.sqrt(max(2 * reduced, 0.0)))
        if slope * self.side > 0 and zeta > 0.05 * self.q:
            u = (self.q - zeta) * zeta / slope
        else:
            u = self.side * (self.q - zeta) / np.sqrt(max(bend, 1e-12))
        return float(u), zeta, share

    def _moved(self, xi: np.ndarray, found: LocalQuadratic, target: float) -> np.ndarray:
        """Return the point at another value of the unknown, the others following it."""
        u = target - xi[self.k]
        free = self._free(xi, found)
        for _ in range(len(xi)):
            H = self.limits.curved(found, free | self._other_unknowns, self.correction)
            solved, pull = self._eliminated(H, found, free)
            moved = xi.copy()
            moved[self.k] = target
            if free.any():
                moved[free] -= np.clip(solved + pull * u, -LONGEST, LONGEST)
            over = free & ((moved < self.limits.lower) | (moved > self.limits.upper))
            if not over.any():
                break
            xi = np.where(over, np.clip(moved, self.limits.lower, self.limits.upper), xi)
            free = free & ~over
        return np.asarray(moved)

    def _eliminated(self, H: np.ndarray, found: LocalQuadratic, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return H_oo⁻¹ g_o and H_oo⁻¹ H_ok, with steps of others that hardly bend f no longer than ``LONGEST``."""
        if not free.any():
            return np.zeros(0), np.zeros(0)
        inner = H[np.ix_(free, free)] + np.diag(np.abs(found.slope[free]) / LONGEST)
        size = np.sqrt(np.maximum(np.diag(inner), 1e-300))
        inner = inner / np.outer(size, size)
        right = np.column_stack([found.slope[free], H[free, self.k]]) / size[:, None]
        solved = np.linalg.lstsq(inner, right, rcond=1e-12)[0] / size[:, None]
        return solved[:, 0], solved[:, 1]

    @property
    def _other_unknowns(self) -> np.ndarray:
        return np.asarray(np.arange(len(self.others)) == self.k)

    def _free(self, xi: np.ndarray, found: LocalQuadratic) -> np.ndarray:
        """Return the other unknowns that no bound holds and that the criterion depends on."""
        near = 1e-9 * (1 + np.abs(xi))
        low, high = xi <= self.limits.lower + near, xi >= self.limits.upper - near
        held = (low & (found.slope > 0)) | (high & (found.slope < 0))
        return np.asarray(self.others & ~held & (np.diag(found.curvature) > 1e-14))

    def _tangent(self, value: float) -> np.ndarray:
        """Return the others on the line along which the covariance correlates them with the unknown."""
        C, k, centre = self.limits.covariance, self.k, self.limits.centre
        u = value - centre[k]
        along = C[:, k] / C[k, k] if C[k, k] > 0 else np.zeros(len(C))
        along[k] = 1.0
        # a logarithm may be told with an error of many
        logs = np.array([c.kind == "log" for c in self.limits.coordinates])
        widest = float(np.abs(along[logs] * u).max(initial=0.0))
        share = min(1.0, LONGEST / widest) if widest > 0 else 1.0
        xi = np.clip(centre + share * along * u, self.limits.lower, self.limits.upper)
        xi[k] = value if share == 1 else self._within(centre[k] + share * u)
        return np.asarray(xi)

    def _inner_of(self, value: float) -> float:
        """Return Wald's limit in the coordinate; where it lies outside of the range, half way to the end."""
        c = self.coordinate
        if c.kind == "log" and value <= 0:
            return max(-LOG_REACH, -1.0 if not np.isfinite(c.lower) else c.lower)
        return c.inner(value)

    def _within(self, xi: float) -> float:
        return float(max(xi, self.end) if self.side < 0 else min(xi, self.end))

    def _narrow(self, at: float, found: LocalQuadratic, zeta: float, share: float) -> None:
        """Narrow the bracket to what lies inside for certain, whatever the others do; outside only where they hardly
        change.
        """
        if 2 * found.value < self.q**2:
            self.inside = at if self.side * (at - self.inside) > 0 else self.inside
        elif zeta > self.q and share < 10 * CLOSE * self.q**2:
            self.outside = at if np.isnan(self.outside) or self.side * (self.outside - at) > 0 else self.outside

    def _bracketed(self, at: float, target: float) -> float:
        """Return a target inside the bracket, whose outer end may have moved with slowly changing other unknowns."""
        target = self._within(target)
        if self.side * (target - self.inside) <= 0:
            other = at if np.isnan(self.outside) else self.outside
            return float(self.inside + 0.5 * (other - self.inside))
        if not np.isnan(self.outside) and self.side * (self.outside - target) <= 0:
            if abs(self.outside - at) < MIN_BRACKET_WIDTH * abs(self.outside - self.limits.centre[self.k]):
                self.outside = np.nan
                return target
            return float(self.inside + 0.5 * (self.outside - self.inside))
        return target

    def _open(self) -> float:
        """Return the declared bound, infinite without one: the deviance does not reach the threshold before it."""
        return self.coordinate.bounds[0 if self.side < 0 else 1]
