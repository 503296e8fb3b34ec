"""The largest changes of dead times at once, where a criterion is renewed after each change.

A stride that turns back has passed a minimum, or a corner of the criterion, and the next is at most half as long. Where
several unknowns move, one may turn back because another one moved: strides that go on in one direction, cut each time,
are made longer again. Between two strides that turned the minimum is at most three cut ones away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SETTLED_STRIDE = 1e-6
"""Of the longest stride: what moves less has settled."""
MIN_STRIDE = 4 * SETTLED_STRIDE
CUT_STRIDE = 1 - 1e-6
MAX_UNCHANGED_STRIDES = 3
STRIDE_GROWTH = 8.0


@dataclass(frozen=True)
class Strides:
    """One for each unknown."""

    reach: Floats
    """The longest."""
    within: Floats
    """What the next may be."""
    last: Floats
    cut: NDArray[np.int64]
    """How many in a row went in one direction as far as they might."""
    settled: NDArray[np.bool_]

    @classmethod
    def first(cls, reach: Floats) -> Self:
        count = len(reach)
        return cls(reach, reach.copy(), np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.bool_))

    @property
    def have_settled(self) -> bool:
        """Return a stride that was cut has not settled, unless it is as short as can be and turns back: a corner."""
        return bool(self.settled.all())

    def after(self, step: Floats) -> Self:
        """Return the strides after another one has been made."""
        size, turned = np.abs(step), step * self.last < 0
        is_cut = size >= CUT_STRIDE * self.within
        cut = np.where(is_cut, np.where(turned, 1, self.cut + 1), 0)
        within = np.where(turned, 0.5 * np.minimum(self.within, size), self.within)
        within = np.where(cut > MAX_UNCHANGED_STRIDES, STRIDE_GROWTH * within, within)
        settled = (size <= SETTLED_STRIDE * self.reach) | (turned & (size <= 1.5 * MIN_STRIDE * self.reach))
        within = np.clip(within, MIN_STRIDE * self.reach, self.reach)
        return replace(self, within=within, last=step, cut=cut, settled=settled)
