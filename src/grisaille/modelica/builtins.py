"""The functions that Modelica itself defines, on values.

Functions of numbers fold where their arguments are settled. Those of events (``pre``, ``sample``, …) and of delays are
in ``events``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grisaille.model import functions as gr
from grisaille.model.expression import Call, Expression, postorder
from grisaille.modelica.limits import check_entries, spend
from grisaille.modelica.values import (
    Array,
    Enumerated,
    Number,
    Unfit,
    Vague,
    Value,
    add,
    array,
    choose,
    describe,
    divide,
    elementwise,
    formula,
    identity,
    is_number,
    is_plain,
    is_whole,
    multiply,
    negate,
    product_of,
    relation,
    subtract,
    total,
)

Function = Callable[..., Any]


def _elementary(operation: str, numeric: Callable[..., float]) -> Function:
    def single(*arguments: Value) -> Value:
        if all(is_number(a) for a in arguments):
            try:
                value = numeric(*arguments)
                if math.isfinite(value):
                    return value
            except (ValueError, OverflowError, ZeroDivisionError):
                pass  # refused only where it is evaluated
        for a in arguments:
            if not (is_number(a) or isinstance(a, Expression)):
                raise Unfit(f"{operation} of {describe(a)} has no meaning")
        return Call(operation, tuple(formula(a) for a in arguments))

    return lambda *arguments: elementwise(single, *arguments)


def _whole(function: Function) -> Function:
    """As an Integer where it is settled."""

    def apply(*arguments: Value) -> Value:
        value = function(*arguments)
        return int(value) if is_whole(value) else value

    return apply


floor = _elementary("floor", lambda x: float(math.floor(x)))
ceil = _elementary("ceil", lambda x: float(math.ceil(x)))


def _sign(x: Value) -> Value:
    return int(np.sign(x)) if is_number(x) and x == x else Call("sign", (formula(x),))


def _absolute(x: Value) -> Value:
    return abs(x) if is_number(x) else Call("abs", (formula(x),))


def _are_finite(x: Value, y: Value) -> bool:
    """Return whether both are numbers, and their quotient is one."""
    return is_number(x) and is_number(y) and y != 0 and all(map(math.isfinite, (x, y, x / y)))


def _mod(x: Number | Expression, y: Number | Expression) -> Number | Expression:
    if _are_finite(x, y):
        return x - math.floor(x / y) * y
    return subtract(x, multiply(floor(divide(x, y)), y))


def _truncated(x: Any, y: Any) -> Any:
    """Return ``div``: the quotient without its fraction."""
    if _are_finite(x, y):
        return (
            math.trunc(x / y)
            if isinstance(x, float) or isinstance(y, float)
            else int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
        )
    quotient = divide(x, y)
    return choose(relation(">=", quotient, 0), floor(quotient), ceil(quotient))


def _rem(x: Number | Expression, y: Number | Expression) -> Number | Expression:
    return subtract(x, multiply(_truncated(x, y), y))


_LARGEST = 1e60
"""``Modelica.Constants.inf``: the smallest of no numbers."""


def _extreme(operation: str, numeric: Callable[..., Number]) -> Function:
    def two(a: Value, b: Value) -> Value:
        if isinstance(a, Enumerated) and isinstance(b, Enumerated):
            return a if numeric(a.index, b.index) == a.index else b
        if is_number(a) and is_number(b):
            return numeric(a, b)
        return Call(operation, (formula(a), formula(b)))

    def apply(*arguments: Value) -> Value:
        items = list(arguments[0].flat) if len(arguments) == 1 and isinstance(arguments[0], np.ndarray) else arguments
        if not len(items):
            return _LARGEST if operation == "minimum" else -_LARGEST
        result = items[0]
        for item in items[1:]:
            result = elementwise(two, result, item)
        return result

    return apply


def _flat(value: Value) -> list[Value]:
    spend(value.size if isinstance(value, np.ndarray) else 1)
    return list(value.flat) if isinstance(value, np.ndarray) else [value]


def _product(value: Value) -> Value:
    result: Any = 1
    for item in _flat(value):
        result = multiply(result, item)
    return result


def _size(value: Value, dimension: int | None = None) -> Value:
    shape = value.shape if isinstance(value, np.ndarray) else ()
    if dimension is None:
        return array(list(shape))
    if not isinstance(dimension, int) or not 1 <= dimension <= len(shape):
        raise Unfit(f"{describe(value)} has no dimension {dimension}")
    return shape[dimension - 1]


def _lengths(sizes: tuple[int, ...]) -> tuple[int, ...]:
    for n in sizes:
        if not isinstance(n, int) or n < 0:
            raise Unfit(f"a size must be a whole number that is known before the simulation, got {describe(n)}")
    check_entries(math.prod(sizes), " x ".join(map(str, sizes)))
    return tuple(sizes)


def filled(value: Value | None, *sizes: int) -> Array:
    """Return ``fill(value, n, m)``."""
    shape = _lengths(sizes)
    inner = value.shape if isinstance(value, np.ndarray) else ()
    _lengths((*shape, *inner))
    made = np.empty((*shape, *inner), dtype=object)
    for index in np.ndindex(*shape):
        made[index] = value
    return made


def _linspace(first: Value, last: Value, n: int) -> Value:
    _lengths((n,))
    step = divide(subtract(last, first), n - 1)
    return array([add(first, multiply(step, k)) for k in range(n)])


def _diagonal(v: Array) -> Value:
    n = len(v)
    _lengths((n, n))
    return array([array([v[i] if i == j else 0 for j in range(n)]) for i in range(n)])


def _transpose(m: Array) -> Value:
    if not isinstance(m, np.ndarray) or m.ndim < 2:
        raise Unfit(f"transpose needs a matrix, got {describe(m)}")
    return np.swapaxes(m, 0, 1)


def _cross(a: Array, b: Array) -> Value:
    return array([
        subtract(multiply(a[(k + 1) % 3], b[(k + 2) % 3]), multiply(a[(k + 2) % 3], b[(k + 1) % 3])) for k in range(3)
    ])  # fmt: skip


def _skew(v: Array) -> Value:
    x, y, z = v
    return array([array([0, negate(z), y]), array([z, 0, negate(x)]), array([negate(y), x, 0])])


def _outer(a: Array, b: Array) -> Value:
    _lengths((len(a), len(b)))
    return array([array([multiply(x, y) for y in b]) for x in a])


def _symmetric(m: Array) -> Value:
    n = len(m)
    return array([array([m[min(i, j), max(i, j)] for j in range(n)]) for i in range(n)])


def _scalar(value: Value) -> Value:
    items = _flat(value)
    if len(items) != 1:
        raise Unfit(f"scalar needs one entry, got {describe(value)}")
    return items[0]


def _promoted(value: Value, n: int) -> Value:
    value = value if isinstance(value, np.ndarray) else _wrapped(value)
    return value.reshape((*value.shape, *([1] * (n - value.ndim)))) if n > value.ndim else value


def _wrapped(value: Value) -> Array:
    made = np.empty((), dtype=object)
    made[()] = value
    return made


def _cat(dimension: int, *parts: Value) -> Value:
    if not isinstance(dimension, int):
        raise Unfit("the dimension of cat must be a whole number")
    arrays = [p if isinstance(p, np.ndarray) else _wrapped(p) for p in parts]
    check_entries(sum(part.size for part in arrays))
    try:
        return np.concatenate(arrays, axis=dimension - 1)
    except ValueError as error:  # AxisError is one
        raise Unfit(f"cat does not fit: {error}") from None


def _vector(value: Value) -> Value:
    return array(_flat(value))


def _matrix(value: Value) -> Value:
    return _promoted(value, 2)


MIN_FLOW = 1e-12
"""Flows below are none: what they carry spreads instead, with this strength."""


def semi_linear(x: Value, above: Value, below: Value, spreads: bool = True) -> Value:
    """Return ``if x >= 0 then above * x else below * x``.

    Without a flow x it says nothing of what would be carried, and Modelica leaves open what is taken then. Here a
    spreading δ (above − below) with δ = max(STANDSTILL − |x|, 0) makes it the mean of what is around.
    """
    carried = choose(relation(">=", x, 0), multiply(above, x), multiply(below, x))
    if not spreads or (is_number(x) and abs(x) >= MIN_FLOW):
        return carried
    spread = BUILTINS["max"](subtract(MIN_FLOW, _absolute(x)), 0.0)
    return add(carried, multiply(spread, subtract(above, below)))


def derivative(value: Value) -> Value:
    """Return ``der``; zero for what does not change."""
    if isinstance(value, np.ndarray):
        return elementwise(derivative, value)
    if is_plain(value):
        return 0.0
    expression = formula(value)
    if not any(leaf.varies for leaf in postorder((expression,)) if not isinstance(leaf, Call)):
        return 0.0
    return gr.der(expression)


def text_of(value: Value, *_format: Value, **_options: Value) -> str:
    """Return ``String(value)``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enumerated):
        return value.name
    if is_number(value) or isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, Expression):
        return Vague("…")
    raise Unfit(f"{describe(value)} cannot be written as a text")


