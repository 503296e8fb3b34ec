"""Elements of a record: from sample to sample or to the next jump or bend of an input, cut further where asked.

Inside an element the states are polynomials through its left end and the s Radau points (the last one is its right
end), with the Butcher matrix A of Radau IIA. So every sample lies at the end of an element, and data are compared with
the polynomials themselves. Reference: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), IV.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import EstimationError
from grisaille.experiment.cells import Cells, cut_into_cells
from grisaille.experiment.interpolation import SignalTable
from grisaille.experiment.projected import longest_step, projected_table
from grisaille.structure.system import System
from grisaille.trial import Trial
from grisaille.trial.discretisation import Discretisation

Floats = NDArray[np.float64]

_R6 = 6**0.5
POINTS = 3
NODES: Floats = np.array([(4 - _R6) / 10, (4 + _R6) / 10, 1.0])
MATRIX: Floats = np.array([
    [(88 - 7 * _R6) / 360, (296 - 169 * _R6) / 1800, (-2 + 3 * _R6) / 225],
    [(296 + 169 * _R6) / 1800, (88 + 7 * _R6) / 360, (-2 - 3 * _R6) / 225],
    [(16 - _R6) / 36, (16 + _R6) / 36, 1 / 9],
])  # fmt: skip
"""Nodes c and matrix A of Radau IIA with three points; the weights are A's last row."""


@dataclass(frozen=True)
class RadauElements(Discretisation):
    """Of trajectories that are polynomials through Radau points."""

    pieces: int = 1
    """Equal elements between samples, jumps and bends of inputs, or more of them:"""
    longest: float = 1 / 40
    """of the record, with one piece; half of it with two."""

    def __str__(self) -> str:
        return f"{self.pieces} element{'s' * (self.pieces > 1)} between samples, of {POINTS} Radau points"

    def halved(self) -> RadauElements:
        return replace(self, pieces=2 * self.pieces)


@dataclass(frozen=True, eq=False)
class DirectRecord:
    """A trial as direct collocation reads it.

    outputs : the columns of ``y``, those of all records
    signals : the table of u
    moving : the system, where breaks of signals move with unknowns; elements stay, and such a signal is replaced on
        each by the parabola with the same moments (``experiment/projected.py``)
    """

    trial: Trial
    outputs: tuple[str, ...]
    signals: SignalTable
    moving: System | None = None

    @property
    def name(self) -> str:
        return self.trial.name

    @property
    def times(self) -> Floats:
        return self.trial.times

    @cached_property
    def y(self) -> Floats:
        """(N, ny), NaN where not measured."""
        return self.trial.data.columns(self.outputs)[0]

    @cached_property
    def weights(self) -> Floats:
        """(N, ny), factors of residuals."""
        return self.trial.data.columns(self.outputs)[1]

    @property
    def measured(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.y) & (self.weights > 0))

    def cells(self, bounds: Floats | None = None) -> Cells:
        """Between samples and breaks that stay; or between given ``bounds``, which are among them."""
        if self.moving is None:
            return cut_into_cells(self.times, self.signals)
        table = projected_table(self.signals, self.moving, self.times if bounds is None else bounds)
        return cut_into_cells(self.times, table)


@dataclass(frozen=True, eq=False)
class Mesh:
    """The elements of one record; arrays over elements, the first instant apart."""

    bounds: Floats
    """(E + 1,) ends of elements."""
    sample_at: NDArray[np.int64]
    """(E + 1,) the sample at each end, −1 for none."""
    nodes: Floats
    """(E, s) times of the Radau points."""
    u: Floats
    """(E, s, nu) inputs there, from inside the element."""
    u_end: Floats
    """(E + 1, nu) inputs at the ends, after a jump."""

    @property
    def lengths(self) -> Floats:
        return np.diff(self.bounds)

    @property
    def ends_of_samples(self) -> NDArray[np.int64]:
        """The end at which each sample lies: they come in the order of time."""
        return np.flatnonzero(self.sample_at >= 0)


def make_mesh(record: DirectRecord, grid: RadauElements) -> Mesh:
    """Cells cut into equal parts."""
    if len(record.times) < 2:
        raise EstimationError(f"Experiment '{record.name}' has {len(record.times)} instant; collocation needs two.")
    cells = record.cells()
    longest = grid.longest * float(record.times[-1] - record.times[0]) / grid.pieces
    if record.moving is not None:
        longest = min(longest, longest_step(record.signals, record.moving))
    parts = np.maximum(grid.pieces, np.ceil(cells.lengths / longest * (1 - 1e-9)).astype(int))
    cell = np.repeat(np.arange(len(parts)), parts)
    within = np.concatenate([np.arange(n) / n for n in parts])
    left = cells.bounds[cell] + within * cells.lengths[cell]
    bounds = np.append(left, cells.bounds[-1])
    sample_at = np.full(len(bounds), -1, dtype=np.int64)
    sample_at[np.append(np.cumsum(parts) - parts, len(left))] = cells.sample_at
    s = within[:, None] + NODES / parts[cell][:, None]
    powers = s[:, :, None] ** np.arange(cells.coefficients.shape[2])
    u = np.einsum("eud,esd->esu", cells.coefficients[cell], powers)
    if record.moving is not None:
        u = record.cells(bounds).at(NODES)[1]
    at_ends = np.stack([record.signals.at(float(t)) for t in bounds])
    return Mesh(bounds, sample_at, left[:, None] + NODES * np.diff(bounds)[:, None], u, at_ends)
