"""Arrays and records whose scalars are declared one by one: ``x`` where the text declares ``x[1]`` and ``x[2]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grisaille.modelica.builtins import filled
from grisaille.modelica.values import Record, Unfit

ELEMENT = re.compile(r"(.+)\[(\d+(?:,\d+)*)\]")
"""The name of an entry: array, indices."""


def parts_of(names: Iterable[str]) -> dict[str, list[str]]:
    """The declared names directly below each name that is not declared itself: its elements, or its fields."""
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


def _order(name: str) -> tuple[Any, ...]:
    element = ELEMENT.fullmatch(name)
    return (element[1], *map(int, element[2].split(","))) if element else (name,)


def assembled(name: str, parts: list[str], value_of: Callable[[str], Any]) -> Any:
    """The array or record ``name``."""
    elements = [ELEMENT.fullmatch(part) for part in parts]
    if not all(elements):
        return Record(name, {part.rpartition(".")[2]: value_of(part) for part in parts if not ELEMENT.fullmatch(part)})
    indices = [tuple(int(i) for i in element[2].split(",")) for element in elements if element]
    shape = tuple(max(column) for column in zip(*indices, strict=True))
    if len({len(i) for i in indices}) > 1 or len(indices) != np.prod(shape):
        raise Unfit(f"the array '{name}' has gaps: {len(parts)} entries are declared")
    made = filled(None, *shape)
    for index, part in zip(indices, parts, strict=True):
        made[tuple(i - 1 for i in index)] = value_of(part)
    return made
