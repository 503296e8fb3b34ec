"""The grid of an ensemble: where disturbances have their points, and known signals on it.

Cells end on output times and kinks; between two of those they are equal and at most ``step`` long, so that two outputs
close to each other make one short cell and leave the others as they are. Instants that differ by rounding are one.
Where disturbances are drawn from their bridges, they have states on a lattice of its own, t₀ + k·step, which depends on
neither: other output times see the same paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import DataError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.structure.system import System

Floats = NDArray[np.float64]
MERGE_TOLERANCE = 1e-9
"""Kinks closer than this part of a step to an output time are taken to be there."""
SAME_TIME = 1e-12
"""Instants closer than this part of the span are one, and so are those closer than four units of their last digit."""
MAX_CELLS = 1 << 27
"""A grid with its signals takes about a hundred bytes for each."""


@dataclass(frozen=True, eq=False)
class EnsembleTimes:
    points: Floats
    kept: NDArray[np.int64]
    """Indices of the output times, not decreasing."""
    roots: Floats
    """Where the states of disturbances come from their recursion: the points, or a lattice that covers them."""

    @property
    def cells(self) -> int:
        return self.points.size - 1


def make_grid(times: Floats, kinks: Floats, step: float, *, has_lattice: bool = False) -> EnsembleTimes:
    """Make the grid of increasing ``times``; kinks outside their span are ignored. Instants that differ by rounding are
    one.
    """
    rounding = SAME_TIME * np.ptp(times) + 4 * np.spacing(np.abs(times).max())
    cells = np.ptp(times) / step
    if not cells > 0.0:
        raise DataError(
            f"Realizations are simulated over a span; the only time is {times[0]:g}. Give a later one too, or leave "
            f"realizations= out."
        )
    if not cells < MAX_CELLS:
        raise DataError(
            f"Disturbances would be sampled at {cells:.3g} points from t = {times[0]:g} to {times[-1]:g}, one every "
            f"{step:.3g}; {MAX_CELLS:g} are possible. Simulate a shorter span, give a longer step=, or take a "
            f"disturbance of a lower bandwidth."
        )
    lattice = times[0] + step * np.arange(int(np.ceil(cells * (1 - 1e-9))) + 1) if has_lattice else times[:1]
    kinks = np.concatenate([kinks, lattice]) if has_lattice else kinks
    outputs, which = _merged(times, rounding)
    inside = np.unique(kinks[(kinks > times[0]) & (kinks < times[-1])])
    right = np.searchsorted(outputs, inside)
    after = np.abs(outputs[np.clip(right, 0, outputs.size - 1)] - inside)
    before = np.abs(outputs[np.clip(right - 1, 0, outputs.size - 1)] - inside)
    own = inside[np.minimum(after, before) > max(MERGE_TOLERANCE * step, rounding)]
    ends = np.unique(np.concatenate([outputs, _merged(own, rounding)[0]]))
    counts = np.maximum(1, np.ceil(np.diff(ends) / step * (1 - 1e-9)).astype(np.int64))
    first = np.concatenate([[0], np.cumsum(counts)])
    cell = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    lengths = np.repeat(np.diff(ends) / counts, counts)
    points = np.append(np.repeat(ends[:-1], counts) + cell * lengths, ends[-1])
    roots = _snapped(lattice, points, MERGE_TOLERANCE * step) if has_lattice else points
    return EnsembleTimes(points, first[np.searchsorted(ends, outputs)][which], roots)


def _merged(instants: Floats, rounding: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return increasing instants without those that follow another one by rounding, and which of the rest each one
    is.
    """
    fresh = np.diff(instants, prepend=-np.inf) > rounding
    return instants[fresh], np.cumsum(fresh) - 1


def _snapped(lattice: Floats, points: Floats, tolerance: float) -> Floats:
    """Return the lattice, with the points in place of those that differ from them by rounding; it ends beyond the last
    one.
    """
    right = np.clip(np.searchsorted(points, lattice), 0, points.size - 1)
    for nearest in (points[right], points[np.maximum(right - 1, 0)]):
        lattice = np.where(np.abs(nearest - lattice) <= tolerance, nearest, lattice)
    return np.append(lattice[:-1], max(lattice[-1], points[-1]))


def ticks_of(table: SignalTable, system: System) -> Floats:
    """Return breaks at which clocks tick and nothing else jumps or bends.

    Steps end there, cells do not: with another period of a clock realizations would be others.
    """
    counters = [] if system.reactions is None else [c for c in system.reactions.counters if c >= 0]
    if not counters or len(table.coef) < 2:
        return np.zeros(0)
    length, degree = np.diff(table.breaks)[:-1, None], table.coef.shape[2]
    same = np.ones((len(table.coef) - 1, table.coef.shape[1]), dtype=bool)
    for order in range(min(2, degree)):
        before = sum(comb(j, order) * table.coef[:-1, :, j] * length ** (j - order) for j in range(order, degree))
        after = table.coef[1:, :, order]
        same &= np.abs(after - before) <= 1e-9 * (np.abs(after) + np.abs(before))
    ticks = ~same[:, counters].all(axis=1)
    same[:, counters] = True
    return np.asarray(table.breaks[1:-1][ticks & same.all(axis=1)])


def on_grid(table: SignalTable, grid: EnsembleTimes) -> SignalTable:
    """Move breaks that differ by rounding from a point of the grid onto it: steps end at one of the two only."""
    points = grid.points
    near = max(
        MERGE_TOLERANCE * np.diff(points).max(), SAME_TIME * np.ptp(points) + 4 * np.spacing(np.abs(points).max())
    )
    right = np.clip(np.searchsorted(points, table.breaks), 1, points.size - 1)
    closest = np.where(
        table.breaks - points[right - 1] < points[right] - table.breaks, points[right - 1], points[right]
    )
    breaks = np.where(np.abs(closest - table.breaks) <= near, closest, table.breaks)
    lasts = np.diff(breaks, append=np.inf) > 0
    kinks = breaks[table.kink == 1]
    return SignalTable(breaks[lasts], table.coef[lasts[:-1]], np.isin(breaks[lasts], kinks).astype(np.uint8))


def stage_table(table: SignalTable, grid: EnsembleTimes, substeps: int, place: int) -> tuple[Floats, str]:
    """Return one signal at every half step of every cell (``"stages"``), or as one number (``"zoh"``) when it is
    constant.
    """
    coef = table.coef[:, place]
    if not coef[:, 1:].any() and np.ptp(coef[:, 0]) == 0:
        return np.full(grid.points.size, coef[0, 0]), "zoh"
    left, width = grid.points[:-1, None], np.diff(grid.points)[:, None]
    fractions = np.arange(2 * substeps + 1) / (2 * substeps)
    at = left + width * fractions
    # the ends of a step belong to the piece inside it: a jump at a grid point is seen from both sides in turn
    nudge = np.zeros(fractions.size)
    nudge[0], nudge[-1] = 1e-6, -1e-6
    segment = np.clip(np.searchsorted(table.breaks, at + nudge * width, side="right") - 1, 0, len(coef) - 1)
    values = _polynomial(coef, table.breaks, segment, at)
    return np.append(values.ravel(), table.at(float(grid.points[-1]))[place]), "stages"


def _polynomial(coef: Floats, breaks: Floats, segment: NDArray[np.int64], at: Floats) -> Floats:
    offset = at - breaks[segment]
    value = coef[segment, -1]
    for k in range(coef.shape[1] - 2, -1, -1):
        value = value * offset + coef[segment, k]
    return np.asarray(value)
