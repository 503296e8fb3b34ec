"""Lookup tables as CasADi formulas of their arguments and their values.

Where x stands is told by one switch per knot: bₖ = 1 once x has reached xₖ (of a table that repeats itself with the
period P, how often: floor((x − xₖ)/P)). On the segment k, wₖ = bₖ − bₖ₊₁ is one and elsewhere zero, and

    t = Σ wₖ (x − xₖ)/hₖ,    y = Σ wₖ (yₖ + c₁ₖ t + c₂ₖ t² + c₃ₖ t³).

Values and coefficients are formulas of the values alone. Each switch changes one number only, at an x where the formula
is continuous, so that bends are recognised as such; derivatives of any order are those of the segment's polynomial.
Linear tables are sums of hat functions, y = Σ yₖ φₖ(x), φₖ = tₖ₋₁ − tₖ: they are exact at their knots, and values far
away leave no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from grisaille.model.lowering.spline_slopes import monotone_slopes, spline_slopes

Held = Callable[[ca.SX], ca.SX]
"""What stands for the number of switches passed: itself, or a signal that is constant between them."""


def lower_table(data: tuple[Any, ...], x: ca.SX, *values: ca.SX, held: Held | None = None) -> ca.SX:
    """Return y(x); ``data`` is (kind, outside, xs, ys), with None for ys where ``values`` are formulas."""
    kind, outside, xs, numbers = data
    ys = _closed([ca.SX(v) for v in numbers] if numbers is not None else list(values), xs, outside)
    place = _Place(xs, outside, x, held, is_linear=kind == "linear")
    if kind == "linear":
        return _sum(y * weight for y, weight in zip(ys, place.hats(), strict=True))
    slopes = (spline_slopes if kind == "cubic" else monotone_slopes)(xs, ys, outside == "repeat")
    return place.cubic(ys, slopes)


def lower_table2(
    data: tuple[Any, ...], x: ca.SX, y: ca.SX, *values: ca.SX, held: tuple[Held | None, Held | None] = (None, None)
) -> ca.SX:
    """Return z(x, y), bilinear; ``data`` is (kind, outside, xs, ys, values), with None for values that are formulas."""
    _, outside, xs, ys, numbers = data
    across, along = (outside, outside) if isinstance(outside, str) else outside
    columns = len(ys) - (along == "repeat")
    flat = [ca.SX(v) for row in numbers for v in row] if numbers is not None else list(values)
    rows = [_closed(flat[i : i + columns], ys, along) for i in range(0, len(flat), columns)]
    rows = _closed(rows, xs, across)
    first, second = _Place(xs, across, x, held[0]).hats(), _Place(ys, along, y, held[1]).hats()
    lines = [_sum(v * weight for v, weight in zip(row, second, strict=True)) for row in rows]
    return _sum(line * weight for line, weight in zip(lines, first, strict=True))


def _closed(values: list[ca.SX | list[ca.SX]], xs: Sequence[float], outside: str) -> list[ca.SX | list[ca.SX]]:
    """Return one value for each knot: a table that repeats itself ends where it began."""
    return [*values, values[0]] if outside == "repeat" and len(values) == len(xs) - 1 else values


def _switches(xs: Sequence[float], outside: str, x: ca.SX, is_linear: bool) -> list[ca.SX]:
    if outside == "repeat":
        period = xs[-1] - xs[0]
        return [ca.floor((x - knot) / period) for knot in xs[:-1]]
    if outside == "extend" and is_linear:  # the segments at the ends have no outer end
        return [x >= knot for knot in xs[1:-1]]
    return [x >= knot for knot in xs]


class _Place:
    """Where x stands among the knots."""

    def __init__(
        self, xs: Sequence[float], outside: str, x: ca.SX, held: Held | None, *, is_linear: bool = True
    ) -> None:
        self.xs, self.x, self.outside = xs, x, outside
        self.h = np.diff(xs).tolist()
        self.period = float(xs[-1] - xs[0]) if outside == "repeat" else 0.0
        passed = _switches(xs, outside, x, is_linear)
        if held is not None and passed:
            passed = _separated(held(_sum(passed)), len(passed), outside)
        if outside == "repeat":
            passed = [*passed, passed[0] - 1]
        elif outside == "extend" and is_linear:
            passed = [ca.SX(1), *passed, ca.SX(0)]
        self.passed = passed
        self.on = [a - b for a, b in pairwise(passed)]
        """1 on the segment k, 0 elsewhere."""

    def hats(self) -> list[ca.SX]:
        """φₖ: one at its knot, linear to zero at the next ones; continued outside as the table is."""
        e = [on * t for on, t in zip(self.on, self._shares(), strict=True)]
        weights = [self.on[0] - e[0]]
        weights += [e[k - 1] + (self.on[k] - e[k]) for k in range(1, len(e))]
        weights.append(e[-1])
        if self.outside == "hold":
            weights[0] = weights[0] + (1 - self.passed[0])
            weights[-1] = weights[-1] + self.passed[-1]
        return weights

    def cubic(self, ys: Sequence[ca.SX], slopes: Sequence[ca.SX]) -> ca.SX:
        """Return the piecewise cubic with these values and slopes at the knots."""
        t = _sum(on * share for on, share in zip(self.on, self._shares(), strict=True))
        rows = []
        for k, h in enumerate(self.h):
            rise, a, b = ys[k + 1] - ys[k], h * slopes[k], h * slopes[k + 1]
            rows.append((ys[k], a, 3 * rise - 2 * a - b, a + b - 2 * rise))
        columns = zip(*rows, strict=True)
        c0, c1, c2, c3 = (_sum(on * c for on, c in zip(self.on, column, strict=True)) for column in columns)
        inside = c0 + t * (c1 + t * (c2 + t * c3))
        if self.outside == "repeat":
            return inside
        first, last = ys[0], ys[-1]
        if self.outside == "extend":
            first = first + slopes[0] * (self.x - self.xs[0])
            last = last + slopes[-1] * (self.x - self.xs[-1])
        return inside + (1 - self.passed[0]) * first + self.passed[-1] * last

    def _shares(self) -> list[ca.SX]:
        """Return how far x is along each segment, zero at its beginning and one at its end."""
        return [
            (self.x - knot - self.period * passed) / h if self.period else (self.x - knot) / h
            for knot, passed, h in zip(self.xs, self.passed, self.h, strict=False)
        ]


def _separated(count: ca.SX, n: int, outside: str) -> list[ca.SX]:
    """Return the switches again from how many of them were passed."""
    if outside == "repeat":
        return [ca.floor((count - (k + 0.5)) / n) + 1 for k in range(n)]
    return [count >= k + 0.5 for k in range(n)]


def _sum(terms: Iterable[ca.SX]) -> ca.SX:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
