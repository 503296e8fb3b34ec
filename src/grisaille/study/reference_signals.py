"""Does a simulation agree with signals that another tool has computed?

A signal agrees when at least 98 % of the distinct times t of the reference have

    lo(t) − tol ≤ x(t) ≤ hi(t) + tol,    tol = 0.01 (max y − min y) + a,

where lo and hi are the least and the largest reference value at t (two rows at one time are the two sides of a jump;
times closer than 1e-10 of the span count as one) and a = 1e-5 max |y|, or 1e-6 where max |y| < 1e-10, a zero with
rounding. What is not finite lies outside.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from grisaille.errors import DataError

Values = npt.NDArray[np.float64]
MAX_FILE_BYTES = 256 * 2**20
"""Bytes of the largest file that is unpacked."""
SHARE, RANGE, SIZE, ZERO, ROUNDING = 0.98, 0.01, 1e-5, 1e-10, 1e-6


@dataclass(frozen=True)
class Agreement:
    """How one signal compares: ``error`` is what 98 % of the times do not exceed, in tolerances."""

    agrees: bool
    error: float


@dataclass(frozen=True)
class ReferenceSignals:
    """Rows of a file: times, which may repeat, and a column for each signal."""

    rows: Values
    signals: Mapping[str, Values]

    @cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """Return the rows that begin a new time."""
        near = 1e-10 * np.ptp(self.rows) if len(self.rows) else 0.0
        return np.flatnonzero(np.concatenate([[True], np.diff(self.rows) > near]))

    @property
    def times(self) -> Values:
        """Return the distinct times."""
        return np.asarray(self.rows[self.first])

    def compare(self, name: str, simulated: Values) -> Agreement:
        """Return ``simulated`` at ``times``."""
        y = self.signals[name]
        low, high = np.minimum.reduceat(y, self.first), np.maximum.reduceat(y, self.first)
        most = float(np.abs(y).max())
        tolerance = RANGE * float(np.ptp(y)) + (SIZE * most if most >= ZERO else ROUNDING)
        with np.errstate(invalid="ignore"):
            error = np.maximum(np.maximum(low - simulated, simulated - high), 0.0) / tolerance
        error[~np.isfinite(simulated)] = np.inf
        reached = float(np.sort(error)[int(np.ceil(SHARE * len(error))) - 1])
        return Agreement(bool(np.mean(error <= 1.0) >= SHARE), reached)


def unpacked(path: Path) -> bytes:
    """Return the contents of a file, packed (``.gz``) or not, up to a size."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        found = file.read(MAX_FILE_BYTES + 1)
    if len(found) > MAX_FILE_BYTES:
        raise DataError(f"{path.name} has more than {MAX_FILE_BYTES // 2**20} MiB and is not read.")
    return found


def read_reference(path: Path) -> ReferenceSignals:
    """Return a CSV file, packed or not: a column of times first, then a column for each signal."""
    head, *rows = csv.reader(unpacked(path).decode().splitlines())
    try:
        values = np.array(rows, dtype=float).reshape(len(rows), len(head))
    except ValueError:
        raise DataError(f"{path.name} is no table of numbers: every row holds {len(head)} of them.") from None
    if not len(values) or np.any(np.diff(values[:, 0]) < 0) or not np.all(np.isfinite(values[:, 0])):
        raise DataError(f"{path.name}: the first column holds times, which do not decrease.")
    return ReferenceSignals(values[:, 0], dict(zip(head[1:], values[:, 1:].T, strict=True)))
