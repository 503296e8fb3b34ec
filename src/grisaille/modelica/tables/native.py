"""The external functions of the Standard Library's tables, by name.

A table is rows of (abscissa, values …), ``columns`` saying from which column a result is read; one of two variables has
its abscissas in the first column and the first row. It stands in the text or in a file. ``init`` is of version 3.2,
``init2`` of 3.2.2, ``init3`` of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from grisaille.model.expression import Condition, Constant
from grisaille.modelica.tables.curves import AKIMA, CONSTANT, EXTEND, LINEAR, NONE, REPEAT, interpolate
from grisaille.modelica.tables.files import read_table
from grisaille.modelica.tables.places import find_file
from grisaille.modelica.tables.surfaces import surface
from grisaille.modelica.values import (
    Array,
    Number,
    Opaque,
    Truth,
    Unfit,
    Value,
    array,
    both,
    choose,
    describe,
    either,
    formula,
    is_number,
    is_whole,
    relation,
    subtract,
)

MAX_ROWS = 5_000
MAX_CELLS = 10_000
"""Of a table of two variables."""
_NAMES = ("NoName", "")


@dataclass(frozen=True, eq=False)
class InterpolationTable(Opaque):
    """What the constructor of a table was given."""

    rows: Array
    columns: tuple[int, ...]
    smoothness: int
    extrapolation: int
    start: float = -np.inf
    shift: float = 0.0

    @property
    def abscissas(self) -> list[float]:
        return [float(x) for x in self.rows[:, 0]]


@dataclass(frozen=True, eq=False)
class Surface(Opaque):
    """What the constructor of a table of two variables was given."""

    xs: list[float]
    ys: list[float]
    values: Array
    smoothness: int
    extrapolation: int


@dataclass(frozen=True)
class Guarded(Opaque):
    """A value that is one only where a condition holds."""

    value: Value
    holds: Truth
    message: str


# --- construction ---


@dataclass(frozen=True, eq=False)
class _TableArguments:
    """The arguments of a constructor by name; those of ``IGNORED`` say what arrays know themselves."""

    file: Value
    name: Value
    rows: Array
    smoothness: Value
    extrapolation: Value = EXTEND
    columns: Sequence[int] = ()
    start: Number = -np.inf
    shift: Number = 0.0
    delimiter: Value = ","
    header: Number = 0

    @classmethod
    def of(cls, order: str, given: tuple[Any, ...]) -> _TableArguments:
        """Name the arguments of a call, which come in this order; the last ones may be missing."""
        names = order.split()
        if len(given) > len(names):
            raise TypeError(f"{len(given)} arguments are given, {len(names)} are known.")
        named = dict(zip(names, given, strict=False))
        return cls(**{name: value for name, value in named.items() if name not in IGNORED})

    def matrix(self) -> Array:
        return _matrix(self.file, self.name, self.rows, self.delimiter, self.header)


IGNORED = ("row_count", "column_count", "result_count", "verbose", "events")
CURVE = (
    """file name rows row_count column_count columns result_count smoothness extrapolation verbose delimiter header"""
)
TIME_TABLE = """
    file name rows row_count column_count start columns result_count smoothness extrapolation shift events verbose
    delimiter header
