"""What each cell of a record adds to the error of a filter's steps.

Every cell is stepped over from where the finer pass stands at its beginning, with longer steps; how far mean and
covariance end from those of the finer pass, in standard deviations of the prediction, is the cell's own error, free of
what other cells handed on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import Whole
from grisaille.filtering.stepping.step_passes import StepPasses

MIN_RELATIVE_DEVIATION = 1e-2
"""Part of a state's range that stands for its standard deviation where that is smaller."""


def local_errors(passes: StepPasses, steps: Whole) -> Floats:
    """Return (K,) errors of the steps given, against a filter as it steps now; NaN where there is none."""
    return LocalErrors(passes).of(steps)


class LocalErrors:
    """Of any steps against those that a filter has now.

    known : part of a state's range that stands for its standard deviation where that is smaller
    """

    def __init__(self, passes: StepPasses, known: float = MIN_RELATIVE_DEVIATION) -> None:
        self.passes, pack = passes, passes.filter.packing
        fine = passes.plain().kept
        assert fine is not None
        with np.errstate(all="ignore"):
            _, P, _ = pack.split(fine[1:, 0])
            range_of = np.ptp(fine[:, 1, : pack.n], axis=0)
            spread = np.maximum(np.sqrt(np.maximum(np.einsum("kii->ki", P), 0.0)), known * range_of)
        self.fine, self.spread = fine, np.where(spread > 0, spread, 1.0)

    def of(self, steps: Whole) -> Floats:
        """Return (K,) in standard deviations; NaN where there is none."""
        passes, spread = self.passes, self.spread
        given = replace(
            passes.filter.pass_with(passes.q, steps), given=self.fine[:, 1],
            sample=np.full(len(self.fine), -1, dtype=np.int64),
        )  # fmt: skip
        coarse = passes.carry(given)
        with np.errstate(all="ignore"):
            dx, dP, _ = passes.filter.packing.split(coarse[1:, 0] - self.fine[1:, 0])
            means = np.abs(dx / spread).max(axis=1, initial=0.0)
            spreads = np.abs(dP / (spread[:, :, None] * spread[:, None, :])).max(axis=(1, 2), initial=0.0)
        return np.asarray(means + spreads / 2)
