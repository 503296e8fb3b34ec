"""Tables of two variables as formulas: bilinear, steps, or Akima's smooth surface.

On the segment k of an axis wₖ is one, elsewhere zero, and t is the share of it that lies behind. Steps are
Σ wᵢ(u) wⱼ(v) zᵢⱼ. The smooth surface is cubic along both axes, with slopes and twists given at the knots:

    z = Σ Hᵢ(u) Hⱼ(v) zᵢⱼ + Gᵢ(u) Hⱼ(v) z'ᵢⱼ + Hᵢ(u) Gⱼ(v) z˙ᵢⱼ + Gᵢ(u) Gⱼ(v) z'˙ᵢⱼ

with Hermite's H (one at its knot) and G (slope one at its knot). Beyond the grid H stays and G grows linearly.

Reference: H. Akima, "A method of bivariate interpolation and smooth surface fitting", Commun. ACM 17 (1974) 18.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grisaille.model.table_functions import table2
from grisaille.modelica.tables.curves import AKIMA, CONSTANT, EXTEND, LINEAR, REPEAT, interpolate, repeated
from grisaille.modelica.tables.slopes import akima, akima_weights, widened
from grisaille.modelica.values import (
    Array,
    Unfit,
    Value,
    add,
    bending,
    both,
    choose,
    formula,
    is_number,
    multiply,
    relation,
    subtract,
    total,
)

Numbers = np.ndarray[Any, Any]


def surface(
    xs: list[float], ys: list[float], zs: Array, u: Value, v: Value, smoothness: int, extrapolation: int
) -> Value:
    """Return z(u, v) on the grid xs × ys; ``zs[i, j]`` belongs to ``xs[i]`` and ``ys[j]``."""
    if len(xs) == 1:
        return interpolate(ys, list(zs[0]), v, smoothness, extrapolation)
    if len(ys) == 1:
        return interpolate(xs, list(zs[:, 0]), u, smoothness, extrapolation)
    if extrapolation == REPEAT:
        u, v = repeated(u, xs[0], xs[-1]), repeated(v, ys[0], ys[-1])
    if smoothness == AKIMA and max(len(xs), len(ys)) > 2:
        return _smooth(xs, ys, zs, u, v, extrapolation == EXTEND)
    if smoothness in (LINEAR, AKIMA):
        return _bilinear(xs, ys, zs, u, v, extrapolation == EXTEND)
    if smoothness != CONSTANT:
        raise Unfit("a table of two variables is linear, constant or ContinuousDerivative, as in the Standard Library")
    steps = _steps(_Axis(xs, u), _Axis(ys, v), zs)
    if extrapolation != EXTEND:
        return steps
    sides = [relation(op, *pair) for a, w in ((xs, u), (ys, v)) for op, pair in (("<=", (a[0], w)), ("<=", (w, a[-1])))]
    inside: Any = True
    for side in sides:
        inside = both(inside, side)
    return choose(inside, steps, _bilinear(xs, ys, zs, u, v, True))


def _bilinear(xs: list[float], ys: list[float], zs: Array, u: Value, v: Value, extends: bool) -> Value:
    if is_number(u) and is_number(v):
        rows = [_linear(ys, list(row), v, extends) for row in zs]
        return _linear(xs, rows, u, extends)
    values = [[float(z) if is_number(z) else z for z in row] for row in zs]
    return table2(formula(u), formula(v), xs, ys, values, outside="extend" if extends else "hold")


def _linear(xs: list[float], ys: list[Value], u: float, extends: bool) -> Value:
    u = u if extends else min(max(u, xs[0]), xs[-1])
    k = min(max(int(np.searchsorted(xs, u, side="right")) - 1, 0), len(xs) - 2)
    share = (u - xs[k]) / (xs[k + 1] - xs[k])
    return add(ys[k], multiply(share, subtract(ys[k + 1], ys[k])))


def _steps(first: _Axis, second: _Axis, zs: Array) -> Value:
    """Return each value on the segment that its knot begins, the last from its knot on; the first before it, too."""
    rows, columns = first.shares_of_steps(), second.shares_of_steps()
    return total([multiply(rows[i], total([multiply(c, z) for c, z in zip(columns, row, strict=True)]))
                  for i, row in enumerate(zs)])  # fmt: skip


def _smooth(xs: list[float], ys: list[float], zs: Array, u: Value, v: Value, extends: bool) -> Value:
    if not all(is_number(z) for z in zs.flat):
        raise Unfit("a smooth table with values that are not numbers is not supported: use linear segments")
    z, zx, zy, zxy = _derivatives(np.array(xs), np.array(ys), zs.astype(float))
    hu, gu = _Axis(xs, u, is_smooth=True).hermite(extends)
    hv, gv = _Axis(ys, v, is_smooth=True).hermite(extends)
    lines = []
    for i in range(len(xs)):
        for weight, along, across in ((hu[i], z[i], zy[i]), (gu[i], zx[i], zxy[i])):
            terms = [multiply(float(a), h) for a, h in zip(along, hv, strict=True)]
            terms += [multiply(float(a), g) for a, g in zip(across, gv, strict=True)]
            lines.append(multiply(weight, total(terms)))
    return total(lines)


def _derivatives(xs: Numbers, ys: Numbers, z: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return values, slopes along both axes and twists at the knots."""
    dx = np.diff(z, axis=0) / np.diff(xs)[:, None]
    dy = (np.diff(z, axis=1) / np.diff(ys)).T
    twists = np.diff(dx, axis=1) / np.diff(ys)
    wide = widened(widened(twists, 1).T, 1).T
    (left, right), (below, above) = akima_weights(dx), (w.T for w in akima_weights(dy))
    corners = below * wide[:-1, :-1] + above * wide[:-1, 1:], below * wide[1:, :-1] + above * wide[1:, 1:]
    return z, akima(dx), akima(dy).T, left * corners[0] + right * corners[1]


