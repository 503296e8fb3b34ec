"""Keeps the branch of ``where`` that is not taken from spoiling derivatives.

CasADi evaluates both branches; the derivative of the untaken one is multiplied by zero, and 0·inf = NaN. In
``where(r > 0, r**p, 0)`` the derivative of ``r**p`` at r ≤ 0 is NaN or infinite. So inside a branch the argument ``a``
of every operation that can be singular becomes ``where(branch taken, a, harmless number)``: where the branch is taken
nothing changes, elsewhere the operation sees a number at which it and its derivatives are finite.

Each branch gets a copy of its own with its own guards. Branches inside branches that share much would multiply these:
there one guard serves all uses of an operation (``needing``).
"""

from __future__ import annotations

from collections.abc import Sequence

from grisaille.model.expression import LARGER, SMALLER, Call, Condition, Constant, Expression, postorder
from grisaille.model.lowering.needed_branches import Needs
from grisaille.model.rewriting import Rewriter

MAX_COPIES = 5
"""How many times larger copies may make formulas."""
FEW_NODES = 2_000
"""Nodes that are never too many."""

_HARMLESS: dict[str, tuple[int, float]] = {
    "div": (1, 1.0), "pow": (0, 1.0), "sqrt": (0, 1.0), "log": (0, 1.0), "log10": (0, 1.0), "asin": (0, 0.0),
    "acos": (0, 0.0), "acosh": (0, 2.0), "atanh": (0, 0.0), "atan2": (1, 1.0), "exp": (0, 0.0), "sinh": (0, 0.0),
    "cosh": (0, 0.0),
}  # fmt: skip
"""Which argument can make the operation singular (or overflow), and a value at which it is not."""


def guard(roots: Sequence[Expression]) -> list[Expression]:
    """Return the same formulas with guarded branches; unchanged objects where there is nothing to guard."""
    nodes = list(postorder(roots))
    if not any(isinstance(node, Call) and node.operation == "where" for node in nodes):
        return list(roots)
    if _multiply(nodes, roots):
        return _guarded_once(roots)
    done: dict[int, Expression] = {}
    for node in nodes:
        done[id(node)] = _guarded(node, done)
    return [done[id(root)] for root in roots]


def _multiply(nodes: list[Expression], roots: Sequence[Expression]) -> bool:
    """Return whether copies for each branch would grow out of hand: of every node one for each way of branches to
    it.
    """
    ways: dict[int, set[int]] = {id(node): set() for node in nodes}
    numbers: dict[tuple[int, int, int], int] = {}
    for root in roots:
        ways[id(root)].add(0)
    copies, most = 0, max(MAX_COPIES * len(nodes), FEW_NODES)
    for node in reversed(nodes):
        here = ways.pop(id(node))
        copies += len(here)
        if copies > most:
            return True
        if isinstance(node, Call):
            for k, argument in enumerate(node.arguments):
                if node.operation == "where" and k > 0 and node.data not in (LARGER, SMALLER):
                    steps = ((way, id(node), k) for way in here)
                    ways[id(argument)].update(numbers.setdefault(step, len(numbers) + 1) for step in steps)
                else:
                    ways[id(argument)] |= here
    return False


def _guarded_once(roots: Sequence[Expression]) -> list[Expression]:
    """Return every operation once, kept from harm where no branch needs it."""
    needs = Needs(roots)
    done: dict[int, Expression] = {}
    for node in needs.order:
        done[id(node)] = node
        if not isinstance(node, Call):
            continue
        arguments = [done[id(a)] for a in node.arguments]
        taken = needs.condition(node, done) if _is_singular(node) else None
        if taken is not None:
            position, number = _HARMLESS[node.operation]
            arguments[position] = Call("where", (taken, arguments[position], Constant(number)))
        if any(a is not b for a, b in zip(arguments, node.arguments, strict=True)):
            done[id(node)] = node.rebuilt(tuple(arguments))
    return [done[id(root)] for root in roots]


def _guarded(node: Expression, done: dict[int, Expression]) -> Expression:
    if not isinstance(node, Call):
        return node
    arguments = tuple(done[id(a)] for a in node.arguments)
    if node.operation == "where" and node.data not in (LARGER, SMALLER):
        condition, yes, no = arguments
        other = Condition("not", (condition,))
        return node.rebuilt((condition, _inside(yes, condition), _inside(no, other)))
    if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
        return node
    return node.rebuilt(arguments)


def _inside(branch: Expression, taken: Expression) -> Expression:
    """Return ``branch`` with every singular operation evaluated at a harmless point unless ``taken``."""
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
        base, exponent = node.arguments
        if isinstance(exponent, Constant):
            return not (exponent.value >= 1 and exponent.value.is_integer()) and not _is_bounded_away(base)
        return True
    if node.operation == "div":
        return not isinstance(node.arguments[1], Constant) and not _is_bounded_away(node.arguments[1])
    if node.operation in ("sqrt", "log", "log10"):
        return not _is_bounded_away(node.arguments[0])
    return node.operation in _HARMLESS


def _is_bounded_away(node: Expression) -> bool:
    """Return whether a formula cannot come near zero, since it is written as at least a positive number."""
    if not isinstance(node, Call):
        return isinstance(node, Constant) and node.value > 0
    if node.operation == "maximum" or node.data == LARGER:
        return any(isinstance(a, Constant) and a.value > 0 for a in node.arguments[-2:])
    if node.operation == "minimum" or node.data == SMALLER:
        return all(map(_is_bounded_away, node.arguments[-2:]))
    return False
