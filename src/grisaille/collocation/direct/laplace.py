"""The maximum of Laplace's likelihood over θ.

Quasi-Newton steps in scaled unknowns, logarithms for levels: the curvature of the least cost J*(θ) comes with every
path, that of ½ log det H_red is learnt from its gradients. At the end Newton's method, with differences of exact
gradients, gives the maximum and the Hessian whose inverse is the covariance of θ. Levels that vanish end at a floor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.direct.marginal import Marginal, marginal
from grisaille.collocation.direct.mesh import Floats
from grisaille.collocation.direct.newton import NewtonResult, bounded_step, solve_newton
from grisaille.collocation.direct.summary import DEAD
from grisaille.collocation.direct.transcription import Point, Transcription
from grisaille.collocation.flat_directions import or_nan, pseudo_inverse

DIFFERENCE, SHORT = 1e-4, 1e-2
"""Longest step of the differences that give the Hessian, in units of the scaled unknowns and of standard errors."""
VANISHED = 7.0
"""A level this far below its guess, in logarithms, counts as zero."""
LONGEST = 2.0
"""A step changes no scaled unknown by more."""
SADDLE = -1e-4
"""Least eigenvalue of the Hessian with unit diagonal: along a flat direction rounding gives a little less than 0."""
ACCURACY, ASYMMETRY = 1e-7, 10.0
"""Of the Hessian with unit diagonal: at best, and in units of what it lacks of symmetry."""
CONVERGED = 1e-5
"""Newton decrement at the end: within a few thousandths of a standard error."""


def maximize_laplace(
    program: Transcription, point: Point, bounds: tuple[Floats, Floats], tolerance: float, max_iterations: int
) -> tuple[NewtonResult, float | None, Floats, NDArray[np.bool_]]:
    """Path and θ at the maximum, the log-likelihood there, the covariance of θ, and which of θ no bound decided."""
    search = _Search(program, point, bounds, tolerance)
    first = search.at(search.inner(point.theta))
    if first is None:
        failed = solve_newton(program, point, bounds, free=False, tolerance=tolerance)
        message = "Laplace's approximation has no value at the guess: no path with positive curvature was found there"
        nothing = np.full((len(point.theta),) * 2, np.nan)
        return replace(failed, converged=False, message=message), None, nothing, np.ones(len(point.theta), dtype=bool)
    search.enlarge(point.theta, first)
    limits = search.limits(point.theta, bounds)
    xi, steps = search.descend(search.inner(point.theta), limits, max_iterations)
    xi, hessian, decrement = search.polish(xi, limits)
    best = search.at(xi)
    assert best is not None
    converged = decrement < CONVERGED
    message = f"the Newton decrement of the marginal likelihood is {decrement:.1e}"
    covariance = search.covariance(xi, hessian, limits)
    result = replace(best.result, converged=converged, iterations=steps, message=message)
    return result, -best.value, covariance, search.free(xi, limits)


class _Search:
    """The criterion as a function of scaled unknowns: logarithms of levels, others by their size."""

    def __init__(self, program: Transcription, point: Point, bounds: tuple[Floats, Floats], tolerance: float) -> None:
        self.program, self.point, self.tolerance = program, point, tolerance
        self.logarithmic = _levels(program, len(point.theta)) & (bounds[0] >= 0)
        self.size = np.where(point.theta != 0, np.abs(point.theta), program.slots.sizes)
        self.size[self.size == 0] = 1.0
        self.multipliers: tuple[Floats, Floats] | None = None
        self._kept: tuple[Floats, Marginal | None] | None = None
        self.accuracy = ACCURACY
        """Of the last Hessian, in units of its diagonal."""

    def enlarge(self, theta: Floats, first: Marginal) -> None:
        """Makes unknowns at least as large as their standard errors: a guess near zero tells no size."""
        bend = np.diag(first.curvature)
        errors = 1 / np.sqrt(np.where(bend > 0, bend, np.inf))
        known = (theta != 0) | (self.program.slots.sizes > 0)
        self.size = np.where(known | (errors == 0), np.maximum(self.size, errors), errors)
        self._kept = (self.inner(theta), first)

    def inner(self, theta: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(self.logarithmic, np.log(np.maximum(theta, 0.0)), theta / self.size))

    def outer(self, xi: Floats) -> Floats:
        return np.asarray(np.where(self.logarithmic, np.exp(np.minimum(xi, 300.0)), xi * self.size))

    def slope(self, xi: Floats) -> Floats:
        return np.asarray(np.where(self.logarithmic, self.outer(xi), self.size))

    def limits(self, theta: Floats, bounds: tuple[Floats, Floats]) -> Floats:
        """Bounds of ξ, (n, 2). The likelihood is flat in the logarithm of a level that vanishes: it ends somewhere."""
        limits = np.column_stack([self.inner(bounds[0]), self.inner(bounds[1])])
        floor = np.where(self.logarithmic, self.inner(theta) - VANISHED, -np.inf)
        return np.column_stack([np.maximum(limits[:, 0], floor), limits[:, 1]])

    def at(self, xi: Floats) -> Marginal | None:
        if self._kept is not None and np.array_equal(self._kept[0], xi):
            return self._kept[1]
        start = replace(self.point, theta=self.outer(xi))
        found = marginal(self.program, start, self.tolerance, self.multipliers)
        if found is None and self.multipliers is not None:
            found = marginal(self.program, start, self.tolerance)
        if found is not None:
            self.point, self.multipliers = found.result.point, found.result.multipliers
        self._kept = (np.array(xi), found)
        return found

    def value_and_gradient(self, xi: Floats) -> tuple[float, Floats]:
        found = self.at(xi)
        if found is None or not np.isfinite(found.value):
            return 1e10, np.zeros_like(xi)
        return found.value, found.gradient * self.slope(xi)

    def descend(self, xi: Floats, limits: Floats, max_iterations: int) -> tuple[Floats, int]:
        """Quasi-Newton steps: the curvature of J* is known, that of ½ log det is learnt (symmetric rank one)."""
        learnt = np.zeros((len(xi), len(xi)))
        for k in range(max_iterations):
            now = self.at(xi)
            assert now is not None
            slope = self.slope(xi)
            g = now.gradient * slope
            known = now.curvature * np.outer(slope, slope) + np.diag(
                np.where(self.logarithmic, now.smooth * slope, 0.0)
            )
            lower, upper = np.maximum(limits[:, 0] - xi, -LONGEST), np.minimum(limits[:, 1] - xi, LONGEST)
            step = bounded_step(known + learnt, g, lower, upper, 0.0, strict=False)
            if -float(g @ step) < 1e-9:
                return xi, k
            after = self._search(xi, step, now.value, float(g @ step))
            if after is None:
                if not learnt.any():
                    return xi, k
                learnt[:] = 0.0
                continue
            there = self.at(after)
            assert there is not None
            moved = after - xi
            rest = there.freedom * self.slope(after) - now.freedom * slope - learnt @ moved
            if abs(rest @ moved) > 1e-8 * np.linalg.norm(rest) * np.linalg.norm(moved):
                learnt += np.outer(rest, rest) / (rest @ moved)
            xi = after
        return xi, max_iterations

    def _search(self, xi: Floats, step: Floats, value: float, slope: float) -> Floats | None:
        """Where the criterion is lower along a step."""
        fraction = 1.0
        for _ in range(12):
            found = self.at(xi + fraction * step)
            if found is not None and found.value <= value + 1e-4 * fraction * slope + 1e-12 * abs(value):
                return np.asarray(xi + fraction * step)
            fraction /= 2
        return None

    def polish(self, xi: Floats, limits: Floats) -> tuple[Floats, Floats, float]:
        """Newton steps with differences of gradients; ξ, the Hessian there and the last decrement."""
        for _ in range(4):
            value, g = self.value_and_gradient(xi)
            H = self.hessian(xi)
            free = self.free(xi, limits) & (np.abs(np.diag(H)) > DEAD)
            inverse, _, lowest = pseudo_inverse(H, free)
            if lowest < SADDLE:
                return xi, H, np.inf
            step = -inverse @ g
            decrement = float(-g @ step) / 2
            if decrement < 1e-10:
                return xi, H, decrement
            trial = np.clip(xi + step, limits[:, 0], limits[:, 1])
            if not self.value_and_gradient(trial)[0] <= value:
                return xi, H, decrement
            xi = trial
        return xi, H, decrement

    def hessian(self, xi: Floats) -> Floats:
        rows, now = [], self.at(xi)
        bend = np.zeros(len(xi)) if now is None else np.abs(np.diag(now.curvature)) * self.slope(xi) ** 2
        steps = np.minimum(DIFFERENCE, SHORT / np.sqrt(np.maximum(bend, 1e-300)))
        for unit, step in zip(np.diag(steps), steps, strict=True):
            ahead, behind = (self.value_and_gradient(xi + s * unit)[1] for s in (1, -1))
            rows.append((ahead - behind) / (2 * step))
        H = np.array(rows).reshape(len(xi), len(xi))
        size = np.sqrt(np.maximum(np.abs(np.diag(H)), DEAD))
        asymmetry = float((np.abs(H - H.T) / np.outer(size, size)).max(initial=0.0))
        self.accuracy = float(np.clip(ASYMMETRY * asymmetry, ACCURACY, -SADDLE))
        return np.asarray((H + H.T) / 2)

    def covariance(self, xi: Floats, hessian: Floats, limits: Floats) -> Floats:
        free = self.free(xi, limits) & (np.abs(np.diag(hessian)) > DEAD)
        inverse, lost, lowest = pseudo_inverse(hessian, free, flat=self.accuracy)
        slope = self.slope(xi)
        return or_nan(inverse * np.outer(slope, slope), lost | (lowest < SADDLE))

    @staticmethod
    def free(xi: Floats, limits: Floats) -> NDArray[np.bool_]:
        return np.asarray((xi > limits[:, 0] + 1e-9) & (xi < limits[:, 1] - 1e-9))


def _levels(program: Transcription, count: int) -> np.ndarray:
    found = np.zeros(count, dtype=bool)
    for r in range(len(program.records)):
        for k, name in enumerate(program.slots.names):
            if program.slots.index[r, k] >= 0 and name.startswith(("scale(", "noise(")):
                found[program.slots.index[r, k]] = True
    return found
