"""Predictions of an exact filter over several samples (``horizon``), with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grisaille.disturbance.duals import Floats, times, transpose
from grisaille.errors import EstimationError
from grisaille.filtering.compiled_sums import add_up_given, filter_moments
from grisaille.filtering.diffuse import DiffuseMoments, DiffusePass, combine_diffuse
from grisaille.filtering.filter import FilterPoint, InnovationWeighting
from grisaille.filtering.kalman import DiscreteModel, Likelihood, LikelihoodSums, likelihood_of_sums

PREDICTIONS_PER_CHUNK = 256
"""Predictions that are carried together."""


@dataclass(frozen=True, eq=False)
class AheadOfLinear:
    """Predictions from the matrices of a model."""

    matrices: Callable[[FilterPoint], DiscreteModel]
    weighing: InnovationWeighting

    def log_likelihood(self, at: FilterPoint, origins: np.ndarray) -> Likelihood:
        """Return the criterion of these predictions with its derivatives."""
        return likelihood_of_sums(
            linear_sums(self.matrices(at), origins, self.weighing.robust, self.weighing.condition)
        )

    def known(self, at: FilterPoint, origins: np.ndarray) -> tuple[DiffuseMoments, Floats]:
        """Return what is known of the states at every sample; there are no algebraic unknowns."""
        model = self.matrices(at.plain)
        if model.X0.shape[1]:
            return diffuse_ahead(model, origins), np.zeros((len(model.y), 0))
        x, P = moments_ahead(model, origins)
        return DiffuseMoments(x[:, 0], P[:, 0], np.zeros((*x[:, 0].shape, 0))), np.zeros((len(x), 0))


def diffuse_ahead(model: DiscreteModel, origins: np.ndarray) -> DiffuseMoments:
    """Return the same under a flat prior: what the data up to the origins say, and what they leave open."""
    over, at = DiffusePass.of(model), np.flatnonzero(model.sample_at >= 0)
    N, free, blindly = len(at), model.X0.shape[1], int((origins < 0).sum())
    x, P = np.empty((N, model.n, 1 + free)), np.empty((N, model.n, model.n))
    M, s = np.zeros((N, free, free)), np.zeros((N, free))
    first = np.concatenate([model.x0[:1, :, None], model.X0[None]], axis=-1)[None], model.P0[None, :1]
    for j in range(blindly):  # from the start, which nothing has told yet
        if j:
            first = _over_intervals(model, at, np.array([j - 1]), *first)
        x[j], P[j] = first[0][0, 0], first[1][0, 0]
    targets, reached = np.arange(blindly, N), origins[blindly:]
    m, V = over.columns_after(at[reached]), over.base.P_filt[at[reached]][:, None]
    M[targets], s[targets] = over.M[at[reached] + 1], over.s[at[reached] + 1]
    while (on := np.flatnonzero(reached < targets)).size:
        m[on], V[on] = _over_intervals(model, at, reached[on], m[on], V[on])
        reached = np.minimum(reached + 1, targets)
    x[targets], P[targets] = m[:, 0], V[:, 0]
    return combine_diffuse(x[..., 0], P, x[..., 1:], M, s)


def linear_sums(
    model: DiscreteModel, origins: np.ndarray, robust: float = np.inf, condition: bool = False
) -> LikelihoodSums:
    """Return the criterion of a linear model, with derivatives."""
    return add_up_given(model, *moments_ahead(model, origins), robust=robust, condition=condition)


def moments_ahead(model: DiscreteModel, origins: np.ndarray) -> tuple[Floats, Floats]:
    """Return duals (N, 1 + ns, n) and (N, 1 + ns, n, n) of the states at every sample j from the data up to
    ``origins[j]``.
    """
    at = np.flatnonzero(model.sample_at >= 0)
    N = len(at)
    if (origins < 0).all():
        _, x, V = filter_moments(replace(model, y=np.full_like(model.y, np.nan)))
        return x[at, 1], V[at, 1]
    sums, x, V = filter_moments(model)
    if sums.failed >= 0:
        raise EstimationError(f"The filter fails at sample {sums.failed}.")
    x_filt, V_filt = x[at, 1], V[at, 1]
    m, P = np.empty((N, *model.x0.shape)), np.empty((N, *model.P0.shape))
    m[0], P[0] = model.x0, model.P0
    blindly = int((origins < 0).sum())
    for j in range(1, blindly):
        m[j], P[j] = _over_interval(model, at[j - 1], at[j], m[j - 1], P[j - 1])
    for first in range(blindly, N, PREDICTIONS_PER_CHUNK):
        targets = np.arange(first, min(first + PREDICTIONS_PER_CHUNK, N))
        reached = origins[targets]
        x, V = x_filt[reached][..., None], V_filt[reached]
        while (on := np.flatnonzero(reached < targets)).size:
            x[on], V[on] = _over_intervals(model, at, reached[on], x[on], V[on])
            reached = np.minimum(reached + 1, targets)
        m[targets], P[targets] = x[..., 0], V
    return m, P


def _over_interval(model: DiscreteModel, begin: int, end: int, m: Floats, P: Floats) -> tuple[Floats, Floats]:
    for k in range(begin, end):
        F = model.F[model.F_of[k]]
        m = times(F, m[:, :, None])[:, :, 0] + model.c[k]
        P = times(times(F, P), transpose(F)) + model.Q[model.Q_of[k]]
    return m, P


def _over_intervals(
    model: DiscreteModel, at: np.ndarray, samples: np.ndarray, m: Floats, P: Floats
) -> tuple[Floats, Floats]:
    """Return many predictions over the interval after each of their samples, cell by cell."""
    cells = at[samples + 1] - at[samples]
    for r in range(int(cells.max())):
        on = np.flatnonzero(cells > r)
        k = at[samples[on]] + r
        F = model.F[model.F_of[k]]
        x = times(F, m[on])
        x[..., 0] += model.c[k]
        m[on], P[on] = x, times(times(F, P[on]), transpose(F)) + model.Q[model.Q_of[k]]
    return m, P
