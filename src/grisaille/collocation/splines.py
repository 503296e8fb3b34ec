"""B-splines of one state: knots, the basis functions on an interval, and their derivatives.

    x(t) = Σ_j β_j φ_j(t),    φ_{j,1} = 1 on [τ_j, τ_{j+1}),
    φ_{j,k}(t) = (t − τ_j)/(τ_{j+k−1} − τ_j) φ_{j,k−1} + (τ_{j+k} − t)/(τ_{j+k} − τ_{j+1}) φ_{j+1,k−1}

of order k (degree k − 1). The end knots are k-fold, so the first and the last coefficient are the values at the ends;
a knot of multiplicity k − 1 inside leaves the spline continuous and lets its slope jump. Reference: C. de Boor, A
Practical Guide to Splines (2001), chapters IX and X.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grisaille.collocation.array_types import Floats, Integers
from grisaille.errors import EstimationError

MAX_SPLINE_ORDER = 12
"""Highest order."""


@dataclass(frozen=True, eq=False)
class Spline:
    """Splines of one order on one knot sequence."""

    order: int
    breaks: Floats
    """Distinct knots, the ends included."""
    multiplicity: Integers
    """Of each; the ends have that of the order."""

    @cached_property
    def knots(self) -> Floats:
        return np.repeat(self.breaks, self.multiplicity)

    @property
    def count(self) -> int:
        """Number of coefficients."""
        return len(self.knots) - self.order

    @cached_property
    def averages(self) -> Floats:
        """Return where each coefficient acts: the mean of the knots inside its support (Greville's abscissae)."""
        windows = np.lib.stride_tricks.sliding_window_view(self.knots[1:-1], self.order - 1)
        return np.asarray(windows.mean(axis=1))

    def spans(self, t: Floats) -> Integers:
        """Return μ with τ_μ ≤ t < τ_{μ+1}; the last interval at the end."""
        found = np.searchsorted(self.knots, t, side="right") - 1
        return np.asarray(np.clip(found, self.order - 1, self.count - 1), dtype=np.int64)

    def first_active(self, spans: Integers) -> Integers:
        """Return the first of the ``order`` coefficients that act on an interval."""
        return spans - self.order + 1

    def basis(self, spans: Integers, t: Floats) -> tuple[Floats, Floats]:
        """Return active functions and their derivatives, each (points, order); one-sided limits as the span says."""
        values = np.ones((len(t), 1))
        lower = np.zeros((len(t), 0))
        for k in range(2, self.order + 1):
            lower, values = values, self._raised(spans, t, values, k)
        slopes = np.zeros_like(values)
        k = self.order
        for a in range(k):
            j = spans - k + 1 + a
            if a > 0:
                slopes[:, a] += (k - 1) * lower[:, a - 1] / (self.knots[j + k - 1] - self.knots[j])
            if a < k - 1:
                slopes[:, a] -= (k - 1) * lower[:, a] / (self.knots[j + k] - self.knots[j + 1])
        return values, slopes

    def _raised(self, spans: Integers, t: Floats, values: Floats, k: int) -> Floats:
        raised = np.zeros((len(t), k))
        for a in range(k - 1):
            left, right = self.knots[spans - k + 2 + a], self.knots[spans + 1 + a]
            share = values[:, a] / (right - left)
            raised[:, a] += (right - t) * share
            raised[:, a + 1] += (t - left) * share
        return raised


def make_spline(order: int, breaks: Floats, folded: Floats) -> Spline:
    """Return the spline with simple knots at ``breaks`` and (order − 1)-fold ones at ``folded``, where a slope may
    jump.
    """
    refuse_order(order)
    if len(breaks) < 2 or not np.all(np.diff(breaks) > 0):
        raise EstimationError("Knots must increase from the first to the last instant; give at least these two.")
    multiplicity = np.where(np.isin(breaks, folded), order - 1, 1)
    multiplicity[[0, -1]] = order
    return Spline(order, np.asarray(breaks, dtype=float), np.asarray(multiplicity, dtype=np.int64))


def spline_of(knots: Floats) -> Spline:
    """Return the spline with such knots."""
    breaks, multiplicity = np.unique(knots, return_counts=True)
    return Spline(int(multiplicity[0]), breaks, multiplicity.astype(np.int64))


def refuse_order(order: object) -> None:
    """Refuse orders outside 2 (straight lines) to 12."""
    if isinstance(order, bool) or not isinstance(order, int) or not 2 <= order <= MAX_SPLINE_ORDER:
        raise EstimationError(
            f"order is {order!r}; give a whole number from 2 (straight lines) to {MAX_SPLINE_ORDER}, such as 4 "
            "(cubic splines)."
        )
