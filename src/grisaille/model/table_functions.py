"""Lookup tables: measured characteristics, and unknown curves, as formulas.

``table(x, xs, ys)`` interpolates linearly, by a cubic spline (twice continuously differentiable, not-a-knot ends) or by
a cubic that rises and falls only where the values do; ``table2(x, y, xs, ys, values)`` bilinearly. The knots are
numbers, the values numbers or formulas: a vector of parameters makes the table a curve that can be estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Expression, as_expression, same
from grisaille.model.symbol_arrays import elementwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grisaille.model.expression import FormulaLike

KINDS = ("linear", "cubic", "monotone")
OUTSIDE_CHOICES = ("hold", "extend", "repeat")
MIN_NODES = {"linear": 2, "cubic": 4, "monotone": 2}

Values = np.ndarray[Any, Any]


def table(x: Any, xs: Any, ys: Any, kind: str = "linear", outside: str = "hold") -> Any:
    """Return y(x) through the points (xs, ys).

    x : a formula
    xs : the knots, increasing numbers, at least two
    ys : as many numbers or formulas: with a vector of parameters, ``gr.Parameter(size=5)``, the curve can be estimated
    kind : ``"linear"``; ``"cubic"``, a smooth spline; ``"monotone"``, a cubic with continuous slope that rises and
        falls only where the values do
    outside : ``"hold"`` keeps the end value, ``"extend"`` continues the end slope, ``"repeat"`` begins again: the curve
        has the period xs[-1] - xs[0], and ys ends with its first value or leaves that out
    """
    knots = _grid("xs", xs)
    _choice("kind", kind, KINDS)
    _choice("outside", outside, OUTSIDE_CHOICES)
    values = _values("ys", ys)
    if values.ndim != 1 or len(values) not in _lengths(knots, outside):
        less = f", or {len(knots) - 1} with outside='repeat'" if outside == "repeat" else ""
        raise ModelError(f"table: xs has {len(knots)} entries and ys has shape {values.shape}; they must match{less}.")
    if len(knots) < MIN_NODES[kind]:
        raise ModelError(
            f"table: a {kind} table needs at least {MIN_NODES[kind]} points, got {len(knots)}; use kind='linear'."
        )
    values = _repeated("ys", values, len(knots), outside)
    head = (kind, outside, tuple(knots.tolist()))
    if values.dtype == float:
        return _nodes("table", (*head, tuple(values.tolist())), (), x)
    return _nodes("table", (*head, None), tuple(values), x)


def table2(
    x: Any,
    y: Any,
    xs: Any,
    ys: Any,
    values: Any,
    outside: Any = "hold",
) -> Any:
    """Return z(x, y), bilinear on the grid xs × ys.

    x, y : formulas
    xs, ys : increasing numbers, at least two of each
    values : numbers or formulas, such as a matrix of parameters; ``values[i][j]`` belongs to ``xs[i]`` and ``ys[j]``
    outside : ``"hold"`` keeps the value at the edge, ``"extend"`` continues the slope there, ``"repeat"`` begins again;
        or a pair of these, for x and for y
    """
    first, second = _grid("xs", xs), _grid("ys", ys)
    across, along = pair = (outside, outside) if isinstance(outside, str) else _pair(outside)
    for way in pair:
        _choice("outside", way, OUTSIDE_CHOICES)
    heights = _values("values", values)
    rows, columns = _lengths(first, across), _lengths(second, along)
    if heights.ndim != 2 or heights.shape[0] not in rows or heights.shape[1] not in columns:
        raise ModelError(
            f"table2: values must have shape ({len(first)}, {len(second)}), one row per entry of xs and one column "
            f"per entry of ys; got {heights.shape}."
        )
    heights = _repeated("values", heights, len(first), across)
    heights = _repeated("values", heights.T, len(second), along).T
    ways = across if across == along else pair
    head = ("linear", ways, tuple(first.tolist()), tuple(second.tolist()))
    if heights.dtype == float:
        return _nodes("table2", (*head, tuple(tuple(row) for row in heights.tolist())), (), x, y)
    return _nodes("table2", (*head, None), tuple(heights.ravel()), x, y)


def table_arguments(node: Call) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Return the arguments by which a table is looked up, and its values where they are formulas."""
    n = 1 if node.operation == "table" else 2
    return node.arguments[:n], node.arguments[n:]


