"""The namespace of a class body: names members as they are assigned, and refuses a name that is used twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.correlation import check_correlation
from grisaille.model.declarations import CorrelatedArray, Declaration
from grisaille.model.expression import Expression
from grisaille.model.names import Labelled, check_name, element_name
from grisaille.model.recording import RecordingNamespace
from grisaille.model.symbol_arrays import SymbolArray


class MemberNamespace(RecordingNamespace):
    """What ``__prepare__`` hands to a class body."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner
        self.loop_variables: set[str] = set()

    def __setitem__(self, name: str, value: Any) -> None:
        old = self.get(name)
        if _is_named(old) and old is not value:
            if not (_is_element(name, old) and _is_element(name, value)):
                raise ModelError(
                    f"{self.owner}: '{name}' is declared twice (first as `{_describe(old)}`); give the second one "
                    "another name. Loops that build formulas belong in an `equations` method."
                )
            self.loop_variables.add(name)
        if _is_named(value) and not _is_element(name, value):
            value = as_symbols(value)
            label(self.owner, name, value)
        super().__setitem__(name, value)


def _is_element(name: str, value: object) -> bool:
    """Return whether ``value`` already is an element of another vector or list, or a list of such components."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(_is_element(name, item) for item in value)
    known = value.label if isinstance(value, Declaration) else value._label if isinstance(value, Labelled) else ""
    return "[" in known and known.partition("[")[0] != name


def _is_named(value: object) -> bool:
    return isinstance(value, Labelled) or is_part_list(value) or is_symbol(value)


def is_part_list(value: object) -> bool:
    """Return a list of sub-models or connectors."""
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(item, Labelled) for item in value)


def is_symbol(value: object) -> bool:
    """Return an expression, or an array of expressions and numbers."""
    if not isinstance(value, np.ndarray) or value.dtype != object:
        return isinstance(value, Expression)
    items = list(value.flat)
    return any(isinstance(item, Expression) for item in items) and all(
        isinstance(item, Expression | int | float | np.number) for item in items
    )


def as_symbols(value: Any) -> Any:
    """Return plain arrays of expressions as arrays on which ``==`` gives equations."""
    return value.view(SymbolArray) if type(value) is np.ndarray else value


def label(owner: str, name: str, value: Any) -> None:
    """Give declarations their name and says what is wrong with them."""
    check_name(name, owner)
    if isinstance(value, np.ndarray):
        for index in np.ndindex(*value.shape):
            _label_one(owner, element_name(name, index), value[index])
        if isinstance(value, CorrelatedArray) and value.correlation is not None:
            check_correlation(f"{owner}.{name}", value.correlation, value.size)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _label_one(owner, f"{name}[{i}]", item)
    else:
        _label_one(owner, name, value)


def _label_one(owner: str, name: str, value: Any) -> None:
    if isinstance(value, Declaration) and not value.label:
        if value.used_for:
            raise ModelError(
                f"{owner}.{name}: this declaration has already replaced {value.used_for}; declare it in the class body "
                "before components use it, so that they are bound to it."
            )
        value.check(f"{owner}.{name}")
        value.label = name
    elif isinstance(value, Labelled) and not value._label:
        object.__setattr__(value, "_label", name)


def split_members(
    owner: str, namespace: dict[Any, Any], is_member: Callable[[Any], bool]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return members and the rest of a class body; also serves classes made by ``type(name, bases, dict)``."""
    members: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    loops = namespace.loop_variables if isinstance(namespace, MemberNamespace) else set()
    for name, value in namespace.items():
        alias = name in loops or (not isinstance(value, Expression) and _is_element(name, value))
        if is_member(value) and not alias:
            members[name] = as_symbols(value)
            label(owner, check_name(name, owner), members[name])
        else:
            rest[name] = value
    return members, rest


def _describe(value: object) -> str:
    return value.kind if isinstance(value, Declaration) else repr(value)
