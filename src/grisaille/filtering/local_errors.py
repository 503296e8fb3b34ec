"""What each cell of a record adds to the error of a filter's steps.

Every cell is stepped over from where the finer pass stands at its beginning, with steps twice as long; how far mean and
covariance end from those of the finer pass, in standard deviations of the prediction, is the cell's own error, free of
what other cells handed on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.compilation.filter_native import PreparedPass
from grisaille.disturbance.duals import Floats
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.kalman import Whole

KNOWN = 1e-2
"""Part of a state's range that stands for its standard deviation where that is smaller."""


def local_errors(filter: ExtendedFilter, steps: Whole, q: Floats, x0: Floats, z0: Floats | None) -> Floats:
    """(K,) of a filter as it steps now, against the steps given; NaN where there is none."""
    nothing, pack = np.zeros((0, len(q))), filter.packing
    with np.errstate(all="ignore"):
        given = filter.prepared(q)
        s = filter.start(given, q, nothing, x0, z0)
        fine = filter.carry(given, q, s, nothing, keep=True).kept
        assert fine is not None
        begun = replace(
            filter.with_steps(q, steps), given=fine[:, 1], sample=np.full(len(given.given.bounds), -1, dtype=np.int64)
        )
        coarse = filter.carry(PreparedPass(begun), q, s, nothing, keep=True).kept
        assert coarse is not None
        _, P, _ = pack.split(fine[1:, 0])
        dx, dP, _ = pack.split(coarse[1:, 0] - fine[1:, 0])
        range_of = np.ptp(fine[:, 1, : filter.model.n], axis=0)
        spread = np.maximum(np.sqrt(np.maximum(np.einsum("kii->ki", P), 0.0)), KNOWN * range_of)
        spread = np.where(spread > 0, spread, 1.0)
        means = np.abs(dx / spread).max(axis=1, initial=0.0)
        spreads = np.abs(dP / (spread[:, :, None] * spread[:, None, :])).max(axis=(1, 2), initial=0.0)
    return np.asarray(means + spreads / 2)
