"""The search for the maximum of a likelihood that is estimated with random numbers.

Rounds of a quadratic fitted to values over a design of ± 1.5 standard errors (``response_surface``), each at other
random numbers; the next round is centred at its maximum and shaped by its curvature. It ends where the maximum stays
where it is, as far as Monte Carlo errors let one see. Where a round begins too wide or too narrow, its curvature says
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.estimators.particle_ml.response_surface import (
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
POINTS_PER_COEFFICIENT, MIN_POINTS, FEW_POINTS = 2.5, 30, 12
SMALL_RADIUS = 0.8
"""Standard errors from which on a quadratic holds; smaller designs see less of it."""
MAX_MORE, MAX_EMPTY_ROUNDS = 8.0, 12
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
    is_settled: bool
    reason: str
    rounds: int


@dataclass(frozen=True, eq=False)
class _Round:
    """What one surface shows.

    error : covariance of the centre by random numbers, in coordinates of the search; spread : its largest deviation in
        standard errors; moved : by how many of them the centre has moved
    is_shaped : whether the curvature is the one that was expected, nearly
    """

    centre: np.ndarray
    root: np.ndarray
    error: np.ndarray
    spread: float
    moved: float
    is_shaped: bool


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
                if low > 0 and np.isfinite(high):
                    sizes[k] = np.sqrt(low * high)
                else:
                    sizes[k] *= 0.25 if np.isfinite(high) else 4.0
                if sizes[k] > 4.0 or not 1e-7 < sizes[k]:
                    sizes[k] = min(sizes[k], 4.0)
                    break
            sizes[k] /= np.sqrt(2 * PROBE_DROP)
        return np.diag(sizes)

    def run(self, centre: np.ndarray, root: np.ndarray, noise: float, *, nearly: bool = False) -> ParticleOptimum:
        """Return where the maximum is.

        root : of the inverse curvature that is expected
        noise : standard deviation of one value
        nearly : whether one round that settles is enough
        """
        n = len(centre)
        radius, more, rounds, settled, empty = RADIUS * max(1.0, n / 4) ** 0.25, 1.0, 0, 0, 0
        found = _Round(centre, root, np.full((n, n), np.inf), np.inf, np.inf, False)
        reason = ""
        while True:
            least = FEW_POINTS if nearly else MIN_POINTS
            count = int(more * max(least, POINTS_PER_COEFFICIENT * coefficient_count(n)))
            if self.left < count:
                reason = "the limit of evaluations was reached"
                break
            rounds += 1
            tried = self._round(found.centre, found.root, radius, count, rounds, noise)
            if tried is None:
                empty, found = empty + 1, replace(found, root=0.5 * found.root)
                if empty > MAX_EMPTY_ROUNDS:
                    reason = "too few points around it have a likelihood"
                    break
                continue
            if settled and radius < SMALL_RADIUS and tried.spread > MAX_MONTE_CARLO_ERROR:
                break  # closer by, random numbers hide what there is to see
            found = tried
            if not found.is_shaped or found.moved > max(SETTLED * np.sqrt(n), 1.5 * found.spread * np.sqrt(n)):
                settled = 0
                continue
            reason = f"the maximum moves by {found.moved:.2g} standard errors"
            if found.spread > MAX_MONTE_CARLO_ERROR and more < MAX_MORE:
                more *= 2
                continue
            settled += 1
            if nearly:
                break
            if settled >= 2 and (radius <= SMALL_RADIUS or 2 * found.spread > MAX_MONTE_CARLO_ERROR):
                break
            if settled >= 2:
                radius *= 0.5
        return ParticleOptimum(found.centre, found.root, found.error, settled >= (1 if nearly else 2), reason, rounds)

    def _round(
        self, centre: np.ndarray, root: np.ndarray, radius: float, count: int, number: int, noise: float
    ) -> _Round | None:
        """Return where the maximum is seen from new points around a centre, and all others there; None where too few
        have a likelihood.
        """
        self.evaluate(centre + design_points(count, len(centre), radius, number) @ root.T)
        surface = fit_surface(*self._near(centre, root, NEAR * radius), noise)
        if surface is None:
            return None
        scale = min(1.0, MAX_STEP / max(float(np.linalg.norm(surface.step)), 1e-300))
        moved = np.clip(centre + root @ (scale * surface.step), self.low, self.high)
        curvatures, vectors = np.linalg.eigh(surface.curvature)
        shape, blur = vectors / np.sqrt(curvatures), surface.step_error()
        in_errors = np.linalg.solve(shape, np.linalg.solve(shape, blur).T)
        spread, new_root = float(np.sqrt(np.max(np.diag(in_errors)))), root @ shape
        distance = float(np.linalg.norm(np.linalg.solve(new_root, moved - centre)))
        self.journal.accept(
            self.unknowns, self.outer(moved), -(surface.constant + 0.5 * float(surface.gradient @ surface.step)),
            moved_by=distance, monte_carlo_error=spread,
        )  # fmt: skip
        is_shaped = surface.is_peak and bool(np.all((curvatures > 0.3) & (curvatures < 3.0)))
        return _Round(moved, new_root, root @ blur @ root.T, spread, distance, is_shaped)

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
