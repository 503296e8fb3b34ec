"""Keys of options (texts, members of the model, whole vectors and ``*``) as full names of scalars.

``{"T": 300.0}`` gives every element of the vector ``T`` its value, ``{"T": [300.0, 310.0]}`` each its own,
``{"legs[*].m": 2.0}`` all that match, ``{model.k: 5.0}`` the member itself. Names that no model has are handed on as
they are: whoever knows which ones are allowed refuses them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError, ModelError
from grisaille.model.content import Content, element_names
from grisaille.model.expression import Expression, Name, Reference
from grisaille.model.flattening.scope import Scope
from grisaille.model.names import matching

if TYPE_CHECKING:
    from grisaille.model.classes import Model

Split = Callable[[str, Any, tuple[int, ...]], list[Any]]


def by_name(model: Model, what: str, given: Any, split: Split) -> dict[str, Any]:
    """Return ``given`` with one entry per scalar; ``split`` deals the value of a vector to its elements."""
    if given is None:
        return {}
    if not hasattr(given, "items"):
        raise DataError(f"{what}= takes a dict such as {{'name': 1.0}}, got {given!r} ({type(given).__name__}).")
    found: dict[str, Any] = {}
    for key, value in given.items():
        for name, item in _scalars(model, what, key, value, split):
            if name in found:
                raise DataError(f"{what}= gives '{name}' more than once.")
            found[name] = item
    return found


def _scalars(model: Model, what: str, key: str, value: Any, split: Split) -> Iterator[tuple[str, Any]]:
    content = model._content
    text = name_of(model, what, key)
    for name in matching(text, content.names()) or [text]:
        if name in content.arrays:
            shape = content.arrays[name]
            yield from zip(element_names(name, shape), split(f"{what}= for '{name}'", value, shape), strict=True)
        elif "*" not in text or content.kind(name) not in ("array", "list", "component", "connector"):
            yield name, value


def spread_over_elements(where: str, value: np.ndarray, shape: tuple[int, ...]) -> list[float]:
    """Return one value for all elements of a vector, or one for each."""
    given = np.array(value, dtype=object)
    if given.shape not in ((), shape):
        raise DataError(f"{where} has shape {given.shape}, the vector has shape {shape}; give one value, or one each.")
    return list(np.broadcast_to(given, shape).flat)


def names_of(model: Model, what: str, wanted: Any) -> list[str]:
    """Return names and members in a list; vectors as their elements, also inside ``start(…)``."""
    if wanted is None:
        return []
    if isinstance(wanted, str) or not isinstance(wanted, Iterable) or isinstance(wanted, Expression):
        shown = repr(wanted) if isinstance(wanted, str) else str(wanted)
        raise ModelError(f"{what}= takes a list of names: [{shown}].")
    return [name for item in wanted for name in _elements(model, what, item)]


def _elements(model: Model, what: str, item: Any) -> list[str]:
    if isinstance(item, np.ndarray):
        return [name_of(model, what, entry) for entry in item.flat]
    text = name_of(model, what, item)
    inner = text[6:-1] if text.startswith("start(") and text.endswith(")") else text
    shape = model._content.arrays.get(inner)
    return [text] if shape is None else [text.replace(inner, name) for name in element_names(inner, shape)]


def name_of(model: Model, what: str, key: Any) -> str:
    """Return the full name of a text or a member."""
    if isinstance(key, str):
        return _as_written(model._content, key)
    if isinstance(key, Expression):
        scope = Scope(type(model).__name__, type(model)._layers(), model)
        own = key.path if isinstance(key, Name) else scope.name_of(key)
        return _related(model, what, key) if own is None else own
    raise ModelError(f"{what}= names {key!r}; names are texts such as 'r.R', or members such as model.r.R.")


def _as_written(content: Content, text: str) -> str:
    """Return a text with look-alike letters folded (µ and μ), as Python does in identifiers, where only that finds the
    name.
    """
    return text if text.isascii() or content.kind(text) else unicodedata.normalize("NFKC", text)


def _related(model: Model, what: str, key: Expression) -> str:
    """Return the name of a member of another model of the same class, such as the one this model is a changed copy
    of.
    """
    content = getattr(key.root, "_content", None) if isinstance(key, Reference) else None
    if isinstance(key, Reference) and content is not None and content.name == model._content.name:
        return key.path
    raise ModelError(
        f"{what}= names `{key}`, which is not a member of {model._content.name}: use a member of the model itself "
        f"(model.name), or its name as a text."
    )
