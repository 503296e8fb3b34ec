"""``size=``: one value for all elements of a vector, or one for each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike
    from grisaille.model.given import Size

_DEALT = {"value", "start", "default", "definition", "noise", "spectrum", "scale", "bounds", "nominal", "prior"}
"""Fields that may hold a list; texts and flags are the same for all."""


MAX_ENTRIES = 1_000_000
"""Entries of a vector, or copies of a component."""


def shape_of(owner: str, value: Any) -> tuple[int, ...]:
    """Return the shape of a list or an array, whose rows must be of one length."""
    try:
        return np.shape(value)
    except ValueError:
        raise ModelError(f"{owner}: the rows of {value!r} have different lengths.") from None


def read_shape(owner: str, size: Size) -> tuple[int, ...]:
    shape = size if isinstance(size, tuple) else (size,)
    if not shape or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise ModelError(f"{owner}: size must be a whole number or a tuple of them, got {size!r}.")
    if math.prod(map(int, shape)) > MAX_ENTRIES:
        raise ModelError(f"{owner}: size is {size!r}; at most {MAX_ENTRIES} entries are possible.")
    return tuple(int(n) for n in shape)


def spread(owner: str, field: str, value: FormulaLike | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return ``value`` as an array of the given shape."""
    given = np.array(value, dtype=object) if field in _DEALT and isinstance(value, list | tuple | np.ndarray) else None
    if field == "bounds" and given is not None and given.shape == (2,):
        given = None  # one pair for all
    if given is None:
        boxed = np.empty((), dtype=object)
        boxed[()] = value
        return np.broadcast_to(boxed, shape)
    if given.shape[: len(shape)] != shape:
        raise ModelError(
            f"{owner} of size {shape if len(shape) > 1 else shape[0]}: {field} has shape {given.shape}; give one "
            "value for all or one for each element."
        )
    if given.shape == shape:
        return given
    rows = np.empty(shape, dtype=object)  # pairs of bounds, one for each element
    for index in np.ndindex(*shape):
        rows[index] = tuple(given[index])
    return rows
