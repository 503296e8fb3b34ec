"""Residuals of all experiments in rows of instants, so that products over a lag are sums of the same kind everywhere.

Lags count instants at which anything was measured, not time: irregular intervals are taken as alike, pauses as none.
Where an output is missing at an instant between two of its samples, a straight line stands for it when correlations are
looked at, and nothing when variances are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.estimation.experiment_terms import ExperimentTerm

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampleGrid:
    """The position of every residual: experiment, instant and output of each, in the order of residuals."""

    experiment: NDArray[np.int64]
    instant: NDArray[np.int64]
    output: NDArray[np.int64]
    outputs: tuple[str, ...]
    times: tuple[Floats, ...]
    """Of the instants of each experiment."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the number of experiments, of instants at most, and of outputs."""
        return len(self.times), max(len(t) for t in self.times), len(self.outputs)

    @property
    def instants(self) -> int:
        """Of all experiments."""
        return sum(len(t) for t in self.times)

    @property
    def interval(self) -> float:
        """Return the mean distance of instants."""
        return sum(float(np.ptp(t)) for t in self.times) / max(self.instants - len(self.times), 1)

    def spread(self, values: Floats) -> Floats:
        """Return (N, …) as (experiments, instants, outputs, …), zero where nothing was measured."""
        found = np.zeros((*self.shape, *values.shape[1:]))
        found[self.experiment, self.instant, self.output] = values
        return found

    def gathered(self, values: Floats) -> Floats:
        """Return a grid of values as the vector that ``spread`` was made of."""
        return np.asarray(values[self.experiment, self.instant, self.output])

    def completed(self, values: Floats) -> Floats:
        """Return the same as ``spread``, with straight lines over what is missing between samples of an output."""
        found, mask = self.spread(values), self.spread(np.ones(len(values)))
        for e, t in enumerate(self.times):
            for a in range(len(self.outputs)):
                there = np.flatnonzero(mask[e, :, a])
                if not len(there) or len(there) == there[-1] - there[0] + 1:
                    continue
                inside = np.arange(there[0], there[-1] + 1)
                right = np.clip(np.searchsorted(there, inside), 1, len(there) - 1)
                before, after = there[right - 1], there[right]
                share = (t[inside] - t[before]) / (t[after] - t[before])
                share = share.reshape(-1, *[1] * (found.ndim - 3))
                found[e, inside, a] = (1 - share) * found[e, before, a] + share * found[e, after, a]
        return found

    @property
    def reached(self) -> Floats:
        """(experiments, instants, outputs) one from the first sample of an output to its last."""
        mask = self.spread(np.ones(len(self.instant)))
        forward = np.maximum.accumulate(mask, axis=1)
        return np.asarray(forward * np.maximum.accumulate(mask[:, ::-1], axis=1)[:, ::-1])


def grid_of(cases: Sequence[ExperimentTerm], counted: NDArray[np.bool_]) -> SampleGrid:
    """Return the grid of a fit's residuals; ``counted``: those that entered."""
    outputs = tuple(dict.fromkeys(s.output for c in cases for s in c.samples))
    experiment, instant, output, times, at = [], [], [], [], 0
    for e, case in enumerate(cases):
        parts = []
        for s in case.samples:
            parts.append(s.rows[counted[at : at + len(s.rows)]])
            at += len(s.rows)
        own = np.unique(np.concatenate(parts))
        times.append(np.asarray(case.grid[own], dtype=float))
        for s, rows in zip(case.samples, parts, strict=True):
            instant.append(np.searchsorted(own, rows))
            output.append(np.full(len(rows), outputs.index(s.output)))
            experiment.append(np.full(len(rows), e))
    return SampleGrid(
        np.concatenate(experiment), np.concatenate(instant), np.concatenate(output), outputs, tuple(times)
    )
