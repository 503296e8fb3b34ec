"""Is time in the unit that a model's own units have in mind?

Each equation is measured: der(x) has the unit of x by the unit of time of the record. Where sums and both sides then
differ by a factor, and would agree were time counted in another unit, the model was written for that one:

    tau [s] der(T) [degC/h] == u [degC] − T [degC]      agrees for times in s, and is 3600 off for times in h.

Nothing is converted. Plain numbers for which nobody names a unit say nothing, although seconds are written for them.
Constants such as 3600 may convert, so that what they multiply is left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from grisaille.errors import DataError
from grisaille.experiment.experiment_content import ExperimentContent
from grisaille.model.expression import Call, Constant, Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.units import DIMENSIONLESS, SECONDS_PER_UNIT, Unit, read_unit

CONVERSION_FACTORS = (24.0, 60.0, 1440.0, 3600.0, 86400.0, 1e3, 1e6)
"""Numbers that may stand for a unit in another one; so may what they divide."""
CONVERSION_TOLERANCE = 1e-9
UNIT_KEEPING_OPERATIONS = frozenset({"neg", "abs", "delay", "pre", "previous", "noevent", "floor", "ceil"})
UNIT_JOINING_OPERATIONS = frozenset({"add", "sub", "minimum", "maximum"})
PURE_RESULT = frozenset({"exp", "log", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan"})


@dataclass(frozen=True)
class UnitMisfit:
    """An equation that agrees for another unit of time than the record's."""

    text: str
    unit: str
    parameters: tuple[str, ...]
    """That stand in it, and declare a unit."""
    variables: tuple[str, ...]
    """That stand in it, and declare a unit with time in it."""


def find_unit_misfits(flat: FlatModel, unit: str) -> tuple[UnitMisfit, ...]:
    """Return the equations of a model that do not agree for times in ``unit``, but do for times in another one."""
    if unit not in SECONDS_PER_UNIT:
        return ()
    return flat.cached_value(("misfits of units", unit), partial(_found, flat, unit))


def _found(flat: FlatModel, unit: str) -> tuple[UnitMisfit, ...]:
    declared = {
        name: symbol.unit
        for table in (flat.parameters, flat.variables, flat.discretes, flat.inputs, flat.disturbances)
        for name, symbol in table.items()
    }
    found = []
    for left, right, text in _equations(flat):
        nodes = list(postorder((left, right)))
        if not any(isinstance(n, Call) and n.operation == "der" for n in nodes) and not any(
            isinstance(n, Name) and n.path == "time" for n in nodes
        ):
            continue
        if _agrees(nodes, (left, right), flat, declared, SECONDS_PER_UNIT[unit]) is not False:
            continue
        meant = next((u for u, s in SECONDS_PER_UNIT.items() if _agrees(nodes, (left, right), flat, declared, s)), None)
        if meant is not None:
            names = [n for n in dict.fromkeys(n.path for n in nodes if isinstance(n, Name)) if declared.get(n)]
            parameters = tuple(n for n in names if n in flat.parameters)
            variables = tuple(n for n in names if n in flat.variables and _has_time(declared[n]))
            found.append(UnitMisfit(text, meant, parameters, variables))
    return tuple(found)


def _has_time(unit: str) -> bool:
    known = read_unit(unit)
    return known is not None and "s" in known.powers


def _equations(flat: FlatModel) -> Iterator[tuple[Expression, Expression, str]]:
    yield from ((e.left, e.right, e.text) for e in flat.equations)


def _agrees(
    nodes: list[Expression], sides: tuple[Expression, Expression], flat: FlatModel, declared: dict[str, str],
    seconds: float,
) -> bool | None:  # fmt: skip
    """Return whether all that is added or equated has one size; None where nothing can be compared."""
    sizes: dict[int, Unit | None] = {}
    compared, agree = False, True
    for node in nodes:
        sizes[id(node)], pairs = _measured(node, sizes, flat, declared, seconds)
        for a, b in pairs:
            compared, agree = compared or a.is_alike(b), agree and _is_same(a, b)
    left, right = (sizes[id(side)] for side in sides)
    if left is not None and right is not None:
        compared, agree = compared or left.is_alike(right), agree and _is_same(left, right)
    return agree if compared else None


def _is_same(a: Unit, b: Unit) -> bool:
    return not a.is_alike(b) or abs(a.size - b.size) <= CONVERSION_TOLERANCE * abs(a.size)