"""
SURFACE = "file name rows row_count column_count smoothness extrapolation verbose delimiter header"


def make_table(*given: Value) -> InterpolationTable:
    """Make the table of ``ModelicaStandardTables_CombiTable1D_init2`` and ``…_init3``."""
    of = _TableArguments.of(CURVE, given)
    made = _table(of)
    if any(a >= b for a, b in pairwise(made.abscissas)):
        raise Unfit("the abscissas of a table must increase, each above the one before")
    return made


def make_time_table(*given: Value) -> InterpolationTable:
    """Make the table of ``ModelicaStandardTables_CombiTimeTable_init2`` and ``…_init3``."""
    return _table(_TableArguments.of(TIME_TABLE, given))


def make_surface(*given: Value) -> Surface:
    """Make the table of ``ModelicaStandardTables_CombiTable2D_init2`` and ``…_init3``."""
    of = _TableArguments.of(SURFACE, given)
    rows = of.matrix()
    if min(rows.shape) < 2:
        raise Unfit(f"a table of two variables needs two rows and columns, got {describe(rows)}")
    if rows.size > MAX_CELLS:
        raise Unfit(f"a table of {rows.shape[0]} x {rows.shape[1]} entries is too large (at most {MAX_CELLS})")
    xs, ys = _abscissas(rows[1:, 0]), _abscissas(rows[0, 1:])
    for told, knots in (("first column", xs), ("first row", ys)):
        if any(a >= b for a, b in pairwise(knots)):
            raise Unfit(f"the {told} of a table must increase, each entry above the one before")
    how, outside = _choice(of.smoothness, 6, "smoothness"), _choice(of.extrapolation, 4, "extrapolation")
    if how not in (LINEAR, AKIMA, CONSTANT):
        raise Unfit("a table of two variables is linear, constant or ContinuousDerivative, as in the Standard Library")
    return Surface(xs, ys, rows[1:, 1:], how, outside)


def _old(make: Callable[..., Opaque], is_of_time: bool) -> Callable[..., Opaque]:
    """Return ``…_init``, which takes the names of the table and the file in the other order; tables of time begin at
    start.
    """
    if is_of_time:
        return lambda name, file, rows, n, m, start, *others: make(file, name, rows, n, m, start, *others, start)
    return lambda name, file, *others: make(file, name, *others)


def _table(of: _TableArguments) -> InterpolationTable:
    rows = of.matrix()
    if len(rows) > MAX_ROWS:
        raise Unfit(
            f"a table of {len(rows)} rows is too long (at most {MAX_ROWS}): leave it out of the model and give its "
            "values as an input, with_inputs(…) and an Experiment with the rows of the file"
        )
    xs = _abscissas(rows[:, 0])
    if any(a > b for a, b in pairwise(xs)):
        raise Unfit("the abscissas of a table must not decrease")
    how, outside = _choice(of.smoothness, 6, "smoothness"), _choice(of.extrapolation, 4, "extrapolation")
    if outside == REPEAT and len(xs) > 1 and xs[-1] <= xs[0]:
        raise Unfit("a table that repeats itself needs a period above zero")
    for column in of.columns:
        if not is_whole(column) or not 1 <= column <= rows.shape[1]:
            raise Unfit(f"the table has no column {column}: it has {rows.shape[1]}")
    columns = tuple(int(k) for k in of.columns)
    return InterpolationTable(rows, columns, how, outside, float(of.start), float(of.shift))


def _matrix(file: Value, name: Value, rows: Array, delimiter: Value, header: Number) -> Array:
    """Return the rows in the text, or those of the file that it names."""
    file, name = str(file).strip(), str(name).strip()
    if name in _NAMES and file in _NAMES:
        if not isinstance(rows, np.ndarray) or rows.ndim != 2 or not rows.size:
            raise Unfit(f"a table must be a matrix, got {describe(rows)}")
        return rows
    if file in _NAMES:
        raise Unfit(f"the table {name!r} would come from C code (usertab), which is not run: write it into the model")
    if name in _NAMES and not file.lower().endswith(".csv"):
        find_file(file)
        raise Unfit(f"the table in the file {file!r} is not read: the name of the table is missing (tableName)")
    found = read_table(file, name, str(delimiter), int(header)).astype(object)
    if found.shape[1] < 2:
        raise Unfit(f"the table {name!r} of the file {file!r} has one column: it needs an abscissa and values")
    return found


def _abscissas(values: Any) -> list[float]:
    for x in values:
        if not is_number(x):
            raise Unfit(f"the abscissas of a table must be numbers, got {describe(x)}")
    return [float(x) for x in values]


def _choice(value: Value, most: int, what: str) -> int:
    index = getattr(value, "index", value)
    if not isinstance(index, int | float) or not 1 <= index <= most:
        raise Unfit(f"a table's {what} must be known before the simulation, got {describe(value)}")
    return int(index)


# --- values ---


def value_of_table(table: InterpolationTable, column: Value, u: Value) -> Value:
    """Return ``ModelicaStandardTables_CombiTable1D_getValue``."""
    found = interpolate(table.abscissas, _values(table, column), u, table.smoothness, table.extrapolation)
    return _guarded(found, table.extrapolation, [("u", u, table.abscissas)])


def value_of_time_table(table: InterpolationTable, column: Value, time: Value, *_events: Value) -> Value:
    """Return ``ModelicaStandardTables_CombiTimeTable_getValue``; zero before the table's start."""
    u = subtract(time, table.shift) if table.shift else time
    value = interpolate(table.abscissas, _values(table, column), u, table.smoothness, table.extrapolation)
    begun: Any = True
    if table.start > -1e59:
        begun = relation(">=", time, table.start)
        value = value if begun is True else choose(begun, value, 0.0)
    return _guarded(value, table.extrapolation, [("the time of the table", u, table.abscissas)], unless=begun)