def _nodes(operation: str, data: tuple[Any, ...], values: tuple[Expression, ...], *arguments: FormulaLike) -> Any:
    if any(isinstance(a, np.ndarray) for a in arguments):
        return elementwise(lambda *items: _nodes(operation, data, values, *items), *arguments)
    return Call(operation, (*(as_expression(a) for a in arguments), *values), data)


def _lengths(knots: Values, outside: str) -> tuple[int, ...]:
    return (len(knots), len(knots) - 1) if outside == "repeat" else (len(knots),)


def _repeated(name: str, values: Values, knots: int, outside: str) -> Values:
    """Return values along the first axis of a table that repeats itself, without the last, which must be the first
    again.
    """
    if outside != "repeat":
        return values
    if knots < 3:
        raise ModelError("A table that repeats itself needs at least three knots; with two it is a constant.")
    if len(values) < knots:
        return values
    for first, last in zip(np.ravel(values[0]), np.ravel(values[-1]), strict=True):
        if not _is_same(first, last):
            raise ModelError(
                f"A table with outside='repeat' ends where it begins, but its {name} end with {last} and begin with "
                f"{first}: leave out the last one, which belongs to the same point as the first."
            )
    return values[:-1]


def _is_same(first: Any, last: Any) -> bool:
    return same(first, last) if isinstance(first, Expression) else bool(first == last)


def _values(name: str, values: FormulaLike) -> Values:
    """Return an array of numbers, or of expressions where any of them is a formula."""
    try:
        given = np.array(values, dtype=object)
    except ValueError:
        raise ModelError(f"A table's {name} must be a regular array, got {values!r}.") from None
    if not any(isinstance(item, Expression) for item in given.flat):
        return _numbers(name, values, "numbers or formulas of parameters")
    made = np.empty(given.shape, dtype=object)
    for index in np.ndindex(*given.shape):
        try:
            made[index] = as_expression(given[index])
        except ModelError as error:
            raise ModelError(f"A table's {name}, entry {_position(index)}: {error}") from None
    return made


def _numbers(name: str, values: FormulaLike, what: str) -> Values:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError, ModelError):
        raise ModelError(f"A table's {name} must be {what}, got {values!r}.") from None
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        raise ModelError(f"A table's {name} must be finite; entry {_position(tuple(bad[0]))} is not.")
    return numbers


def _position(index: tuple[Any, ...]) -> Any:
    plain = tuple(int(i) for i in index)
    return plain[0] if len(plain) == 1 else plain


def _grid(name: str, values: np.ndarray | Sequence[float | Expression]) -> Values:
    if any(isinstance(item, Expression) for item in np.array(values, dtype=object).flat):
        raise ModelError(
            f"A table's {name} are its knots and must be numbers, got {values!r}: where a table bends is known before "
            f"a run. Estimate the values at given knots (as many as needed, with prior=gr.Smoothness(…)), or shift and "
            f"stretch the argument instead: gr.table((x - shift) / width, …)."
        )
    numbers = _numbers(name, values, "numbers")
    if numbers.ndim != 1 or len(numbers) < 2:
        raise ModelError(f"A table's {name} must be a list of at least two numbers, got shape {numbers.shape}.")
    steps = np.diff(numbers)
    if not np.all(steps > 0):
        where = int(np.argmax(steps <= 0))
        raise ModelError(
            f"A table's {name} must be increasing: entry {where + 1} ({numbers[where + 1]:g}) is not above "
            f"entry {where} ({numbers[where]:g}). Sort the points and merge equal ones."
        )
    return numbers


def _pair(outside: str | Sequence[str]) -> tuple[str, str]:
    if not isinstance(outside, list | tuple) or len(outside) != 2:
        _choice("outside", outside, OUTSIDE_CHOICES)
    return outside[0], outside[1]


def _choice(name: str, value: str | Sequence[str], allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ModelError(f"A table's {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
