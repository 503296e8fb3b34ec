"""Arrays and records whose scalars are declared one by one: ``x`` where the text declares ``x[1]`` and ``x[2]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grisaille.modelica.builtins import filled
from grisaille.modelica.values import RecordValue, Unfit, Value

ELEMENT = re.compile(r"(.+)\[(\d+(?:,\d+)*)\]")
"""The name of an entry: array, indices."""


def parts_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the declared names directly below each name that is not declared itself: its elements, or its fields."""
    found: dict[str, dict[str, None]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        element = ELEMENT.fullmatch(name)
        above = element[1] if element else name.rpartition(".")[0]
        if above:
            if above not in found:
                found[above] = {}
                waiting.append(above)
            found[above][name] = None
    return {name: sorted(below, key=_order) for name, below in found.items()}


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+(?:,\d+)*)\]")


def steps_below(whole: str, name: str) -> list[str | tuple[int, ...]]:
    """Return the fields and indices that lead from ``a`` to ``a[1,2].b``; empty where they cannot be told apart."""
    rest, at = name[len(whole) :], 0
    found: list[str | tuple[int, ...]] = []
    while step := _STEP.match(rest, at):
        found.append(step[1] or tuple(map(int, step[2].split(","))))
        at = step.end()
    return found if at == len(rest) else []


def entry_of(value: Any, steps: list[str | tuple[int, ...]]) -> Any:
    """Return what fields and indices, which count from one, lead to; None where there is nothing."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, RecordValue) else None
        else:
            shape = value.shape if isinstance(value, np.ndarray) else ()
            inside = len(step) <= len(shape) and all(1 <= i <= n for i, n in zip(step, shape, strict=False))
            value = value[tuple(i - 1 for i in step)] if inside else None
    return value


def mapped(name: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return an array or a record with its scalars changed: ``change(name, value)``."""
    if isinstance(value, RecordValue):
        return RecordValue(value.kind, {n: mapped(f"{name}.{n}", v, change) for n, v in value.items()})
    if not isinstance(value, np.ndarray):
        return change(name, value)
    made = filled(None, *value.shape)
    for index in np.ndindex(*value.shape):
        made[index] = mapped(f"{name}[{','.join(str(i + 1) for i in index)}]", value[index], change)
    return made


def _order(name: str) -> tuple[Value, ...]:
    element = ELEMENT.fullmatch(name)
    return (element[1], *map(int, element[2].split(","))) if element else (name,)


def assembled(name: str, parts: list[str], value_of: Callable[[str], Value]) -> Value:
    """Return the array or record ``name``."""
    elements = [ELEMENT.fullmatch(part) for part in parts]
    if not all(elements):
        return RecordValue(
            name, {part.rpartition(".")[2]: value_of(part) for part in parts if not ELEMENT.fullmatch(part)}
        )
    indices = [tuple(int(i) for i in element[2].split(",")) for element in elements if element]
    shape = tuple(max(column) for column in zip(*indices, strict=True))
    if len({len(i) for i in indices}) > 1 or len(indices) != np.prod(shape):
        raise Unfit(f"the array '{name}' has gaps: {len(parts)} entries are declared")
    made = filled(None, *shape)
    for index, part in zip(indices, parts, strict=True):
        made[tuple(i - 1 for i in index)] = value_of(part)
    return made
