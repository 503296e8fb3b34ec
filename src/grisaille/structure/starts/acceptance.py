"""Whether equations of a start hold: residuals beside the sizes of their terms, whatever the units.

A residual is compared with what its unknowns may be wrong by,

    |r_k| ≤ Σ_j |∂r_k/∂w_j| s_j,    s_j = 10⁻⁹ |w_j|,

so that starts of 1e-12 that contradict each other are refused as those of 1 are. Unknowns that are themselves rounding
of the largest one, a sin(π) among ones, are wrong by that much. Where it does not hold, the rounding of the equation's
operations is asked (``rounding``): numbers and terms that cancel within it may leave more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.structure.starts.problem import StartProblem, row_sizes

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from grisaille.structure.starts.start_search import StartPart

RELATIVE_TOLERANCE = 1e-9
"""Of the terms of an equation, up to which a start satisfies it."""
ROUNDED_VALUE = 100 * np.finfo(float).eps
"""Of the largest unknown: below, a value is what rounding of others left."""
MAX_ROUNDED = 1e-9
"""In nominal values, whatever the largest unknown is."""
USUAL_TOLERANCE = 1e-8
"""Of slopes, in nominal values, or of the largest unknown where all are smaller: for square parts, whose iteration
goes on until corrections do not shrink any more."""
FAR_BELOW = 1e-3
"""Of nominal values: where all unknowns are smaller, they have a size of their own."""
MAX_ROUNDINGS = 8.0
"""Roundings of operations that residuals may be off by."""


def allowances(
    problem: StartProblem, slope: np.ndarray | csc_array, points: tuple[np.ndarray, np.ndarray], part: StartPart
) -> np.ndarray:
    """Return how large the residuals of a part may be, from derivatives by scaled unknowns.

    points : where these are taken, and the guess
    """
    amounts, begun = (np.abs(point / problem.owner.nominal) for point in points)
    if part.square:
        return np.asarray(USUAL_TOLERANCE * min(1.0, _largest(amounts, begun)) * row_sizes(slope))
    slopes, amounts, begun = abs(slope), amounts[part.columns], begun[part.columns]
    occurs = np.asarray(slopes.sum(axis=0)).ravel() > 0
    floor = min(MAX_ROUNDED, ROUNDED_VALUE * _largest(amounts[occurs], begun[occurs]))
    return np.asarray(slopes @ np.maximum(RELATIVE_TOLERANCE * amounts, np.where(amounts <= floor, floor, 0.0)))


def equations_hold(
    problem: StartProblem, w: np.ndarray, residual: np.ndarray, allowed: np.ndarray, part: StartPart,
    lift: np.ndarray | float,
) -> bool:  # fmt: skip
    """Return whether the residuals of a part are within these limits, or within the rounding of their operations."""
    left = np.abs(residual)
    if not np.isfinite(left).all():
        return False
    if (left <= allowed).all():
        return True
    rounding = MAX_ROUNDINGS * problem.rounding(w)[part.rows] + RELATIVE_TOLERANCE * np.abs(lift)
    return bool((left <= allowed + rounding).all())


def unit_of(amounts: np.ndarray) -> float:
    """Return the size of unknowns that are all far below their nominal values, otherwise 1."""
    largest = _largest(np.abs(amounts))
    return largest if 0.0 < largest < FAR_BELOW else 1.0


def _largest(*amounts: np.ndarray) -> float:
    return max(float(part.max(initial=0.0)) for part in amounts)
