"""The table functions of the Modelica Standard Library, as formulas.

A table is rows of (abscissa, values …); ``columns`` says which column a result is read from. Between the abscissas it
is linear, constant, or a cubic with given slopes at the knots; beyond them it holds, goes on, or repeats. Two rows with
one abscissa are a jump; there the later row holds.

Slopes: H. Akima, "A new method of interpolation and smooth curve fitting", J. ACM 17 (1970); F. N. Fritsch, J. Butland,
"A method for constructing local monotone piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984);
M. Steffen, "A simple method for monotonic interpolation in one dimension", Astron. Astrophys. 239 (1990).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from grisaille.model.expression import Call, Condition, Constant, Expression
from grisaille.model.tables import table as gr_table
from grisaille.modelica.builtins import floor
from grisaille.modelica.values import Unfit, add, choose, describe, divide, formula, is_number, multiply, subtract

LINEAR, AKIMA, CONSTANT, FRITSCH, STEFFEN, MODIFIED = 1, 2, 3, 4, 5, 6
CURVED = (AKIMA, FRITSCH, STEFFEN, MODIFIED)
HOLD, EXTEND, REPEAT = 1, 2, 3
MOST_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Table:
    """What the constructor of a table was given."""

    rows: Any
    columns: tuple[int, ...]
    smoothness: int
    extrapolation: int
    start: float = -np.inf
    shift: float = 0.0

    @property
    def abscissas(self) -> list[float]:
        return [float(x) for x in self.rows[:, 0]]


def _table(file: str, rows: Any, columns: Any, smoothness: Any, extrapolation: Any, **times: float) -> Table:
    if file not in ("NoName", "") and not (isinstance(rows, np.ndarray) and rows.size):
        raise Unfit(f"the table in the file {file!r} is not read: files are never opened; write it into the model")
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or not rows.size:
        raise Unfit(f"a table must be a matrix, got {describe(rows)}")
    if len(rows) > MOST_ROWS:
        raise Unfit(f"a table of {len(rows)} rows is too long (at most {MOST_ROWS})")
    for x in rows[:, 0]:
        if not is_number(x):
            raise Unfit(f"the abscissas of a table must be numbers, got {describe(x)}")
    if np.any(np.diff([float(x) for x in rows[:, 0]]) < 0):
        raise Unfit("the abscissas of a table must not decrease")
    return Table(rows, tuple(columns), int(_index(smoothness)), int(_index(extrapolation)), **times)


def _index(value: Any) -> Any:
    return getattr(value, "index", value)


def make_table(
    file: Any, _name: Any, rows: Any, _n: Any, _m: Any, columns: Any, _k: Any, smoothness: Any, extrapolation: Any,
    *_others: Any,
) -> Table:  # fmt: skip
    """``ModelicaStandardTables_CombiTable1D_init3``."""
    return _table(file, rows, columns, smoothness, extrapolation)


def make_time_table(
    file: Any, _name: Any, rows: Any, _n: Any, _m: Any, start: Any, columns: Any, _k: Any, smoothness: Any,
    extrapolation: Any, shift: Any = 0.0, *_others: Any,
) -> Table:  # fmt: skip
    """``ModelicaStandardTables_CombiTimeTable_init3``."""
    return _table(file, rows, columns, smoothness, extrapolation, start=float(start), shift=float(shift))


def value_of_table(table: Table, column: Any, u: Any) -> Any:
    """``ModelicaStandardTables_CombiTable1D_getValue``."""
    if not isinstance(column, int) or not 1 <= column <= len(table.columns):
        raise Unfit(f"the table has no result number {column}")
    k = table.columns[column - 1]
    if not 1 <= k <= table.rows.shape[1]:
        raise Unfit(f"the table has no column {k}")
    return interpolate(table.abscissas, list(table.rows[:, k - 1]), u, table.smoothness, table.extrapolation)


def value_of_time_table(table: Table, column: Any, time: Any, *_events: Any) -> Any:
    """``ModelicaStandardTables_CombiTimeTable_getValue``; zero before the table's start."""
    value = value_of_table(table, column, subtract(time, table.shift) if table.shift else time)
    if table.start <= -1e59:
        return value
    return choose(Condition("ge", (formula(time), Constant(table.start))), value, 0.0)


def next_time_event(table: Table, time: Any) -> Any:
    """The next abscissa after ``time``, a formula that is constant between them."""
    knots = sorted({x + table.shift for x in table.abscissas if x + table.shift > -1e59} | {max(table.start, -1e59)})
    knots = [k for k in knots if k > -1e58]
    if table.extrapolation == REPEAT and len(table.rows) > 1:
        return 1e60  # jumps of a table that repeats itself are found by its formula
    result: Any = 1e60
    for knot in reversed(knots):
        result = choose(Condition("lt", (formula(time), Constant(knot))), knot, result)
    return result


def first_abscissa(table: Table) -> float:
    """The smallest abscissa."""
    return table.abscissas[0]


def last_abscissa(table: Table) -> float:
    """The largest abscissa."""
    return table.abscissas[-1]