def _index(value: Value) -> Value:
    return value.index if isinstance(value, Enumerated) else int(value) if isinstance(value, bool) else value


_rounded = _whole(floor)


_MATH: dict[str, Callable[..., float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "atan2": math.atan2, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "exp": math.exp, "log": math.log,
    "log10": math.log10, "sqrt": math.sqrt,
}  # fmt: skip

BUILTINS: dict[str, Function] = {
    **{name: _elementary(name, numeric) for name, numeric in _MATH.items()},
    **{f"Modelica.Math.{name}": _elementary(name, numeric) for name, numeric in _MATH.items()},
    "Modelica.Math.asinh": _elementary("asinh", math.asinh),
    "Modelica.Math.acosh": _elementary("acosh", math.acosh),
    "abs": lambda x: elementwise(_absolute, x),
    "sign": lambda x: elementwise(_sign, x),
    "floor": floor,
    "ceil": ceil,
    "integer": lambda value: value.index if isinstance(value, Enumerated) else _rounded(value),
    "Integer": _index,
    "mod": lambda x, y: elementwise(_mod, x, y),
    "div": lambda x, y: elementwise(_truncated, x, y),
    "rem": lambda x, y: elementwise(_rem, x, y),
    "min": _extreme("minimum", min),
    "max": _extreme("maximum", max),
    "sum": lambda x: total(_flat(x)),
    "product": _product,
    "size": _size,
    "ndims": lambda x: x.ndim if isinstance(x, np.ndarray) else 0,
    "fill": filled,
    "zeros": lambda *n: filled(0, *n),
    "ones": lambda *n: filled(1, *n),
    "identity": lambda n: identity(_lengths((n, n))[0]),
    "linspace": _linspace,
    "diagonal": _diagonal,
    "transpose": _transpose,
    "cross": _cross,
    "skew": _skew,
    "outerProduct": _outer,
    "symmetric": _symmetric,
    "scalar": _scalar,
    "vector": _vector,
    "matrix": _matrix,
    "array": lambda *items: array(list(items)),
    "cat": _cat,
    "promote": _promoted,
    "noEvent": lambda x: x,
    "homotopy": lambda actual, simplified=None: actual,
    "semiLinear": semi_linear,
    "String": text_of,
    "der": derivative,
    "terminal": lambda: False,
    "scalarProduct": product_of,
}
"""By name; ``terminal()`` is false until the last instant, at which nothing is changed any more."""
