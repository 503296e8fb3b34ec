"""Whether the approximation behind a likelihood matters at its maximum, by the slope of another approximation there.

Filters of nonlinear models, and Laplace's integral over trajectories, approximate the likelihood. Where two of them
have the same slope at an optimum, both would end there; where they do not, the second would move the estimates by

    Δθ ≈ −H⁻¹ (g' − g),        d = √(Δθᵀ C⁻¹ Δθ)

g, H: gradient and curvature of the criterion that was minimised; g': gradient of the other one; C: covariance of the
estimates. With H⁻¹ = C, d = √((g' − g)ᵀ C (g' − g)): a distance in standard errors. g' is a central difference of
values along the columns of a root of H⁻¹, over a fiftieth of a standard error: steps of the filters are frozen, so
values are smooth.

The two thresholds were chosen on wells, Van der Pol's oscillator, pendula and reactors, and confirmed on forty other
fits (``benchmarks/approximation.py``). What both approximations share, this does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NOTED, DOUBTED = 0.3, 1.0
"""Standard errors from which on a note says so, and from which on the table is marked."""
STEP = 0.02
"""Of differences, in standard errors."""
SEEN = 0.5
"""Change of log L over a tenth of an unknown that the first criterion leaves open: the other one sees it."""
BLIND = 0.02
"""Curvature of the other criterion along a direction in which the first one's is one: it does not see it."""
WAYS_OUT = (
    "gr.monte_carlo(fit.model, fit.experiments, …) shows how far estimates from such records are off; samples that are "
    "closer together or more precise leave less to approximate"
)


@dataclass(frozen=True)
class ApproximationCheck:
    """How far another approximation of the likelihood would move the estimates.

    first, other : what was fitted and what it was compared with, as in "the extended filter"
    distance : over all unknowns, in standard errors; infinite where the other one determines what the first leaves
        open, NaN where there is no comparison
    moves : of each unknown, in its standard errors; zero where it does not move
    obstacle : why there is no comparison
    is_blind : whether the other one does not see an unknown that the first one determines
    """

    first: str
    other: str
    distance: float
    moves: tuple[float, ...] = ()
    obstacle: str = ""
    is_blind: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether the other one would move the estimates noticeably."""
        return self.distance >= NOTED

    @property
    def is_doubted(self) -> bool:
        """Whether estimates and standard errors are those of an approximation that does not hold."""
        return self.distance >= DOUBTED

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
        """Return the sentence that is told without a mark, if there is one."""
        if self.obstacle:
            return (f"approximation: it was not checked how far {self.first} approximates: {self.obstacle}",)
        if not self.is_noted or self.is_doubted:
            return ()
        return (
            f"approximation: {self.described(names)}: the choice between them is felt, and standard errors do not "
            f"contain it.",
        )

    def described(self, names: Sequence[str]) -> str:
        """Return how far the other one would move which unknown."""
        if np.isinf(self.distance):
            open_ones = [n for n, m in zip(names, self.moves, strict=True) if np.isinf(m)]
            seeing, blind = (self.first, self.other) if self.is_blind else (self.other, self.first)
            return f"{seeing} sees {', '.join(open_ones)}, which {blind} does not"
        sizes = np.abs(self.moves)
        told = [k for k in np.argsort(-sizes) if sizes[k] >= max(0.5 * NOTED, 0.3 * sizes.max())][:3]
        moved = " and ".join(f"{names[k]} by about {self.moves[k]:+.2g}" for k in told).replace("-", "−")
        whole = f"the estimates by {self.distance:.2g}" if not told else moved
        return f"{self.other} would move {whole} standard errors from where {self.first} ends"


@dataclass(frozen=True)
class Optimum:
    """Where the first criterion was minimised.

    theta, bounds : of all unknowns
    gradient : of minus the log-likelihood alone, without priors
    covariance : of the estimates, infinite where the data leave them open
    inverse : H⁻¹ of the criterion, with the same directions left out
    free : which unknowns no bound decides
    """

    theta: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    gradient: np.ndarray
    covariance: np.ndarray
    inverse: np.ndarray
    free: np.ndarray


def compare_slopes(at: Optimum, value: Callable[[np.ndarray], float], first: str, other: str) -> ApproximationCheck:
    """Compare the slopes of two criteria at the optimum of the first.

    value : minus the log-likelihood by the other one, at values of all unknowns; NaN where it has none
    """
    variances = np.diag(at.covariance)
    known = at.free & np.isfinite(variances) & (variances > 0)
    moves, distance, is_blind = np.zeros(len(at.theta)), 0.0, False
    if known.any():
        places = np.flatnonzero(known)
        root = _root(at.inverse[np.ix_(places, places)])
        here = value(at.theta)
        found = [_differences(value, here, at, _embedded(column, places, at)) for column in root.T]
        slopes, bends = np.array(found).T
        if not np.isfinite(slopes).all():
            return ApproximationCheck(first, other, np.nan, (), f"{other} breaks down at the estimates.")
        change = -root @ (slopes - root.T @ at.gradient[places])
        moves[places] = change / np.sqrt(variances[places])
        scaled = np.linalg.solve(_root(at.covariance[np.ix_(places, places)]), change)
        distance = float(np.linalg.norm(scaled))
        if np.abs(bends).min() < BLIND:
            distance, is_blind = np.inf, True
            moves[
                places[int(np.argmax(np.abs(root[:, int(np.argmin(np.abs(bends)))]) / np.sqrt(variances[places])))]
            ] = np.inf
    for k in map(int, np.flatnonzero(at.free & ~np.isfinite(variances))):
        if _is_seen(value, at, k):
            moves[k], distance = np.inf, np.inf
    return ApproximationCheck(first, other, distance, tuple(moves.tolist()), is_blind=is_blind)


def _root(matrix: np.ndarray) -> np.ndarray:
    """A root of a covariance, also where rounding has left it without one by Cholesky."""
    scale = np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return np.asarray(scale[:, None] * (vectors * np.sqrt(np.clip(values, 1e-14, None))) @ vectors.T)


def _embedded(column: np.ndarray, places: np.ndarray, at: Optimum) -> np.ndarray:
    step = np.zeros(len(at.theta))
    step[places] = column
    return step


def _differences(
    value: Callable[[np.ndarray], float], here: float, at: Optimum, direction: np.ndarray
) -> tuple[float, float]:
    """Central first and second difference along a direction, shorter where a bound is near."""
    step = STEP
    for _ in range(8):
        ends = [at.theta + side * step * direction for side in (-1, 1)]
        if all(((e >= at.bounds[0]) & (e <= at.bounds[1])).all() for e in ends):
            break
        step /= 4
    below, above = (value(e) for e in ends)
    return (above - below) / (2 * step), (above - 2 * here + below) / step**2


def _is_seen(value: Callable[[np.ndarray], float], at: Optimum, k: int) -> bool:
    """Whether the other criterion changes with an unknown that the first leaves open."""
    found = []
    for side in (-0.1, 0.1):
        moved = at.theta.copy()
        moved[k] = np.clip(moved[k] + side * (abs(moved[k]) or 1.0), at.bounds[0][k], at.bounds[1][k])
        found.append(value(moved))
    return bool(np.isfinite(found).all() and abs(found[1] - found[0]) > SEEN)
