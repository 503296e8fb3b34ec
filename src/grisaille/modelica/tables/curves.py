"""Tables of one variable as formulas: straight lines, steps or cubics between their abscissas.

Beyond them a table holds its end, goes on along its end's slope, or repeats itself. Steps that go on do so through
their last two points. Two rows with one abscissa are a jump; there the later row holds.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from grisaille.model.expression import Condition, Constant
from grisaille.model.table_functions import table as gr_table
from grisaille.modelica.builtins import floor
from grisaille.modelica.tables.slopes import akima, fritsch_butland, steffen
from grisaille.modelica.values import Unfit, Value, add, choose, divide, formula, is_number, multiply, subtract

LINEAR, AKIMA, CONSTANT, FRITSCH, STEFFEN, MODIFIED = 1, 2, 3, 4, 5, 6
SMOOTH_KINDS = (AKIMA, FRITSCH, STEFFEN, MODIFIED)
HOLD, EXTEND, REPEAT, NONE = 1, 2, 3, 4


def interpolate(xs: list[float], ys: list[Value], u: Value, smoothness: int, extrapolation: int) -> Value:
    """Return y(u) through the points."""
    if len(xs) == 1:
        return ys[0]
    increases = all(a < b for a, b in pairwise(xs))
    if smoothness == LINEAR and increases and extrapolation != REPEAT and not is_number(u):
        outside = "extend" if extrapolation == EXTEND else "hold"
        return gr_table(formula(u), xs, [_plain(y) for y in ys], outside=outside)
    if extrapolation == REPEAT:
        u = repeated(u, xs[0], xs[-1])
    slopes = _slopes(xs, ys, smoothness)
    pieces = []
    for k in range(len(xs) - 1):
        if xs[k] < xs[k + 1]:
            pieces.append((xs[k], _piece(xs, ys, slopes, k, u, smoothness)))
    before, after = _ends(xs, ys, slopes, u, extrapolation)
    return active_piece([(-np.inf, before), *pieces, (xs[-1], after)], u)


def repeated(u: Value, first: float, last: float) -> Value:
    """Return u, moved by whole periods into the table; a number at the end of a period stays there."""
    period = last - first
    if is_number(u):
        if first <= u <= last:
            return u
        return (
            u + math.ceil((first - u) / period) * period if u < first else u - math.ceil((u - last) / period) * period
        )
    return subtract(u, multiply(floor(divide(subtract(u, first), period)), period))


def _plain(y: Value) -> Value:
    return float(y) if is_number(y) else y


def _piece(xs: list[float], ys: list[Value], slopes: np.ndarray | None, k: int, u: Value, smoothness: int) -> Value:
    if smoothness == CONSTANT:
        return ys[k]
    h = xs[k + 1] - xs[k]
    rise = divide(subtract(ys[k + 1], ys[k]), h)
    s = subtract(u, xs[k])
    if slopes is None:
        return add(ys[k], multiply(rise, s))
    a, b = slopes[k], slopes[k + 1]
    c2, c3 = (3 * rise - 2 * a - b) / h, (a + b - 2 * rise) / h**2
    return add(ys[k], multiply(s, add(float(a), multiply(s, add(float(c2), multiply(s, float(c3)))))))


def _ends(
    xs: list[float], ys: list[Value], slopes: np.ndarray | None, u: Value, extrapolation: int
) -> tuple[Value, Value]:
    if extrapolation != EXTEND:
        return ys[0], ys[-1]
    if slopes is None:
        first = divide(subtract(ys[1], ys[0]), xs[1] - xs[0]) if xs[1] > xs[0] else 0.0
        last = divide(subtract(ys[-1], ys[-2]), xs[-1] - xs[-2]) if xs[-1] > xs[-2] else 0.0
    else:
        first, last = float(slopes[0]), float(slopes[-1])
    return (add(ys[0], multiply(first, subtract(u, xs[0]))), add(ys[-1], multiply(last, subtract(u, xs[-1]))))


def active_piece(pieces: list[tuple[float, Value]], u: Value) -> Value:
    """Return the piece that holds at u, each from its knot on, found by halving."""
    if len(pieces) == 1:
        return pieces[0][1]
    half = len(pieces) // 2
    knot = pieces[half][0]
    if is_number(u):
        return active_piece(pieces[:half], u) if u < knot else active_piece(pieces[half:], u)
    return choose(
        Condition("lt", (formula(u), Constant(knot))), active_piece(pieces[:half], u), active_piece(pieces[half:], u)
    )


def _slopes(xs: list[float], ys: list[Value], smoothness: int) -> np.ndarray | None:
    """Return slopes at the knots of a cubic table; None for straight and constant pieces."""
    if smoothness in (LINEAR, CONSTANT):
        return None
    if not all(is_number(y) for y in ys):
        raise Unfit("a smooth table with values that are not numbers is not supported: use linear segments")
    if any(a >= b for a, b in pairwise(xs)):
        raise Unfit("a smooth table cannot jump: its abscissas must increase")
    h, d = np.diff(xs), np.diff(np.array(ys, dtype=float)) / np.diff(xs)
    if len(d) == 1:
        return np.array([d[0], d[0]])
    if smoothness in (AKIMA, MODIFIED):
        return akima(d, modified=smoothness == MODIFIED)
    return fritsch_butland(h, d) if smoothness == FRITSCH else steffen(h, d)
