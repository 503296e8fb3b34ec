"""What each cell of a record adds to the error of a filter's steps.

Every cell is stepped over from where the finer pass stands at its beginning, with longer steps; how far mean and
covariance end from those of the finer pass, in standard deviations of the prediction, is the cell's own error, free of
what other cells handed on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.compilation.kalman.native import PreparedPass
from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import Whole
from grisaille.filtering.passes import Passes

KNOWN = 1e-2
"""Part of a state's range that stands for its standard deviation where that is smaller."""


def local_errors(filter: Passes, steps: Whole, q: Floats, x0: Floats, z0: Floats | None) -> Floats:
    """(K,) of a filter as it steps now, against the steps given; NaN where there is none."""
    return LocalErrors(filter, q, x0, z0).of(steps)


class LocalErrors:
    """Of any steps against those that a filter has now.

    known : part of a state's range that stands for its standard deviation where that is smaller
    """

    def __init__(self, filter: Passes, q: Floats, x0: Floats, z0: Floats | None, known: float = KNOWN) -> None:
        self.filter, self.q = filter, q
        nothing, pack = np.zeros((0, len(q))), filter.packing
        with np.errstate(all="ignore"):
            given = filter.prepared(q)
            self.start = filter.start(given, q, nothing, x0, z0)
            fine = filter.carry(given, q, self.start, nothing, keep=True).kept
            assert fine is not None
            _, P, _ = pack.split(fine[1:, 0])
            range_of = np.ptp(fine[:, 1, : filter.model.n], axis=0)
            spread = np.maximum(np.sqrt(np.maximum(np.einsum("kii->ki", P), 0.0)), known * range_of)
        self.fine, self.spread = fine, np.where(spread > 0, spread, 1.0)

    def of(self, steps: Whole) -> Floats:
        """(K,) in standard deviations; NaN where there is none."""
        pack, spread = self.filter.packing, self.spread
        with np.errstate(all="ignore"):
            given = replace(
                self.filter.pass_with(self.q, steps), given=self.fine[:, 1],
                sample=np.full(len(self.fine), -1, dtype=np.int64),
            )  # fmt: skip
            coarse = self.filter.carry(
                PreparedPass(given), self.q, self.start, np.zeros((0, len(self.q))), keep=True
            ).kept
            assert coarse is not None
            dx, dP, _ = pack.split(coarse[1:, 0] - self.fine[1:, 0])
            means = np.abs(dx / spread).max(axis=1, initial=0.0)
            spreads = np.abs(dP / (spread[:, :, None] * spread[:, None, :])).max(axis=(1, 2), initial=0.0)
        return np.asarray(means + spreads / 2)
