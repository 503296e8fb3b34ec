"""Declarations of a model as scalars under their full names.

``Real r[2, 3]`` becomes ``r[1,1]`` … ``r[2,3]``, a record ``c`` becomes ``c.re`` and ``c.im``. What each scalar turns
into (a parameter, a variable, a fixed value) is decided by whoever asks for the expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.modelica import tree
from grisaille.modelica.builtins import filled
from grisaille.modelica.evaluation import Evaluator
from grisaille.modelica.library import Library
from grisaille.modelica.limits import COMPONENT, spend
from grisaille.modelica.refusals import Refused
from grisaille.modelica.values import Record, Unfit, describe

UNUSED = frozenset({"quantity", "displayUnit", "unbounded", "uncertain", "distribution"})
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

    def __init__(self, library: Library, evaluator: Evaluator, known: set[str]) -> None:
        self.library, self.evaluator = library, evaluator
        self.known = known
        """Attributes whose values are wanted."""

    def expand(self, declared: tree.Declared, leaf: Callable[[Scalar], Any], *, with_value: bool) -> Any:
        """The declared component as a value whose scalars ``leaf`` has made."""
        value = self._evaluated(declared.value) if with_value and declared.value is not None else None
        return self._typed(declared, declared.name, declared.type, declared.sizes, declared.attributes, value, leaf)

    def _typed(
        self, declared: tree.Declared, name: str, kind: str, sizes: tuple[tree.Node, ...],
        attributes: Mapping[str, tree.Node], value: Any, leaf: Callable[[Scalar], Any],
    ) -> Any:  # fmt: skip
        base, more_sizes, inherited = self.library.resolved(kind, declared.at)
        attributes = {**inherited, **attributes}
        shape = self._shape(name, (*sizes, *more_sizes), value)
        if isinstance(value, np.ndarray) and value.shape[: len(shape)] != shape:
            raise Unfit(f"'{name}' has the shape {shape}, its value has the shape {value.shape}")
        made = self.library.classes.get(base)
        if made is not None and made.kind == "record":
            return self._entries(
                name, shape, value, lambda n, i, v: self._record(declared, n, made, attributes, v, leaf)
            )
        if made is not None and not made.literals and "ExternalObject" not in made.extends:
            raise Refused(declared.at, f"'{name}' is of the class '{base}', a {made.kind}: the model is not flat")
        strange = [k for k in attributes if k not in self.known | UNUSED and not k.startswith("__")]
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
        self, declared: tree.Declared, name: str, made: tree.Class, attributes: Mapping[str, tree.Node], value: Any,
        leaf: Callable[[Scalar], Any],
    ) -> Record:  # fmt: skip
        if value is not None and not isinstance(value, Record):
            raise Unfit(f"'{name}' is a record, its value is {describe(value)}")
        fields = {}
        for component in made.components:
            own = {k[len(component.name) + 1 :]: v for k, v in attributes.items() if k.startswith(component.name + ".")}
            given = value.get(component.name) if value is not None else None
            bound = attributes.get(component.name, component.value)
            if given is None and bound is not None:
                given = self._evaluated(bound)
            fields[component.name] = self._typed(
                declared, f"{name}.{component.name}", component.type, component.sizes,
                {**component.attributes, **own}, given, leaf,
            )  # fmt: skip
        return Record(made.name, fields)

    def _entries(
        self, name: str, shape: tuple[int, ...], value: Any, one: Callable[[str, tuple[int, ...], Any], Any]
    ) -> Any:
        if not shape:
            return one(name, (), value)
        made = filled(None, *shape)
        spend(COMPONENT * made.size)
        for index in np.ndindex(*shape):
            made[index] = one(f"{name}[{','.join(str(i + 1) for i in index)}]", index, _entry(value, index))
        return made

    def _shape(self, name: str, sizes: tuple[tree.Node, ...], value: Any) -> tuple[int, ...]:
        shape = []
        for k, size in enumerate(sizes):
            if isinstance(size, tree.Range) and size.first is None:
                if not isinstance(value, np.ndarray) or value.ndim <= k:
                    raise Unfit(f"the size of '{name}' follows from its value, which is missing")
                shape.append(value.shape[k])
            else:
                shape.append(self.evaluator.whole(size, {}, f"the size of '{name}'"))
        return tuple(shape)

    def _evaluated(self, node: tree.Node) -> Any:
        try:
            return self.evaluator.value(node, {})
        except Unfit as unfit:
            raise Refused(node.at, str(unfit)) from None


def _entry(value: Any, index: tuple[int, ...]) -> Any:
    """The entry of an array that belongs to a scalar; one value belongs to all."""
    if isinstance(value, np.ndarray) and index:
        return value[index] if value.ndim >= len(index) else value[index[-value.ndim :]]
    return value
