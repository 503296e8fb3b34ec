"""Loops that an exporter has written out, put together again where a ``break`` needs them."""

from __future__ import annotations

import re

from grisaille.modelica import tree
from grisaille.modelica.refusals import Refused


def rewrite_breaks(section: list[tree.Node]) -> list[tree.Node]:
    """Return a section in which ``break`` stands where no loop is any more: the exporter has written the loop out.

    Statements that follow each other, hold such a ``break`` and differ in numbers and subscripts that count up are the
    loop's; elsewhere it is refused.
    """
    found: list[tree.Node] = []
    shape, last = "", [0.0]
    for statement in section:
        stray = _stray_break(statement)
        same, numbers = _shape(statement) if stray else ("", [0.0])
        if stray and same == shape and numbers > last:
            loop = found[-1]
            assert isinstance(loop, tree.For)
            loop.body.append(statement)
        elif stray:
            once = tree.Braces(statement.at, [tree.Literal(statement.at, 1)])
            found.append(tree.For(statement.at, [(" once", once)], [statement]))
        else:
            found.append(statement)
        shape, last = same, numbers
    for loop in found:
        if isinstance(loop, tree.For) and loop.iterators[0][0] == " once" and len(loop.body) == 1:
            raise Refused(loop.at, "'break' stands outside a loop")
    return found


_NUMBERS = re.compile(r"value=(-?[\d.]+(?:e[-+]?\d+)?)(?=[,)])|\[([\d, ]+)\](?=[.'\[])")


def _shape(statement: tree.Node) -> tuple[str, list[float]]:
    """Return a statement without its numbers and subscripts, and these."""
    text = re.sub(r"\bat=\d+", "", repr(statement))
    numbers = [float(n) for value, inside in _NUMBERS.findall(text) for n in (value or inside).split(",") if n.strip()]
    return _NUMBERS.sub("#", text), numbers


def _stray_break(statement: tree.Node) -> bool:
    """Return whether a ``break`` leaves more than this statement."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Leave) and node.word == "break":
            return True
        if isinstance(node, tree.If | tree.When):
            waiting.extend(n for _, body in node.branches for n in body)
    return False
