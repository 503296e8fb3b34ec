"""Which estimators there are, and their options as a schema.

An estimator is a public frozen dataclass with a method ``estimate``; its fields are its options. Nothing is listed
here: an estimator or an option that is added to the package is known at once.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any, Literal, Union

import grisaille
from grisaille.estimation.estimator import Estimator


@cache
def estimators() -> dict[str, type]:
    """Return public estimators by name."""
    public = {n: getattr(grisaille, n) for n in dir(grisaille) if n[0].isupper()}
    return {n: c for n, c in Estimator.known.items() if public.get(n) is c}


def options_of(estimator: type) -> dict[str, dict[str, Any]]:
    """Return the schema of each option, with its default."""
    hints = typing.get_type_hints(estimator)
    return {
        field.name: {**_schema(hints[field.name]), **_default(field)}
        for field in dataclasses.fields(estimator)
        if field.init
    }


def is_path_option(estimator: str, option: str) -> bool:
    """Return whether an option names a file (``field(metadata={"path": True})``)."""
    fields = {f.name: f for f in dataclasses.fields(estimators()[estimator])}
    return option in fields and bool(fields[option].metadata.get("path"))


def _default(field: dataclasses.Field[Any]) -> dict[str, Any]:
    value = field.default
    return {"default": value} if isinstance(value, bool | int | float | str) else {}


_PLAIN: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
}


def _schema(hint: Any) -> dict[str, Any]:
    """Return the schema of a type; what has none in TOML is left to the estimator itself."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": [a for a in arguments if a is not None]}
    if origin in (Union, types.UnionType):
        kinds = [_schema(a) for a in arguments if a is not type(None)]
        if any(not kind for kind in kinds):
            return {}
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {}
