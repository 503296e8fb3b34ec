"""What expressions of a Modelica text are worth, and arithmetic on it.

A value is a number (``int``, ``float``), a truth value, a text, an enumeration literal, a formula (``Expression``), a
condition (``Condition``), an array of these (NumPy, of objects) or a record. Numbers are computed at once, so that what
the text settles is settled while it is read; formulas grow nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from grisaille.model.expression import BEND_MARK, Call, Condition, Constant, Expression, Name, postorder
from grisaille.modelica.limits import OPERATION, Unfit as Unfit, check_entries, check_letters, spend

MAX_SHOWN = 200
"""Letters of a value, or operands of a formula, in a message."""
MAX_WHOLE = 2**63
"""Whole numbers beyond are no Integers of any Modelica tool, and would grow without end in products."""


@dataclass(frozen=True)
class Enumerated:
    """A literal of an enumeration; ``index`` counts from one."""

    type: str
    index: int
    name: str


class Opaque:
    """A value that has no arithmetic: a table, a function, something that is still to come; abstract."""

    __slots__ = ()


class RecordValue(dict[str, "Value"]):
    """Fields by name."""

    def __init__(self, kind: str, fields: Mapping[str, Value] | Iterable[tuple[str, Value]] = ()) -> None:
        super().__init__(fields)
        self.kind = kind


class Unset(Opaque):
    """A local variable that has no value yet."""

    def __repr__(self) -> str:
        return "no value"


UNSET_VALUE = Unset()


class Given(Opaque):
    """A function as an argument of another one, with some of its own arguments."""

    def __init__(self, name: str, arguments: dict[str, Value]) -> None:
        self.name, self.arguments = name, arguments

    def __str__(self) -> str:
        return f"the function {self.name}"


class Vague(str):
    """A text that tells something which is only known during a simulation; good for messages alone."""


Number = int | float
Truth = bool | Condition
Array = np.ndarray
"""Of objects, each of them a single value."""
Single = Number | bool | str | Enumerated | Expression | RecordValue | Opaque
"""What an array holds, or a variable without sizes."""
Value: TypeAlias = "Single | Array | tuple[Value, ...]"
"""What an expression of a text is worth; a function with several results gives a tuple."""


def is_number(value: Value | None) -> TypeGuard[int | float]:
    """Return whether it is a plain number (truth values are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Value | None) -> TypeGuard[int | float]:
    """Return whether it is a number without a fraction."""
    return is_number(value) and (isinstance(value, int) or value.is_integer())


def is_plain(value: Value | None) -> bool:
    """Return whether it is settled: no formula in it."""
    if isinstance(value, np.ndarray):
        return all(is_plain(item) for item in value.flat)
    if isinstance(value, RecordValue):
        return all(is_plain(item) for item in value.values())
    return not isinstance(value, Expression | Unset)


def formula(value: Value) -> Expression:
    """Return a scalar as a formula: truth values as 1 and 0, enumerations by their index."""
    if isinstance(value, Condition):
        return Call("where", (value, Constant(1.0), Constant(0.0)))
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool):
        return Constant(float(value))
    if is_number(value):
        if not math.isfinite(value):
            raise Unfit(f"the number {value} is not finite")
        return Constant(float(value))
    if isinstance(value, Enumerated):
        return Constant(float(value.index))
    raise Unfit(f"{describe(value)} cannot stand in a formula")


