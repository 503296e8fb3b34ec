"""Elements of a record: from sample to sample or to the next jump or bend of an input, cut further where asked.

Inside an element the states are polynomials through its left end and the s Radau points (the last one is its right
end), with the Butcher matrix A of Radau IIA. So every sample lies at the end of an element, and data are compared with
the polynomials themselves. Reference: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), IV.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.collocation.array_types import Floats, Integers, Mask
from grisaille.collocation.trial_record import TrialReader
from grisaille.errors import EstimationError
from grisaille.experiment.piecewise_polynomials import MOVING_KINK, SignalTable
from grisaille.experiment.projected_signals import projected_table
from grisaille.experiment.record_cells import RecordCells, cut_into_cells
from grisaille.structure.system import System

_R6 = 6**0.5
RADAU_POINTS = 3
RADAU_NODES: Floats = np.array([(4 - _R6) / 10, (4 + _R6) / 10, 1.0])
RADAU_MATRIX: Floats = np.array([
    [(88 - 7 * _R6) / 360, (296 - 169 * _R6) / 1800, (-2 + 3 * _R6) / 225],
    [(296 + 169 * _R6) / 1800, (88 + 7 * _R6) / 360, (-2 - 3 * _R6) / 225],
    [(16 - _R6) / 36, (16 + _R6) / 36, 1 / 9],
])  # fmt: skip
"""Nodes c and matrix A of Radau IIA with three points; the weights are A's last row."""

MAX_PARTS_FOR_JUMPS = 20_000
"""Elements that jumps of a signal may ask for."""


@dataclass(frozen=True)
class RadauElements(Discretisation, saved_as="RadauElements"):
    """Of trajectories that are polynomials through Radau points."""

    pieces: int = 1
    """Equal elements between samples, jumps and bends of inputs, or more of them:"""
    longest: float = 1 / 40
    """of the record, with one piece; half of it with two."""

    def __str__(self) -> str:
        return f"{self.pieces} element{'s' * (self.pieces > 1)} between samples, of {RADAU_POINTS} Radau points"

    def halved(self) -> RadauElements:
        return replace(self, pieces=2 * self.pieces)


@dataclass(frozen=True, eq=False)
class DirectRecord(TrialReader):
    """A trial as direct collocation reads it.

    outputs : the columns of ``y``, those of all records
    signals : the table of u
    moving : the system, where breaks of signals move with unknowns; elements stay, and such a signal is replaced on
        each by the parabola with the same moments (``experiment/projected_signals.py``)
    longest : elements up to which that can be done, wherever these breaks are
    """

    trial: BoundExperiment
    outputs: tuple[str, ...]
    signals: SignalTable
    moving: System | None = None
    longest: float = np.inf

    @cached_property
    def y(self) -> Floats:
        """(N, ny), NaN where not measured."""
        return self.trial.data.columns(self.outputs)[0]

    @cached_property
    def weights(self) -> Floats:
        """(N, ny), factors of residuals."""
        return self.trial.data.columns(self.outputs)[1]

    @property
    def measured(self) -> Mask:
        return np.asarray(np.isfinite(self.y) & (self.weights > 0))

    @cached_property
    def standing(self) -> RecordCells:
        """Return the cells between samples and fixed breaks; without signals where others move."""
        table = self.signals
        if self.moving is None:
            return cut_into_cells(self.times, table)
        breaks = np.union1d(table.breaks[table.kink != MOVING_KINK], self.times[[0, -1]])
        none = np.zeros((len(breaks) - 1, 0, 1))
        return cut_into_cells(self.times, SignalTable(breaks, none, np.zeros(len(breaks), dtype=np.uint8)))

    def cells(self) -> RecordCells:
        """Return the cells between samples and fixed breaks, cut where moving signals ask for it."""
        if self.moving is None:
            return self.standing
        return self.cells_between(CellPartition.of(self.standing, self.parts(1, np.inf)).bounds)

    def cells_between(self, bounds: Floats) -> RecordCells:
        """Return the same with further ``bounds``, all of which elements have."""
        assert self.moving is not None
        return cut_into_cells(self.times, projected_table(self.signals, self.moving, bounds))

    def parts(self, least: int, longest: float) -> Integers:
        """Return into how many each cell between what stays is cut."""
        lengths = self.standing.lengths

        def count(most: float) -> Integers:
            return np.maximum(least, np.ceil(np.minimum(lengths / most * (1 - 1e-9), 1e9)).astype(np.int64))

        plain, parts = count(longest), count(min(longest, self.longest))
        if parts.sum() > max(MAX_PARTS_FOR_JUMPS, 2 * plain.sum()):
            raise EstimationError(
                f"Experiment '{self.name}': a held input is delayed by an estimated dead time and enters other than "
                f"linearly; two of its jumps are {self.longest:.3g} apart, and elements as short as that would be "
                f"{parts.sum():.2g}, more than {MAX_PARTS_FOR_JUMPS}. gr.KalmanML() and gr.OutputError() end their "
                "steps on "
                f"the jumps; or take out one of the two samples of the input, or join them by lines, hold='foh'."
            )
        return parts


@dataclass(frozen=True, eq=False)
class CellPartition:
    """Cells in equal parts: the cell of each part, the share of the cell at which it begins, and all ends."""

    cell: Integers
    share: Floats
    bounds: Floats

    @classmethod
    def of(cls, cells: RecordCells, parts: Integers) -> CellPartition:
        cell = np.repeat(np.arange(len(parts)), parts)
        share = (np.arange(len(cell)) - np.repeat(np.cumsum(parts) - parts, parts)) / parts[cell]
        left = cells.bounds[cell] + share * cells.lengths[cell]
        return cls(cell, share, np.append(left, cells.bounds[-1]))


@dataclass(frozen=True, eq=False)
class ElementMesh:
    """The elements of one record; arrays over elements, the first instant apart."""

    bounds: Floats
    """(E + 1,) ends of elements."""
    sample_at: Integers
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
    def ends_of_samples(self) -> Integers:
        """Return the end at which each sample lies: they come in the order of time."""
        return np.flatnonzero(self.sample_at >= 0)


def make_mesh(record: DirectRecord, grid: RadauElements) -> ElementMesh:
    """Return cells cut into equal parts."""
    if len(record.times) < 2:
        raise EstimationError(f"Experiment '{record.name}' has {len(record.times)} instant; collocation needs two.")
    longest = grid.longest * float(record.times[-1] - record.times[0]) / grid.pieces
    standing, parts = record.standing, record.parts(grid.pieces, longest)
    cut = CellPartition.of(standing, parts)
    bounds, left = cut.bounds, cut.bounds[:-1]
    sample_at = np.full(len(bounds), -1, dtype=np.int64)
    sample_at[np.append(np.cumsum(parts) - parts, len(left))] = standing.sample_at
    if record.moving is None:
        s = cut.share[:, None] + RADAU_NODES / parts[cut.cell][:, None]
        powers = s[:, :, None] ** np.arange(standing.coefficients.shape[2])
        u = np.einsum("eud,esd->esu", standing.coefficients[cut.cell], powers)
    else:
        u = record.cells_between(bounds).at(RADAU_NODES)[1]
    at_ends = np.stack([record.signals.at(float(t)) for t in bounds])
    return ElementMesh(bounds, sample_at, left[:, None] + RADAU_NODES * np.diff(bounds)[:, None], u, at_ends)
