"""The expression graph that users write in: small immutable nodes, readable text, protective errors.

An expression is a constant, a name, or an operation applied to expressions. Nothing is evaluated here: a
flattened model is lowered to CasADi (``lowering.py``) when its structure is analysed. All walks over the graph are
iterative and memoised, so deep and shared formulas cost what they occupy.

Comparisons ``< <= > >=`` give a :class:`Condition` for ``where``; ``==`` gives an :class:`Equation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, SupportsFloat, TypeAlias, cast, overload

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.recording import register

if TYPE_CHECKING:
    from grisaille.model.classes import Model
    from grisaille.model.connectors import Connector
    from grisaille.model.symbol_arrays import SymbolArray
    from grisaille.model.views import View

Data: TypeAlias = "int | float | str | bool | Expression | tuple[Data, ...] | None"
"""What a node holds beside its arguments: the order of a derivative, the knots and values of a table."""
Scalar: TypeAlias = "Expression | int | float | np.number | np.bool_"
"""A single formula, or a number in its place."""
FormulaLike: TypeAlias = "Scalar | np.ndarray | Sequence[FormulaLike]"
"""A formula, a number, or an array or nested lists of them: what functions of formulas take."""
Formulas: TypeAlias = "Expression | SymbolArray"
"""What operations on formulas give: a single one, or an array of them."""


class Operator(Protocol):
    """Arithmetic: a formula of two single ones, element by element with an array."""

    @overload
    def __call__(self, other: Scalar, /) -> Expression: ...
    @overload
    def __call__(self, other: np.ndarray, /) -> SymbolArray: ...


class RelationalOperator(Protocol):
    """``< <= > >=``: a condition of two single formulas, element by element with an array."""

    @overload
    def __call__(self, other: Scalar, /) -> Condition: ...
    @overload
    def __call__(self, other: np.ndarray, /) -> SymbolArray: ...


def _operator(operation: str, *, is_reflected: bool = False, neutral: int | None = None) -> Operator:
    """Return the method of an operator; a whole number ``neutral`` on the left leaves the formula as it is."""

    def method(self: Expression, other: Scalar | np.ndarray) -> Expression:
        if type(other) is int and other == neutral:
            return self
        return _binary(operation, other, self) if is_reflected else _binary(operation, self, other)

    return cast("Operator", method)


def _comparison(operation: str) -> RelationalOperator:
    return cast("RelationalOperator", lambda self, other: _binary(operation, self, other))


class Expression:
    """A formula; abstract. Concrete: :class:`Constant`, :class:`Name`, :class:`Call`, references, declarations."""

    __slots__ = ()
    is_formula = True
    """By which laws, which stand below models, know that a number is still to come."""
    varies = True
    """Whether the leaf may change with time."""

    __add__ = _operator("add")
    __radd__ = _operator("add", is_reflected=True, neutral=0)  # sum([a, b]) begins with 0
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", is_reflected=True)
    __mul__ = _operator("mul")
    __rmul__ = _operator("mul", is_reflected=True, neutral=1)  # math.prod([a, b]) begins with 1
    __truediv__ = _operator("div")
    __rtruediv__ = _operator("div", is_reflected=True)
    __pow__ = _operator("pow")
    __rpow__ = _operator("pow", is_reflected=True)

    def __xor__(self, other: object) -> NoReturn:
        raise ModelError(f"`{self} ^ {other}`: Python writes powers with two stars, {self}**{other}.")

    def __rxor__(self, other: object) -> NoReturn:
        raise ModelError(f"`{other} ^ {self}`: Python writes powers with two stars, {other}**{self}.")

    def __neg__(self) -> Expression:
        return Call("neg", (as_expression(self),))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return Call("abs", (as_expression(self),))

    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")

    def __eq__(self, other: Scalar | np.ndarray) -> Equation:  # type: ignore[override]
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Equation(as_expression(self), as_expression(other))

    __hash__ = object.__hash__

    def __ne__(self, other: object) -> NoReturn:
        raise ModelError(
            f"`{self} != …` has no meaning in a model: equations use ==. For a case distinction use "
            "gr.where(a > b, …, …); to compare objects use `is not`."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: FormulaLike, **options: object) -> Formulas:
        # Expressions meet NumPy only here; arrays.py is made of expressions, so it cannot be imported above.
        from grisaille.model.symbol_arrays import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, options)

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"The formula `{self}` has no truth value while the model is written: it is a symbol, not a number. Use "
            "gr.where(condition, a, b) instead of if/and/or, gr.minimum and gr.maximum instead of min and max."
        )

    def __float__(self) -> NoReturn:
        raise ModelError(
            f"The formula `{self}` is not a number. math.sin and its like cannot take it: use gr.sin, gr.exp, … "
            'or numpy\'s functions. The value of a parameter is model.parameters["name"].value.'
        )

    __int__ = __index__ = __complex__ = __round__ = __trunc__ = __float__

    def __len__(self) -> NoReturn:
        raise ModelError(f"`{self}` is a single quantity and has no length; declare vectors with size=n.")

    def __iter__(self) -> NoReturn:
        raise ModelError(f"`{self}` is a single quantity and cannot be iterated; declare vectors with size=n.")

    def __and__(self, other: object) -> NoReturn:
        raise ModelError(f"& | ~ combine conditions such as (x > 0) & (y > 0); `{self}` is not a condition.")

    __or__ = __rand__ = __ror__ = __and__

    def __invert__(self) -> NoReturn:
        self.__and__(self)

    def __floordiv__(self, other: object) -> NoReturn:
        raise ModelError(f"`{self} // …` and % are not differentiable; write gr.floor(a / b) if that is meant.")

    __mod__ = __rfloordiv__ = __rmod__ = __divmod__ = __rdivmod__ = __floordiv__

    def __matmul__(self, other: object) -> NoReturn:
        raise ModelError(f"@ needs arrays on both sides; `{self}` is a single quantity: use *.")

    __rmatmul__ = __matmul__

    def __repr__(self) -> str:
        from grisaille.model.notation.text import render  # text.py reads the nodes defined here

        return render(self)

    def conjugate(self) -> Expression:
        """Return the formula itself, which is real; NumPy's ``vdot`` asks for it."""
        return self

    def leaf_text(self) -> str:
        """Return how a leaf is written."""
        raise TypeError(f"{type(self).__name__} is not a leaf")