@dataclass(frozen=True)
class _Axis:
    """Where a value stands among the knots of one axis."""

    knots: list[float]
    u: Any
    is_smooth: bool = False
    """Whether nothing jumps at a knot, and no event is to be looked for."""

    @cached_property
    def passed(self) -> list[Value]:
        """For each knot, one where u has reached it and zero before."""
        found: list[Any] = []
        for knot in self.knots:
            reached = relation(">=", self.u, knot)
            if isinstance(reached, bool):
                found.append(float(reached))
            else:
                found.append(formula(bending(reached) if self.is_smooth else reached))
        return found

    @cached_property
    def on(self) -> list[Value]:
        """Return one on each segment, from its first knot to before its last."""
        return [subtract(a, b) for a, b in zip(self.passed[:-1], self.passed[1:], strict=True)]

    def shares_of_steps(self) -> list[Value]:
        """Return one for the knot whose value holds, zero for all others."""
        found = [*self.on, self.passed[-1]]
        found[0] = subtract(1.0, self.passed[1])
        return found

    def hermite(self, extends: bool) -> tuple[list[Value], list[Value]]:
        """Return H and G of every knot."""
        h = np.diff(self.knots).tolist()
        shares = [multiply(on, multiply(subtract(self.u, x), 1 / w)) for on, x, w in zip(self.on, self.knots, h)]  # noqa: B905
        t = total(shares)
        up = multiply(multiply(t, t), subtract(3.0, multiply(2.0, t)))  # from 0 to 1 along the segment
        first = multiply(t, multiply(subtract(1.0, t), subtract(1.0, t)))
        last = multiply(multiply(t, t), subtract(t, 1.0))
        count = len(self.knots)
        values, slopes = [], []
        for k in range(count):
            here: list[Any] = [] if k == 0 else [multiply(self.on[k - 1], up)]
            tangent: list[Any] = [] if k == 0 else [multiply(h[k - 1], multiply(self.on[k - 1], last))]
            if k < count - 1:
                here.append(multiply(self.on[k], subtract(1.0, up)))
                tangent.append(multiply(h[k], multiply(self.on[k], first)))
            values.append(here)
            slopes.append(tangent)
        before, after = subtract(1.0, self.passed[0]), self.passed[-1]
        values[0].append(before)
        values[-1].append(after)
        if extends:
            slopes[0].append(multiply(before, subtract(self.u, self.knots[0])))
            slopes[-1].append(multiply(after, subtract(self.u, self.knots[-1])))
        return [total(v) for v in values], [total(s) for s in slopes]
