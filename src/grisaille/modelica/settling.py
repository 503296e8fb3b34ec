"""Numbers of formulas of parameters, and the order in which declarations can be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder
from grisaille.modelica import tree
from grisaille.modelica.builtins import BUILTINS
from grisaille.modelica.refusals import Refused
from grisaille.modelica.values import (
    add,
    both,
    choose,
    divide,
    either,
    multiply,
    negate,
    negated,
    power,
    relation,
    subtract,
)

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": add, "sub": subtract, "mul": multiply, "div": divide, "pow": power, "neg": negate, "and": both, "or": either,
    "not": negated, "where": choose, "lt": lambda a, b: relation("<", a, b), "le": lambda a, b: relation("<=", a, b),
    "gt": lambda a, b: relation(">", a, b), "ge": lambda a, b: relation(">=", a, b), "minimum": BUILTINS["min"],
    "maximum": BUILTINS["max"],
    **{n: BUILTINS[n] for n in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp",
       "log", "log10", "sqrt", "abs", "sign", "floor", "ceil")},
}  # fmt: skip


def number_of(expression: Expression, values: Callable[[str], Any]) -> Any:
    """The number (or truth value) of a formula; the formula itself where a name in it has none."""
    done: dict[int, Any] = {}
    for node in postorder((expression,)):
        if isinstance(node, Constant):
            done[id(node)] = node.value
        elif isinstance(node, Name):
            done[id(node)] = values(node.path)
        elif isinstance(node, Call) and node.operation in _OPERATIONS:
            done[id(node)] = _OPERATIONS[node.operation](*(done[id(a)] for a in node.arguments))
        else:
            return expression
        if done[id(node)] is None:
            return expression
    result = done[id(expression)]
    return expression if isinstance(result, Expression) else result


def in_order(declared: Mapping[str, tree.Declared]) -> list[str]:
    """Names of declarations, each after those that its value, sizes and attributes refer to."""
    done: dict[str, bool] = {}
    order: list[str] = []
    for root in declared:
        stack = [(root, False)]
        while stack:
            name, finished = stack.pop()
            if finished:
                done[name] = True
                order.append(name)
            elif name not in done:
                done[name] = False
                stack.append((name, True))
                for other in _referred(declared[name]):
                    if other in declared:
                        if done.get(other) is False and other != name:
                            raise Refused(declared[name].at, f"'{name}' and '{other}' are defined by each other")
                        if other not in done:
                            stack.append((other, False))
    return order


def _referred(declared: tree.Declared) -> list[str]:
    roots = [*declared.sizes, *declared.attributes.values()]
    if declared.value is not None:
        roots.append(declared.value)
    return list(tree.references(*roots))


__all__ = ["Condition", "in_order", "number_of"]
