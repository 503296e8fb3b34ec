"""The elementary functions on formulas, arrays of formulas and plain numbers.

On numbers they compute at once (NumPy); on formulas they add a node; on arrays they work element by element.

::

    smooth_abs(x, w)  = sqrt(x² + w²)              → |x| as w → 0
    smooth_sign(x, w) = x / sqrt(x² + w²)          = d smooth_abs / dx
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import (
    Call,
    Condition,
    Constant,
    Equation,
    Expression,
    Name,
    as_condition,
    as_expression,
    as_number,
    postorder,
)
from grisaille.model.symbol_arrays import SymbolArray, elementwise

time = Name("time")
"""The independent variable, in seconds unless the model's units say otherwise."""


def _apply(operation: str, numeric: Callable[..., Any], *arguments: Any) -> Any:
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


def _holds_formulas(argument: Any) -> bool:
    return isinstance(argument, list | tuple) and any(isinstance(item, Expression) for item in argument)


def sin(x: Any) -> Any:
    """Sine of an angle in radians."""
    return _apply("sin", np.sin, x)


def cos(x: Any) -> Any:
    """Cosine of an angle in radians."""
    return _apply("cos", np.cos, x)


def tan(x: Any) -> Any:
    """Tangent of an angle in radians."""
    return _apply("tan", np.tan, x)


def asin(x: Any) -> Any:
    """Inverse sine, in [-π/2, π/2]."""
    return _apply("asin", np.arcsin, x)


def acos(x: Any) -> Any:
    """Inverse cosine, in [0, π]."""
    return _apply("acos", np.arccos, x)


def atan(x: Any) -> Any:
    """Inverse tangent, in (-π/2, π/2)."""
    return _apply("atan", np.arctan, x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), in (-π, π]."""
    return _apply("atan2", np.arctan2, y, x)


def sinh(x: Any) -> Any:
    """Hyperbolic sine."""
    return _apply("sinh", np.sinh, x)


def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""
    return _apply("cosh", np.cosh, x)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return _apply("tanh", np.tanh, x)


def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""
    return _apply("asinh", np.arcsinh, x)


def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine, for x ≥ 1."""
    return _apply("acosh", np.arccosh, x)


def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent, for |x| < 1."""
    return _apply("atanh", np.arctanh, x)


def exp(x: Any) -> Any:
    """Exponential."""
    return _apply("exp", np.exp, x)


def log(x: Any) -> Any:
    """Natural logarithm, for x > 0."""
    return _apply("log", np.log, x)


def log10(x: Any) -> Any:
    """Logarithm to base ten, for x > 0."""
    return _apply("log10", np.log10, x)


def sqrt(x: Any) -> Any:
    """Square root, for x ≥ 0; its derivative at 0 is infinite."""
    return _apply("sqrt", np.sqrt, x)


def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    return _apply("sign", np.sign, x)


def floor(x: Any) -> Any:
    """The largest integer not above x; its derivative is zero."""
    return _apply("floor", np.floor, x)


def ceil(x: Any) -> Any:
    """The smallest integer not below x; its derivative is zero."""
    return _apply("ceil", np.ceil, x)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two formulas."""
    return _apply("minimum", np.minimum, a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two formulas."""
    return _apply("maximum", np.maximum, a, b)


def smooth_abs(x: Any, width: Any) -> Any:
    """sqrt(x² + width²): |x| without the kink.

    x : a formula
    width : above zero, in the unit of x; at x = 0 the result is above |x| by this much, elsewhere by less
    """
    _check_width(width)
    return _apply("smooth_abs", lambda a, w: np.sqrt(a * a + w * w), x, width)


def smooth_sign(x: Any, width: Any) -> Any:
    """x / sqrt(x² + width²): the sign of x without the jump, the derivative of :func:`smooth_abs`.

    x : a formula
    width : above zero, in the unit of x: how far from zero the sign is ±0.7
    """
    _check_width(width)
    return _apply("smooth_sign", lambda a, w: a / np.sqrt(a * a + w * w), x, width)


def _check_width(width: Any) -> None:
    if not isinstance(width, Expression | np.ndarray) and not as_number(width) > 0:
        raise ModelError(f"The width of a smoothed kink must be positive, got {width!r}.")


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``.

    Both branches are evaluated, but the branch that is not taken never spoils the value or the derivatives: its
    singular operations (powers, roots, logarithms, quotients, …) are evaluated at a harmless point instead.
    So ``where(r > 0, r**p, 0)`` and its gradient are finite for every r.

    condition : with ``<``, ``<=``, ``>`` or ``>=``; several are joined by ``&``, ``|`` and ``~``
    yes, no : formulas or numbers
    """
    if any(isinstance(a, np.ndarray) for a in (condition, yes, no)):
        return elementwise(where, condition, yes, no)
    if isinstance(condition, bool | np.bool_):
        return yes if condition else no
    if isinstance(condition, Equation):
        raise ModelError(f"gr.where needs a condition with <, <=, > or >=; `{condition}` is an equation.")
    return Call("where", (as_condition(condition), as_expression(yes), as_expression(no)))


def der(expression: Any, order: int = 1) -> Any:
    """The time derivative of any formula; ``der(x, 2)`` is the second one.

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


def array(items: Any) -> SymbolArray:
    """An array of formulas and numbers on which ``==``, ``@`` and NumPy's functions work element by element.

    items : lists of them, nested for matrices
    """
    result = np.array(items, dtype=object)
    for item in result.flat:
        if not isinstance(item, Condition):
            as_expression(item)
    return result.view(SymbolArray)
