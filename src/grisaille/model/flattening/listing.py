"""The ``equations`` of a class, from a list or a method: taken out of nested iterables, none forgotten, none twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.connectors import Connection
from grisaille.model.expression import Equation, Expression
from grisaille.model.recording import Recorder
from grisaille.model.symbol_arrays import SymbolArray
from grisaille.model.whens import Reset, When


def flatten_lists(owner: str, items: Any, position: str = "") -> Iterator[Any]:
    """Yield equations and connections out of nested lists, arrays and generators."""
    if isinstance(items, Equation | Connection | When):
        yield items
    elif isinstance(items, Reset):
        raise ModelError(
            f"{owner}.equations{position}: `{items}` belongs inside gr.when(condition, {items}), which says at which "
            "instant."
        )
    elif isinstance(items, Expression):
        raise ModelError(f"{owner}.equations{position}: `{items}` is a formula, not an equation; write `{items} == 0`.")
    elif isinstance(items, bool | np.bool_):
        raise ModelError(
            f"{owner}.equations{position} is {items}: a comparison of plain numbers or objects is not an equation. At "
            "least one side must contain a declared member."
        )
    elif isinstance(items, set | frozenset):
        raise ModelError(f"{owner}.equations{position} is a set, which has no order; write a list [...].")
    elif isinstance(items, str | dict) or not isinstance(items, Iterable):
        raise ModelError(
            f"{owner}.equations{position} is {items!r} ({type(items).__name__}); equations written with == and "
            "connections are expected."
        )
    else:
        for i, item in enumerate(np.ravel(items) if isinstance(items, SymbolArray) else items):
            yield from flatten_lists(owner, item, f"{position}[{i}]")


def list_equations(owner: str, items: Any) -> tuple[Any, ...]:
    """Return the equations and connections in a class body's list."""
    return tuple(flatten_lists(owner, items))


def list_initial(owner: str, items: Any) -> tuple[Equation, ...]:
    """Return the equations of the first instant in a class body's list."""
    if isinstance(items, Equation):
        items = [items]
    if not isinstance(items, list | tuple | np.ndarray):
        raise ModelError(
            f"{owner}.initial is {items!r} ({type(items).__name__}); it lists equations that hold at the first "
            "instant, initial = [gr.der(x) == 0]. Choose another name for anything else."
        )
    found = tuple(flatten_lists(owner, items))
    for item in found:
        if not isinstance(item, Equation):
            raise ModelError(f"{owner}.initial: `{item}` is a connection; only equations can hold at the start alone.")
    return found


def check_written(owner: str, written: Iterable[Any], listed: Iterable[Any]) -> None:
    """Refuse equations and connections that were written but listed nowhere."""
    items = list(listed)
    kept = {id(item) for item in (*items, *_actions(items))}
    everything = list(written)
    inside = {id(item) for item in _actions(everything)}  # of a `when` that is not listed, the `when` is named
    for item in everything:
        if id(item) not in kept and id(item) not in inside:
            kind = "equation" if isinstance(item, Equation) else "event" if isinstance(item, When) else "connection"
            raise ModelError(
                f"{owner}: the {kind} `{item}` ({item.source}) is written but not listed. Put it in the `equations` "
                "list, or `yield` it in the `equations` method."
            )


def _actions(items: Iterable[Any]) -> Iterator[Equation]:
    for item in items:
        if isinstance(item, When):
            yield from item.equations


def check_listed(owner: str, listed: list[Equation | When | Connection], recorder: Recorder) -> None:
    """Everything that was written is listed, and once."""
    check_written(owner, recorder.written, listed)
    seen: set[int] = set()
    for item in listed:
        if id(item) in seen:
            raise ModelError(f"{owner}: `{item}` ({item.source}) is listed twice in `equations`.")
        seen.add(id(item))


def missing_super(cls: type, listed: list[Equation | When | Connection], recorder: Recorder) -> list[str]:
    """Return a sentence for each ancestor whose equations the class replaced instead of extending."""
    kept = {id(item) for item in listed}
    hints = []
    for ancestor in cls.__mro__[1:]:
        own = ancestor.__dict__.get("equations")
        if own is None or ancestor.__module__ == "grisaille.model.classes" or ancestor in recorder.visited:
            continue
        left_out = not isinstance(own, tuple) or any(id(item) not in kept for item in own)
        if left_out and own != ():
            hints.append(
                f"{cls.__name__} replaces the equations of {ancestor.__name__} instead of extending them; begin its "
                "`equations` method with `yield from super().equations()`."
            )
    return hints
