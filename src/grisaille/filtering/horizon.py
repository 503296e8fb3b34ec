"""Predictions over several samples: what the data up to k samples before say about each instant.

    x_{j|j−k}, P_{j|j−k}:  filtered moments at sample j − k, carried to sample j without looking at what lies between

Instants before sample k are predicted from the start. k = 1 is the filter itself, k = ∞ a simulation with growing
covariance. The criterion Σ_j log N(y_j; ŷ_{j|j−k}, S_{j|j−k}) makes models fit for forecasting; the errors of
neighbouring predictions overlap, so it is not a likelihood for k > 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.compilation.kalman.native import PreparedPass
from grisaille.compilation.kalman.passing import FilterPass
from grisaille.disturbance.duals import Floats, times, transpose
from grisaille.errors import EstimationError
from grisaille.filtering.diffuse import DiffusePass, Known, combined
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.kalman import DiscreteModel, Sums, Totals, run_filter, update
from grisaille.filtering.runner import Filtered, FilterOptions, FilterRunner, Starting
from grisaille.trial import Trial
from grisaille.trial.discretisation import Discretisation

CHUNK = 256
"""Predictions that are carried together."""


class HorizonRunner(FilterRunner):
    """One trial whose criterion is that of predictions from data that are older.

    origins : the last sample whose data are used for each, never decreasing; −1 for none
    """

    def __init__(self, trial: Trial, options: FilterOptions, origins: np.ndarray) -> None:
        super().__init__(trial, options)
        self.origins = origins

    @property
    def reach(self) -> int:
        rows = np.arange(len(self.origins))
        return int(np.max(rows - self.origins, where=self.origins >= 0, initial=1))

    def likelihood(self, theta: Floats, steps: Discretisation, *, sensitive: bool) -> Filtered:
        def sums(filter: LinearFilter | ExtendedFilter, q: Floats, dq: Floats, start: Starting) -> Sums:
            o = self.options
            if isinstance(filter, ExtendedFilter):
                return _nonlinear_sums(filter, self.origins, q, dq, start, o.robust, o.condition)
            return linear_sums(filter.discretise(q, dq, start.x), self.origins, o.robust, o.condition)

        return self._likelihood(theta, steps, sensitive, sums)

    def gradient(self, theta: Floats, steps: Discretisation) -> Filtered:
        return self.likelihood(theta, steps, sensitive=True)


def predict_ahead(
    runner: FilterRunner, theta: Floats, steps: Discretisation, origins: np.ndarray
) -> tuple[Known, Floats]:
    """What is known of the states at every sample, and algebraic unknowns (N, nz).

    origins : the last sample whose data are used for each, never decreasing; −1 for none
    """
    q, dq, start = runner.posed(theta, False)
    filter = runner.filter_on(steps, theta)
    if isinstance(filter, ExtendedFilter):
        mean, covariance, z = _nonlinear_moments(filter, origins, q, dq, start)
        return Known(mean, covariance, np.zeros((*mean.shape, 0))), z
    model = filter.discretise(q, dq, start.x)
    if model.X0.shape[1]:
        return diffuse_ahead(model, origins), np.zeros((len(model.y), 0))
    x, P = moments_ahead(model, origins)
    return Known(x[:, 0], P[:, 0], np.zeros((*x[:, 0].shape, 0))), np.zeros((len(x), 0))


def diffuse_ahead(model: DiscreteModel, origins: np.ndarray) -> Known:
    """The same under a flat prior: what the data up to the origins say, and what they leave open."""
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
    return combined(x[..., 0], P, x[..., 1:], M, s)


def linear_sums(model: DiscreteModel, origins: np.ndarray, robust: float = np.inf, condition: bool = False) -> Sums:
    """The criterion of a linear model, with derivatives."""
    total = Totals(model.ns, 1, model.y.shape, robust)
    m, P = moments_ahead(model, origins)
    waiting = condition
    for sample, y in enumerate(model.y):
        seen = np.flatnonzero(np.isfinite(y))
        if not len(seen):
            continue
        H = model.H[model.H_of[sample]][:, seen]
        R = model.R[model.R_of[sample]][:, seen[:, None], seen]
        e = -times(H, m[sample][:, :, None])
        e[:, :, 0] -= model.d[sample][:, seen]
        e[0, :, 0] += y[seen]
        found = update(m[sample][:, :, None], P[sample], e, H, R)
        if found is None:
            total.failed = sample
            break
        total.add(sample, seen, found, counted=not waiting)
        waiting = False
    return total.sums()


def moments_ahead(model: DiscreteModel, origins: np.ndarray) -> tuple[Floats, Floats]:
    """Duals (N, 1 + ns, n) and (N, 1 + ns, n, n) of the states at every sample j from the data up to ``origins[j]``."""
    at = np.flatnonzero(model.sample_at >= 0)
    N = len(at)
    if (origins < 0).all():
        blind: list[tuple[Floats, Floats]] = []
        run_filter(replace(model, y=np.full_like(model.y, np.nan)), moments=blind)
        return np.stack([blind[k][0][:, :, 0] for k in at]), np.stack([blind[k][1] for k in at])
    kept: list[tuple[Floats, Floats]] = []
    failed = run_filter(model, moments=kept).failed
    if failed >= 0:
        raise EstimationError(f"The filter fails at sample {failed}.")
    filtered = [kept[k] for k in at]
    m, P = np.empty((N, *model.x0.shape)), np.empty((N, *model.P0.shape))
    m[0], P[0] = model.x0, model.P0
    blindly = int((origins < 0).sum())
    for j in range(1, blindly):
        m[j], P[j] = _over_interval(model, at[j - 1], at[j], m[j - 1], P[j - 1])
    for first in range(blindly, N, CHUNK):
        targets = np.arange(first, min(first + CHUNK, N))
        reached = origins[targets]
        x = np.stack([filtered[j][0][:, :, 0] for j in reached])[..., None]
        V = np.stack([filtered[j][1] for j in reached])
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


def _over_intervals(model: DiscreteModel, at: Any, samples: Any, m: Floats, P: Floats) -> tuple[Floats, Floats]:
    """Many predictions over the interval after each of their samples, cell by cell."""
    cells = at[samples + 1] - at[samples]
    for r in range(int(cells.max())):
        on = np.flatnonzero(cells > r)
        k = at[samples[on]] + r
        F = model.F[model.F_of[k]]
        x = times(F, m[on])
        x[..., 0] += model.c[k]
        m[on], P[on] = x, times(times(F, P[on]), transpose(F)) + model.Q[model.Q_of[k]]
    return m, P


def _nonlinear_moments(
    filter: ExtendedFilter, origins: np.ndarray, q: Floats, dq: Floats, start: Starting
) -> tuple[Floats, Floats, Floats]:
    walk = _Walk(filter, q, dq, start)
    found = []
    for j, origin in enumerate(origins):
        s, _ = walk.state_before(j, int(origin))
        found.append(s)
    x, P, z = filter.packing.split(np.array(found))
    return x, P, z[:, : filter.model.z.numel()]


def _nonlinear_sums(
    filter: ExtendedFilter, origins: np.ndarray, q: Floats, dq: Floats, start: Starting, robust: float, condition: bool
) -> Sums:
    """One short pass for each prediction, which weighs the last sample only."""
    walk = _Walk(filter, q, dq, start)
    y, ns = filter.record.y, len(dq)
    base, information, count, waiting = np.zeros(1 + ns), np.zeros((ns, ns)), 0, condition
    innovations, variances, slopes = (
        np.full(y.shape, np.nan),
        np.full(y.shape, np.nan),
        np.zeros((len(y), ns, y.shape[1])),
    )
    failed = -1
    for j in range(len(walk.at)):
        if not np.isfinite(y[j]).any():
            continue
        found = walk.seen_from(j, int(origins[j]), robust)
        if found.failed >= 0:
            failed = j
            break
        if not waiting:
            base, information, count = base + found.base, information + found.information, count + found.count
        waiting = False
        innovations[j], variances[j], slopes[j] = found.innovations[0], found.variances[0], found.slopes[0]
    nd = 1 + ns
    return Sums(
        count, base, np.zeros((nd, 1, 1)), information, np.zeros((ns, 1)), innovations, variances, slopes, failed
    )  # fmt: skip


class _Walk:
    """The filter sample by sample, remembering what it knew after each."""

    def __init__(self, filter: ExtendedFilter, q: Floats, dq: Floats, start: Starting) -> None:
        self.filter, self.q, self.dq = filter, q, dq
        if filter.roots is not None:  # algebraic unknowns must be solved all along, or this says why not
            filter.run(q, np.zeros((0, len(q))), start.x[:1], z0=start.z[:1])
        self.prepared = filter.prepared(q)
        self.given: FilterPass = self.prepared.given
        self.at = np.flatnonzero(filter.cells(q).sample_at >= 0)
        s = filter.start(self.prepared, q, dq, start.x, start.z)
        self.start = (s[0], s[1:])
        self.after: list[tuple[Floats, Floats]] = []

    def state_before(self, j: int, origin: int) -> tuple[Floats, Floats]:
        """What is known of sample j from the data up to sample ``origin``, with derivatives; −1 for no data."""
        s, begin = self._after(origin)
        found = self._pass(begin, int(self.at[j]), s, None)
        return found.s, found.ds

    def seen_from(self, j: int, origin: int, robust: float) -> Any:
        s, begin = self._after(origin)
        return self._pass(begin, int(self.at[j]), s, j, robust)

    def _after(self, origin: int) -> tuple[tuple[Floats, Floats], int]:
        if origin < 0:
            return self.start, int(self.at[0])
        while len(self.after) <= origin:
            i = len(self.after)
            before, begin = (self.after[-1], int(self.at[i - 1])) if i else (self.start, int(self.at[0]))
            seen = i if np.isfinite(self.filter.record.y[i]).any() else None
            found = self._pass(begin, int(self.at[i]), before, seen)
            if found.failed >= 0:
                raise EstimationError(f"The filter fails at t = {self.given.bounds[self.at[i]]:g}.")
            self.after.append((found.s, found.ds))
        return self.after[origin], int(self.at[origin])

    def _pass(self, begin: int, end: int, s: tuple[Floats, Floats], sample: int | None, robust: float = np.inf) -> Any:
        """From one boundary to another; the sample at the end counts, if one is given."""
        g = self.given
        which, rows = np.full(end - begin + 1, -1, dtype=np.int64), slice(0, 1)
        if sample is not None:
            which[-1], rows = 0, slice(sample, sample + 1)
        part = replace(
            g.part(begin, end, which), y=g.y[rows], mask=g.mask[rows], scale=g.scale[rows], robust=robust,
            condition=False,
        )  # fmt: skip
        return self.filter.carry(PreparedPass(part), self.q, np.concatenate([s[0][None], s[1]]), self.dq, keep=False)
