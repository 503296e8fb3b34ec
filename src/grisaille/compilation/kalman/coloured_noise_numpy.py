"""Filters of disturbances stepped in NumPy: the twin of what ``filters`` prints as C, operation for operation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.coloured_noise_source import ColouredNoise, ColouredNoiseLayout, Floats

NORMALS_PER_SLAB = 1 << 17
"""Normals drawn at a time."""


class ColouredNoiseStates:
    """States of every filter for some realizations, from grid point to grid point.

    ``w`` (m, nw) and ``dw`` (m, ns, nw); ``signals`` (m, nd) and ``dsignals`` (m, ns, nd) are what they drive.
    """

    def __init__(
        self, filters: ColouredNoise, layout: ColouredNoiseLayout, members: NDArray[np.int64], ns: int
    ) -> None:
        self.filters, self.layout = filters, layout
        self.numbers = members + filters.first_realization
        self.ns = ns if layout.sensitive else 0
        self.edges = np.cumsum([0, *layout.orders])
        self._drawn: list[tuple[int, Floats]] = [(-1, np.zeros((0, 0, 0)))] * len(layout.orders)
        self.w, self.dw = self._start(members)
        self._read()

    def advance(self, k: int) -> None:
        """Advance to the end of cell k."""
        which, w, dw = self.filters.which[k], np.empty_like(self.w), np.empty_like(self.dw)
        for i, group in enumerate(self.filters.groups):
            at = slice(self.edges[i], self.edges[i + 1])
            z = self._innovations(i, k)
            w[:, at] = _times(group.F[which], self.w[:, at]) + _times(group.L[which], z)
            if group.dF is not None and group.dL is not None:
                for s in range(self.ns):
                    moved = _times(group.dF[which, s], self.w[:, at]) + _times(group.dL[which, s], z)
                    dw[:, s, at] = _times(group.F[which], self.dw[:, s, at]) + moved
        self.w, self.dw = w, dw
        self._read()

    def _start(self, members: NDArray[np.int64]) -> tuple[Floats, Floats]:
        w, dw = np.zeros((members.size, self.layout.nw)), np.zeros((members.size, self.ns, self.layout.nw))
        for i, group in enumerate(self.filters.groups):
            at = slice(self.edges[i], self.edges[i + 1])
            z = group.stream.normals(self.numbers, self.filters.first_point, group.R.shape[0])
            w[:, at] = _times(group.R, z)
            if group.dR is not None:
                for s in range(self.ns):
                    dw[:, s, at] = _times(group.dR[s], z)
        if self.filters.w is not None:
            w = self.filters.w[members]
        if self.filters.dw is not None and self.ns:
            dw = self.filters.dw[members]
        return w, dw

    def _innovations(self, i: int, k: int) -> Floats:
        first, z = self._drawn[i]
        if not 0 <= k - first < len(z):
            n = self.layout.orders[i]
            count = max(1, min(NORMALS_PER_SLAB // max(1, self.numbers.size * n), self.filters.which.size - k))
            points = self.filters.first_point + k + 1 + np.arange(count)
            z = self.filters.groups[i].stream.normals(self.numbers, points[:, None], n)
            first, self._drawn[i] = k, (k, z)
        return np.asarray(z[k - first])

    def _read(self) -> None:
        signals = [np.zeros((self.numbers.size, 0))]
        dsignals = [np.zeros((self.numbers.size, self.ns, 0))]
        for i, group in enumerate(self.filters.groups):
            at = slice(self.edges[i], self.edges[i + 1])
            signals.append(_times(group.C, self.w[:, at]))
            if self.ns and group.dC is not None:
                moved = [
                    _times(group.C, self.dw[:, s, at]) + _times(group.dC[s], self.w[:, at]) for s in range(self.ns)
                ]
                dsignals.append(np.stack(moved, axis=1))
        self.signals, self.dsignals = np.concatenate(signals, axis=1), np.concatenate(dsignals, axis=2)


def _times(M: Floats, x: Floats) -> Floats:
    """Return M x for vectors in the last dimension, summed from the first column to the last."""
    total = M[:, 0] * x[..., 0, None]
    for j in range(1, M.shape[1]):
        total = total + M[:, j] * x[..., j, None]
    return np.asarray(total)
