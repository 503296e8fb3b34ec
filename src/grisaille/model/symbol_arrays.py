"""Arrays of formulas: NumPy arrays whose elements are expressions.

``==`` gives an array of equations, ``<`` an array of conditions; ``+ - * / ** @``, slices, ``np.sin``, ``np.cross``,
``np.dot``, ``np.linalg.norm`` and the like work and give arrays of the same class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Condition, Equation, Expression, FormulaLike, Formulas, as_expression

if TYPE_CHECKING:
    pass

Array = np.ndarray[Any, Any]


class SymbolArray(np.ndarray[Any, Any]):
    """An array of expressions, equations or conditions (dtype object)."""

    __array_priority__ = 20.0  # np.eye(3).dot(r) does not ask __array_function__, but takes the class from here

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: FormulaLike, **options: object) -> Formulas:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        special = _FUNCTIONS.get(function)
        if special is not None:
            return special(*args, **kwargs)
        return _as_symbols(super().__array_function__(function, types, args, kwargs))

    def __eq__(self, other: FormulaLike) -> Formulas:  # type: ignore[override]
        return apply_ufunc(np.equal, "__call__", (self, other), {})

    def __ne__(self, other: object) -> NoReturn:
        raise ModelError("!= has no meaning between arrays of formulas: equations use ==.")

    __hash__ = None

    def __bool__(self) -> NoReturn:
        raise ModelError("An array of formulas has no truth value; use gr.where for a case distinction.")

    def dot(self, other: np.ndarray) -> Formulas:  # type: ignore[override]
        return _matmul(self, other)

    def __repr__(self) -> str:
        return f"[{', '.join(repr(row) for row in self)}]" if self.ndim else repr(self.item())

    __str__ = __repr__


def elementwise(function: Callable[..., object], *arguments: object) -> Formulas:
    """Return ``function`` applied to each element after broadcasting."""
    boxed = [_boxed(argument) for argument in arguments]
    try:
        shape = np.broadcast_shapes(*(box.shape for box in boxed))
    except ValueError:
        shapes = " and ".join(str(box.shape) for box in boxed)
        raise ModelError(f"Arrays of shapes {shapes} do not fit together element by element.") from None
    result = np.empty(shape, dtype=object)
    spread = [np.broadcast_to(box, shape) for box in boxed]
    for index in np.ndindex(*shape):
        result[index] = function(*(_plain(box[index]) for box in spread))
    single: Any = result[()]
    return result.view(SymbolArray) if shape else single


def _plain(item: Any) -> Any:
    """Return Python's number for NumPy's, whose operators would come back here."""
    return item.item() if isinstance(item, np.generic) else item


def _boxed(argument: object) -> Array:
    if isinstance(argument, np.ndarray):
        return argument.view(np.ndarray)
    if isinstance(argument, list | tuple):
        return np.array(argument, dtype=object)
    box = np.empty((), dtype=object)
    box[()] = argument
    return box


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[FormulaLike, ...], options: Mapping[str, Any]) -> Formulas:
    """Return a NumPy function on formulas: the node it means, element by element."""
    if ufunc is np.matmul and method == "__call__":
        left, right = inputs
        return _matmul(left, right)
    function = _UFUNCS.get(ufunc)
    if function is None or method not in ("__call__", "reduce", "outer", "accumulate"):
        raise ModelError(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method} is not known on formulas.")
    if method == "reduce":
        return _reduce(function, inputs[0], options.get("axis", 0), bool(options.get("keepdims")))
    if method == "accumulate":
        return _accumulate(function, inputs[0])
    if method == "outer":
        left, right = _boxed(inputs[0]), _boxed(inputs[1])
        inputs = (left.reshape(left.shape + (1,) * right.ndim), right)
    result = elementwise(function, *inputs)
    out = options.get("out")
    if out is None:
        return result
    if isinstance(out[0], SymbolArray):
        raise ModelError("Arrays of formulas do not change in place: write r = r + … instead of r += ….")
    written: SymbolArray = out[0]
    written[...] = result
    return written


def _reduce(
    function: Callable[..., object], array: FormulaLike, axis: int | tuple[int, ...] | None, keepdims: bool
) -> Formulas:
    items = _boxed(array)
    axes = tuple(range(items.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = tuple(a % items.ndim for a in axes)
    rest = [a for a in range(items.ndim) if a not in axes]
    rows = items.transpose(*axes, *rest).reshape(-1, *(items.shape[a] for a in rest))
    if not len(rows):
        raise ModelError("An empty array of formulas cannot be reduced.")
    total: Any = rows[0]
    for row in rows[1:]:
        total = elementwise(function, total, row)
    if keepdims:
        return _boxed(total).reshape([1 if a in axes else n for a, n in enumerate(items.shape)]).view(SymbolArray)
    reduced: Formulas = _as_symbols(total)
    return reduced


def _accumulate(function: Callable[..., object], array: FormulaLike) -> SymbolArray:
    rows = list(_boxed(array))
    for i in range(1, len(rows)):
        rows[i] = elementwise(function, rows[i - 1], rows[i])
    return np.array(rows, dtype=object).view(SymbolArray)


def _matmul(left: FormulaLike, right: FormulaLike) -> Formulas:
    a, b = _boxed(left), _boxed(right)
    if not a.ndim or not b.ndim:
        raise ModelError("@ needs arrays on both sides; use * with a single quantity.")
    if a.ndim > 2 or b.ndim > 2 or a.shape[-1] != b.shape[0]:
        raise ModelError(f"Arrays of shapes {a.shape} and {b.shape} do not fit together in a matrix product.")
    rows, columns = a.reshape(-1, a.shape[-1]), b.reshape(b.shape[0], -1)
    result = np.empty((len(rows), columns.shape[1]), dtype=object)
    for i, j in np.ndindex(*result.shape):
        result[i, j] = _sum_of_products(rows[i], columns[:, j])
    shape = a.shape[:-1] + b.shape[1:]
    return result.reshape(shape).view(SymbolArray) if shape else result[0, 0]


def _sum_of_products(left: Array, right: Array) -> float | Expression:
    """Σ aᵢ bᵢ without the terms that a number 0 removes and the factors 1."""
    total: Any = None
    for a, b in zip(map(_plain, left), map(_plain, right), strict=True):
        if _is_number(a, 0.0) or _is_number(b, 0.0):
            continue
        term = b if _is_number(a, 1.0) else a if _is_number(b, 1.0) else a * b
        total = term if total is None else total + term
    return 0.0 if total is None else total


def _is_number(value: object, number: float) -> bool:
    return not isinstance(value, Expression) and bool(value == number)


def _as_symbols(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(SymbolArray)
    if isinstance(value, list | tuple):
        return type(value)(_as_symbols(item) for item in value)
    return value


def _node(operation: str) -> Callable[..., Expression]:
    return lambda *arguments: Call(operation, tuple(as_expression(a) for a in arguments))


def _comparison(operation: str) -> Callable[..., Expression]:
    return lambda a, b: Condition(operation, (as_expression(a), as_expression(b)))


def _equation(left: Expression, right: float | Expression) -> Equation:
    return Equation(as_expression(left), as_expression(right))


def _refuse_unequal(left: object, right: object) -> NoReturn:
    raise ModelError(f"`{left} != {right}` has no meaning in a model: equations use ==.")


_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.equal: _equation,
    np.not_equal: _refuse_unequal,
    np.less: _comparison("lt"),
    np.less_equal: _comparison("le"),
    np.greater: _comparison("gt"),
    np.greater_equal: _comparison("ge"),
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.divide: lambda a, b: a / b,
    np.power: lambda a, b: a**b,
    np.float_power: lambda a, b: a**b,
    np.negative: lambda a: -a,
    np.positive: lambda a: +a,
    np.square: lambda a: a**2,
    np.reciprocal: lambda a: 1.0 / a,
    np.logical_and: lambda a, b: a & b,
    np.logical_or: lambda a, b: a | b,
    np.logical_not: lambda a: ~a,
    np.bitwise_and: lambda a, b: a & b,
    np.bitwise_or: lambda a, b: a | b,
    np.invert: lambda a: ~a,
    np.deg2rad: lambda a: a * (np.pi / 180),
    np.rad2deg: lambda a: a * (180 / np.pi),
    np.radians: lambda a: a * (np.pi / 180),
    np.degrees: lambda a: a * (180 / np.pi),
    np.hypot: lambda a, b: _node("sqrt")(a**2 + b**2),
    np.conjugate: lambda a: a,
    np.fmin: _node("minimum"),
    np.fmax: _node("maximum"),
    **{
        getattr(np, numpy_name): _node(operation)
        for operation, numpy_name in {
            "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
            "atan2": "arctan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh",
            "acosh": "arccosh", "atanh": "arctanh", "exp": "exp", "log": "log", "log10": "log10", "sqrt": "sqrt",
            "abs": "absolute", "sign": "sign", "minimum": "minimum", "maximum": "maximum", "floor": "floor",
            "ceil": "ceil",
        }.items()
    },
}  # fmt: skip
_UFUNCS[np.fabs] = _UFUNCS[np.absolute]


def _norm(array: FormulaLike, axis: int | tuple[int, ...] | None = None) -> Formulas:
    return apply_ufunc(np.sqrt, "__call__", (_reduce(lambda a, b: a + b, _boxed(array) ** 2, axis, False),), {})


def _where(condition: np.ndarray, yes: FormulaLike, no: FormulaLike) -> Formulas:
    return elementwise(lambda c, a, b: Call("where", (c, as_expression(a), as_expression(b))), condition, yes, no)


def _clip(array: FormulaLike, low: FormulaLike, high: FormulaLike) -> Formulas:
    return elementwise(lambda x, a, b: _node("minimum")(_node("maximum")(x, a), b), array, low, high)


def _refuse_algebra(*_arguments: object, **_options: object) -> NoReturn:
    raise ModelError(
        "Linear algebra is not done on formulas: write the equations A @ x == b and leave their solution to the "
        "simulator."
    )


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: _refuse_algebra,
    np.linalg.inv: _refuse_algebra,
    np.linalg.det: _refuse_algebra,
    np.dot: _matmul,
    np.inner: _matmul,
    np.linalg.norm: _norm,
    np.where: _where,
    np.clip: _clip,
}
