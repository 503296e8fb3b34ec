"""Measurements of one experiment: a matrix over the grid with gaps, and the samples of each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutputSamples:
    """The measurements of one output: rows of the grid they belong to, values and weights.

    below, above : limits that samples have of their own, where their marks say so; NaN for all others
    """

    output: str
    rows: NDArray[np.int64]
    values: Floats
    weights: Floats
    below: Floats | None = None
    above: Floats | None = None


@dataclass(frozen=True, eq=False)
class DataMatrix:
    """What is compared with a model."""

    outputs: tuple[str, ...] = ()
    samples: tuple[OutputSamples, ...] = ()
    """By output; one without samples is not among them."""
    y: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(times, outputs), NaN where not measured."""
    weights: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(times, outputs), factors of residuals; one where not measured."""

    @classmethod
    def of(cls, experiment: Experiment, grid: Floats) -> DataMatrix:
        """Return the samples of an experiment on its grid."""
        from grisaille.experiment.censored_cells import compared_marks

        found = []
        for output in experiment.outputs:
            times, values, weights = experiment.measurements(output)
            if len(times):
                limits = _limits(values, compared_marks(experiment, output))
                found.append(OutputSamples(output, np.searchsorted(grid, times), values, weights, *limits))
        return cls._filled(tuple(experiment.outputs), tuple(found), len(grid))

    @classmethod
    def _filled(cls, outputs: tuple[str, ...], samples: tuple[OutputSamples, ...], rows: int) -> DataMatrix:
        y, weights = np.full((rows, len(outputs)), np.nan), np.ones((rows, len(outputs)))
        for s in samples:
            column = outputs.index(s.output)
            y[s.rows, column], weights[s.rows, column] = s.values, s.weights
        return cls(outputs, samples, y, weights)

    def with_values(self, values: Iterator[Floats] | Sequence[Floats]) -> DataMatrix:
        """Return the same instants with other values: one array for each of ``samples``, taken in order."""
        given = iter(values)
        return self._filled(self.outputs, tuple(replace(s, values=next(given)) for s in self.samples), len(self.y))

    def columns(self, outputs: Sequence[str]) -> tuple[Floats, Floats]:
        """Return ``y`` and ``weights`` with a column for each of ``outputs``; NaN for those that were not measured."""
        y, weights = np.full((len(self.y), len(outputs)), np.nan), np.ones((len(self.y), len(outputs)))
        for k, name in enumerate(outputs):
            if name in self.outputs:
                column = self.outputs.index(name)
                y[:, k], weights[:, k] = self.y[:, column], self.weights[:, column]
        return y, weights

    def compared(self, outputs: Sequence[str]) -> NDArray[np.bool_]:
        """Return which predictions of ``outputs`` are needed, (times, outputs): where they were measured, and those of
        which there are no measurements (noise depends on them) wherever anything was.
        """
        there = np.isfinite(self.columns(outputs)[0])
        others = [name not in self.outputs for name in outputs]
        there[:, others] = np.isfinite(self.y).any(axis=1, keepdims=True)
        return there


def _limits(values: Floats, marks: NDArray[np.int8]) -> tuple[Floats | None, Floats | None]:
    """Return the limits of marked samples, below and above; None where no sample has one."""
    below, above = (np.where(marks == side, values, np.nan) if (marks == side).any() else None for side in (-1, 1))
    return below, above


def measured_samples(experiment: Experiment) -> tuple[Floats, DataMatrix]:
    """Return the grid of an experiment and its samples on it, made once; they cannot be written to."""
    known: tuple[Floats, DataMatrix] | None = vars(experiment).get("_measured")
    if known is None:
        grid = experiment.grid()
        known = grid, DataMatrix.of(experiment, grid)
        for array in (grid, known[1].y, known[1].weights):
            array.setflags(write=False)
        vars(experiment)["_measured"] = known
    return known
