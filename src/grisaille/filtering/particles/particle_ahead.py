"""Predictions of a particle filter over several samples: particles of an origin go on without measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.diffuse import DiffuseMoments
from grisaille.filtering.filter import FilterPoint
from grisaille.filtering.kalman import Likelihood

if TYPE_CHECKING:
    from grisaille.filtering.particles.particle_filter import ParticleFilter


@dataclass(frozen=True, eq=False)
class ParticlesAhead:
    """Of one filter."""

    filter: ParticleFilter

    def log_likelihood(self, at: FilterPoint, origins: np.ndarray) -> Likelihood:
        raise EstimationError(
            "A particle filter has no criterion of predictions over several samples: use gr.KalmanML(horizon=…)."
        )

    def known(self, at: FilterPoint, origins: np.ndarray) -> tuple[DiffuseMoments, Floats]:
        """Return moments of the states at every sample by the data up to its origin, −1: none; and algebraic
        unknowns.
        """
        if self.filter.formulas.event.numel():
            raise EstimationError(
                f"{self.filter.model.structure.model.name} has events of its own, and predictions over several samples "
                f"are formulas of the states, which do not know the discrete variables of each particle: "
                f"fit.residuals() has predictions one sample ahead, fit.predict() simulations."
            )
        f, n, nz = self.filter, self.filter.model.n, int(self.filter.model.z.numel())
        answer = f.run(at, frozenset({"paths", "moments"}))
        if answer.failed != -1:
            raise EstimationError(
                f"no particle explains the measurements at t = {f.record.times[answer.failed]:g}: there is nothing to "
                f"predict from."
            )
        assert answer.paths is not None and answer.weights is not None
        assert answer.mean is not None and answer.covariance is not None
        bounds = np.flatnonzero(f.cells(at.q).sample_at >= 0)
        N = len(bounds)
        x, P, z = np.zeros((N, n)), np.zeros((N, n, n)), np.zeros((N, nz))
        for origin in np.unique(origins).tolist():
            rows = np.flatnonzero(origins == origin)
            particles = self._start(at) if origin < 0 else _drawn(answer.paths[origin], answer.weights[origin])
            first, last = max(origin, 0), int(rows.max())
            here = rows == first
            if here.any():  # known without a step
                x[rows[here]], P[rows[here]] = _moments_of(particles[:, :n])
                z[rows[here]] = particles[:, n : n + nz].mean(axis=0)
            if last == first:
                continue
            run = f.simulate(at, particles, int(bounds[first]), int(bounds[last]), origin + 1)
            assert run.mean is not None and run.covariance is not None
            later = rows[~here]
            x[later], P[later] = run.mean[later - first, :n], run.covariance[later - first]
            z[later] = run.mean[later - first, n : n + nz]
        return DiffuseMoments(x, P, np.zeros((N, n, 0))), z

    def _start(self, at: FilterPoint) -> Floats:
        """Return particles before the first sample."""
        record = self.filter.record
        blind = self.filter.with_record(replace(record, y=np.full_like(record.y, np.nan)))
        answer = blind.run(at, frozenset({"paths", "moments"}))
        assert answer.paths is not None and answer.weights is not None
        return _drawn(answer.paths[0], answer.weights[0])


def _drawn(particles: Floats, weights: Floats) -> Floats:
    """Return as many particles of equal weight."""
    J = len(weights)
    reached = np.cumsum(weights / weights.sum())
    chosen = np.searchsorted(reached, (np.arange(J) + 0.5) / J)
    return np.ascontiguousarray(particles[np.minimum(chosen, J - 1)])


def _moments_of(x: Floats) -> tuple[Floats, Floats]:
    away = x - x.mean(axis=0)
    return x.mean(axis=0), away.T @ away / len(x)
