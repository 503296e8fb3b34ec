"""Replacing parts of formulas: names by full names, names of formulas by the formulas themselves."""

from __future__ import annotations

from collections.abc import Callable

from grisaille.model.expression import Call, Expression


class Rewriter:
    """Replaces nodes below expressions, each once; what does not change stays the same object.

    ``replace`` gives the new node or ``None`` to keep the old one (with rewritten arguments).
    """

    def __init__(self, replace: Callable[[Expression], Expression | None]) -> None:
        self._replace = replace
        self._done: dict[int, Expression] = {}
        self._alive: list[Expression] = []  # ids stay unique while the nodes live

    def __call__(self, root: Expression) -> Expression:
        done = self._done
        if id(root) not in done:
            self._alive.append(root)
            stack = [(root, False)]
            while stack:
                node, expanded = stack.pop()
                if id(node) in done:  # with everything below it
                    continue
                if expanded or not isinstance(node, Call):
                    done[id(node)] = self._rewrite(node)
                else:
                    stack.append((node, True))
                    stack.extend((a, False) for a in reversed(node.arguments))
        return done[id(root)]

    def _rewrite(self, node: Expression) -> Expression:
        new = self._replace(node)
        if new is not None:
            return new
        if not isinstance(node, Call):
            return node
        arguments = tuple(self._done[id(a)] for a in node.arguments)
        if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
            return node
        return node.rebuilt(arguments)
