"""Whether an expression is a Real by what is written: such an equation gives no Integer and no Boolean its value."""

from __future__ import annotations

from collections.abc import Callable

from grisaille.modelica import tree

_ARITHMETIC = {"+", "-", "*", ".+", ".-", ".*"}
_OF_REALS = {
    "der", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt",
    "delay", "actualStream", "inStream",
}  # fmt: skip
_LIKE_ITS_ARGUMENTS = {"abs", "min", "max", "sum", "product", "pre", "noEvent", "smooth", "mod", "rem"}


def is_real(node: tree.Node, is_variable: Callable[[str], bool]) -> bool:
    """Return whether a value is certainly a Real; ``is_variable`` knows the names of Reals."""
    if isinstance(node, tree.Reference):
        return node.path == "time" or is_variable(node.path)
    if isinstance(node, tree.Unary):
        return node.operator != "not" and is_real(node.operand, is_variable)
    if isinstance(node, tree.Chain):
        operators = {operator for operator, _ in node.rest}
        if operators & {"/", "./", "^", ".^"}:
            return not operators & {"and", "or"}
        return operators <= _ARITHMETIC and any(is_real(n, is_variable) for n in tree.children(node))
    if isinstance(node, tree.Choice):
        return any(is_real(n, is_variable) for n in (node.otherwise, *(branch for _, branch in node.branches)))
    if isinstance(node, tree.Calling):
        alike = node.name in _LIKE_ITS_ARGUMENTS and any(is_real(n, is_variable) for n in node.arguments)
        return node.name in _OF_REALS or alike
    return False
