"""Predictions of a nonlinear filter over several samples (``horizon``), with derivatives: one short pass for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.compilation.kalman.compiled_pass import PreparedPass
from grisaille.compilation.kalman.passing import FilterPass
from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.diffuse import DiffuseMoments
from grisaille.filtering.filter import FilterPoint, InnovationWeighting, StartValues
from grisaille.filtering.kalman import Likelihood, LikelihoodSums, likelihood_of_sums
from grisaille.filtering.passes import Passes

if TYPE_CHECKING:
    from grisaille.compilation.kalman.passing import PassResult


@dataclass(frozen=True, eq=False)
class AheadOfPasses:
    """Predictions by passes over parts of a record."""

    passes: Passes
    weighing: InnovationWeighting

    def log_likelihood(self, at: FilterPoint, origins: np.ndarray) -> Likelihood:
        """Return the criterion of these predictions with its derivatives."""
        return likelihood_of_sums(_sums(self.passes, origins, *at, self.weighing.robust, self.weighing.condition))

    def known(self, at: FilterPoint, origins: np.ndarray) -> tuple[DiffuseMoments, Floats]:
        """Return what is known of the states at every sample, and algebraic unknowns (N, nz)."""
        mean, covariance, z = _moments(self.passes, origins, *at.plain)
        return DiffuseMoments(mean, covariance, np.zeros((*mean.shape, 0))), z


def _moments(
    filter: Passes, origins: np.ndarray, q: Floats, dq: Floats, start: StartValues
) -> tuple[Floats, Floats, Floats]:
    walk = _AheadWalk(filter, q, dq, start)
    found = []
    for j, origin in enumerate(origins):
        s, _ = walk.state_before(j, int(origin))
        found.append(s)
    x, P, z = filter.packing.split(np.array(found))
    return x, P, z[:, : filter.model.z.numel()]


def _sums(
    filter: Passes, origins: np.ndarray, q: Floats, dq: Floats, start: StartValues, robust: float, condition: bool
) -> LikelihoodSums:
    """Return one short pass for each prediction, which weighs the last sample only."""
    walk = _AheadWalk(filter, q, dq, start)
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
    return LikelihoodSums(
        count, base, np.zeros((nd, 1, 1)), information, np.zeros((ns, 1)), innovations, variances, slopes, failed
    )  # fmt: skip


class _AheadWalk:
    """The filter sample by sample, remembering what it knew after each."""

    def __init__(self, filter: Passes, q: Floats, dq: Floats, start: StartValues) -> None:
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
        """Return what is known of sample j from the data up to sample ``origin``, with derivatives; −1 for no data."""
        s, begin = self._after(origin)
        found = self._pass(begin, int(self.at[j]), s, None)
        return found.s, found.ds

    def seen_from(self, j: int, origin: int, robust: float) -> PassResult:
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

    def _pass(
        self, begin: int, end: int, s: tuple[Floats, Floats], sample: int | None, robust: float = np.inf
    ) -> PassResult:
        """Run from one boundary to another; the sample at the end counts, if one is given."""
        g = self.given
        which, rows = np.full(end - begin + 1, -1, dtype=np.int64), slice(0, 1)
        if sample is not None:
            which[-1], rows = 0, slice(sample, sample + 1)
        part = replace(
            g.part(begin, end, which), y=g.y[rows], mask=g.mask[rows], scale=g.scale[rows], robust=robust,
            condition=False,
        )  # fmt: skip
        return self.filter.carry(PreparedPass(part), self.q, np.concatenate([s[0][None], s[1]]), self.dq, keep=False)
