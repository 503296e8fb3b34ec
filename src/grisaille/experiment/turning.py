"""Finds the turning points of switching functions of time, which a grid needs so that no short change is missed.

A relation such as ``sin(50 t) > 0.99`` or ``abs(t - 1) < 1e-5`` may hold for less than a cell of a grid. Its gap g then
comes to its switch and turns back inside the cell: the rate g' changes its sign there. Such turns are bisected, and
where the gap has passed its switch they join the grid. A grid that does not resolve the gaps — values half way differ
from the cubics through values and rates beside them — is made finer first.
"""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.structure.pieces import relations_of

Floats = NDArray[np.float64]
FINER = 4
FINEST = 1_300_000
"""Points of a grid."""
RESOLVED = 0.02
"""Differences from cubics, relative to what a gap moves by in a cell, that count as resolved."""
FEW = 0.02
"""Cells that may be unresolved: those with a jump of another relation inside the gap."""
BISECTIONS = 70
TOGETHER = 200_000
"""Values that are computed at once."""


def grid_with_turns(formulas: ca.SX, t: ca.SX, p: ca.SX, values: Floats, grid: Floats) -> Floats:
    """Return the grid, finer where that is needed, with the turns of gaps that pass their switch between its points.

    formulas : piecewise constant in ``t``
    values : of the parameters ``p``
    """
    relations = [r for r in relations_of(formulas, t) if r.kind not in ("floor", "ceil") and ca.depends_on(r.gap, t)]
    more = [_turns(r.gap, str(r.value), t, p, values, grid) for r in relations if not _is_straight(r.gap, t)]
    return np.unique(np.concatenate([grid, *more])) if more else grid


def _is_straight(gap: ca.SX, t: ca.SX) -> bool:
    return not ca.depends_on(ca.jacobian(gap, t), t) and not relations_of(gap, t)


def _turns(gap: ca.SX, text: str, t: ca.SX, p: ca.SX, values: Floats, grid: Floats) -> Floats:
    function = ca.Function("gap", [t, p], [gap, ca.jacobian(gap, t)])

    def look(at: Floats) -> tuple[Floats, Floats]:
        parts = [function(c[None, :], values[:, None]) for c in np.array_split(at, at.size // TOGETHER + 1)]
        q, rate = (np.concatenate([np.array(ca.DM(part[k]).full()).ravel() for part in parts]) for k in (0, 1))
        return q, rate

    finer = grid
    while True:
        q, rate = look(finer)
        if _is_resolved(finer, q, rate, look):
            break
        if finer.size * FINER > FINEST:
            warnings.warn(
                f"'{text[:60]}' switches faster than a {finer.size}th of the run from t = {grid[0]:g} to "
                f"{grid[-1]:g}: its changes may not all be found. Simulate shorter stretches.",
                UserWarning,
                stacklevel=2,
            )
            break
        steps = np.diff(finer)[:, None] * np.arange(FINER) / FINER
        finer = np.append((finer[:-1, None] + steps).ravel(), finer[-1])
    added = finer if finer.size > grid.size else np.zeros(0)
    return np.concatenate([added, _passed(finer, q, rate, look)])


def _is_resolved(grid: Floats, q: Floats, rate: Floats, look: object) -> bool:
    """Whether cubics through values and rates tell what gaps are half way, in nearly all cells."""
    h = np.diff(grid)
    middle, slope = look(grid[:-1] + 0.5 * h)  # type: ignore[operator]
    a, b, da, db = q[:-1], q[1:], h * rate[:-1], h * rate[1:]
    apart = np.maximum(
        np.abs(middle - 0.5 * (a + b) - 0.125 * (da - db)), 0.125 * np.abs(h * slope - 1.5 * (b - a) + 0.25 * (da + db))
    )
    way = np.abs(b - a) + np.abs(da) + np.abs(db) + h * np.abs(slope)
    return bool(np.mean(apart > RESOLVED * way + 1e-12 * np.abs(q).max(initial=0.0)) <= FEW)


def _passed(grid: Floats, q: Floats, rate: Floats, look: object) -> Floats:
    """Turns at which a gap is on the other side of its switch than beside them."""
    is_below = q < 0
    same = is_below[:-1] == is_below[1:]
    towards = np.where(is_below[:-1], rate[:-1] > 0, rate[:-1] < 0) & np.where(is_below[1:], rate[1:] < 0, rate[1:] > 0)
    cells = np.flatnonzero(same & towards)
    if not cells.size:
        return np.zeros(0)
    low, high, sign = grid[cells].copy(), grid[cells + 1].copy(), np.sign(rate[cells])
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        _, slope = look(middle)  # type: ignore[operator]
        rises = slope * sign > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    found = []
    for at in (low, high):
        value, _ = look(at)  # type: ignore[operator]
        found.append(at[(value < 0) != is_below[cells]])
    return np.unique(np.concatenate(found))