def describe(value: Value | None) -> str:
    """Return a value in words."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, RecordValue):
        return f"a record {value.kind}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, Unset):
        return "a variable without a value"
    if isinstance(value, tuple):
        return f"{len(value)} results of a function"
    return f"`{brief(value)}`"


def brief(value: Value | None) -> str:
    """Return a value as text; of a formula too large to be written out, which may be doubled many times, what it is."""
    if isinstance(value, Expression) and written_size(value) > MAX_SHOWN:
        return f"a formula of {len(list(postorder((value,))))} operations"
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def written_size(value: Expression) -> int:
    """Return how many operands a formula has when it is written out, common ones again and again."""
    sizes: dict[int, int] = {}
    for node in postorder((value,)):
        inner = node.arguments if isinstance(node, Call) else ()
        sizes[id(node)] = 1 + sum(sizes.get(id(a), 1) for a in inner)
    return sizes.get(id(value), 1)


def truth(value: Value) -> Truth:
    """Return a truth value or a condition; a formula that is 1 or 0 as a condition."""
    if isinstance(value, bool | Condition):
        return value
    if isinstance(value, Expression):
        return Condition("gt", (value, Constant(0.5)))
    raise Unfit(f"{describe(value)} is not a truth value")


def array(items: Sequence[Value]) -> Array:
    """Return ``{a, b, …}``: one more dimension than the items have."""
    shapes = {item.shape if isinstance(item, np.ndarray) else () for item in items}
    if len(shapes) > 1:
        raise Unfit(f"the entries of an array have different shapes: {', '.join(map(str, sorted(shapes)))}")
    shape = shapes.pop() if shapes else ()
    check_entries(len(items) * math.prod(shape))
    made = np.empty((len(items), *shape), dtype=object)
    for k, item in enumerate(items):
        made[k] = item
    return made


def elementwise(function: Callable[..., Value], *arguments: Value) -> Value:
    """Return the function of scalars on arrays of one shape, single values repeated."""
    shapes = {a.shape for a in arguments if isinstance(a, np.ndarray)}
    if not shapes:
        return function(*arguments)
    if len(shapes) > 1:
        raise Unfit(f"arrays of different shapes meet: {' and '.join(map(str, sorted(shapes)))}")
    shape = shapes.pop()
    spend(math.prod(shape))
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        made[index] = function(*(a[index] if isinstance(a, np.ndarray) else a for a in arguments))
    return made


# --- arithmetic ---


def _checked(value: Value) -> Number | Expression:
    if is_number(value) or (isinstance(value, Expression) and not isinstance(value, Condition)):
        return value
    raise Unfit(f"{describe(value)} is not a number")


def _folding(
    operation: str, numeric: Callable[[Number, Number], Number]
) -> Callable[[Value, Value], Number | Expression]:
    def apply(left: Value, right: Value) -> Number | Expression:
        a, b = _checked(left), _checked(right)
        if is_number(a) and is_number(b):
            try:
                result = numeric(a, b)
                if isinstance(result, int) and abs(result) > MAX_WHOLE:
                    raise Unfit(f"a whole number beyond {MAX_WHOLE:g} has no place in a Modelica Integer")
                return result
            except (ZeroDivisionError, OverflowError, ValueError):
                pass  # refused only where it is evaluated
        spend(OPERATION)
        return Call(operation, (formula(a), formula(b)))

    return apply


def _power(a: Number, b: Number) -> Number:
    result = float(a) ** float(b)
    if isinstance(result, complex):
        raise ValueError
    return float(result)


add = _folding("add", lambda a, b: a + b)
subtract = _folding("sub", lambda a, b: a - b)
multiply = _folding("mul", lambda a, b: a * b)
divide = _folding("div", lambda a, b: a / b)
power = _folding("pow", _power)


def negate(value: Value) -> Value:
    """−value."""
    checked = _checked(value)
    return Call("neg", (checked,)) if isinstance(checked, Expression) else -checked


def sum_of(a: Value, b: Value) -> Value:
    """Return ``a + b``: numbers, arrays of one shape, texts."""
    if isinstance(a, str) and isinstance(b, str):
        check_letters(len(a) + len(b))
        return Vague(a + b) if isinstance(a, Vague) or isinstance(b, Vague) else a + b
    if isinstance(a, np.ndarray) is not isinstance(b, np.ndarray):
        raise Unfit(f"{describe(a)} and {describe(b)} cannot be added")
    return elementwise(add, a, b)


def difference_of(a: Value, b: Value) -> Value:
    """Return ``a - b``."""
    if isinstance(a, np.ndarray) is not isinstance(b, np.ndarray):
        raise Unfit(f"{describe(b)} cannot be subtracted from {describe(a)}")
    return elementwise(subtract, a, b)


def product_of(a: Value, b: Value) -> Value:
    """Return ``a * b``: the matrix product for arrays."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return elementwise(multiply, a, b)
    if a.ndim > 2 or b.ndim > 2 or a.shape[-1] != b.shape[0]:
        raise Unfit(f"arrays of shapes {a.shape} and {b.shape} have no product")
    if a.ndim == 1 and b.ndim == 1:
        spend(len(a))
        return total([multiply(x, y) for x, y in zip(a, b, strict=True)])
    if b.ndim == 1:
        return array([product_of(row, b) for row in a])
    if a.ndim == 1:
        return array([product_of(a, b[:, k]) for k in range(b.shape[1])])
    return array([product_of(row, b) for row in a])


def quotient_of(a: Value, b: Value) -> Value:
    """Return ``a / b``, b a single number."""
    if isinstance(b, np.ndarray):
        raise Unfit(f"{describe(b)} cannot divide")
    return elementwise(divide, a, b)


def power_of(a: Value, b: Value) -> Value:
    """Return ``a ^ b``."""
    if isinstance(a, np.ndarray):
        if not isinstance(b, int) or a.ndim != 2 or b < 0 or b > 64:
            raise Unfit(f"{describe(a)} has no such power")
        result: Value = identity(a.shape[0])
        for _ in range(b):
            result = product_of(result, a)
        return result
    return power(a, b)


def total(items: Iterable[Value]) -> Value:
    """Return the sum of single values; 0 of none."""
    result: Value = 0
    for k, item in enumerate(items):
        result = item if k == 0 else add(result, item)
    return result


