"""Finds the turning points of switching functions of time, which a grid needs so that no short change is missed.

A relation such as ``sin(50 t) > 0.99`` or ``abs(t - 1) < 1e-5`` may hold for less than a cell of a grid. Its gap g then
comes to its switch and turns back inside the cell: the rate g' changes its sign there. Such turns are bisected, and
where the gap has passed its switch they join the grid. A grid that does not resolve the gaps — values half way differ
from the cubics through values and rates beside them — is made finer first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.experiment.rounding import rounding_of
from grisaille.structure.switching_pieces import Relation, relations_of

Floats = NDArray[np.float64]
Look = Callable[[Floats], tuple[Floats, Floats]]
"""Values and rates of a gap at some times."""
Rounding = Callable[[Floats], Floats]
"""That of a gap at some times."""
GRID_REFINEMENT = 4
MAX_GRID_POINTS = 1_300_000
"""Points of a grid,"""
MAX_OPERATIONS = 4e9
"""and operations on all grids of a run."""
RESOLVED_DIFFERENCE = 0.02
"""Differences from cubics, relative to what a gap moves by in a cell, that count as resolved."""
MAX_UNRESOLVED_SHARE = 0.02
"""Cells that may be unresolved: those with a jump of another relation inside the gap."""
MAX_BISECTIONS = 70
ROUNDING, NEARBY = 8.0, 8
"""Differences below this many times the rounding of a gap, within this many cells (where an absolute value happens to
be zero, none reaches it), say nothing: where a loop has converged, its gap is the rounding of what it solves."""
MANY_TURNS = 100
"""Turns of a gap from which on those of rounding are told apart."""
VALUES_PER_CALL = 200_000
"""Values that are computed at once."""


def grid_with_turning_points(formulas: ca.SX, t: ca.SX, grid: Floats) -> Floats:
    """Return the grid, finer where that is needed, with the turns of gaps that pass their switch between its points.

    formulas : of ``t`` alone, piecewise constant
    """
    relations = [r for r in relations_of(formulas, t) if r.kind not in ("floor", "ceil") and ca.depends_on(r.gap, t)]
    bent = [r for r in relations if not _is_straight(r.gap, t)]
    more = [_turns(r, t, grid, MAX_OPERATIONS / len(bent)) for r in bent]
    return np.unique(np.concatenate([grid, *more])) if more else grid


def _is_straight(gap: ca.SX, t: ca.SX) -> bool:
    return not ca.depends_on(ca.jacobian(gap, t), t) and not relations_of(gap, t)


def _turns(relation: Relation, t: ca.SX, grid: Floats, most_operations: float) -> Floats:
    function = ca.Function("gap", [t], [relation.gap, ca.jacobian(relation.gap, t)])
    finest = min(MAX_GRID_POINTS, most_operations / function.n_instructions())

    def look(at: Floats) -> tuple[Floats, Floats]:
        parts = [function(c[None, :]) for c in np.array_split(at, at.size // VALUES_PER_CALL + 1)]
        q, rate = (np.concatenate([np.array(ca.DM(part[k]).full()).ravel() for part in parts]) for k in (0, 1))
        return q, rate

    def rounding(at: Floats) -> Floats:
        bound = ca.Function("rounding", [t], [rounding_of(relation.gap, t)])
        return np.asarray(np.nan_to_num(np.array(bound(at[None, :]).full()).ravel(), nan=0.0, posinf=0.0))

    finer = grid
    while True:
        q, rate = look(finer)
        if _is_resolved(finer, q, rate, look, rounding):
            break
        if finer.size * GRID_REFINEMENT > finest:
            warnings.warn(
                f"'{str(relation.value)[:60]}' switches faster than a {finer.size}th of the run from t = {grid[0]:g} "
                f"to {grid[-1]:g}: its changes may not all be found. Simulate shorter stretches.",
                UserWarning,
                stacklevel=2,
            )
            break
        steps = np.diff(finer)[:, None] * np.arange(GRID_REFINEMENT) / GRID_REFINEMENT
        finer = np.append((finer[:-1, None] + steps).ravel(), finer[-1])
    added = finer if finer.size > grid.size else np.zeros(0)
    return np.concatenate([added, _passed(finer, q, rate, look, rounding)])


def _is_resolved(grid: Floats, q: Floats, rate: Floats, look: Look, rounding: Rounding) -> bool:
    """Return whether cubics through values and rates tell what gaps are half way, in nearly all cells."""
    h = np.diff(grid)
    middle, slope = look(grid[:-1] + 0.5 * h)
    a, b, da, db = q[:-1], q[1:], h * rate[:-1], h * rate[1:]
    apart = np.maximum(
        np.abs(middle - 0.5 * (a + b) - 0.125 * (da - db)), 0.125 * np.abs(h * slope - 1.5 * (b - a) + 0.25 * (da + db))
    )
    way = np.abs(b - a) + np.abs(da) + np.abs(db) + h * np.abs(slope)
    unclear = apart > RESOLVED_DIFFERENCE * way + 1e-12 * np.abs(q).max(initial=0.0)
    if np.mean(unclear) <= MAX_UNRESOLVED_SHARE:
        return True
    noise = np.lib.stride_tricks.sliding_window_view(np.pad(rounding(grid), NEARBY, mode="edge"), 2 * NEARBY).max(
        axis=1
    )
    return bool(np.mean(unclear & (apart > ROUNDING * noise[1:-1])) <= MAX_UNRESOLVED_SHARE)


def _passed(grid: Floats, q: Floats, rate: Floats, look: Look, rounding: Rounding) -> Floats:
    """Turns at which a gap is on the other side of its switch than beside them; not where it is rounding all along."""
    is_below = q < 0
    same = is_below[:-1] == is_below[1:]
    towards = np.where(is_below[:-1], rate[:-1] > 0, rate[:-1] < 0) & np.where(is_below[1:], rate[1:] < 0, rate[1:] > 0)
    cells = np.flatnonzero(same & towards)
    if cells.size > MANY_TURNS:
        cells = cells[np.maximum(np.abs(q[cells]), np.abs(q[cells + 1])) > ROUNDING * rounding(grid[cells])]
    if not cells.size:
        return np.zeros(0)
    low, high, sign = grid[cells].copy(), grid[cells + 1].copy(), np.sign(rate[cells])
    for _ in range(MAX_BISECTIONS):
        middle = 0.5 * (low + high)
        _, slope = look(middle)
        rises = slope * sign > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    found = []
    for at in (low, high):
        value, _ = look(at)
        found.append(at[(value < 0) != is_below[cells]])
    return np.unique(np.concatenate(found))
