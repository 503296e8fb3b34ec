"""Filters of disturbances stepped in NumPy: the twin of what ``filters`` prints as C, operation for operation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.filters import HALF, MIXED, QUARTER, FilterLayout, Filters, Floats, white_pairs

SLAB = 1 << 17
"""Normals drawn at a time."""


class FilterStates:
    """States of every filter for some realizations, from grid point to grid point.

    ``w`` (m, nw) and ``dw`` (m, ns, nw); ``signals`` (m, nd) and ``dsignals`` (m, ns, nd) are what they drive.
    """

    def __init__(self, filters: Filters, layout: FilterLayout, members: NDArray[np.int64], ns: int) -> None:
        self.filters, self.layout = filters, layout
        self.numbers = members + filters.first_realization
        self.ns = ns if layout.sensitive else 0
        self.edges = np.cumsum([0, *layout.orders])
        self._drawn: list[tuple[int, Floats]] = [(-1, np.zeros((0, 0, 0)))] * len(layout.orders)
        self._held: dict[int, Floats] = {}
        self.w, self.dw = self._start(members)
        self._read()

    def advance(self, k: int) -> None:
        """To the end of cell k."""
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

    def white(self, k: int, j: int, substeps: int) -> Floats:
        """Standard normals of step j of cell k, (m, nv); steps are asked for in order."""
        if not self.layout.white:
            return np.zeros((self.numbers.size, 0))
        deep = substeps.bit_length() - 1
        if j == 0:
            depth, v = 0, self._node(k, 0)
        else:
            depth = deep - ((j & -j).bit_length() - 1)
            v = self._held[depth]
        for level in range(depth, deep):
            fresh = self._node(k, (1 << level) + (j >> (deep - level)))
            v, self._held[level + 1] = halve_white(self.layout, v, fresh)
        return v

    def _node(self, k: int, node: int) -> Floats:
        point = self.filters.first_point + k + 1
        drawn = [
            stream.normals(self.numbers, point, n, node)
            for stream, n in zip(self.filters.white, self.layout.white, strict=True)
        ]
        return np.concatenate(drawn, axis=1)

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
            count = max(1, min(SLAB // max(1, self.numbers.size * n), self.filters.which.size - k))
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


def halve_white(layout: FilterLayout, whole: Floats, fresh: Floats) -> tuple[Floats, Floats]:
    """Normals of both halves of an interval, (…, nv) each, from those of the whole and fresh ones."""
    left, right = np.empty_like(whole), np.empty_like(whole)
    for i, k in white_pairs(layout):
        z, a = whole[..., i], fresh[..., i]
        if k is None:
            left[..., i], right[..., i] = HALF * (z + a), HALF * (z - a)
            continue
        y, b = whole[..., k], fresh[..., k]
        p, q = HALF * z, MIXED * y + QUARTER * a
        r, s = QUARTER * y - MIXED * a, HALF * b
        left[..., i], right[..., i], left[..., k], right[..., k] = p + q, p - q, r + s, r - s
    return left, right


def mix_chains(layout: FilterLayout, b: Floats, left: Floats, right: Floats, linear: Floats) -> Floats:
    """``linear`` with every chain replaced by what its values at both ends of the cell give; signals come last."""
    mixed, first = linear.copy(), 0
    for chain in layout.chains:
        ends = np.concatenate([left[..., list(chain)], right[..., list(chain)]], axis=-1)
        rows = b[first : first + len(chain) * ends.shape[-1]].reshape(len(chain), -1)
        mixed[..., list(chain)] = _times(rows, ends)
        first += rows.size
    return mixed


def _times(M: Floats, x: Floats) -> Floats:
    """M x for vectors in the last dimension, summed from the first column to the last."""
    total = M[:, 0] * x[..., 0, None]
    for j in range(1, M.shape[1]):
        total = total + M[:, j] * x[..., j, None]
    return np.asarray(total)