def identity(n: int) -> Array:
    """Return the identity matrix."""
    check_entries(n * n)
    return array([array([int(i == j) for j in range(n)]) for i in range(n)])


# --- relations and logic ---

COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_NUMERIC: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def relation(operator: str, a: Value, b: Value) -> Truth:
    """Return a comparison: a truth value where both sides are settled, a condition otherwise."""
    if isinstance(a, Enumerated) and isinstance(b, Enumerated):
        return _NUMERIC[operator](a.index, b.index)
    if isinstance(a, Vague) or isinstance(b, Vague):
        raise Unfit("a text that is only known during a simulation cannot be compared")
    if (isinstance(a, str) and isinstance(b, str)) or (isinstance(a, bool) and isinstance(b, bool)):
        return _NUMERIC[operator](a, b)
    if is_number(a) and is_number(b):
        return _NUMERIC[operator](a, b)
    if isinstance(a, bool | Condition) and isinstance(b, bool | Condition):
        same = either(both(a, b), both(negated(a), negated(b)))
        if operator in ("==", "<>"):
            return same if operator == "==" else negated(same)
        a, b = formula(a), formula(b)
    if isinstance(a, np.ndarray | RecordValue | str) or isinstance(b, np.ndarray | RecordValue | str):
        raise Unfit(f"{describe(a)} and {describe(b)} cannot be compared")
    left, right = formula(a), formula(b)
    if operator in COMPARED:
        return Condition(COMPARED[operator], (left, right))
    same = Condition("and", (Condition("ge", (left, right)), Condition("le", (left, right))))
    return (
        same if operator == "==" else Condition("or", (Condition("gt", (left, right)), Condition("lt", (left, right))))
    )


def bending(value: Expression, kind: str = BEND_MARK) -> Expression:
    """Return a condition that chooses between formulas which meet; ``kind`` tells whether their slopes do."""
    if not isinstance(value, Condition):
        return value
    if value.operation in COMPARED.values():
        return Condition(value.operation, value.arguments, kind)
    return Condition(value.operation, tuple(bending(a, kind) for a in value.arguments))


def both(a: Value, b: Value) -> Truth:
    """Return ``a and b``."""
    a, b = truth(a), truth(b)
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return Condition("and", (a, b))


def either(a: Value, b: Value) -> Truth:
    """Return ``a or b``."""
    a, b = truth(a), truth(b)
    if isinstance(a, bool):
        return True if a else b
    if isinstance(b, bool):
        return True if b else a
    return Condition("or", (a, b))


def negated(a: Value) -> Truth:
    """Return ``not a``."""
    a = truth(a)
    return not a if isinstance(a, bool) else Condition("not", (a,))


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """Return ``if condition then yes else no`` on values of any kind."""
    condition = truth(condition)
    if isinstance(condition, bool):
        return yes if condition else no
    if yes is no:
        return yes
    if isinstance(yes, RecordValue) and isinstance(no, RecordValue):
        return RecordValue(yes.kind, {name: choose(condition, yes[name], no.get(name, UNSET_VALUE)) for name in yes})
    if isinstance(yes, np.ndarray) or isinstance(no, np.ndarray):
        if isinstance(yes, Unset) or isinstance(no, Unset):
            return no if isinstance(yes, Unset) else yes
        return elementwise(lambda a, b: choose(condition, a, b), yes, no)
    if isinstance(yes, Unset) or isinstance(no, Unset):
        return no if isinstance(yes, Unset) else yes  # an unset variable may be anything
    if isinstance(yes, bool | Condition) and isinstance(no, bool | Condition):
        return either(both(condition, yes), both(negated(condition), no))
    if isinstance(yes, tuple) and isinstance(no, tuple):
        return tuple(choose(condition, a, b) for a, b in zip(yes, no, strict=True))
    if is_plain(yes) and is_plain(no) and type(yes) is type(no) and yes == no:
        return yes
    if isinstance(yes, str) or isinstance(no, str):
        raise Unfit("a text cannot depend on what is only known during a simulation")
    return Call("where", (condition, formula(yes), formula(no)))


def before(value: Value) -> Value:
    """Return ``pre(value)``: of a variable that changes at events, or of an array of them."""
    if isinstance(value, np.ndarray):
        return np.array([before(item) for item in value.flat], dtype=object).reshape(value.shape)
    if isinstance(value, Name):
        return Call("pre", (value,))
    inner = value.arguments[0] if isinstance(value, Condition) else value
    if isinstance(inner, Call) and inner.operation == "pre":
        return value
    if isinstance(value, Condition) and isinstance(value.arguments[0], Name):
        return Condition(value.operation, (Call("pre", (value.arguments[0],)), *value.arguments[1:]))
    if isinstance(value, Expression):
        raise Unfit(f"pre of the formula `{brief(value)}` is not supported")
    return value
