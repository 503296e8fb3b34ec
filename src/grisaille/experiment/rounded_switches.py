"""Leaves out changes of a relation that are rounding: where its sides are equal for a while, but for the last digits.

An algorithm that repeats x := (x + a/x)/2 until abs(x*x - a) < 1e-12 leaves a gap x*x - a which is rounding from some
repetition on. Its sign then changes at every second instant. Whichever value it is given makes no difference to what
the formulas give, while a switch at each of these instants would cut every step of a run.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.experiment.rounding import rounding_of

Floats = NDArray[np.float64]
COMPARISONS = (ca.OP_LT, ca.OP_LE)
ROUNDING = 8.0
"""Gaps below so many times their rounding are rounding."""
MIN_CHANGES = 8
"""Changes while a gap is rounding from which on they are left out; a switch that is reached has one or two."""
POINTS_PER_CALL = 200_000


def without_rounded_changes(formula: ca.SX, t: ca.SX, grid: Floats, values: Floats) -> Floats:
    """Return the values of a relation of time at the instants of a grid, each stretch on which its gap is rounding with
    one value throughout.
    """
    changes = values[1:] != values[:-1]
    gap = _gap(formula)
    if np.count_nonzero(changes) < MIN_CHANGES or gap is None:
        return values
    function = ca.Function("gap", [t], [ca.fabs(gap) - ROUNDING * rounding_of(gap, t)])
    parts = np.array_split(grid, grid.size // POINTS_PER_CALL + 1)
    above = np.concatenate([np.array(function(part[None, :]).full()).ravel() for part in parts])
    is_rounding = ~(above > 0)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], is_rounding, [False]])))
    kept = values.copy()
    for begin, end in ends.reshape(-1, 2):
        if np.count_nonzero(changes[begin : end - 1]) >= MIN_CHANGES:
            levels, counts = np.unique(values[begin:end], return_counts=True)
            kept[begin:end] = levels[counts.argmax()]
    return kept


def _gap(formula: ca.SX) -> ca.SX | None:
    """Return what changes its sign where a relation switches; None of other formulas."""
    if formula.op() == ca.OP_SIGN:
        return formula.dep(0)
    return formula.dep(0) - formula.dep(1) if formula.op() in COMPARISONS else None
