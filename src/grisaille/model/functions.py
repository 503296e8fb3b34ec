"""The elementary functions on formulas, arrays of formulas and plain numbers.

On numbers they compute at once (NumPy); on formulas they add a node; on arrays they work element by element.

::

    smooth_abs(x, w)  = sqrt(x² + w²)              → |x| as w → 0
    smooth_sign(x, w) = x / sqrt(x² + w²)          = d smooth_abs / dx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast, overload

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import (
    Call,
    Condition,
    Constant,
    Equation,
    Expression,
    FormulaLike,
    Formulas,
    Name,
    Scalar,
    as_condition,
    as_expression,
    as_number,
    postorder,
)
from grisaille.model.symbol_arrays import SymbolArray, elementwise

time = Name("time")
"""The independent variable, in seconds unless the model's units say otherwise."""


Result: TypeAlias = "Expression | float | np.ndarray"
"""A formula of formulas, a number of numbers, an array of arrays."""
ConditionLike: TypeAlias = "Condition | bool | np.bool_ | np.ndarray"


class FunctionOfOne(Protocol):
    """An elementary function: of a formula a formula, of a number a number, of an array an array."""

    @overload
    def __call__(self, x: Expression) -> Expression: ...
    @overload
    def __call__(self, x: float) -> float: ...
    @overload
    def __call__(self, x: np.ndarray | Sequence[FormulaLike]) -> np.ndarray: ...


class FunctionOfTwo(Protocol):
    """An elementary function of two: a formula where either is one, else a number; of an array an array."""

    @overload
    def __call__(self, a: Expression, b: Scalar, /) -> Expression: ...
    @overload
    def __call__(self, a: Scalar, b: Expression, /) -> Expression: ...
    @overload
    def __call__(self, a: float, b: float, /) -> float: ...
    @overload
    def __call__(self, a: np.ndarray | Sequence[FormulaLike], b: FormulaLike, /) -> np.ndarray: ...
    @overload
    def __call__(self, a: FormulaLike, b: np.ndarray | Sequence[FormulaLike], /) -> np.ndarray: ...


class CaseDistinction(Protocol):
    """A choice between formulas, by single conditions or arrays of them."""

    @overload
    def __call__(self, condition: Condition, yes: Scalar, no: Scalar) -> Expression: ...
    @overload
    def __call__(self, condition: ConditionLike, yes: FormulaLike, no: FormulaLike) -> Any: ...


class Derivative(Protocol):
    """A derivative by time, of a formula or of each in an array."""

    @overload
    def __call__(self, expression: Scalar, order: int = 1) -> Expression: ...
    @overload
    def __call__(self, expression: np.ndarray, order: int = 1) -> SymbolArray: ...


def _of_one(function: Callable[[FormulaLike], Result]) -> FunctionOfOne:
    return cast("FunctionOfOne", function)


def _of_two(function: Callable[[FormulaLike, FormulaLike], Result]) -> FunctionOfTwo:
    return cast("FunctionOfTwo", function)


def _of_condition(function: Callable[[ConditionLike, FormulaLike, FormulaLike], Result]) -> CaseDistinction:
    return cast("CaseDistinction", function)


def _derivative(function: Callable[[FormulaLike, int], Formulas]) -> Derivative:
    return cast("Derivative", function)


def _apply(operation: str, numeric: Callable[..., float | np.ndarray], *arguments: FormulaLike) -> Result:
    arguments = tuple(np.array(a, dtype=object) if _holds_formulas(a) else a for a in arguments)
    if any(isinstance(a, np.ndarray) and a.dtype == object for a in arguments) or (
        any(isinstance(a, np.ndarray) for a in arguments) and any(isinstance(a, Expression) for a in arguments)
    ):
        return elementwise(lambda *items: _apply(operation, numeric, *items), *arguments)
    if all(isinstance(a, int | float | np.number | np.ndarray | list | tuple) for a in arguments):
        try:
            return numeric(*arguments)
        except (TypeError, ValueError):
            raise ModelError(
                f"{operation} takes numbers and formulas, not {', '.join(map(repr, arguments))}."
            ) from None
    return Call(operation, tuple(as_expression(a) for a in arguments))


