"""Residuals of all experiments on one grid of cells, so that products over a lag are sums of the same kind everywhere.

A cell is as long as the usual interval between samples. Samples take the cell nearest to them, one later where that is
taken: irregular instants keep their order and, where they do not crowd, their distances. What was not measured is zero
and not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.estimation.cases import Case

Floats = NDArray[np.float64]
MOST = 20
"""Cells per sample; wider pauses are shortened to as many."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Where every residual stands: experiment, cell and output of each, in the order of residuals."""

    experiment: NDArray[np.int64]
    cell: NDArray[np.int64]
    output: NDArray[np.int64]
    outputs: tuple[str, ...]
    length: float
    """Of a cell, in the unit of time; 1 where the model is static."""
    shape: tuple[int, int, int]
    """Experiments, cells, outputs."""

    def spread(self, values: Floats) -> Floats:
        """(N, …) as (experiments, cells, outputs, …), zero where nothing was measured."""
        found = np.zeros((*self.shape, *values.shape[1:]))
        found[self.experiment, self.cell, self.output] = values
        return found

    def gathered(self, values: Floats) -> Floats:
        """Back again."""
        return np.asarray(values[self.experiment, self.cell, self.output])

    @property
    def span(self) -> int:
        """Cells of all experiments together, from the first to the last measurement of each."""
        first, last = np.full(self.shape[0], self.shape[1]), np.zeros(self.shape[0], dtype=np.int64)
        np.minimum.at(first, self.experiment, self.cell)
        np.maximum.at(last, self.experiment, self.cell + 1)
        return int(np.maximum(last - first, 0).sum())


def grid_of(cases: Sequence[Case], counted: NDArray[np.bool_]) -> Grid:
    """The grid of a fit's residuals; ``counted``: those that entered."""
    outputs = tuple(dict.fromkeys(s.output for c in cases for s in c.samples))
    rows = [np.concatenate([s.rows for s in c.samples]) for c in cases]
    times = [c.grid[np.unique(r)] for c, r in zip(cases, rows, strict=True)]
    steps = np.concatenate([np.diff(t) for t in times])
    length = float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    experiment, cell, output, at = [], [], [], 0
    for e, (case, own) in enumerate(zip(cases, times, strict=True)):
        place = _cells(own, length)
        for s in case.samples:
            part = counted[at : at + len(s.rows)]
            at += len(s.rows)
            cell.append(place[np.searchsorted(own, case.grid[s.rows])][part])
            output.append(np.full(int(part.sum()), outputs.index(s.output)))
            experiment.append(np.full(int(part.sum()), e))
    which = np.concatenate(cell)
    return Grid(
        np.concatenate(experiment), which, np.concatenate(output), outputs, length,
        (len(cases), int(which.max(initial=0)) + 1, len(outputs)),
    )  # fmt: skip


def _cells(times: Floats, length: float) -> NDArray[np.int64]:
    steps = np.minimum(np.round(np.diff(times) / length), MOST * len(times))
    wished = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    # one after the other: cell_i = max(wished_i, cell_{i-1} + 1)
    order = np.arange(len(wished))
    return np.asarray(np.maximum.accumulate(wished - order) + order)
