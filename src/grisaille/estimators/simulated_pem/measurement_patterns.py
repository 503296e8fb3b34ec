"""Which outputs were measured together: the samples of a problem grouped by experiment and by pattern of outputs.

Several outputs at one instant are compared side by side, with their covariances; where some are missing, the others are
compared alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm


@dataclass(frozen=True)
class MeasurementPattern:
    """The instants of one experiment at which the same outputs were measured."""

    case: int
    outputs: tuple[str, ...]
    rows: np.ndarray
    """(T,) of the experiment's grid"""
    samples: np.ndarray
    """(T, q) places in the list of all samples"""
    columns: np.ndarray
    """Of the prediction, for each output."""
    paired: np.ndarray
    """Of the prediction's covariance."""


def find_patterns(cases: Sequence[ExperimentTerm]) -> list[MeasurementPattern]:
    """Return the samples grouped by experiment and by which outputs were measured together."""
    found, at = [], 0
    for number, case in enumerate(cases):
        places = np.full((len(case.grid), len(case.samples)), -1)
        for j, s in enumerate(case.samples):
            places[s.rows, j] = np.arange(at, at + len(s.values))
            at += len(s.values)
        seen = places >= 0
        for kind in np.unique(seen[seen.any(axis=1)], axis=0):
            rows, chosen = np.flatnonzero((seen == kind).all(axis=1)), np.flatnonzero(kind)
            outputs = tuple(case.samples[j].output for j in chosen)
            columns = np.array([case.column(o) for o in outputs])
            found.append(MeasurementPattern(number, outputs, rows, places[np.ix_(rows, chosen)], columns, chosen))
    return found
