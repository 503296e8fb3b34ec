"""Whether the approximation behind a likelihood matters at its maximum, by the slope of another approximation there.

Filters of nonlinear models, and Laplace's integral over trajectories, approximate the likelihood. Where two of them
have the same slope at an optimum, both would end there; where they do not, the second would move the estimates by

    Δθ ≈ −H⁻¹ (g' − g),        d = √(Δθᵀ C⁻¹ Δθ)

g, H: gradient and curvature of the criterion that was minimised; g': gradient of the other one; C: covariance of the
estimates. With H⁻¹ = C, d = √((g' − g)ᵀ C (g' − g)): a distance in standard errors. Slopes may agree by chance where
curvatures by single unknowns do not, so these are compared as well. Both are central differences of
values over a hundredth of a standard error: steps of the filters are frozen, so values are smooth.

The two thresholds were chosen on wells, Van der Pol's oscillator, pendula and reactors, and confirmed on forty other
fits (``benchmarks/approximation.py``). What both approximations share, this does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NOTED, DOUBTED = 0.3, 1.0
"""Standard errors from which on a note says so, and from which on the table is marked."""
DIFFERENCE_STEP = 0.005
"""Of differences, in standard errors of an unknown with the others known."""
MIN_LIKELIHOOD_CHANGE = 0.5
"""Change of log L over a tenth of an unknown that the first criterion leaves open: the other one sees it."""
OTHER_CURVATURE, WHOLLY_OTHER = 1.25, 2.0
"""Ratios of curvatures, either way, from which on a note says so (standard errors differ by a tenth), and the mark is
set (by two fifths)."""
MIN_CURVATURE_RATIO = 0.02
"""Ratio below which the other one does not determine an unknown at all."""
WAYS_OUT = (
    "gr.monte_carlo(fit.model, fit.experiments, …) shows how far estimates from such records are off; samples that are "
    "closer together or more precise leave less to approximate"
)


@dataclass(frozen=True)
class ApproximationCheck:
    """How far another approximation of the likelihood would change the estimates.

    first, other : what was fitted and what it was compared with, as in "the extended filter"
    distance : over all unknowns, in standard errors; infinite where the other one determines what the first leaves
        open, NaN where there is no comparison
    moves : of each unknown, in its standard errors; zero where it does not move
    curvatures : of the other one by each unknown, in those of the first; one where there is no comparison
    obstacle : why there is no comparison
    """

    first: str
    other: str
    distance: float
    moves: tuple[float, ...] = ()
    curvatures: tuple[float, ...] = ()
    obstacle: str = ""

    @property
    def is_noted(self) -> bool:
        """Return whether the other one would change the estimates or their standard errors noticeably."""
        return self.distance >= NOTED or self._largest_ratio >= OTHER_CURVATURE

    @property
    def other_is_blind(self) -> bool:
        """Return whether the other one does not determine an unknown that the first one does."""
        return any(c < MIN_CURVATURE_RATIO for c in self.curvatures)

    @property
    def is_doubted(self) -> bool:
        """Return whether estimates and standard errors are those of an approximation that does not hold."""
        return self.distance >= DOUBTED or self._largest_ratio >= WHOLLY_OTHER

    @property
    def _largest_ratio(self) -> float:
        return max((max(c, 1 / c) if c > 0 else np.inf for c in self.curvatures), default=1.0)

    def doubts(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the sentence that goes with the mark of the table, if there is one."""
        if not self.is_doubted:
            return ()
        return (
            f"approximation: {self.described(names)}. The model is so nonlinear over its uncertainty that neither "
            f"is the likelihood: estimates, standard errors, intervals, AIC and BIC are those of an approximation "
            f"that does not hold here. {WAYS_OUT}.",
        )

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the sentence that is printed without a mark, if there is one."""
        if self.obstacle:
            return (f"approximation: it was not checked how far {self.first} approximates: {self.obstacle}",)
        if not self.is_noted or self.is_doubted:
            return ()
        return (
            f"approximation: {self.described(names)}: the choice between them changes the estimates, and "
            f"standard errors do not "
            f"contain it.",
        )

    def described(self, names: Sequence[str]) -> str:
        """Return what the other one would change of which unknown, in words."""
        seen = [n for n, m in zip(names, self.moves, strict=True) if np.isinf(m)]
        if seen:
            return f"{self.other} sees {', '.join(seen)}, which {self.first} does not"
        unseen = [n for n, c in zip(names, self.curvatures, strict=True) if c < MIN_CURVATURE_RATIO]
        if unseen:
            return f"{self.first} determines {', '.join(unseen)}, and {self.other} does not"
        sizes, said = np.abs(self.moves), []
        moved = [k for k in np.argsort(-sizes) if sizes[k] >= max(0.5 * NOTED, 0.3 * sizes.max())][:3]
        if moved and self.distance >= NOTED:
            much = " and ".join(f"{names[k]} by about {self.moves[k]:+.2g}" for k in moved).replace("-", "−")
            said.append(f"would move {much} standard errors from where {self.first} ends")
        elif self.distance >= NOTED:
            said.append(f"would move the estimates by {self.distance:.2g} standard errors from those of {self.first}")
        others = [k for k, c in enumerate(self.curvatures) if not 1 / OTHER_CURVATURE < c < OTHER_CURVATURE]
        if others:
            worst = max(others, key=lambda k: abs(np.log(self.curvatures[k])))
            factor = self.curvatures[worst] ** -0.5
            said.append(f"has a standard error of {names[worst]} that is {factor:.2g} times as large")
        return f"{self.other} {' and '.join(said)}"


@dataclass(frozen=True)
class CriterionMinimum:
    """Where the first criterion was minimised.

    theta, bounds : of all unknowns
    gradient : of the criterion, priors included
    covariance : of the estimates, infinite where the data leave them open
    inverse : H⁻¹ of the criterion, with the same directions left out
    free : which unknowns no bound decides
    is_curved : of which unknowns ``inverse`` is that of second derivatives, so that curvatures can be compared
    """

    theta: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    gradient: np.ndarray
    covariance: np.ndarray
    inverse: np.ndarray
    free: np.ndarray
    is_curved: np.ndarray


@dataclass(frozen=True)
class CriterionTerm:
    """A term of the other criterion: an experiment, the priors.

    unknowns : which of them move it
    value : at values of all unknowns; NaN where it has none
    """

    unknowns: Sequence[int]
    value: Callable[[np.ndarray], float]


def compare_slopes(at: CriterionMinimum, parts: Sequence[CriterionTerm], first: str, other: str) -> ApproximationCheck:
    """Compare the slopes of two criteria at the optimum of the first.

    parts : whose sum is the other criterion
    """
    variances = np.diag(at.covariance)
    known = at.free & np.isfinite(variances) & (variances > 0)
    moves, curvatures, distance = np.zeros(len(at.theta)), np.ones(len(at.theta)), 0.0
    if known.any():
        places = np.flatnonzero(known)
        inverse = at.inverse[np.ix_(places, places)]
        steps = DIFFERENCE_STEP / np.sqrt(np.diag(np.linalg.inv(inverse)))
        here = [part.value(at.theta) for part in parts]
        found = [_differences(parts, here, at, k, step) for k, step in zip(places.tolist(), steps, strict=True)]
        slopes, bends = np.array(found).T
        if not np.isfinite(slopes).all():
            return ApproximationCheck(first, other, np.nan, obstacle=f"{other} breaks down at the estimates.")
        change = -inverse @ (slopes - at.gradient[places])
        moves[places] = change / np.sqrt(variances[places])
        scaled = np.linalg.solve(_root(at.covariance[np.ix_(places, places)]), change)
        distance = float(np.linalg.norm(scaled))
        curvatures[places] = np.where(at.is_curved[places], bends * (steps / DIFFERENCE_STEP) ** 2, 1.0)
    for k in map(int, np.flatnonzero(at.free & ~np.isfinite(variances))):
        if _is_seen(parts, at, k):
            moves[k], distance = np.inf, np.inf
    return ApproximationCheck(first, other, distance, tuple(moves.tolist()), tuple(curvatures.tolist()))


def _root(matrix: np.ndarray) -> np.ndarray:
    """Return a root of a covariance, also where rounding has left it without one by Cholesky."""
    scale = np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return np.asarray(scale[:, None] * (vectors * np.sqrt(np.clip(values, 1e-14, None))) @ vectors.T)


def _differences(
    parts: Sequence[CriterionTerm], here: Sequence[float], at: CriterionMinimum, k: int, step: float
) -> tuple[float, float]:
    """Return first and second derivative by one unknown from central differences, shorter where a bound is near."""
    to_bound = min(at.theta[k] - at.bounds[0][k], at.bounds[1][k] - at.theta[k])
    step = min(step, 0.5 * to_bound) if to_bound > 0 else step
    moved, slope, bend = np.zeros(len(at.theta)), 0.0, 0.0
    moved[k] = step
    for part, middle in zip(parts, here, strict=True):
        if k in part.unknowns:
            below, above = part.value(at.theta - moved), part.value(at.theta + moved)
            slope, bend = slope + (above - below) / (2 * step), bend + (above - 2 * middle + below) / step**2
    return slope, bend


def _is_seen(parts: Sequence[CriterionTerm], at: CriterionMinimum, k: int) -> bool:
    """Return whether the other criterion changes with an unknown that the first leaves open."""
    found = []
    for side in (-0.1, 0.1):
        moved = at.theta.copy()
        moved[k] = np.clip(moved[k] + side * (abs(moved[k]) or 1.0), at.bounds[0][k], at.bounds[1][k])
        found.append(sum(part.value(moved) for part in parts if k in part.unknowns))
    here = sum(part.value(at.theta) for part in parts if k in part.unknowns)
    return bool(np.isfinite([here, *found]).all() and max(abs(value - here) for value in found) > MIN_LIKELIHOOD_CHANGE)
