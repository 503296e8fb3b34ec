"""Paths that can be asked at any instant: states on a grid, and the bridge of the process between its points.

Requests may come in any order and any number; each answer is a function of the instant alone. ``pieces`` writes a whole
path out as polynomials, leaf by leaf, for integrators that read signals as tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.disturbance.bridge import BRIDGE_TOLERANCE, Bridge, build_bridge
from grisaille.disturbance.discretization import distinct_steps
from grisaille.disturbance.paths import multiply, sample_path
from grisaille.disturbance.process import Process
from grisaille.disturbance.standard_normals import Stream, index_list
from grisaille.errors import DataError
from grisaille.numerics.philox import Purpose

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BridgedPath:
    """Paths on a grid together with everything between its points."""

    process: Process
    times: Floats
    states: Floats
    """(realizations, times, n)"""
    realizations: Integers
    stream: Stream
    bridges: Sequence[Bridge]
    which: Integers
    """(cells,): index into ``bridges``."""

    def at(self, instants: ArrayLike, derivative: int = 0) -> Floats:
        """Return the disturbance, or a derivative that exists, (realizations, instants, m)."""
        return multiply(self.process.output_map(derivative), self.states_at(instants))

    def states_at(self, instants: ArrayLike) -> Floats:
        """Return states at any instants inside the grid, in any order, (realizations, instants, n)."""
        t = np.asarray(instants, dtype=float)
        if t.size and not (t.min() >= self.times[0] and t.max() <= self.times[-1]):
            raise DataError(
                f"{self.process.label} was asked for at t = {t.min():g} … {t.max():g}, but its grid spans "
                f"{self.times[0]:g} … {self.times[-1]:g}. Extend the grid."
            )
        cell = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, self.times.size - 2)
        fraction = (t - self.times[cell]) / (self.times[cell + 1] - self.times[cell])
        out = np.empty((self.realizations.size, t.size, self.states.shape[-1]))
        for i, bridge in enumerate(self.bridges):
            here = np.flatnonzero(self.which[cell] == i)
            out[:, here] = self._in_cells(bridge, cell[here], fraction[here])
        return out

    def pieces(self, derivative: int = 0) -> tuple[Floats, Floats]:
        """Return breaks (pieces + 1,) and coefficients (realizations, pieces, m, degree + 1) of powers of t − break."""
        breaks, owner = self._leaves()
        x, rows = self.states_at(breaks), self.process.output_map(derivative)
        degree = max(len(bridge.leaf_gain) for bridge in self.bridges) - 1
        out = np.zeros((degree + 1, self.realizations.size, owner.size, len(rows)))
        for i, bridge in enumerate(self.bridges):
            here = np.flatnonzero(owner == i)
            coefficients = bridge.mean_coefficients(x[:, here], x[:, here + 1])
            out[: len(coefficients), :, here] = multiply(rows, coefficients)
        powers = np.diff(breaks)[:, None] ** np.arange(degree + 1)
        return breaks, np.moveaxis(out, 0, -1) / powers[:, None, :]

    def _leaves(self) -> tuple[Floats, Integers]:
        """Return ends of all leaves, and the bridge that each leaf belongs to."""
        counts = 2 ** np.array([bridge.depth for bridge in self.bridges])[self.which]
        cell = np.repeat(np.arange(counts.size), counts)
        number = np.arange(cell.size) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = self.times[cell] + np.diff(self.times)[cell] * (number / counts[cell])
        return np.append(edges, self.times[-1]), self.which[cell]

    def _in_cells(self, bridge: Bridge, cell: Integers, fraction: Floats) -> Floats:
        m, q, n = self.realizations.size, cell.size, self.states.shape[-1]
        ends = (self.states[:, cell].reshape(-1, n), self.states[:, cell + 1].reshape(-1, n))
        numbers = np.repeat(self.realizations, q), np.tile(cell, m)
        return bridge.states(self.stream, *numbers, np.tile(fraction, m), *ends).reshape(m, q, n)


def sample_bridged_path(
    process: Process, times: ArrayLike, seed: int, realizations: ArrayLike = 1, purpose: Purpose | str = Purpose.DATA,
    *, antithetic: bool = False, tolerance: float = BRIDGE_TOLERANCE, depth: int | None = None,
) -> BridgedPath:  # fmt: skip
    """Return paths that can be asked at any instant of the grid's span; on the grid they are those of
    ``sample_path``.
    """
    chosen = index_list(realizations)
    states = sample_path(process, times, seed, chosen, purpose, antithetic=antithetic)
    steps, which = distinct_steps(times)
    bridges = [build_bridge(process, float(h), tolerance, depth) for h in steps]
    stream = Stream.of(seed, purpose, process.names[0], antithetic)
    return BridgedPath(process, np.asarray(times, dtype=float), states, chosen, stream, bridges, which)
