"""Which object goes by which name: members are recognised by identity.

The scope of a class knows which object was assigned to which name in the class or its ancestors, so formulas of a
parent keep working when a subclass replaces a member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.declarations import Declaration
from grisaille.model.expression import Call, Expression, Name, Reference
from grisaille.model.names import element_name
from grisaille.model.rewriting import Rewriter
from grisaille.model.views import ConnectorView

if TYPE_CHECKING:
    from grisaille.model.classes import Model
    from grisaille.model.given import End


class Scope:
    """Which object goes by which name inside one class."""

    def __init__(self, owner: str, layers: Iterable[Mapping[str, Any]], self_object: Any = None) -> None:
        self.owner = owner
        self.self_object = self_object
        self.members: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        for layer in layers:
            for name, member in layer.items():
                self.members[name] = member
                self._enter(name, member)
        self.resolve = Rewriter(self.find)

    def name_of(self, thing: End | Model) -> str | None:
        """Return the full name of a member, of something below it, or ``None`` when it belongs to another model."""
        if isinstance(thing, Reference | ConnectorView):
            root, path = (thing.root, thing.path) if isinstance(thing, Reference) else (thing._root, thing._path)
            if root is self.self_object:
                return path
            base = self._names.get(id(root))
            return None if base is None else f"{base}.{path}"
        return self._names.get(id(thing))

    def find(self, node: Expression) -> Expression | None:
        name = self.name_of(node)
        return None if name is None else Name(name)

    def open(self, expression: Expression) -> Expression:
        """Return the definition of a named formula: resolved inside, not replaced by its own name."""
        if isinstance(expression, Call):
            return expression.rebuilt(tuple(self.resolve(a) for a in expression.arguments))
        return self.resolve(expression)

    def below(self, prefix: str) -> Rewriter:
        """Return a function that puts formulas of a component below its name and resolves names of this scope."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Name):
                return node if node.path == "time" else Name(f"{prefix}.{node.path}")
            return self.find(node)

        return Rewriter(change)

    def _enter(self, name: str, member: Any) -> None:
        if isinstance(member, np.ndarray):
            known = any(id(item) in self._names for item in member.flat)
            for index in np.ndindex(*member.shape):
                if isinstance(member[index], Call) or (isinstance(member[index], Declaration) and not known):
                    self._names.setdefault(id(member[index]), element_name(name, index))
        elif isinstance(member, list | tuple):
            for i, item in enumerate(member):
                self._enter(f"{name}[{i}]", item)
        else:
            self._enter_one(name, member)

    def _enter_one(self, name: str, member: Any) -> None:
        old = self._names.get(id(member))
        if old is None:
            self._names[id(member)] = name
        elif old != name and not (isinstance(member, Expression) and "[" in old):
            raise ModelError(
                f"{self.owner}: '{old}' and '{name}' are the same object; declare each one on its own "
                f"(`{old}, {name} = …, …` with two calls), or use gr.copies."
            )
