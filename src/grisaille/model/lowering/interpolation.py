"""Lookup tables as CasADi formulas.

On the segment [xₖ, xₖ₊₁] a table is a polynomial y = c₀ + c₁ d + c₂ d² + c₃ d³ with d = x − xₖ. The coefficients are
selected by a balanced tree of comparisons; they are constants, so derivatives of any order are those of the polynomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def lower_table(data: tuple[Any, ...], x: ca.SX) -> ca.SX:
    """y(x); ``data`` is (kind, outside, xs, ys)."""
    kind, outside, xs, ys = data
    knots, coefficients = _segments(kind, outside, np.array(xs), np.array(ys))
    origin, *c = _select(x, knots[1:], [[knot, *row] for knot, row in zip(knots, coefficients, strict=True)])
    return _polynomial(x - origin, c)


def lower_table2(data: tuple[Any, ...], x: ca.SX, y: ca.SX) -> ca.SX:
    """z(x, y), bilinear; ``data`` is (kind, outside, xs, ys, values)."""
    _, outside, xs, ys, values = data
    if outside == "hold":
        x, y = ca.fmin(ca.fmax(x, xs[0]), xs[-1]), ca.fmin(ca.fmax(y, ys[0]), ys[-1])
    heights = np.array(values)
    # along x first: the value and slope of every line y = ys[j]
    slopes = np.diff(heights, axis=0) / np.diff(xs)[:, None]
    rows = [[xs[k], *heights[k], *slopes[k]] for k in range(len(xs) - 1)]
    origin, *line = _select(x, xs[1:-1], rows)
    n = len(ys)
    z = [line[j] + line[n + j] * (x - origin) for j in range(n)]
    cells = [[ca.SX(ys[j]), z[j], (z[j + 1] - z[j]) / (ys[j + 1] - ys[j])] for j in range(n - 1)]
    start, height, slope = _select(y, ys[1:-1], cells)
    return height + slope * (y - start)


def _segments(kind: str, outside: str, xs: Array, ys: Array) -> tuple[list[float], list[list[float]]]:
    """Left ends of the segments and their coefficients; the first and last are the continuations outside."""
    rows = _linear(xs, ys) if kind == "linear" else _cubic(xs, ys)
    last = xs[-1] - xs[-2]
    slopes = (0.0, 0.0)
    if outside == "extend":
        slopes = (rows[0][1], sum(k * c * last ** (k - 1) for k, c in enumerate(rows[-1]) if k))
    knots = [float(xs[0]), *map(float, xs[:-1]), float(xs[-1])]
    padding = [0.0] * (len(rows[0]) - 2)
    before, after = [float(ys[0]), slopes[0], *padding], [float(ys[-1]), slopes[1], *padding]
    return knots, [before, *rows, after]


def _linear(xs: Array, ys: Array) -> list[list[float]]:
    return [[float(y), float(s)] for y, s in zip(ys, np.diff(ys) / np.diff(xs), strict=False)]


def _cubic(xs: Array, ys: Array) -> list[list[float]]:
    from scipy.interpolate import CubicSpline  # loaded only when a cubic table is used

    return [[float(c) for c in row[::-1]] for row in CubicSpline(xs, ys).c.T]


def _select(x: ca.SX, bounds: Sequence[float], rows: Sequence[Sequence[Any]]) -> list[ca.SX]:
    """The row of the interval that x lies in: row k for bounds[k-1] ≤ x < bounds[k]."""
    if len(rows) == 1:
        return [ca.SX(entry) for entry in rows[0]]
    middle = len(rows) // 2
    left = _select(x, bounds[: middle - 1], rows[:middle])
    right = _select(x, bounds[middle:], rows[middle:])
    condition = x < bounds[middle - 1]
    return [ca.if_else(condition, a, b) for a, b in zip(left, right, strict=True)]


def _polynomial(d: ca.SX, coefficients: Sequence[ca.SX]) -> ca.SX:
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = c + d * value
    return value
