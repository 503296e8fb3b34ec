"""Spread an option of a vector over its elements: ``{"R": 0.05}``, ``{"R": [0.04, 0.05]}``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.model.flat import FlatModel
from grisaille.model.names import matching

if TYPE_CHECKING:
    pass


def names_to_estimate(flat: FlatModel) -> list[str]:
    """Return everything that can be unknown, element by element."""
    names = [*flat.parameters, *(f"start({v})" for v in flat.variables)]
    return [*names, *(f"scale({w})" for w in flat.disturbances), *(f"noise({y})" for y in flat.outputs)]


def elements_of(name: str, pool: Iterable[str]) -> list[str]:
    """Return the elements of a vector by its name: ``R[0]``, ``R[1]`` of ``R``, ``start(v[0])`` of ``start(v)``."""
    base, end = (name[:-1], r"\)") if name.endswith(")") else (name, "")
    pattern = re.compile(re.escape(base) + r"\[[\d,]+\]" + end)
    return [n for n in pool if pattern.fullmatch(n)]


def spread_over_elements(flat: FlatModel, given: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """Return values by name, those of vectors by element; other names stay as they are.

    what : the argument of the call: only in ``"bounds"`` is a pair of numbers one value
    """
    pool = names_to_estimate(flat)
    known, dealt = set(pool), dict[str, Any]()
    for name, value in (given or {}).items():
        base, at, where = str(getattr(name, "path", name)).partition("@")
        elements = [] if base in known else _meant(base, pool)
        if not elements:
            dealt[f"{base}{at}{where}"] = value
        for element, own in zip(elements, _spread(base, elements, value, what), strict=True):
            dealt.setdefault(f"{element}{at}{where}", own)  # an element that is named itself has its own value
    return dealt


def _meant(name: str, pool: list[str]) -> list[str]:
    return elements_of(name, pool) or ([n for n in matching(name, pool) if n in pool] if "[*]" in name else [])


def _spread(name: str, elements: list[str], value: Any, what: str) -> list[Any]:
    """Return one value for all elements, or one for each in their order."""
    if not isinstance(value, list | tuple | np.ndarray) or (what == "bounds" and _is_pair(value)):
        return [value] * len(elements)
    flat = list(value)
    for _ in range(elements[0].count(",") if elements else 0):
        flat = [item for row in flat for item in (row if isinstance(row, list | tuple | np.ndarray) else [row])]
    if elements and len(flat) != len(elements):
        raise EstimationError(
            f"{what}= gives {len(flat)} values for '{name}', which has {len(elements)} elements: give one value for "
            f"all or one for each."
        )
    return flat if elements else []


def _is_pair(value: Any) -> bool:
    return len(value) == 2 and all(v is None or np.isscalar(v) for v in value)
