"""``copies(Leg(La=La), 3, angle=[0, 2.09, 4.19])``: several of the same, with values dealt out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.array_shapes import MAX_ENTRIES
from grisaille.model.classes import Model
from grisaille.model.connectors import Connector
from grisaille.model.declarations import Declaration
from grisaille.model.symbol_arrays import SymbolArray

if TYPE_CHECKING:
    pass


def copies(prototype: Any, count: int, **changes: Any) -> Any:
    """Return several of the same, with values dealt out.

    Sub-models and connectors come as a tuple and are addressed as ``"legs[0]"``; declarations as an array of symbols.

    prototype : a sub-model, connector or declaration
    count : how many
    changes : values by name, as when the prototype is made; a list gives each copy its own
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= MAX_ENTRIES:
        raise ModelError(f"copies: the number of copies must be a whole number from 1 to {MAX_ENTRIES}, got {count!r}.")
    dealt = [{name: _share(name, value, i, int(count)) for name, value in changes.items()} for i in range(int(count))]
    if isinstance(prototype, Model):
        return tuple(
            prototype.replace({k: v for k, v in c.items() if k != "start"}, start=c.get("start")) for c in dealt
        )
    if isinstance(prototype, Connector):
        if changes:
            raise ModelError(f"copies: a connector has no values to change, got {', '.join(changes)}.")
        return tuple(type(prototype)() for _ in dealt)
    if isinstance(prototype, Declaration):
        result = np.empty(len(dealt), dtype=object)
        result[:] = [prototype.changed(**change) for change in dealt]
        return result.view(SymbolArray)
    raise ModelError(
        f"copies: a sub-model, a connector or a declaration is needed, got {type(prototype).__name__}. "
        "Call the class first: copies(Leg(), 3)."
    )


def _share(name: str, value: Any, index: int, count: int) -> Any:
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    if len(value) != count:
        raise ModelError(
            f"copies: {name} has {len(value)} values for {count} copies; give one for each, or a single one."
        )
    return value[index]