NATIVE: dict[str, Any] = {
    "ModelicaStandardTables_CombiTable1D_init3": make_table,
    "ModelicaStandardTables_CombiTable1D_init2": make_table,
    "ModelicaStandardTables_CombiTable1D_getValue": value_of_table,
    "ModelicaStandardTables_CombiTable1D_minimumAbscissa": first_abscissa,
    "ModelicaStandardTables_CombiTable1D_maximumAbscissa": last_abscissa,
    "ModelicaStandardTables_CombiTimeTable_init3": make_time_table,
    "ModelicaStandardTables_CombiTimeTable_init2": make_time_table,
    "ModelicaStandardTables_CombiTimeTable_getValue": value_of_time_table,
    "ModelicaStandardTables_CombiTimeTable_nextTimeEvent": next_time_event,
    "ModelicaStandardTables_CombiTimeTable_minimumTime": first_abscissa,
    "ModelicaStandardTables_CombiTimeTable_maximumTime": last_abscissa,
}
"""External functions that are known by name."""
CONSTRUCTORS = frozenset(name for name in NATIVE if "_init" in name)


def interpolate(xs: list[float], ys: list[Any], u: Any, smoothness: int, extrapolation: int) -> Any:
    """y(u) through the points."""
    if len(xs) == 1:
        return ys[0]
    increases = all(a < b for a, b in pairwise(xs))
    if smoothness == LINEAR and increases and extrapolation != REPEAT and not is_number(u):
        outside = "extend" if extrapolation == EXTEND else "hold"
        return gr_table(formula(u), xs, [_plain(y) for y in ys], outside=outside)
    if extrapolation == REPEAT:
        period = xs[-1] - xs[0]
        u = subtract(u, multiply(floor(divide(subtract(u, xs[0]), period)), period))
    slopes = _slopes(xs, ys, smoothness)
    pieces = []
    for k in range(len(xs) - 1):
        if xs[k] < xs[k + 1]:
            pieces.append((xs[k], _piece(xs, ys, slopes, k, u, smoothness)))
    before, after = _ends(xs, ys, slopes, u, smoothness, extrapolation)
    return _tree([(-np.inf, before), *pieces, (xs[-1], after)], u)


def _plain(y: Any) -> Any:
    return float(y) if is_number(y) else y


def _piece(xs: list[float], ys: list[Any], slopes: Any, k: int, u: Any, smoothness: int) -> Any:
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


def _ends(xs: list[float], ys: list[Any], slopes: Any, u: Any, smoothness: int, extrapolation: int) -> tuple[Any, Any]:
    if extrapolation != EXTEND or smoothness == CONSTANT:
        return ys[0], ys[-1] if smoothness != CONSTANT or extrapolation != REPEAT else ys[-2]
    if slopes is None:
        first = divide(subtract(ys[1], ys[0]), xs[1] - xs[0]) if xs[1] > xs[0] else 0.0
        last = divide(subtract(ys[-1], ys[-2]), xs[-1] - xs[-2]) if xs[-1] > xs[-2] else 0.0
    else:
        first, last = float(slopes[0]), float(slopes[-1])
    return (add(ys[0], multiply(first, subtract(u, xs[0]))), add(ys[-1], multiply(last, subtract(u, xs[-1]))))


def _tree(pieces: list[tuple[float, Any]], u: Any) -> Any:
    """The piece that holds at u, each from its knot on, found by halving."""
    if len(pieces) == 1:
        return pieces[0][1]
    half = len(pieces) // 2
    knot = pieces[half][0]
    if is_number(u):
        return _tree(pieces[:half], u) if u < knot else _tree(pieces[half:], u)
    return choose(Condition("lt", (formula(u), Constant(knot))), _tree(pieces[:half], u), _tree(pieces[half:], u))


def _slopes(xs: list[float], ys: list[Any], smoothness: int) -> Any:
    """Slopes at the knots of a cubic table; None for straight and constant pieces."""
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
        return _akima(d, modified=smoothness == MODIFIED)
    if smoothness == FRITSCH:
        return _fritsch(h, d)
    return _steffen(h, d)


def _akima(d: Any, *, modified: bool) -> Any:
    wide = np.concatenate([[3 * d[0] - 2 * d[1], 2 * d[0] - d[1]], d, [2 * d[-1] - d[-2], 3 * d[-1] - 2 * d[-2]]])
    right, left = np.abs(wide[3:] - wide[2:-1]), np.abs(wide[1:-2] - wide[:-3])
    if modified:
        right, left = right + np.abs(wide[3:] + wide[2:-1]) / 2, left + np.abs(wide[1:-2] + wide[:-3]) / 2
    weight = right + left
    mean = (wide[1:-2] + wide[2:-1]) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(weight > 0, (right * wide[1:-2] + left * wide[2:-1]) / weight, mean)


def _fritsch(h: Any, d: Any) -> Any:
    inner = np.zeros(len(d) - 1)
    for k in range(len(inner)):
        if d[k] * d[k + 1] > 0:
            share = (1 + h[k + 1] / (h[k] + h[k + 1])) / 3
            inner[k] = d[k] * d[k + 1] / (share * d[k + 1] + (1 - share) * d[k])
    return np.concatenate([[d[0]], inner, [d[-1]]])


def _steffen(h: Any, d: Any) -> Any:
    inner = np.zeros(len(d) - 1)
    for k in range(len(inner)):
        p = (d[k] * h[k + 1] + d[k + 1] * h[k]) / (h[k] + h[k + 1])
        inner[k] = (np.sign(d[k]) + np.sign(d[k + 1])) * min(abs(d[k]), abs(d[k + 1]), abs(p) / 2)
    return np.concatenate([[d[0]], inner, [d[-1]]])


__all__ = ["NATIVE", "Call", "Expression", "Table", "interpolate"]
