"""Slopes of cubic tables at their knots.

H. Akima, "A new method of interpolation and smooth curve fitting", J. ACM 17 (1970) 589; for surfaces "A method of
bivariate interpolation and smooth surface fitting", Commun. ACM 17 (1974) 18. F. N. Fritsch, J. Butland, "A method for
constructing local monotone piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984) 300. M. Steffen, "A
simple method for monotonic interpolation in one dimension", Astron. Astrophys. 239 (1990) 443. The modified weights of
Akima's method are those of MATLAB's ``makima``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]


def widened(d: Numbers, count: int) -> Numbers:
    """Return secants ``d`` along the first axis, continued by ``count`` on each side as on a parabola."""
    first, last = (d[0], d[-1]) if len(d) == 1 else (2 * d[0] - d[1], 2 * d[-1] - d[-2])
    if len(d) == 1:
        return np.concatenate([np.repeat(d, count, axis=0), d, np.repeat(d, count, axis=0)])
    before = [first + k * (d[0] - d[1]) for k in range(count)]
    after = [last + k * (d[-1] - d[-2]) for k in range(count)]
    return np.concatenate([np.array(before[::-1]), d, np.array(after)])


def akima_weights(d: Numbers, *, modified: bool = False) -> tuple[Numbers, Numbers]:
    """Return weights of the secants on the left and on the right of each knot; equal ones where both are zero."""
    wide = widened(d, 2)
    left, right = np.abs(wide[3:] - wide[2:-1]), np.abs(wide[1:-2] - wide[:-3])
    if modified:
        left, right = left + np.abs(wide[3:] + wide[2:-1]) / 2, right + np.abs(wide[1:-2] + wide[:-3]) / 2
    both = left + right
    safe = np.where(both > 0, both, 1.0)
    return np.where(both > 0, left / safe, 0.5), np.where(both > 0, right / safe, 0.5)


def akima(d: Numbers, *, modified: bool = False) -> Numbers:
    """Return slopes at the knots from the secants between them, along the first axis."""
    wide = widened(d, 1)
    left, right = akima_weights(d, modified=modified)
    slopes: Numbers = left * wide[:-1] + right * wide[1:]
    return slopes


def fritsch_butland(h: Numbers, d: Numbers) -> Numbers:
    """Return slopes of a monotone cubic: the weighted harmonic mean of secants of one sign."""
    inner = np.zeros(len(d) - 1)
    for k in range(len(inner)):
        if d[k] * d[k + 1] > 0:
            share = (1 + h[k + 1] / (h[k] + h[k + 1])) / 3
            inner[k] = d[k] * d[k + 1] / (share * d[k + 1] + (1 - share) * d[k])
    return np.concatenate([[d[0]], inner, [d[-1]]])


def steffen(h: Numbers, d: Numbers) -> Numbers:
    """Return slopes of a monotone cubic: the parabola's, bounded by twice the smaller secant."""
    inner = np.zeros(len(d) - 1)
    for k in range(len(inner)):
        p = (d[k] * h[k + 1] + d[k + 1] * h[k]) / (h[k] + h[k + 1])
        inner[k] = (np.sign(d[k]) + np.sign(d[k + 1])) * min(abs(d[k]), abs(d[k + 1]), abs(p) / 2)
    return np.concatenate([[d[0]], inner, [d[-1]]])