def _holds_formulas(argument: FormulaLike) -> bool:
    return isinstance(argument, list | tuple) and any(isinstance(item, Expression) for item in argument)


@_of_one
def sin(x: FormulaLike) -> Result:
    """Return the sine of an angle in radians."""
    return _apply("sin", np.sin, x)


@_of_one
def cos(x: FormulaLike) -> Result:
    """Return the cosine of an angle in radians."""
    return _apply("cos", np.cos, x)


@_of_one
def tan(x: FormulaLike) -> Result:
    """Return the tangent of an angle in radians."""
    return _apply("tan", np.tan, x)


@_of_one
def asin(x: FormulaLike) -> Result:
    """Return the inverse sine, in [-π/2, π/2]."""
    return _apply("asin", np.arcsin, x)


@_of_one
def acos(x: FormulaLike) -> Result:
    """Return the inverse cosine, in [0, π]."""
    return _apply("acos", np.arccos, x)


@_of_one
def atan(x: FormulaLike) -> Result:
    """Return the inverse tangent, in (-π/2, π/2)."""
    return _apply("atan", np.arctan, x)


@_of_two
def atan2(y: FormulaLike, x: FormulaLike) -> Result:
    """Return the angle of the point (x, y), in (-π, π]."""
    return _apply("atan2", np.arctan2, y, x)


@_of_one
def sinh(x: FormulaLike) -> Result:
    """Return the hyperbolic sine."""
    return _apply("sinh", np.sinh, x)


@_of_one
def cosh(x: FormulaLike) -> Result:
    """Return the hyperbolic cosine."""
    return _apply("cosh", np.cosh, x)


@_of_one
def tanh(x: FormulaLike) -> Result:
    """Return the hyperbolic tangent."""
    return _apply("tanh", np.tanh, x)


@_of_one
def asinh(x: FormulaLike) -> Result:
    """Return the inverse hyperbolic sine."""
    return _apply("asinh", np.arcsinh, x)


@_of_one
def acosh(x: FormulaLike) -> Result:
    """Return the inverse hyperbolic cosine, for x ≥ 1."""
    return _apply("acosh", np.arccosh, x)


@_of_one
def atanh(x: FormulaLike) -> Result:
    """Return the inverse hyperbolic tangent, for |x| < 1."""
    return _apply("atanh", np.arctanh, x)


@_of_one
def exp(x: FormulaLike) -> Result:
    """Return the exponential."""
    return _apply("exp", np.exp, x)


@_of_one
def log(x: FormulaLike) -> Result:
    """Return the natural logarithm, for x > 0."""
    return _apply("log", np.log, x)


@_of_one
def log10(x: FormulaLike) -> Result:
    """Return the logarithm to base ten, for x > 0."""
    return _apply("log10", np.log10, x)


@_of_one
def sqrt(x: FormulaLike) -> Result:
    """Return the square root, for x ≥ 0; its derivative at 0 is infinite."""
    return _apply("sqrt", np.sqrt, x)


@_of_one
def sign(x: FormulaLike) -> Result:
    """-1, 0 or 1."""
    return _apply("sign", np.sign, x)


@_of_one
def floor(x: FormulaLike) -> Result:
    """Return the largest integer not above x; its derivative is zero."""
    return _apply("floor", np.floor, x)


@_of_one
def ceil(x: FormulaLike) -> Result:
    """Return the smallest integer not below x; its derivative is zero."""
    return _apply("ceil", np.ceil, x)


@_of_two
def minimum(a: FormulaLike, b: FormulaLike) -> Result:
    """Return the smaller of two formulas."""
    return _apply("minimum", np.minimum, a, b)


