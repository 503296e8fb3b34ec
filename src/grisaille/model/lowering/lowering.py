"""Translates the expression graph into CasADi ``SX`` in one walk that visits each node once.

``leaf`` gives the symbol of a name, ``differentiate`` the total time derivative of an already lowered formula; both
belong to whoever lowers, because only they know which symbols are functions of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import BEND_MARK, SMOOTH_MARK, Call, Constant, Expression, Name, postorder
from grisaille.model.lowering.guarded_branches import guard
from grisaille.model.lowering.table_lowering import lower_table, lower_table2

if TYPE_CHECKING:
    from grisaille.model.expression import Data

Leaf = Callable[[str], ca.SX]
Differentiate = Callable[[ca.SX], ca.SX]
Inspect = Callable[[Call, list[ca.SX], ca.SX], ca.SX]


def lower(
    roots: Sequence[Expression], leaf: Leaf, differentiate: Differentiate | None = None, inspect: Inspect | None = None
) -> list[ca.SX]:
    """Return the ``SX`` of each root; shared sub-formulas are shared in the result.

    ``inspect`` sees every operation with its lowered arguments and value, and gives the value to use.
    """
    done: dict[int, ca.SX] = {}
    roots = guard(roots)
    for node in postorder(roots):
        if isinstance(node, Constant):
            done[id(node)] = ca.SX(node.value)
        elif isinstance(node, Name):
            done[id(node)] = leaf(node.path)
        elif isinstance(node, Call):
            arguments = [done[id(a)] for a in node.arguments]
            if node.operation == "der":
                if differentiate is None:
                    raise ModelError(
                        "der(...) has no meaning in a start value, a parameter's formula or a noise level."
                    )
                value = arguments[0]
                for _ in range(node.data or 1):
                    value = differentiate(value)
                done[id(node)] = value
            elif node.operation == "delay" and inspect is None:
                raise ModelError(
                    "delay(...) has no meaning in a start value, a parameter's formula or a noise level: name it, "
                    "v = gr.delay(...), or make it an output, and use that."
                )
            else:
                value = OPERATIONS[node.operation](node.data, *arguments)
                done[id(node)] = value if inspect is None else inspect(node, arguments, value)
        else:
            raise ModelError(f"`{node}` has no full name yet; flatten the model before lowering its formulas.")
    return [done[id(root)] for root in roots]


def evaluate(roots: Sequence[Expression], values: Mapping[str, float]) -> list[float]:
    """Return the numbers of formulas without ``der`` at given values of the names in them."""
    lowered = lower(roots, lambda path: ca.SX(values[path]))
    return [float(ca.evalf(value)) for value in lowered]


def _plain(function: Callable[..., ca.SX]) -> Callable[..., ca.SX]:
    return lambda _data, *arguments: function(*arguments)


def _power(_data: Data, base: ca.SX, exponent: ca.SX) -> ca.SX:
    return base**exponent


MAX_EXPONENT = 350.0
"""exp(350)² is still a number, exp(350) + 1 is exp(350) to rounding by far."""
GROWING_OPERATIONS = frozenset((ca.OP_EXP, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_SINH, ca.OP_COSH))


def _quotient(_data: Data, above: ca.SX, below: ca.SX) -> ca.SX:
    """Return a / b; in 1 + exp(x) the exponent is kept from overflow: the quotient is zero there, its slope inf /
    inf.
    """
    if below.is_scalar() and below.op() == ca.OP_ADD:
        first, second = below.dep(0), below.dep(1)
        if second.is_constant():
            first, second = second, first
        if first.is_constant() and 0 < float(first) < np.inf and second.op() == ca.OP_EXP and not _may_grow(above):
            below = first + ca.exp(ca.fmin(second.dep(0), MAX_EXPONENT))
    return above / below


def _may_grow(formula: ca.SX) -> bool:
    """Return whether what is divided may be as large as an exponential: exp(x) / (1 + exp(x)) is one, not zero."""
    function = ca.Function("divided", [ca.vertcat(*ca.symvar(formula))], [formula])
    return any(function.instruction_id(k) in GROWING_OPERATIONS for k in range(function.n_instructions()))


def _where(_data: Data, condition: ca.SX, yes: ca.SX, no: ca.SX) -> ca.SX:
    # if_else evaluates both branches and multiplies the derivative of the untaken one by 0; guard() has made that
    # branch finite, so no 0·inf arises.
    return ca.if_else(condition, yes, no)


def _smooth_abs(_data: Data, x: ca.SX, width: ca.SX) -> ca.SX:
    return ca.sqrt(x * x + width * width)


def _smooth_sign(_data: Data, x: ca.SX, width: ca.SX) -> ca.SX:
    return x / ca.sqrt(x * x + width * width)


MARK_VALUES = {BEND_MARK: 1.0, SMOOTH_MARK: 2.0}
"""The number whose sign a comparison chooses that is no relation: what derivatives do with it depends on that."""


def _reaches(size: float, a: ca.SX, b: ca.SX) -> ca.SX:
    """Return ``a >= b`` as 1 or 0, not to be taken for a switch: the passes that look for jumps see no relation in
    it.
    """
    # 0 - a is -0 at a = 0, which copysign takes for negative: what is added makes every zero positive
    return (size + ca.SX.binary(ca.OP_COPYSIGN, ca.SX(size), a - b + 1e-300)) / (2 * size)


def _comparison(relation: Callable[..., ca.SX], unseen: Callable[..., ca.SX]) -> Callable[..., ca.SX]:
    return lambda data, a, b: unseen(MARK_VALUES[data], a, b) if data in MARK_VALUES else relation(a, b)


OPERATIONS: dict[str, Callable[..., ca.SX]] = {
    "add": _plain(lambda a, b: a + b),
    "sub": _plain(lambda a, b: a - b),
    "mul": _plain(lambda a, b: a * b),
    "div": _quotient,
    "neg": _plain(lambda a: -a),
    "pow": _power,
    "abs": _plain(ca.fabs),
    "sign": _plain(ca.sign),
    "minimum": _plain(ca.fmin),
    "maximum": _plain(ca.fmax),
    "where": _where,
    "lt": _comparison(lambda a, b: a < b, lambda size, a, b: 1 - _reaches(size, a, b)),
    "le": _comparison(lambda a, b: a <= b, lambda size, a, b: _reaches(size, b, a)),
    "gt": _comparison(lambda a, b: a > b, lambda size, a, b: 1 - _reaches(size, b, a)),
    "ge": _comparison(lambda a, b: a >= b, _reaches),
    "and": _plain(ca.logic_and),
    "or": _plain(ca.logic_or),
    "not": _plain(ca.logic_not),
    "pre": _plain(lambda a: a),
    "edge": _plain(lambda a: a),
    "whenever": _plain(lambda a: a),
    "change": _plain(lambda a: a),
    "clock": _plain(lambda period, start: ca.SX(0)),
    "initial": _plain(lambda: ca.SX(0)),
    "terminal": _plain(lambda: ca.SX(0)),
    "delay": lambda _data, x, *_: x,
    "smooth_abs": _smooth_abs,
    "smooth_sign": _smooth_sign,
    "table": lower_table,
    "table2": lower_table2,
    **{
        name: _plain(getattr(ca, name))
        for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
            "exp", "log", "log10", "sqrt", "floor", "ceil",
        )
    },
}  # fmt: skip
