"""``model.r.p.v``: walking into a model by attributes, using nothing but its content."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from grisaille.cache import Cache, IdentityKey
from grisaille.errors import ModelError
from grisaille.model.content import ConnectorContent, Content, element_names
from grisaille.model.expression import Reference
from grisaille.model.names import UnknownMember, join, suggestion
from grisaille.model.symbol_arrays import SymbolArray

if TYPE_CHECKING:
    from grisaille.model.classes import Model
    from grisaille.model.connectors import Connector


def look_up(root: Connector | Model | View, content: Content, prefix: str, name: str) -> Any:
    """Return the member ``name`` below ``prefix``: a reference, an array of them, or a view of a component or
    connector.
    """
    path = join(prefix, name)
    kind = content.kind(path)
    if kind == "array":
        return _kept(root, content, path, lambda: _array(root, content, path)).copy()
    if kind == "list":
        count = content.lists[path]
        return _kept(
            root, content, path, lambda: tuple(look_up(root, content, prefix, f"{name}[{i}]") for i in range(count))
        )
    if kind == "component":
        return ComponentView(root, content, path)
    if kind == "connector":
        return ConnectorView(root, content, path)
    if kind:
        return Reference(root, path, kind)
    owner = f"{content.name}.{prefix}" if prefix else content.name
    raise UnknownMember(f"{owner} has no member '{name}'. {suggestion(name, members(content, prefix))}")


def members(content: Content, prefix: str) -> list[str]:
    """Return the names directly below ``prefix``, without elements of arrays and lists."""
    start = f"{prefix}." if prefix else ""
    inside = (name[len(start) :] for name in content.names() if name.startswith(start))
    return [name for name in inside if "." not in name and "[" not in name]


def _kept(root: Connector | Model | View, content: Content, path: str, make: Callable[[], Any]) -> Any:
    """Make arrays and lists once: ``self.T[k]`` in a loop over k asks for all of ``T`` each time."""
    known: Cache[Any] | None = vars(root).get("_cache")
    if known is None:
        return make()
    return known.get(("view", path), lambda: Cache[Any](1)).get(IdentityKey(content), make)


def _array(root: Connector | Model | View, content: Content, path: str) -> SymbolArray:
    shape = content.arrays[path]
    names = element_names(path, shape)
    result = np.empty(len(names), dtype=object)
    result[:] = [Reference(root, name, content.kind(name)) for name in names]
    return result.reshape(shape).view(SymbolArray)


class View:
    """A part of a model that is not a single quantity; abstract."""

    __slots__ = ("_content", "_path", "_root")

    def __init__(self, root: Connector | Model | View, content: Content, path: str) -> None:
        for slot, value in (("_root", root), ("_content", content), ("_path", path)):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return look_up(self._root, self._content, self._path, name)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ModelError(
            f"Models do not change: use model.replace({{'{self._path}.{name}': …}}) to get a changed copy."
        )

    def __dir__(self) -> list[str]:
        return members(self._content, self._path)

    def __repr__(self) -> str:
        label = getattr(self._root, "_label", "")
        return f"{label}.{self._path}" if label else str(self._path)


class ComponentView(View):
    """A sub-model inside a model."""

    __slots__ = ()


class ConnectorView(View):
    """A connector of a model or of one of its components."""

    __slots__ = ()

    @property
    def _connector(self) -> ConnectorContent:
        content: Content = self._content
        return content.connectors[self._path]

    def __eq__(self, other: Any) -> Any:
        refuse_equation(self, other)

    __hash__ = object.__hash__


def refuse_equation(left: Connector | ConnectorView, right: Connector | ConnectorView) -> NoReturn:
    """Connectors are connected, not equated."""
    raise ModelError(
        f"`{left} == {right}`: == between connectors is refused because flows must be summed, not equated. Write "
        f"gr.connect({left}, {right}), or equate single fields of the connectors."
    )
