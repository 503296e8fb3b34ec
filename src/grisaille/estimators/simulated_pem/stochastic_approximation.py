"""Stochastic approximation with unbiased gradients: fresh realizations at every step, none of them stored.

Each step draws a small batch of realizations that no step before has seen and takes the gradient of the corrected
criterion, which is the product of error and sensitivity over different realizations and therefore unbiased, however
small the batch (``criterion``). In coordinates η = Rξ, with RᵀR the Gauss–Newton matrix, steps are those of ADAM,

    m ← β₁m + (1−β₁)g,   v ← β₂v + (1−β₂)g²,   η ← η − a_t m̂/(√v̂ + ε),

in epochs with a decreasing a_t; the estimate is the average over the second half of an epoch (Polyak, Ruppert). There
ḡ, the averaged gradient, says how far it is from the minimum, and the scatter of the gradients how well that is known:

    δ = H⁻¹ḡ,    cov δ = H⁻¹ cov(g) H⁻¹/n.

The search ends when no δ_j is distinguishable from zero and the band of each is narrow beside its statistical error.
Reference: D. P. Kingma, J. Ba, ICLR 2015; B. T. Polyak, A. B. Juditsky, SIAM J. Control Optim. 30 (1992) 838.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.bound_experiment.unknown import describe_start
from grisaille.errors import EstimationError
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import MeanSearch, free_unknowns, seen_unknowns
from grisaille.estimators.simulated_pem.sandwich import ensemble_sandwich
from grisaille.optimization.search import LIMIT_STATUS

EPOCH, PILOT = 24, 64
"""Batches of the first epoch; realizations from which preconditioner and statistical errors come."""
BAND_DEVIATIONS = 2.0
"""Standard deviations of δ that make its confidence band."""
FIRST_MOMENT, SECOND_MOMENT = 0.8, 0.95
FEW_FAILURES = 5


@dataclass(frozen=True)
class AveragedIterates:
    """Where the averaged iterates ended."""

    theta: np.ndarray
    covariance: np.ndarray
    """Of θ, from the randomness of the batches."""
    has_settled: bool
    reason: str


@dataclass(frozen=True)
class _Frame:
    """Preconditioner and scales of one epoch."""

    root: np.ndarray
    """R, upper triangular"""
    errors: np.ndarray
    """Statistical standard errors of ξ."""
    gradient: np.ndarray
    """Of the pilot, by ξ."""
    seen: np.ndarray
    """Unknowns that the criterion moves with; others are held."""


def stochastic_approximation(
    search: MeanSearch, start: np.ndarray, *, batch: int, tolerance: float
) -> AveragedIterates:
    """Run epochs of batches from ``start`` until the averaged gradient vanishes in units of the statistical error.

    batch : realizations per step
    tolerance : half width of the confidence band of each unknown, in standard errors
    """
    criterion, problem = search.criterion, search.criterion.problem
    theta, used, length = start, 0, EPOCH
    fresh = criterion.realizations  # later batches begin where the polish's own ensemble ends
    while True:
        pilot = criterion.with_runners(max(PILOT, batch), fresh)
        fresh += pilot.realizations
        frame, free = _frame(pilot, search, theta)
        epoch = _Epoch(criterion, frame, batch, length, fresh)
        epoch.run(problem.inner(theta))
        fresh, used = epoch.fresh, used + length
        delta, band = epoch.displacement()
        theta, shifted = problem.outer(epoch.average()), np.abs(delta) > band
        wide = band > tolerance * frame.errors
        slopes = problem.slopes(theta)
        spread = epoch.covariance() * np.outer(slopes, slopes)
        if not (shifted & free).any() and not (wide & free).any():
            return AveragedIterates(
                theta, spread, True, f"the gradient vanished inside its band, {used} batches of {batch}"
            )
        if length > search.left:
            return AveragedIterates(theta, spread, False, LIMIT_STATUS)
        if not (shifted & free).any():
            length *= 2


class _Epoch:
    """Steps with one preconditioner."""

    def __init__(self, criterion: MeanCriterion, frame: _Frame, batch: int, length: int, fresh: int) -> None:
        self.criterion, self.frame, self.batch, self.length, self.fresh = criterion, frame, batch, length, fresh
        self.points: list[np.ndarray] = []
        self.gradients: list[np.ndarray] = []

    def run(self, xi: np.ndarray) -> None:
        problem, R = self.criterion.problem, self.frame.root
        lower, upper = problem.inner_bounds()
        within = np.abs(R @ self.frame.errors)
        # far away: a quarter of the epoch to get there; near: steps well inside the statistical error
        distance = np.abs(np.linalg.solve(R.T, self.frame.gradient))
        rate = np.maximum(4 * distance / self.length, 0.05 * within)
        m, v, failures = np.zeros_like(xi), np.zeros_like(xi), 0
        for t in range(1, self.length + 1):
            g = self._gradient(problem.outer(xi))
            if g is None:
                failures += 1
                if failures > FEW_FAILURES:
                    raise EstimationError(
                        f"The model cannot be simulated along the search: {self.criterion.journal.failures[-1]} Give "
                        f"tighter bounds=, another guess=, or search='gauss-newton'."
                    )
                xi, rate = self.points[-2] if len(self.points) > 1 else xi, rate / 4
                continue
            self.points.append(xi)
            self.gradients.append(g)
            scaled = np.linalg.solve(R.T, g)
            m = FIRST_MOMENT * m + (1 - FIRST_MOMENT) * scaled
            v = SECOND_MOMENT * v + (1 - SECOND_MOMENT) * scaled**2
            size = rate / (1 + 4 * t / self.length) ** 0.75
            step = size * (m / (1 - FIRST_MOMENT**t)) / (np.sqrt(v / (1 - SECOND_MOMENT**t)) + 1e-12)
            xi = np.clip(xi - np.where(self.frame.seen, np.linalg.solve(R, step), 0.0), lower, upper)

    def _gradient(self, theta: np.ndarray) -> np.ndarray | None:
        value = self.criterion.with_runners(self.batch, self.fresh).at(theta)
        self.fresh += self.batch
        return value.gradient * self.criterion.problem.slopes(theta) if value.completed else None

    @property
    def _tail(self) -> slice:
        return slice(len(self.points) // 2, None)

    def average(self) -> np.ndarray:
        return np.asarray(np.mean(self.points[self._tail], axis=0))

    def covariance(self) -> np.ndarray:
        """Return the covariance of the averaged ξ: H⁻¹ cov(g) H⁻¹/n."""
        g = np.array(self.gradients[self._tail])
        inverse = np.linalg.inv(self.frame.root.T @ self.frame.root)
        return np.asarray(inverse @ np.atleast_2d(np.cov(g, rowvar=False)) @ inverse / len(g))

    def displacement(self) -> tuple[np.ndarray, np.ndarray]:
        """Return δ and its confidence band."""
        mean = np.mean(self.gradients[self._tail], axis=0)
        delta = np.linalg.solve(self.frame.root.T @ self.frame.root, mean)
        return delta, BAND_DEVIATIONS * np.sqrt(np.diag(self.covariance()))


def _frame(pilot: MeanCriterion, search: MeanSearch, theta: np.ndarray) -> tuple[_Frame, np.ndarray]:
    """Return preconditioner and statistical errors at a point; Λ of the search is renewed from it."""
    value = pilot.at(theta)
    if not value.completed:
        there = describe_start([u.starting_from(v) for u, v in zip(pilot.unknowns, theta, strict=True)])
        raise EstimationError(f"The model cannot be simulated at {there}: {value.failure} Give another by guess=.")
    pilot.update_levels(value)
    search.criterion.level = pilot.level
    value = pilot.renew(value)
    search.accept(value)
    seen = seen_unknowns(search, value)
    free = free_unknowns(pilot, value) & seen
    slopes = pilot.problem.slopes(theta)
    sandwich = ensemble_sandwich(pilot, value, free)
    errors = np.sqrt(np.clip(np.diag(sandwich.data), 0.0, None)) / slopes
    errors = np.where(np.isfinite(errors), errors, 0.0)
    return _Frame(_root(value, slopes), errors, np.where(seen, value.gradient * slopes, 0.0), seen), free


def _root(value: MeanValue, slopes: np.ndarray) -> np.ndarray:
    H = value.curvature * np.outer(slopes, slopes)
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    # directions that the outputs hardly see are not divided by nothing
    return np.asarray(np.linalg.cholesky(H / np.outer(scale, scale) + 1e-6 * np.eye(len(H))).T * scale)
