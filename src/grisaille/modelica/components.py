"""Declarations of a model as scalars under their full names.

``Real r[2, 3]`` becomes ``r[1,1]`` … ``r[2,3]``, a record ``c`` becomes ``c.re`` and ``c.im``. What each scalar turns
into (a parameter, a variable, a fixed value) is decided by whoever asks for the expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.modelica import tree
from grisaille.modelica.builtins import filled
from grisaille.modelica.evaluation import Evaluator
from grisaille.modelica.library import FunctionLibrary
from grisaille.modelica.limits import COMPONENT, spend
from grisaille.modelica.refusals import Refused
from grisaille.modelica.values import RecordValue, Unfit, Value, describe

_SUBSCRIPTS = re.compile(r"\[[^\]]*\]")
UNUSED_ATTRIBUTES = frozenset({"quantity", "displayUnit", "unbounded", "uncertain", "distribution"})
"""Attributes of Modelica that change nothing here."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar of a declaration."""

    name: str
    base: str
    """``"Real"``, …, the name of an enumeration, or of a class of external objects."""
    declared: tree.Declared
    attributes: Mapping[str, Any]
    """Values of ``start``, ``unit``, … for this scalar."""
    value: Any
    """Of a parameter or constant; None where nothing is given."""


class Expansion:
    """Expands declarations with the values that an evaluator gives."""

    def __init__(self, library: FunctionLibrary, evaluator: Evaluator, known: set[str]) -> None:
        self.library, self.evaluator = library, evaluator
        self.known = known
        """Attributes whose values are wanted."""
        self.settled: Callable[[Scalar], Any] | None = None
        """What parameters and constants in records of variables become."""
        self.given: set[str] = set()
        """Records and fields that an equation or a statement gives: what the record says of them does not count."""
        self.bindings: list[tree.Equal] = []
        """Values of fields of variables, as equations."""
        self._binds = False

    def expand(self, declared: tree.Declared, leaf: Callable[[Scalar], Any], *, with_value: bool) -> Value:
        """Return the declared component as a value whose scalars ``leaf`` has made."""
        wanted = with_value or is_sized_by_value(declared)
        value = self._evaluated(declared.value) if wanted and declared.value is not None else None
        self._binds = not with_value and declared.value is None
        return self._typed(declared, declared.name, declared.type, declared.sizes, declared.attributes, value, leaf)

    def _typed(
        self, declared: tree.Declared, name: str, kind: str, sizes: tuple[tree.Node, ...],
        attributes: Mapping[str, tree.Node], value: Value | None, leaf: Callable[[Scalar], Any],
    ) -> Value:  # fmt: skip
        base, more_sizes, inherited = self.library.resolved(kind, declared.at)
        attributes = {**inherited, **attributes}
        shape = self._shape(name, (*sizes, *more_sizes), value)
        if isinstance(value, np.ndarray) and value.shape[: len(shape)] != shape:
            raise Unfit(f"'{name}' has the shape {shape}, its value has the shape {value.shape}")
        made = self.library.classes.get(base)
        if made is not None and made.kind == "record":
            return self._entries(
                name, shape, value, lambda n, i, v: self._record(declared, n, i, made, attributes, v, leaf)
            )
        if made is not None and not made.literals and "ExternalObject" not in made.extends:
            raise Refused(declared.at, f"'{name}' is of the class '{base}', a {made.kind}: the model is not flat")
        strange = [k for k in attributes if k not in self.known | UNUSED_ATTRIBUTES and not k.startswith("__")]
        if strange:
            raise Refused(declared.at, f"'{name}' has no attribute '{strange[0]}'")
        known = {key: self._evaluated(node) for key, node in attributes.items() if key in self.known}
        return self._entries(
            name,
            shape,
            value,
            lambda n, i, v: leaf(Scalar(n, base, declared, {k: _entry(a, i) for k, a in known.items()}, v)),
        )

    def _record(
        self, declared: tree.Declared, name: str, index: tuple[int, ...], made: tree.Class,
        attributes: Mapping[str, tree.Node], value: Value | None, leaf: Callable[[Scalar], Any],
    ) -> RecordValue:  # fmt: skip
        if value is not None and not isinstance(value, RecordValue):
            raise Unfit(f"'{name}' is a record, its value is {describe(value)}")
        fields: dict[str, Any] = {}
        for component in made.components:
            own = {k[len(component.name) + 1 :]: v for k, v in attributes.items() if k.startswith(component.name + ".")}
            given = value.get(component.name) if value is not None else None
            changed, binds, field_leaf = attributes.get(component.name), self._binds, leaf
            constant = bool(component.prefixes & {"parameter", "constant"})
            if binds and not constant:
                self._bind(f"{name}.{component.name}", index, changed, component, made, name)
                self._binds = changed is None and component.value is None
            elif given is None and changed is not None:
                given = _entry(self._evaluated(changed), index)
            elif given is None and component.value is not None:
                given = self._evaluated(component.value, fields)
            if binds and constant and self.settled is not None:
                field_leaf, self._binds = self.settled, False
            fields[component.name] = self._typed(
                declared, f"{name}.{component.name}", component.type, component.sizes,
                {**component.attributes, **own}, given, field_leaf,
            )  # fmt: skip
            self._binds = binds
        return RecordValue(made.name, fields)

    def _bind(
        self, field: str, index: tuple[int, ...], changed: tree.Node | None, component: tree.Declared,
        made: tree.Class, record: str,
    ) -> None:  # fmt: skip
        """A field's value as an equation: the one that is written at the variable, else the one of the record."""
        node = changed
        if node is not None and index and isinstance(node, tree.Braces | tree.Comprehension):
            places = tuple(tree.Literal(node.at, i + 1) for i in index)
            node = tree.Subscripted(node.at, node, (tree.Part("", places),))
        given = {_SUBSCRIPTS.sub("", record), _SUBSCRIPTS.sub("", field)} & self.given
        if node is None and component.value is not None and not given:
            node = _within(component.value, record, {c.name for c in made.components})
        if node is not None:
            self.bindings.append(tree.Equal(node.at, tree.Reference(node.at, (tree.Part(field),)), node))

    def _entries(
        self,
        name: str,
        shape: tuple[int, ...],
        value: Value | None,
        one: Callable[[str, tuple[int, ...], Value | None], Value],
    ) -> Value:
        if not shape:
            return one(name, (), value)
        made = filled(None, *shape)
        spend(COMPONENT * made.size)
        for index in np.ndindex(*shape):
            made[index] = one(f"{name}[{','.join(str(i + 1) for i in index)}]", index, _entry(value, index))
        return made

    def _shape(self, name: str, sizes: tuple[tree.Node, ...], value: Value | None) -> tuple[int, ...]:
        shape = []
        for k, size in enumerate(sizes):
            if isinstance(size, tree.Range) and size.first is None:
                if not isinstance(value, np.ndarray) or value.ndim <= k:
                    raise Unfit(f"the size of '{name}' follows from its value, which is missing")
                shape.append(value.shape[k])
            else:
                shape.append(self.evaluator.whole(size, {}, f"the size of '{name}'"))
        return tuple(shape)

    def _evaluated(self, node: tree.Node, local: Mapping[str, Value] | None = None) -> Value | None:
        try:
            return self.evaluator.value(node, dict(local or {}))
        except Unfit as unfit:
            raise Refused(node.at, str(unfit)) from None


def is_sized_by_value(declared: tree.Declared) -> bool:
    """Return whether ``:`` stands for a size."""
    return any(isinstance(size, tree.Range) and size.first is None for size in declared.sizes)


def _within(node: Any, record: str, fields: set[str]) -> Any:
    """Return a formula of a record, its own fields under their full names."""
    if isinstance(node, tree.Reference) and node.parts[0].name in fields:
        first, *rest = node.parts
        inside = (tree.Part(f"{record}.{first.name}", first.subscripts), *rest)
        return tree.Reference(node.at, tuple(_rebuilt_part(p, record, fields) for p in inside))
    return tree.rebuild(node, lambda inner: _within(inner, record, fields))


def _rebuilt_part(part: tree.Part, record: str, fields: set[str]) -> tree.Part:
    return tree.Part(part.name, tuple(_within(s, record, fields) for s in part.subscripts))


def _entry(value: Value | None, index: tuple[int, ...]) -> Value | None:
    """Return the entry of an array that belongs to a scalar; one value belongs to all."""
    if isinstance(value, np.ndarray) and index:
        return value[index] if value.ndim >= len(index) else value[index[-value.ndim :]]
    return value
