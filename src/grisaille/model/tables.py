"""Lookup tables: measured characteristics as formulas.

``table(x, xs, ys)`` interpolates linearly or by a cubic spline (twice continuously differentiable, not-a-knot ends);
``table2(x, y, xs, ys, values)`` bilinearly. Outside the grid the last value is held, or the last slope continues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.arrays import elementwise
from grisaille.model.expression import Call, as_expression

_OUTSIDE = ("hold", "extend")


def table(x: Any, xs: Any, ys: Any, kind: str = "linear", outside: str = "hold") -> Any:
    """y(x) through the points (xs, ys).

    x : a formula
    xs : increasing numbers, at least two
    ys : as many numbers
    kind : ``"linear"`` or ``"cubic"``
    outside : ``"hold"`` keeps the end value, ``"extend"`` continues the end slope
    """
    knots = _grid("xs", xs)
    values = _numbers("ys", ys)
    if values.shape != knots.shape:
        raise ModelError(f"table: xs has {len(knots)} entries and ys has shape {values.shape}; they must match.")
    _choice("kind", kind, ("linear", "cubic"))
    _choice("outside", outside, _OUTSIDE)
    if kind == "cubic" and len(knots) < 4:
        raise ModelError(f"table: a cubic table needs at least 4 points, got {len(knots)}; use kind='linear'.")
    data = (kind, outside, tuple(knots.tolist()), tuple(values.tolist()))
    return _nodes("table", data, x)


def table2(x: Any, y: Any, xs: Any, ys: Any, values: Any, outside: str = "hold") -> Any:
    """z(x, y), bilinear on the grid xs × ys.

    x, y : formulas
    xs, ys : increasing numbers, at least two of each
    values : numbers; ``values[i][j]`` belongs to ``xs[i]`` and ``ys[j]``
    outside : ``"hold"`` keeps the value at the edge, ``"extend"`` continues the slope there
    """
    first, second = _grid("xs", xs), _grid("ys", ys)
    heights = _numbers("values", values)
    if heights.shape != (len(first), len(second)):
        raise ModelError(
            f"table2: values must have shape ({len(first)}, {len(second)}), one row per entry of xs and one column "
            f"per entry of ys; got {heights.shape}."
        )
    _choice("outside", outside, _OUTSIDE)
    rows = tuple(tuple(row) for row in heights.tolist())
    return _nodes("table2", ("linear", outside, tuple(first.tolist()), tuple(second.tolist()), rows), x, y)


def _nodes(operation: str, data: tuple[Any, ...], *arguments: Any) -> Any:
    if any(isinstance(a, np.ndarray) for a in arguments):
        return elementwise(lambda *items: _nodes(operation, data, *items), *arguments)
    return Call(operation, tuple(as_expression(a) for a in arguments), data)


def _numbers(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError, ModelError):
        raise ModelError(
            f"A table's {name} must be numbers (parameters cannot stand in a table), got {values!r}."
        ) from None
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        index = tuple(int(i) for i in bad[0])
        raise ModelError(f"A table's {name} must be finite; entry {index[0] if len(index) == 1 else index} is not.")
    return numbers


def _grid(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    numbers = _numbers(name, values)
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


def _choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ModelError(f"A table's {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