def value_of_surface(surface_: Surface, u: Value, v: Value) -> Value:
    """Return ``ModelicaStandardTables_CombiTable2D_getValue``."""
    s = surface_
    found = surface(s.xs, s.ys, s.values, u, v, s.smoothness, s.extrapolation)
    return _guarded(found, s.extrapolation, [("u1", u, s.xs), ("u2", v, s.ys)])


# --- without objects: what the flattener makes of tables that it does not know (``full/table_texts``) ---


def _surface_of(
    name: Value, file: Value, rows: Array, smoothness: Value, extrapolation: Value, *source: Value
) -> Surface:
    given = (file, name, rows, *rows.shape, smoothness, extrapolation, True, *source)
    return make_surface(*given)


def _curve_of(
    name: Value, file: Value, rows: Array, columns: Array, smoothness: Value, beyond: Value, *source: Value
) -> InterpolationTable:
    given = (file, name, rows, *rows.shape, columns, len(columns), smoothness, beyond, True, *source)
    return make_table(*given)


def _time_table_of(
    name: Value,
    file: Value,
    rows: Array,
    start: Value,
    columns: Array,
    smoothness: Value,
    beyond: Value,
    shift: Value,
    *source: Value,
) -> InterpolationTable:
    given = (file, name, rows, *rows.shape, start, columns, len(columns), smoothness, beyond, shift, 1, True, *source)
    return make_time_table(*given)


