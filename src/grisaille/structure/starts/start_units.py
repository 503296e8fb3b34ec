"""Units in which equations of a start and their unknowns are compared: those of nominal values, or their own.

Residuals are compared in units of the largest slope of their equation. Where unknowns differ by many orders of
magnitude from their nominal values and from each other, that slope belongs to the smallest unknown, and says nothing
about the others. Then rows and columns are equilibrated (``singular/scaling.py``): the sizes are those of the
equations at the point, whatever the units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.structure.singular.scaling import equilibrated_entries, equilibrated_triplets
from grisaille.structure.starts.problem import row_sizes

if TYPE_CHECKING:
    from scipy.sparse import csc_array

FAR_APART = 1e-6
"""Largest slope by an unknown, in units of its equations, below which nominal values do not describe the unknowns."""


@dataclass(frozen=True, eq=False)
class UnknownUnits:
    """Sizes of residuals, and of unknowns (in nominal values) where those are not one."""

    rows: np.ndarray
    columns: np.ndarray | None
    """What the unknowns are multiplied by; None where nominal values serve."""

    def size(self, step: np.ndarray) -> float:
        """Return the largest entry of a correction."""
        return float(np.abs(step if self.columns is None else step * self.columns).max(initial=0.0))

    def unknowns(self, w: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return all unknowns as corrections are measured; those outside of the part are left out where it has its
        own.
        """
        if self.columns is None:
            return w
        own = np.zeros(len(w))
        own[columns] = w[columns] * self.columns
        return own


def units_of(slope: np.ndarray | csc_array, square: bool) -> UnknownUnits:
    """Return units at a point with these slopes, by unknowns in nominal values."""
    rows = row_sizes(slope)
    if not square or not slope.shape[0]:
        return UnknownUnits(rows, None)
    if isinstance(slope, np.ndarray):
        largest = np.abs(slope / rows[:, None]).max(axis=0)
    else:
        largest = np.zeros(slope.shape[1])
        column = np.repeat(np.arange(slope.shape[1]), np.diff(slope.indptr))
        np.maximum.at(largest, column, np.abs(slope.data) / rows[slope.indices])
    if not largest.all() or largest.min() >= FAR_APART:
        return UnknownUnits(rows, None)
    high, wide = _sizes(slope)
    return UnknownUnits(high, wide) if high.all() and wide.all() else UnknownUnits(rows, None)


def sizes_of_unknowns(slope: np.ndarray | csc_array, guess: np.ndarray, is_free: np.ndarray) -> np.ndarray | None:
    """Return sizes of unknowns, in nominal values, at which they weigh alike in equations with these slopes.

    None where they do not differ by orders of magnitude. Equations tell sizes up to a common factor: the guess does.

    is_free : unknowns whose size is not declared
    """
    wide = _sizes(slope)[1]
    occurs = (wide > 0) & is_free
    if not occurs.any() or wide[occurs].min() >= FAR_APART * wide[occurs].max():
        return None
    sizes = np.where(occurs, 1.0 / np.where(wide > 0, wide, 1.0), 1.0)
    known = occurs & (guess != 0)
    if known.any():
        sizes[occurs] *= np.median(np.abs(guess[known]) / sizes[known])
    alone = is_free & ~occurs & (guess != 0)
    sizes[alone] = np.abs(guess[alone])
    return sizes


def _sizes(slope: np.ndarray | csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes of rows and columns, 0 of empty ones."""
    if isinstance(slope, np.ndarray):
        row, column = np.nonzero(slope)
        return equilibrated_triplets(slope[row, column], row, column, slope.shape)[1:]
    return equilibrated_entries(slope)[1:]