def _measured(
    node: Expression, sizes: dict[int, Unit | None], flat: FlatModel, declared: dict[str, str], seconds: float
) -> tuple[Unit | None, list[tuple[Unit, Unit]]]:
    """Return the unit of a node, where it is known, and pairs of units that must agree."""
    if isinstance(node, Constant):
        may_convert = any(abs(abs(node.value) / c - 1) < CONVERSION_TOLERANCE
        or abs(abs(node.value) * c - 1) < CONVERSION_TOLERANCE
                          for c in CONVERSION_FACTORS) if node.value else True  # fmt: skip
        return (None if may_convert else DIMENSIONLESS), []
    if isinstance(node, Name):
        if node.path == "time":
            return Unit(seconds, {"s": 1}), []
        unit = read_unit(declared.get(node.path, ""))
        is_open = unit is None and node.path in flat.variables
        return Unit(1.0, {node.path: 1}) if is_open else unit, []
    assert isinstance(node, Call)
    inner = [sizes.get(id(argument)) for argument in node.arguments]
    operation = node.operation
    if operation in UNIT_JOINING_OPERATIONS:
        known = [u for u in inner if u is not None]
        return (known[0] if known else None), [(known[0], u) for u in known[1:]]
    if operation == "where":
        known = [u for u in inner[1:] if u is not None]
        return (known[0] if known else None), [(known[0], u) for u in known[1:]]
    if operation in UNIT_KEEPING_OPERATIONS:
        return inner[0], []
    if operation in PURE_RESULT:
        return DIMENSIONLESS, [] if inner[0] is None else [(inner[0], DIMENSIONLESS)]
    if operation == "der" and inner[0] is not None:
        return inner[0] / Unit(seconds, {"s": 1}) ** float(node.data or 1), []
    return _combined(node, inner), []


def _combined(node: Call, inner: list[Unit | None]) -> Unit | None:
    """Products, quotients and powers; None of anything else."""
    if any(u is None for u in inner[:1]):
        return None
    first = inner[0]
    assert first is not None
    if node.operation == "sqrt":
        return first**0.5
    if node.operation == "pow" and isinstance(node.arguments[1], Constant):
        return first ** node.arguments[1].value
    second = inner[1] if len(inner) > 1 else None
    if second is None or node.operation not in ("mul", "div"):
        return None
    return first * second if node.operation == "mul" else first / second


def _says_its_unit(record: ExperimentContent) -> bool:
    """Return whether a unit of time is known: seconds are what plain numbers have where nobody says another."""
    clock = record.clock
    return not record.is_static and (clock.is_said or clock.unit != "s" or clock.origin is not None)


def refuse_mixed_units(records: Sequence[ExperimentContent]) -> None:
    """Refuse records that count time in different units: parameters hold for one of them."""
    first: dict[str, str] = {}
    for record in records:
        if not record.is_static:
            first.setdefault(record.clock.unit, f"'{record.name}'" if record.name else "a record without a name")
    if len(first) < 2:
        return
    unit = next(iter(first))
    others = ", ".join(f"in {u} in {name}" for u, name in first.items() if u != unit)
    raise DataError(
        f"Times are in {unit} in {first[unit]} and {others}, but parameters such as time constants and rates hold for "
        f"one unit of time. Make all experiments with unit='{unit}': dates are converted to it, and numbers have to be "
        f"in it."
    )


def time_remarks(record: ExperimentContent, flat: FlatModel) -> list[str]:
    """Return a sentence about a record whose times are in another unit than those of the model, if they are."""
    found = find_unit_misfits(flat, record.clock.unit) if _says_its_unit(record) else ()
    if not found:
        return []
    meant = found[0].unit
    names = list(dict.fromkeys(n for misfit in found for n in misfit.parameters))
    whose = f"the units of {', '.join(names[:6])}{', …' if len(names) > 6 else ''}" if names else "its units"
    return [
        f"Times are in {record.clock.unit} in the data, but {whose} are those of {flat.name} with times in {meant} "
        f"(`{found[0].text}`); nothing is converted, so values are not in those units, and none is shown. Give times "
        f"in {meant}, or declare units for times in {record.clock.unit}."
    ]


def names_without_unit(records: Sequence[ExperimentContent], flat: FlatModel) -> frozenset[str]:
    """Return parameters and variables whose declared units are not those of their values for the records' unit of
    time.
    """
    units = {r.clock.unit for r in records if _says_its_unit(r)}
    found = [misfit for unit in units for misfit in find_unit_misfits(flat, unit)]
    return frozenset(n for misfit in found for n in (*misfit.parameters, *misfit.variables))