def _of(make: Callable[..., Opaque], count: int, function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function of a table as one of the ``count`` arguments that it is made of, and the others."""
    return lambda *given: function(make(*given[:count]), *given[count:])


def _values(table: InterpolationTable, column: Value) -> list[Value]:
    if not is_whole(column) or not 1 <= column <= len(table.columns):
        raise Unfit(f"the table has no result number {column}")
    return list(table.rows[:, table.columns[int(column) - 1] - 1])


def _guarded(
    value: Value, extrapolation: int, axes: list[tuple[str, Value, list[float]]], unless: Value = True
) -> Value:
    """Return the value, with the demand to stay inside where nothing is extrapolated; one row or column holds
    everywhere.
    """
    bounded = [(name, u, xs) for name, u, xs in axes if len(xs) > 1]
    if extrapolation != NONE or not bounded:
        return value
    holds: Any = True
    for _, u, xs in bounded:
        holds = both(holds, both(relation(">=", u, xs[0]), relation("<=", u, xs[-1])))
    if unless is not True:
        holds = either(Condition("lt", unless.arguments), holds) if isinstance(unless, Condition) else True
    told = " and ".join(f"{name} stays between {xs[0]:g} and {xs[-1]:g}" for name, _, xs in bounded)
    message = f"a table with NoExtrapolation is left: it holds where {told}"
    if holds is False:
        raise Unfit(message)
    return value if holds is True else Guarded(value, holds, message)


def next_time_event(table: InterpolationTable, time: Value) -> Value:
    """Return the next abscissa after ``time``, a formula that is constant between them."""
    knots = sorted({x + table.shift for x in table.abscissas if x + table.shift > -1e59} | {max(table.start, -1e59)})
    knots = [k for k in knots if k > -1e58]
    if table.extrapolation == REPEAT and len(table.rows) > 1:
        return 1e60  # jumps of a table that repeats itself are found by its formula
    result: Any = 1e60
    for knot in reversed(knots):
        result = choose(Condition("lt", (formula(time), Constant(knot))), knot, result)
    return result


def first_abscissa(table: InterpolationTable) -> float:
    """Return the smallest abscissa."""
    return table.abscissas[0]


def last_abscissa(table: InterpolationTable) -> float:
    """Return the largest abscissa."""
    return table.abscissas[-1]


def first_corner(table: Surface, *_: Value) -> Value:
    """Return the smallest abscissas of both variables."""
    return array([table.xs[0], table.ys[0]])


def last_corner(table: Surface, *_: Value) -> Value:
    """Return the largest abscissas of both variables."""
    return array([table.xs[-1], table.ys[-1]])


def _was_read(*_: Value) -> float:
    """Return ``…_read`` of version 3.2: tables are read when they are made."""
    return 1.0


_PREFIX = "ModelicaStandardTables_Combi"
_OF_KIND: dict[str, dict[str, Any]] = {
    "Table1D": {
        "getValue": value_of_table, "minimumAbscissa": first_abscissa, "maximumAbscissa": last_abscissa,
    },
    "TimeTable": {
        "getValue": value_of_time_table, "nextTimeEvent": next_time_event, "minimumTime": first_abscissa,
        "maximumTime": last_abscissa,
    },
    "Table2D": {
        "getValue": value_of_surface, "minimumAbscissa": first_corner, "maximumAbscissa": last_corner,
    },
}  # fmt: skip
_MAKERS = {"Table1D": make_table, "TimeTable": make_time_table, "Table2D": make_surface}
_WITHOUT_OBJECT: dict[str, tuple[Any, int, Any]] = {
    "grisaille_surface": (_surface_of, 7, value_of_surface),
    "grisaille_surface_first": (_surface_of, 7, first_corner),
    "grisaille_surface_last": (_surface_of, 7, last_corner),
    "grisaille_curve": (_curve_of, 8, value_of_table),
    "grisaille_curve_first": (_curve_of, 8, first_abscissa),
    "grisaille_curve_last": (_curve_of, 8, last_abscissa),
    "grisaille_time_table": (_time_table_of, 10, value_of_time_table),
    "grisaille_time_table_first": (_time_table_of, 10, first_abscissa),
    "grisaille_time_table_last": (_time_table_of, 10, last_abscissa),
    "grisaille_time_table_next": (_time_table_of, 10, next_time_event),
}
TABLE_FUNCTIONS: dict[str, Any] = {
    **{f"{_PREFIX}{kind}_{name}": function for kind, own in _OF_KIND.items() for name, function in own.items()},
    **{f"{_PREFIX}{kind}_read": _was_read for kind in _MAKERS},
    **{name: _of(*parts) for name, parts in _WITHOUT_OBJECT.items()},
    **{f"{_PREFIX}{kind}_{init}": make for kind, make in _MAKERS.items() for init in ("init2", "init3")},
    **{f"{_PREFIX}{kind}_init": _old(make, kind == "TimeTable") for kind, make in _MAKERS.items()},
}
"""External functions that are known by name."""
SETTLED_ARGUMENTS = {
    **{name: 100 for name in TABLE_FUNCTIONS if "_init" in name},
    **{name: count for name, (_, count, _) in _WITHOUT_OBJECT.items()},
}
"""How many first arguments of a function decide the formulas of a table, and are settled."""
SURFACE_FUNCTIONS = frozenset(
    name for name in TABLE_FUNCTIONS if "Table2D_init" in name or name.startswith("grisaille_surface")
)
"""Functions whose tables have abscissas in their first row, too."""
OF_EVENTS = frozenset({"ModelicaStandardTables_CombiTimeTable_getValue", "grisaille_time_table"})
"""Functions whose last two arguments are instants of events, which need no value."""
