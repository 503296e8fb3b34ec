"""Functions that the text promises to be smooth: their conditions choose between formulas that meet, and nothing jumps.

``annotation(smoothOrder = 1)`` says that a function has a continuous derivative. Conditions written in it are marked
(``BEND_MARK``), so that no event is looked for where they change; those of its arguments stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grisaille.model.expression import BEND_MARK, LARGER, SMALLER, SMOOTH_MARK, Call, Condition, Expression
from grisaille.modelica import tree
from grisaille.modelica.values import COMPARED, RecordValue, Value, bending

_MEDIA = ("Modelica.Media.", "IF97.", "ReferenceAir.", "MoistAir.")
_CONTINUOUS = ("Modelica.Electrical.Spice3.Internal.", *_MEDIA)
"""In the names of functions of the Standard Library that do not promise it: devices of SPICE, properties of media."""


def is_smooth(made: tree.Class) -> bool:
    """Return whether a function has no jumps."""
    order = made.annotation.get("smoothOrder")
    return (isinstance(order, int | float) and order >= 1) or any(part in made.name for part in _CONTINUOUS)


def mark_conditions(made: tree.Class, result: Value, arguments: Iterable[Value]) -> Value:
    """Return the results of a smooth function with its own conditions marked.

    Properties of media have slopes that jump at phase boundaries alone, and are differentiated wherever a mass or an
    energy is a state: events at all their regions would cost far more than the steps that meet such a boundary.
    """
    marking = _Marking(arguments, SMOOTH_MARK if any(part in made.name for part in _MEDIA) else BEND_MARK)
    return marking.value(result)


_EXTREMES = {"maximum": ("ge", LARGER), "minimum": ("le", SMALLER)}
"""Their derivatives would have relations."""


class _Marking:
    def __init__(self, arguments: Iterable[Value], kind: str) -> None:
        self._kind = kind
        self._outside = {id(leaf): leaf for argument in arguments for leaf in _leaves(argument)}
        self._done: dict[int, Expression] = {}

    def value(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(self.value(item) for item in value)
        if isinstance(value, RecordValue):
            return RecordValue(value.kind, {name: self.value(item) for name, item in value.items()})
        if isinstance(value, np.ndarray):
            made = np.empty(value.shape, dtype=object)
            for index in np.ndindex(*value.shape):
                made[index] = self.value(value[index])
            return made
        return self._expression(value) if isinstance(value, Expression) else value

    def _expression(self, root: Expression) -> Expression:
        done, stack = self._done, [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            if id(node) in self._outside or not isinstance(node, Call):
                done[id(node)] = node
            elif expanded:
                done[id(node)] = self._marked(node, tuple(done[id(a)] for a in node.arguments))
            else:
                stack.append((node, True))
                stack.extend((a, False) for a in node.arguments)
        return done[id(root)]

    def _marked(self, node: Call, arguments: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Condition) and node.operation in COMPARED.values():
            return bending(node.rebuilt(arguments), self._kind)
        if self._kind == SMOOTH_MARK and node.operation in _EXTREMES:
            relation, kind = _EXTREMES[node.operation]
            return Call("where", (Condition(relation, arguments, SMOOTH_MARK), *arguments), kind)
        if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
            return node
        return node.rebuilt(arguments)


def _leaves(value: Value) -> Iterable[Expression]:
    if isinstance(value, np.ndarray):
        for item in value.flat:
            yield from _leaves(item)
    elif isinstance(value, RecordValue):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, Expression):
        yield value
