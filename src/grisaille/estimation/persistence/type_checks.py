"""Whether what was read from a file is of the kinds that classes declare for it.

Digests tell what was damaged. Older files have none for their texts, and whoever writes a file can write its digest:
what is of a wrong kind there is refused when it is read, not where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

RECORD_TYPES: Mapping[str, Any] = {
    "why": dict[str, str],
    "notes": list[str],
    "failures": list[str],
    "trace_columns": list[str],
    "discretisation": list[float],
    "steps": list[dict[str, Any]],
    "experiment_fingerprints": list[str],
    "caution": str,
}
"""Of the texts of a file, where no class says it."""
MAX_INTEGER = 2**63 - 1
"""Whole numbers beyond it are none that arrays hold."""
MODEL_MODULES = ("grisaille.model.content", "grisaille.model.flat")
"""Whose dataclasses are looked into."""


def check_record(record: Mapping[str, Any]) -> None:
    """Raise where an entry of a record is of another kind."""
    for name, kind in RECORD_TYPES.items():
        if name in record and not is_of_type(record[name], kind):
            raise TypeError(f"{name} is {_short(record[name])}")


def check_fields(value: Any, *but: str) -> None:
    """Raise where a field of a dataclass, or of one inside it, is of another kind than it declares."""
    cls: Any = type(value)
    for name, kind in _kinds(cls).items():
        found = getattr(value, name)
        if name not in but and not is_of_type(found, kind):
            raise TypeError(f"{type(value).__name__}.{name} is {_short(found)}")


def is_of_type(value: object, kind: object) -> bool:
    """Return whether a value is of a kind as annotations write it; True where that cannot be decided."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(is_of_type(value, one) for one in inner)
    if origin is Literal:
        return any(value is one or (isinstance(value, str) and value == one) for one in inner)
    if origin in (tuple, list):
        if not isinstance(value, tuple | list):
            return False
        if origin is tuple and inner[-1] is not Ellipsis:
            return len(value) == len(inner) and all(map(is_of_type, value, inner))
        return all(is_of_type(item, inner[0]) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            is_of_type(k, inner[0]) and is_of_type(v, inner[1]) for k, v in value.items()
        )
    if kind in (None, NoneType):
        return value is None
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind in (int, float):
        is_number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        return is_number and not (isinstance(value, int) and abs(value) > MAX_INTEGER)
    if kind is Any or not isinstance(kind, type):
        return True
    if isinstance(value, kind) and type(value).__module__ in MODEL_MODULES:
        check_fields(value)
    return isinstance(value, kind)


@cache
def _kinds(cls: Any) -> dict[str, Any]:
    """Return kinds of the fields of a dataclass, as far as its module knows them."""
    found = {}
    for one in fields(cls):
        home = next((c for c in cls.__mro__ if one.name in vars(c).get("__annotations__", {})), cls)
        try:
            found[one.name] = (
                eval(one.type, vars(sys.modules[home.__module__])) if isinstance(one.type, str) else one.type
            )
        except (NameError, TypeError, AttributeError):
            continue  # imported for annotations alone
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
