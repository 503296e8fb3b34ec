"""Formulas as text with as few parentheses as Python's precedence allows: ``m*der(vx) == tension*x - k*abs(vx)*vx``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from grisaille.model.expression import Call, Constant, Expression, postorder

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)

_INFIX = {
    "or": (" | ", _OR), "and": (" & ", _AND), "lt": (" < ", _COMPARE), "le": (" <= ", _COMPARE),
    "gt": (" > ", _COMPARE), "ge": (" >= ", _COMPARE), "add": (" + ", _SUM), "sub": (" - ", _SUM),
    "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT), "pow": ("**", _POWER),
}  # fmt: skip
_LONGEST = 4000
"""Shared sub-formulas are written out at each use; beyond this length they are abbreviated."""


def render(root: Expression) -> str:
    """Return the text of one formula."""
    done: dict[int, tuple[str, int]] = {}
    for node in postorder((root,)):
        text, level = _one(node, done)
        done[id(node)] = (text, level) if len(text) <= _LONGEST else ("(…)", _ATOM)
    return done[id(root)][0]


def number(value: float) -> str:
    """Return the shortest text that reads back as the same number: ``2``, ``0.3``, ``1e-06``."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _one(node: Expression, done: dict[int, tuple[str, int]]) -> tuple[str, int]:
    if isinstance(node, Constant):
        return number(node.value), _ATOM if node.value >= 0 else _SIGN
    if not isinstance(node, Call):
        return node.leaf_text(), _ATOM
    parts = [done[id(a)] for a in node.arguments]
    if node.operation in _INFIX:
        return _infix(node.operation, parts[0], parts[1])
    if node.operation == "neg":
        return f"-{_wrapped(parts[0], _PRODUCT)}", _PRODUCT if parts[0][1] == _PRODUCT else _SIGN
    if node.operation == "not":
        return f"~{_wrapped(parts[0], _ATOM)}", _NOT
    return _function(node, [text for text, _ in parts]), _ATOM


def _infix(operation: str, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    symbol, level = _INFIX[operation]
    if level in (_OR, _AND):  # & and | bind tighter than comparisons in Python
        return f"{_wrapped(left, _ATOM)}{symbol}{_wrapped(right, _ATOM)}", level
    if operation == "pow":
        return f"{_wrapped(left, _ATOM)}**{_wrapped(right, _SIGN)}", level
    # a sign right after an operator is legal but hard to read; subtraction and division need it to be grouped anyway
    floor = level + (1 if operation in ("sub", "div") or right[0].startswith("-") else 0)
    floor = _POWER if right[0].startswith("-") else floor
    return f"{_wrapped(left, level)}{symbol}{_wrapped(right, floor)}", level


def _wrapped(part: tuple[str, int], least: int) -> str:
    text, level = part
    return text if level >= least else f"({text})"


def _function(node: Call, arguments: list[str]) -> str:
    if node.operation == "der" and node.data not in (None, 1):
        arguments = [*arguments, str(node.data)]
    if node.operation == "delay" and len(arguments) > 2:
        arguments = [*arguments[:2], f"before={arguments[2]}"]
    if node.operation in ("table", "table2"):
        arguments = _table(node, arguments)
    return f"{node.operation}({', '.join(arguments)})"


def _table(node: Call, arguments: list[str]) -> list[str]:
    """Return what a table is looked up by, its points or its values, and what is not usual about it."""
    n = 1 if node.operation == "table" else 2
    looked_up, values = arguments[:n], arguments[n:]
    points = f"{len(node.data[2])} points" if n == 1 else "grid"
    said = [] if node.data[0] == "linear" else [node.data[0]]
    outside = node.data[1] if isinstance(node.data[1], str) else "/".join(node.data[1])
    said += [] if outside == "hold" else [outside]
    if not values:
        return [*looked_up, points, *said]
    vector = common_vector(values)
    return [*looked_up, points, vector or f"[{', '.join(values)}]", *said]


def common_vector(names: Sequence[str]) -> str:
    """Return the vector or matrix whose elements, all of these and in order, are named; "" where there is none."""
    base, _, _ = names[0].rpartition("[")
    shape = names[-1][len(base) :].strip("[]").split(",")
    if not base or not all(part.isdigit() for part in shape):
        return ""
    indices = product(*(range(int(part) + 1) for part in shape))
    return base if list(names) == [f"{base}[{','.join(map(str, index))}]" for index in indices] else ""
