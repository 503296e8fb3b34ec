"""The search for the maximum of a likelihood that is estimated with random numbers.

Rounds of a quadratic fitted to values over a design of ± 1.5 standard errors (``response_surface``), each at other
random numbers; the next round is centred at its maximum and shaped by its curvature. It ends where the maximum stays
where it is, as far as Monte Carlo errors let one see. Where a round begins too wide or too narrow, its curvature says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.estimators.particle_ml.response_surface import (
    ResponseSurface,
    coefficient_count,
    design_points,
    fit_surface,
)
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.scaled import Scaled

RADIUS = 1.5
"""Of a design, in standard errors."""
NEAR = 2.5
"""Radii from the centre within which values of earlier rounds count."""
MAX_STEP = 2.5
"""Of the centre, in standard errors."""
SETTLED = 0.1
"""Standard errors by which a maximum may still move."""
MAX_MONTE_CARLO_ERROR = 0.15
"""Of the maximum, in standard errors: a round with more is followed by one with more values."""
POINTS_PER_COEFFICIENT, MIN_POINTS = 2.5, 30
PROBE_DROP = 2.0
"""By which log L is to fall along an unknown where nothing is known of its error."""
FIRST_PROBE, MAX_PROBES = 0.1, 14


@dataclass(frozen=True, eq=False)
class ParticleOptimum:
    """The end of a search.

    xi, root : the maximum, and a root of the inverse curvature there, in coordinates of the search
    monte_carlo : (n, n) covariance of the maximum by random numbers alone, in the same
    """

    xi: np.ndarray
    root: np.ndarray
    monte_carlo: np.ndarray
    surface: ResponseSurface | None
    is_settled: bool
    reason: str
    rounds: int


@dataclass
class SurfaceSearch(Scaled):
    """Rounds of response surfaces; keeps all values that it has seen."""

    problem: ParticleProblem
    journal: SearchJournal
    max_evaluations: int
    points: list[np.ndarray] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    used: int = 0

    def __post_init__(self) -> None:
        self.unknowns = self.problem.unknowns
        self.low, self.high = self.inner_bounds()

    @property
    def left(self) -> int:
        """Evaluations that may still be made."""
        return self.max_evaluations - self.journal.evaluations

    def evaluate(self, xi: np.ndarray) -> np.ndarray:
        """Return log L̂ at points, (m, n), inside the bounds, each with its own random numbers."""
        xi = np.clip(xi, self.low, self.high)
        thetas = np.array([self.outer(x) for x in xi])
        found = self.problem.log_posteriors(thetas, self.problem.seeds(len(xi), self.used))
        self.used += len(xi)
        self.journal.add(len(xi))
        self.points += list(xi)
        self.values += found.tolist()
        return found

    def probed_root(self, centre: np.ndarray) -> np.ndarray:
        """Return a first guess of the standard errors, (n, n) diagonal: how far log L falls by ``PROBE_DROP``."""
        here = float(np.max(self.evaluate(np.repeat(centre[None], 2, axis=0))))
        sizes = np.full(len(centre), FIRST_PROBE)
        for k in range(len(centre)):
            low, high = 0.0, np.inf
            for _ in range(MAX_PROBES):
                moved = np.repeat(centre[None], 2, axis=0)
                moved[0, k] += sizes[k]
                moved[1, k] -= sizes[k]
                found = np.clip(moved, self.low, self.high)
                drop = here - float(np.mean(np.maximum(self.evaluate(found), here - 1e3)))
                if drop > 3 * PROBE_DROP:
                    high = sizes[k]
                elif drop < PROBE_DROP / 3:
                    low = sizes[k]
                else:
                    break
                sizes[k] = np.sqrt(low * high) if low > 0 and np.isfinite(high) else sizes[k] * (4.0 if not np.isfinite(high) else 0.25)
                if sizes[k] > 4.0 or not 1e-7 < sizes[k]:
                    sizes[k] = min(sizes[k], 4.0)
                    break
            sizes[k] /= np.sqrt(2 * PROBE_DROP)
        return np.diag(sizes)

    def run(self, centre: np.ndarray, root: np.ndarray, noise: float) -> ParticleOptimum:
        """Return where the maximum is.

        root : of the inverse curvature that is expected
        noise : standard deviation of one value
        """
        n, rounds, settled, more = len(centre), 0, 0, 1.0
        radius = RADIUS * max(1.0, n / 4) ** 0.25
        best: ResponseSurface | None = None
        reason, error = "", np.full((n, n), np.inf)
        while True:
            count = int(more * max(MIN_POINTS, POINTS_PER_COEFFICIENT * coefficient_count(n)))
            if self.left < count:
                reason = "the limit of evaluations was reached"
                break
            rounds += 1
            self.evaluate(centre + design_points(count, n, radius, rounds) @ root.T)
            z, values = self._near(centre, root, NEAR * radius)
            surface = fit_surface(z, values, noise)
            if surface is None:
                root = 0.5 * root
                if rounds > 20:
                    reason = "too few points have a likelihood"
                    break
                continue
            best = surface
            step, length = surface.step, float(np.linalg.norm(surface.step))
            scale = min(1.0, MAX_STEP * RADIUS / max(length, 1e-300))
            moved = np.clip(centre + root @ (scale * step), self.low, self.high)
            values_, vectors = np.linalg.eigh(surface.curvature)
            shape = vectors / np.sqrt(values_)
            error_z = surface.step_error()
            new_root = root @ shape
            in_errors = np.linalg.solve(new_root, moved - centre)
            blurred = np.linalg.solve(shape, np.linalg.solve(shape, error_z).T)
            spread = float(np.sqrt(np.max(np.diag(blurred))))
            is_shaped = bool(np.all((values_ > 0.3) & (values_ < 3.0))) and surface.is_peak
            moves = float(np.linalg.norm(in_errors))
            self.journal.accept(
                self.unknowns, self.outer(moved), -(surface.constant + 0.5 * float(surface.gradient @ step)),
                moved_by=moves, monte_carlo_error=spread,
            )  # fmt: skip
            centre, root, error = moved, new_root, root @ error_z @ root.T
            if is_shaped and moves < max(SETTLED * np.sqrt(n), 1.5 * spread * np.sqrt(n)):
                if spread < MAX_MONTE_CARLO_ERROR:
                    settled += 1
                    if settled >= 2:
                        reason = f"the maximum moves by {moves:.2g} standard errors"
                        break
                else:
                    more = min(2 * more, 16.0)
            else:
                settled = 0
        return ParticleOptimum(centre, root, error, best, settled >= 2, reason, rounds)

    def _near(self, centre: np.ndarray, root: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
        points, values = np.array(self.points), np.array(self.values)
        z = np.linalg.solve(root, (points - centre).T).T
        near = np.linalg.norm(z, axis=1) <= reach
        return z[near], values[near]


def usable_root(covariance: np.ndarray, slopes: np.ndarray, sizes: Sequence[float]) -> np.ndarray | None:
    """Return a root of a covariance of θ in coordinates of a search; None where it has no finite one.

    slopes : dθ/dξ
    sizes : the largest deviation of each coordinate
    """
    scaled = covariance / np.outer(slopes, slopes)
    if not np.isfinite(scaled).all():
        return None
    deviations = np.sqrt(np.maximum(np.diag(scaled), 0.0))
    if not (deviations > 0).all():
        return None
    shrink = np.minimum(1.0, np.array(sizes) / deviations)
    try:
        return np.asarray(np.linalg.cholesky(scaled * np.outer(shrink, shrink)))
    except np.linalg.LinAlgError:
        return np.diag(deviations * shrink)
