"""A start where relations of implicit unknowns are unknowns themselves: the search for pieces that agree.

Entries m of z with 0 = m − relation(z) change by whole numbers, which damping breaks into parts. Here the pieces are
held, the others are searched for, and the pieces that do not agree with what was found are changed: at first all of
them, then one at a time (Murty's rule), which ends where the block is a P-matrix between its pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.structure.starts.problem import StartProblem

if TYPE_CHECKING:
    from grisaille.structure.starts.start_search import StartIterate, StartPart

MAX_TRIALS = 40
ALL_AT_ONCE = 6

Search = Callable[[StartProblem, np.ndarray, np.ndarray, "StartPart"], "StartIterate"]


def search_among_pieces(
    newton: Search, problem: StartProblem, guess: np.ndarray, part: StartPart
) -> StartIterate | None:
    """Return the end of ``newton`` with pieces that agree with it; None where none were found, or there are none."""
    system = problem.owner.system
    count = len(system.pieces)
    columns = system.nx + system.nz - count + np.arange(count)
    rows = system.nc + system.nz - count + np.arange(count)
    if not count or not np.isin(columns, part.columns).all():
        return None
    held = replace(
        part, rows=part.rows[~np.isin(part.rows, rows)], columns=part.columns[~np.isin(part.columns, columns)]
    )
    w = guess.copy()
    for trial in range(MAX_TRIALS):
        w[columns] = np.floor(w[columns] + 0.5)
        found = newton(problem, w, w, held)
        if not found.holds:
            return None
        off = problem.hard(found.w)[0][rows]
        differ = np.flatnonzero(np.abs(off) > 0.5)
        if not differ.size:
            return newton(problem, found.w, found.w, part)
        w = found.w.copy()
        chosen = differ if trial < ALL_AT_ONCE else differ[:1]
        w[columns[chosen]] -= off[chosen]
    return None