def _method(operation: str) -> Callable[[Expression], Expression]:
    def method(self: Expression) -> Expression:
        return Call(operation, (as_expression(self),))

    return method


# np.sin of a plain array of objects calls the method ``sin`` of each element
for _operation, _numpy_name in (
    ("sin", "sin"), ("cos", "cos"), ("tan", "tan"), ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"),
    ("sinh", "sinh"), ("cosh", "cosh"), ("tanh", "tanh"), ("asinh", "arcsinh"), ("acosh", "arccosh"),
    ("atanh", "arctanh"), ("exp", "exp"), ("log", "log"), ("log10", "log10"), ("sqrt", "sqrt"),
):  # fmt: skip
    setattr(Expression, _numpy_name, _method(_operation))


class Constant(Expression):
    """A number."""

    __slots__ = ("value",)
    varies = False

    def __init__(self, value: float) -> None:
        self.value = float(value)


class Name(Expression):
    """A flat name such as ``"legs[0].m"`` or ``"time"``: the only leaf of a flattened model besides numbers."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def leaf_text(self) -> str:
        return self.path


class Call(Expression):
    """An operation on expressions; ``data`` holds what is not an expression (order of ``der``, values of a table)."""

    __slots__ = ("arguments", "data", "operation")

    def __init__(self, operation: str, arguments: tuple[Expression, ...], data: Any = None) -> None:
        self.operation = operation
        self.arguments = arguments
        self.data = data

    def rebuilt(self, arguments: tuple[Expression, ...]) -> Call:
        """Return the same operation on other arguments."""
        return type(self)(self.operation, arguments, self.data)


BEND_MARK = "bends"
"""``data`` of a comparison that chooses between formulas which meet: nothing jumps where it changes."""
SMOOTH_MARK = "smooth"
"""As ``BEND_MARK``, where slopes meet as well, or are to be taken so: no event is looked for in derivatives either."""
LARGER, SMALLER = "larger", "smaller"
"""``data`` of a ``where`` of two formulas that is the larger or the smaller one of them, ``where(a >= b, a, b)``."""


class Condition(Call):
    """A comparison of formulas, or a combination of them by ``& | ~``."""

    __slots__ = ()

    def __and__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition("and", (self, as_condition(other)))

    def __or__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition("or", (self, as_condition(other)))

    def __invert__(self) -> Condition:  # type: ignore[override]
        return Condition("not", (self,))

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"The condition `{self}` has no truth value while the model is written. Use gr.where(condition, a, b) "
            "instead of if, & and | instead of and/or, and split a < b < c into (a < b) & (b < c)."
        )


class Equation:
    """``left == right``; becomes part of a model when it is listed in ``equations``."""

    __slots__ = ("left", "right", "source")

    def __init__(self, left: Expression, right: Expression) -> None:
        self.left, self.right = left, right
        if same(left, right):
            raise ModelError(f"The equation `{left} == {right}` is always true: both sides are the same. Remove it.")
        if not any(isinstance(node, Name) or is_open(node) for node in postorder((left, right))):
            raise ModelError(f"The equation `{left} == {right}` contains numbers only and determines nothing.")
        self.source = register(self)

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"The equation `{self}` has no truth value: == writes an equation. Do not chain a == b == c, compare "
            "objects with `is`, use > or < inside gr.where, and make arrays with size=n or gr.array([…]) before "
            "comparing them."
        )

    def __repr__(self) -> str:
        return f"{self.left} == {self.right}"


def is_open(node: Expression) -> bool:
    """Return whether a leaf still waits for its full name (a declaration or a reference)."""
    return not isinstance(node, Call | Constant | Name)


COMPARISONS = frozenset({"lt", "le", "gt", "ge"})


def _binary(operation: str, left: Scalar | np.ndarray, right: Scalar | np.ndarray) -> Call:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return NotImplemented  # type: ignore[no-any-return]  # NumPy then asks __array_ufunc__, which works element by element
    if operation == "div" and isinstance(right, int | float) and right == 0:
        raise ModelError(f"`{left} / {right}` divides by the number zero.")
    node = Condition if operation in COMPARISONS else Call
    return node(operation, (as_expression(left), as_expression(right)))


def as_expression(value: object) -> Expression:
    """Return an expression as it is, a number as :class:`Constant`."""
    if isinstance(value, Expression):
        if isinstance(value, Condition):
            raise ModelError(
                f"The condition `{value}` cannot be used as a number; write gr.where({value}, 1, 0) if that is meant."
            )
        return value
    return Constant(as_number(value))


def as_condition(value: object) -> Condition:
    """Return a condition as it is; anything else is refused."""
    if isinstance(value, Condition):
        return value
    raise ModelError(
        f"A condition such as x > 0 is needed here, got `{value!r}`. (== writes an equation, not a condition.)"
    )


def as_number(value: object) -> float:
    """Return a finite real number as ``float``; everything else is refused with a hint."""
    if isinstance(value, bool | np.bool_):
        raise ModelError(
            f"{value} is not a number that a formula can hold; write 1.0 or 0.0, or gr.where(condition, a, b)."
        )
    if isinstance(value, complex | np.complexfloating):
        raise ModelError(f"The complex number {value} cannot stand in a formula; write real and imaginary parts apart.")
    if isinstance(value, str):
        raise ModelError(f"The text {value!r} cannot stand in a formula; use the member itself, without quotes.")
    if isinstance(value, Equation):
        raise ModelError(f"The equation `{value}` cannot be part of a formula: == belongs at the top of an equation.")
    if isinstance(value, np.ndarray) and value.ndim:
        raise ModelError(f"A single number or formula is needed here, got an array of shape {value.shape}.")
    try:
        number = float(cast("SupportsFloat", value))
    except OverflowError:
        raise ModelError("A whole number beyond 1e308 cannot stand in a formula: numbers must be finite.") from None
    except (TypeError, ValueError):
        raise ModelError(
            f"{_kind(value)} cannot stand in a formula; use numbers, declared members and gr's functions."
        ) from None
    if not math.isfinite(number):
        raise ModelError(
            f"{'NaN' if math.isnan(number) else number} cannot stand in a formula: numbers must be finite."
        )
    return number


def _kind(value: object) -> str:
    return "None" if value is None else f"An object of type {type(value).__name__}"


def postorder(roots: Iterable[Expression]) -> Iterator[Expression]:
    """Yield every node below ``roots`` once, arguments before the calls that use them; no recursion."""
    seen: set[int] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in seen:
                continue
            if expanded or not isinstance(node, Call):
                seen.add(id(node))
                yield node
            else:
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.arguments))


def same(left: Expression, right: Expression) -> bool:
    """Return whether two formulas are the same, node by node."""
    pairs, seen = [(left, right)], set()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        if isinstance(a, Call) and isinstance(b, Call):
            if (a.operation, a.data, len(a.arguments)) != (b.operation, b.data, len(b.arguments)):
                return False
            pairs.extend(zip(a.arguments, b.arguments, strict=True))
        elif not _same_leaf(a, b):
            return False
    return True


def _same_leaf(a: Expression, b: Expression) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.value == b.value
    if isinstance(a, Name) and isinstance(b, Name):
        return a.path == b.path
    return isinstance(a, Reference) and isinstance(b, Reference) and a.root is b.root and a.path == b.path


class Reference(Expression):
    """A member of an object that has no place in a model yet: ``r.p.v`` is the path ``"p.v"`` below ``r``."""

    __slots__ = ("kind", "path", "root")

    def __init__(self, root: Connector | Model | View, path: str, kind: str) -> None:
        self.root, self.path, self.kind = root, path, kind

    @property
    def varies(self) -> bool:  # type: ignore[override]
        return self.kind != "parameter"

    def leaf_text(self) -> str:
        label = getattr(self.root, "_label", "")
        return f"{label}.{self.path}" if label else self.path
