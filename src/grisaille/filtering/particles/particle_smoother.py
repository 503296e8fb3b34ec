"""Smoothed states from the ancestors of particles, a fixed number of samples back.

    p(x_k | y_0, …, y_m) ≈ Σ_j W_m^j δ(ancestor of j at k),        m = min(k + lag, last)

All of the data would leave few different ancestors; a state far back is not moved by what comes much later. The lag is
the longest one that leaves enough of them at nearly all samples. Reference: J. Olsson, O. Cappé, R. Douc, É. Moulines,
Bernoulli 14 (2008) 155.
"""

from __future__ import annotations

import numpy as np

from grisaille.compilation.particles import ParticleAnswer
from grisaille.disturbance.duals import Floats

MIN_ANCESTORS = 50.0
"""Effective number of different ancestors that a lag must leave, or half of all particles if that is less."""
LAGS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Samples."""


def smoothed_moments(answer: ParticleAnswer, n: int) -> tuple[Floats, Floats]:
    """Return means (N, n) and covariances (N, n, n) of states given data beyond them."""
    paths, weights, ancestors = answer.paths, answer.weights, answer.ancestors
    assert paths is not None and weights is not None and ancestors is not None
    N, J, _ = paths.shape
    mean, covariance = _moments(paths[..., :n], weights)
    rows = np.arange(N)
    for lag in [k for k in LAGS if k < N]:
        at = np.minimum(rows + lag, N - 1)
        moved = rows + lag < N
        traced = _traced(ancestors, rows, at)
        found = np.zeros((N, J))
        for k in rows:
            np.add.at(found[k], traced[k], weights[at[k]])
        effective = found.sum(axis=1) ** 2 / (found**2).sum(axis=1)
        if np.quantile(effective[moved], 0.05) < min(MIN_ANCESTORS, J / 2):
            break
        mean, covariance = _moments(paths[..., :n], found)
    return mean, covariance


def _traced(ancestors: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the places at samples ``rows`` of the ancestors of all particles at samples ``at``, (N, J)."""
    J = ancestors.shape[1]
    place = np.tile(np.arange(J), (len(rows), 1))
    for back in range(int((at - rows).max(initial=0))):
        now = at - back
        active = now > rows
        place[active] = np.take_along_axis(ancestors[now[active]], place[active], axis=1)
    return place


def _moments(x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    shares = weights / weights.sum(axis=1, keepdims=True)
    mean = np.einsum("kj,kji->ki", shares, x)
    away = x - mean[:, None]
    return mean, np.einsum("kj,kji,kjl->kil", shares, away, away)
