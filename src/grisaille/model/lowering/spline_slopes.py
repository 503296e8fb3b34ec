"""Slopes at the knots of tables through given values: of a cubic spline, and of a monotone cubic.

A spline's slopes are linear in its values. Those of the monotone cubic (Fritsch and Carlson; the weighted harmonic mean
of Fritsch and Butland inside, limited three-point formulas at the ends) are piecewise smooth: with secants δ₁, δ₂ of
widths h₁, h₂ beside a knot

    d = (w₁ + w₂) δ₁ δ₂ / (w₁ δ₂ + w₂ δ₁)  where δ₁ δ₂ > 0,  0 elsewhere,    w₁ = 2 h₂ + h₁,  w₂ = h₂ + 2 h₁,

so that the curve neither overshoots nor oscillates. At values that are equal the derivative is that of the side on
which the slope stays zero: finite, and the one of a curve with an extremum there.

Reference: F. N. Fritsch, J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984) 300.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

MAX_END_SLOPE = 3.0
"""An end's slope as a multiple of the secant beside it, beyond which a monotone cubic overshoots."""


def spline_slopes(xs: Sequence[float], ys: Sequence[ca.SX], is_periodic: bool) -> list[ca.SX]:
    """Return the slopes of the C² spline, with not-a-knot ends unless it is periodic (the last value is the first)."""
    from scipy.interpolate import CubicSpline  # loaded only when a cubic table is used

    n = len(xs)
    units = np.eye(n)
    if is_periodic:
        units[-1] = units[0]
    origin, width = xs[0], xs[-1] - xs[0]
    # in units of the whole range: knots of any size are conditioned alike
    spline = CubicSpline((np.array(xs) - origin) / width, units, bc_type="periodic" if is_periodic else "not-a-knot")
    matrix = spline((np.array(xs) - origin) / width, 1) / width
    return [_combined(row, ys[: n - is_periodic]) for row in matrix]


def _combined(row: np.ndarray, ys: Sequence[ca.SX]) -> ca.SX:
    return sum((float(a) * y for a, y in zip(row, ys, strict=False)), start=ca.SX(0))


def monotone_slopes(xs: Sequence[float], ys: Sequence[ca.SX], is_periodic: bool) -> list[ca.SX]:
    """Return the slopes of the cubic that rises and falls where the values do."""
    h = np.diff(xs).tolist()
    secants = [(b - a) / width for a, b, width in zip(ys[:-1], ys[1:], h, strict=True)]
    if len(h) == 1:
        return [secants[0], secants[0]]
    inner = [_mean(h[k - 1], h[k], secants[k - 1], secants[k]) for k in range(1, len(h))]
    if is_periodic:
        joint = _mean(h[-1], h[0], secants[-1], secants[0])
        return [joint, *inner, joint]
    return [_end(h[0], h[1], secants[0], secants[1]), *inner, _end(h[-1], h[-2], secants[-1], secants[-2])]


def _mean(h1: float, h2: float, s1: ca.SX, s2: ca.SX) -> ca.SX:
    """Return the harmonic mean of secants of one sign."""
    w1, w2 = 2 * h2 + h1, h2 + 2 * h1
    together = s1 * s2 > 0
    # the quotient is taken at harmless secants where it is not meant, so that its derivatives are finite there too
    a, b = ca.if_else(together, s1, 1), ca.if_else(together, s2, 1)
    return ca.if_else(together, (w1 + w2) * a * b / (w1 * b + w2 * a), 0)


def _end(h1: float, h2: float, s1: ca.SX, s2: ca.SX) -> ca.SX:
    """Return the slope of the parabola through three points, between zero and three times the secant of the first
    two.
    """
    slope = ((2 * h1 + h2) * s1 - h1 * s2) / (h1 + h2)
    steep = MAX_END_SLOPE * s1
    is_wrong, is_steep = slope * s1 <= 0, (slope - steep) * s1 > 0
    return ca.if_else(is_wrong, 0, ca.if_else(is_steep, steep, slope))
