"""Numbers of formulas of parameters, and the order in which declarations can be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grisaille.model.expression import Call, Constant, Expression, Name, postorder
from grisaille.model.ordering import order_by_use
from grisaille.modelica import tree
from grisaille.modelica.builtins import BUILTINS
from grisaille.modelica.refusals import Refused
from grisaille.modelica.values import (
    Value,
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


def number_of(expression: Expression, values: Callable[[str], Value | None]) -> Value:
    """Return the number (or truth value) of a formula; the formula itself where a name in it has none."""
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
    """Return names of declarations, each after those that its value, sizes and attributes refer to."""

    entries: dict[str, list[str]] = {}
    for entry in declared:
        array, bracket, _ = entry.partition("[")
        if bracket:
            entries.setdefault(array, []).append(entry)

    def uses(name: str) -> list[str]:
        referred = _referred(declared[name])
        arrays = [n for array in referred if array not in declared for n in entries.get(array, ())]
        return [n for n in [*referred, *arrays] if n in declared and n != name]

    def circle(name: str, other: str) -> Refused:
        return Refused(declared[name].at, f"'{name}' and '{other}' are defined by each other")

    return order_by_use(declared, uses, circle)


def _referred(declared: tree.Declared) -> list[str]:
    roots = [*declared.sizes, *declared.attributes.values()]
    if declared.value is not None:
        roots.append(declared.value)
    return list(tree.references(*roots))