@_of_two
def maximum(a: FormulaLike, b: FormulaLike) -> Result:
    """Return the larger of two formulas."""
    return _apply("maximum", np.maximum, a, b)


@_of_two
def smooth_abs(x: FormulaLike, width: FormulaLike) -> Result:
    """Return sqrt(x² + width²): |x| without the kink.

    x : a formula
    width : above zero, in the unit of x; at x = 0 the result is above |x| by this much, elsewhere by less
    """
    _check_width(width)
    return _apply("smooth_abs", lambda a, w: np.sqrt(a * a + w * w), x, width)


@_of_two
def smooth_sign(x: FormulaLike, width: FormulaLike) -> Result:
    """Return x / sqrt(x² + width²): the sign of x without the jump, the derivative of :func:`smooth_abs`.

    x : a formula
    width : above zero, in the unit of x: how far from zero the sign is ±0.7
    """
    _check_width(width)
    return _apply("smooth_sign", lambda a, w: a / np.sqrt(a * a + w * w), x, width)


def _check_width(width: FormulaLike) -> None:
    if not isinstance(width, Expression | np.ndarray) and not as_number(width) > 0:
        raise ModelError(f"The width of a smoothed kink must be positive, got {width!r}.")


@_of_condition
def where(condition: ConditionLike, yes: FormulaLike, no: FormulaLike) -> Result:
    """Return ``yes`` where the condition holds, else ``no``.

    Both branches are evaluated, but the branch that is not taken never spoils the value or the derivatives: its
    singular operations (powers, roots, logarithms, quotients, …) are evaluated at a harmless point instead.
    So ``where(r > 0, r**p, 0)`` and its gradient are finite for every r.

    condition : with ``<``, ``<=``, ``>`` or ``>=``; several are joined by ``&``, ``|`` and ``~``
    yes, no : formulas or numbers
    """
    if any(isinstance(a, np.ndarray) for a in (condition, yes, no)):
        return elementwise(where, condition, yes, no)
    if isinstance(condition, bool | np.bool_):
        return cast("Result", yes if condition else no)
    if isinstance(condition, Equation):
        raise ModelError(f"gr.where needs a condition with <, <=, > or >=; `{condition}` is an equation.")
    return Call("where", (as_condition(condition), as_expression(yes), as_expression(no)))


@_derivative
def der(expression: FormulaLike, order: int = 1) -> Formulas:
    """Return the time derivative of any formula; ``der(x, 2)`` is the second one.

    expression : a formula with something in it that moves, or an array of them
    order : a whole number from 1
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ModelError(f"The order of a derivative must be a whole number from 1, got der(…, {order!r}).")
    if isinstance(expression, np.ndarray):
        return elementwise(lambda item: der(item, order), expression)
    argument = as_expression(expression)
    if isinstance(argument, Call) and argument.operation == "der":
        return Call("der", argument.arguments, (argument.data or 1) + order)
    if not any(leaf.varies for leaf in postorder((argument,)) if not isinstance(leaf, Call)):
        raise ModelError(_constant_derivative(argument))
    return Call("der", (argument,), order)


def _constant_derivative(argument: Expression) -> str:
    if isinstance(argument, Constant):
        return f"der({argument}) is the derivative of a number, which is zero; remove it."
    if not isinstance(argument, Call):
        return (
            f"der({argument}) is refused: {argument} is a parameter, constant in time. If it moves, declare it as "
            f"gr.Variable or gr.Input."
        )
    return f"der({argument}) is refused: the formula contains parameters and numbers only and is constant in time."


def array(items: FormulaLike) -> SymbolArray:
    """Return an array of formulas and numbers on which ``==``, ``@`` and NumPy's functions work element by element.

    items : lists of them, nested for matrices
    """
    result = np.array(items, dtype=object)
    for item in result.flat:
        if not isinstance(item, Condition):
            as_expression(item)
    return result.view(SymbolArray)
