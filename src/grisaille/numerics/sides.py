"""How far a straight line goes before one of the switches on it changes; the twin of gr_sides.h.

Newton's method on equations with bends walks from piece to piece: in each, the correction belongs to that piece, and
is cut where it leaves it, just beyond the first switch on its way (Katzenelson's algorithm). On coherently oriented
pieces, such as those of monotone equations, this walk ends at the root.

Reference: Katzenelson, An algorithm for solving nonlinear resistor networks, Bell System Technical Journal 44 (1965).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_CUTS = 100
OVERSHOOT = 1e-13
"""How far beyond a switch the line is followed, as a part of itself."""


def have_changed(before: Floats, after: Floats) -> bool:
    """Return whether some gap lies on its other side."""
    return bool(np.any((before < 0) != (after < 0)))


def reach(gaps: Callable[[float], Floats], here: Floats) -> float:
    """Return the share in (0, 1] of a line at which it has just passed its first switch; 1 where it passes none.

    ``gaps`` gives them at a share of the line, ``here`` at its beginning. Gaps that are straight along the line cost
    three evaluations.
    """
    low, high, low_gaps, nudge = 0.0, 1.0, here, OVERSHOOT
    high_gaps = gaps(1.0)
    if not have_changed(here, high_gaps):
        return 1.0
    for cut in range(MAX_CUTS):
        if not high - low > 1e-12 * high:
            break
        at = low + (high - low) * (_first(low_gaps, high_gaps) if cut % 4 < 3 else 0.5)
        beside = min(nudge * at, 0.25 * (high - low))
        beyond = min(at + beside, high)
        found = gaps(beyond)
        if not have_changed(here, found):
            low, low_gaps, nudge = beyond, found, min(8.0 * nudge, 1e-9)
            continue
        high, high_gaps, nudge = beyond, found, OVERSHOOT
        before = at - beside
        if before > low:
            found = gaps(before)
            if have_changed(here, found):
                high, high_gaps = before, found
            else:
                break
    return high


def _first(low: Floats, high: Floats) -> float:
    """Return where the first gap that changes does, if all are straight."""
    changed = (low < 0) != (high < 0)
    share = float(np.min(low[changed] / (low[changed] - high[changed])))
    return min(max(share, 0.0), 1.0) if np.isfinite(share) else 0.5
