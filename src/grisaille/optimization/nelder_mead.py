"""The simplex method of Nelder and Mead (SciPy): no derivatives, few unknowns, patience.

Reference: J. A. Nelder, R. Mead, Computer Journal 7 (1965) 308.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.growing_search import GrowingSearch, minimize_with_dead_unknowns
from grisaille.optimization.search import LIMIT_STATUS, Search, SearchOutcome

SHRUNK_STATUS = "the simplex has shrunk"
LEVEL_SPREAD = 1e-9
"""Relative spread of values that are the same: where corners are far apart still, some unknown may be dead."""
WIDE_SIMPLEX = 1e-3
"""Of such corners, in ξ."""


def minimize(search: Search[E], *, tolerance: float) -> SearchOutcome[E]:
    """Minimise the objective from the guess."""
    first = search.first()
    reason = shrink(search, flat=1e-14 * (1 + first.objective), narrow=max(tolerance, 1e-10))
    return search.finish(reason == SHRUNK_STATUS, reason)


def shrink(search: Search[E], *, flat: float, narrow: float) -> str:
    """Shrink the simplex from the best point on, until its values and its corners differ by no more than this; return
    why it ended.
    """
    from scipy.optimize import minimize as scipy_minimize

    lower, upper = search.inner_bounds()
    first = search.lowest
    wall = first.objective + 1e6 * (1 + abs(first.objective))
    start = search.where(first)

    def simplex(part: GrowingSearch[E]) -> tuple[np.ndarray, bool, str]:
        plateau = _Plateau(int(part.live.sum()))

        def objective(x: np.ndarray) -> float:
            xi = part.whole(x)
            evaluation = search.at(xi, sensitive=False)
            value = evaluation.objective if evaluation.completed else wall
            if plateau.is_level(x, value):
                part.examine(xi)
            return value

        sides = zip(lower[part.live], upper[part.live], strict=True)
        bounds = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in sides]
        options = {"maxfev": max(search.left, 1), "xatol": narrow, "fatol": flat, "adaptive": True}
        found = scipy_minimize(
            objective, part.held_at[part.live], method="Nelder-Mead", bounds=bounds, options=options
        )  # fmt: skip
        return found.x, bool(found.success), SHRUNK_STATUS if found.success else LIMIT_STATUS

    return minimize_with_dead_unknowns(search, start, simplex, start)[1]


class _Plateau:
    """Whether the last points are far apart although their values are the same; seldom asked twice."""

    def __init__(self, unknowns: int) -> None:
        self.recent: deque[tuple[np.ndarray, float]] = deque(maxlen=4 * (unknowns + 1))

    def is_level(self, x: np.ndarray, value: float) -> bool:
        self.recent.append((np.array(x), value))
        if len(self.recent) < (self.recent.maxlen or 0):
            return False
        values = np.array([v for _, v in self.recent])
        corners = np.array([c for c, _ in self.recent])
        is_flat = (
            np.ptp(values) <= LEVEL_SPREAD * (1 + abs(values.min())) and np.ptp(corners, axis=0).max() > WIDE_SIMPLEX
        )
        if is_flat:
            self.recent.clear()
        return bool(is_flat)
