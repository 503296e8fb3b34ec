"""Keeps the branch of ``where`` that is not taken from spoiling derivatives.

CasADi evaluates both branches; the derivative of the untaken one is multiplied by zero, and 0·inf = NaN. In
``where(r > 0, r**p, 0)`` the derivative of ``r**p`` at r ≤ 0 is NaN or infinite. So inside a branch the argument ``a``
of every operation that can be singular becomes ``where(branch taken, a, harmless number)``: where the branch is taken
nothing changes, elsewhere the operation sees a number at which it and its derivatives are finite.
"""

from __future__ import annotations

from collections.abc import Sequence

from grisaille.model.expression import Call, Condition, Constant, Expression, postorder
from grisaille.model.rewriting import Rewriter

_HARMLESS: dict[str, tuple[int, float]] = {
    "div": (1, 1.0), "pow": (0, 1.0), "sqrt": (0, 1.0), "log": (0, 1.0), "log10": (0, 1.0), "asin": (0, 0.0),
    "acos": (0, 0.0), "acosh": (0, 2.0), "atanh": (0, 0.0), "atan2": (1, 1.0), "exp": (0, 0.0), "sinh": (0, 0.0),
    "cosh": (0, 0.0),
}  # fmt: skip
"""Which argument can make the operation singular (or overflow), and a value at which it is not."""


def guard(roots: Sequence[Expression]) -> list[Expression]:
    """The same formulas with guarded branches; unchanged objects where there is nothing to guard."""
    if not any(isinstance(node, Call) and node.operation == "where" for node in postorder(roots)):
        return list(roots)
    done: dict[int, Expression] = {}
    for node in postorder(roots):
        done[id(node)] = _guarded(node, done)
    return [done[id(root)] for root in roots]


def _guarded(node: Expression, done: dict[int, Expression]) -> Expression:
    if not isinstance(node, Call):
        return node
    arguments = tuple(done[id(a)] for a in node.arguments)
    if node.operation == "where":
        condition, yes, no = arguments
        other = Condition("not", (condition,))
        return node.rebuilt((condition, _inside(yes, condition), _inside(no, other)))
    if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
        return node
    return node.rebuilt(arguments)


def _inside(branch: Expression, taken: Expression) -> Expression:
    """``branch`` with every singular operation evaluated at a harmless point unless ``taken``."""
    done: dict[int, Expression] = {}

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Call) or not _is_singular(node):
            return None
        position, number = _HARMLESS[node.operation]
        arguments = [done.get(id(a), a) for a in node.arguments]
        arguments[position] = Call("where", (taken, arguments[position], Constant(number)))
        return node.rebuilt(tuple(arguments))

    rewrite = Rewriter(change)
    for node in postorder((branch,)):
        done[id(node)] = rewrite(node)
    return done[id(branch)]


def _is_singular(node: Call) -> bool:
    if node.operation == "pow":
        exponent = node.arguments[1]
        return not (isinstance(exponent, Constant) and exponent.value >= 1 and exponent.value.is_integer())
    if node.operation == "div":
        return not isinstance(node.arguments[1], Constant)
    return node.operation in _HARMLESS
