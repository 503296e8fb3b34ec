"""The arguments of a law by their paths: ``mean``, ``std``, and through laws inside laws ``of.mean``, ``of.std``.

An argument is a number, None where it is left open, or a formula of a model: an object whose ``is_formula`` is True.
What is measured is evaluated on *filled* laws, whose arguments are arrays with an entry for each sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.measured import Measured
    from grisaille.laws.values import Formula, Values


def is_formula(value: object) -> bool:
    """Return whether a value is a formula, whose number is known later."""
    return getattr(value, "is_formula", False) is True


def is_law(value: object) -> bool:
    """Return whether a value is a law that has arguments itself."""
    return hasattr(value, "log_density") and hasattr(value, "arguments")


def arguments_of(law: Measured) -> dict[str, Formula]:
    """Return the arguments by path; options that are words or switches are none."""
    found: dict[str, Any] = {}
    for field in fields(law):
        value = getattr(law, field.name)
        if is_law(value):
            found |= {f"{field.name}.{path}": v for path, v in value.arguments.items()}
        elif not isinstance(value, str | bool):
            found[field.name] = value
    return found


def fill_arguments(law: Measured, values: Mapping[str, Formula]) -> Any:
    """Return a copy of a law with values in place of arguments: nothing is checked but the paths."""
    refuse_unknown(law, values)
    inside: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        head, _, rest = path.partition(".")
        inside.setdefault(head, {})[rest] = value
    copied = object.__new__(type(law))
    for field in fields(law):
        old, given = getattr(law, field.name), inside.get(field.name)
        if given is not None:
            old = fill_arguments(old, given) if is_law(old) else _number(given[""])
        object.__setattr__(copied, field.name, old)
    return copied


def refuse_unknown(law: Measured, paths: Iterable[str]) -> None:
    """Refuse paths that name no argument."""
    known = law.arguments
    for path in paths:
        if path not in known:
            raise ModelError(f"{type(law).__name__} has no argument '{path}'; it has {', '.join(known) or 'none'}.")


def refuse_held(law: Measured, paths: Iterable[str]) -> None:
    """Refuse derivatives by what unknowns must not move."""
    for path in paths:
        if path in law.held_arguments:
            raise ModelError(
                f"{type(law).__name__}: the density has no derivative by '{path}', which says where values can lie. "
                f"Give it as a number or a column of the data, not as a formula of unknowns."
            )


def rows_of(law: Measured, rows: slice | np.ndarray, count: int) -> Any:
    """Return the law of some samples of ``count``: arguments that are arrays are taken at these rows."""
    arrays = {p: v for p, v in law.arguments.items() if np.ndim(v)}
    return law.filled({p: np.broadcast_to(v, (count,))[rows] for p, v in arrays.items()}) if arrays else law


def has_arrays(law: Measured) -> bool:
    """Return whether an argument is an array."""
    return any(np.ndim(v) for v in law.arguments.values())


def shape_of(law: Measured) -> tuple[int, ...]:
    """Return the shape that the arguments have together: (N,) of a law that is filled for N samples."""
    return np.broadcast_shapes(*(np.shape(v) for v in law.arguments.values()))


def is_filled(law: Measured) -> bool:
    """Return whether an argument has been filled in by an array, which may be that of one number."""
    return any(isinstance(v, np.ndarray) for v in law.arguments.values())


def for_each(
    law: Measured, low: Values, high: Values, half: Values | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return ends and half widths of intervals, if given, with an entry for each sample of a law."""
    shape = np.broadcast_shapes(shape_of(law), np.shape(low), np.shape(high))
    low, high = (np.broadcast_to(np.asarray(v, dtype=float), shape) for v in (low, high))
    return low, high, None if half is None else np.broadcast_to(np.asarray(half, dtype=float), shape)


def broadcast_together(law: Measured, value: ArrayLike) -> tuple[Any, np.ndarray, tuple[int, ...]]:
    """Return a law and values, flat and of one length, and the shape that they have together."""
    value = np.asarray(value, dtype=float)
    shape = np.broadcast_shapes(value.shape, shape_of(law))
    arrays = {p: np.ravel(np.broadcast_to(v, shape)) for p, v in law.arguments.items() if np.ndim(v)}
    return law.filled(arrays) if arrays else law, np.ravel(np.broadcast_to(value, shape)), shape


def _number(value: Any) -> Any:
    return value if value is None or is_formula(value) else np.asarray(value, dtype=float)
