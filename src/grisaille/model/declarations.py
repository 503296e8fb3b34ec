"""What a model is made of: parameters, variables, inputs, outputs, disturbances.

A declaration is a formula as soon as it is written, so later ones can use it: ``Variable(start=-L)``. With ``size=`` the
call gives an array of such symbols; lists given for a value are then dealt out to the elements. What is wrong with a
declaration is said when it gets its name, so that the message can carry it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.arrays import SymbolArray
from grisaille.model.expression import Call, Constant, Expression, Reference, as_expression, postorder
from grisaille.model.priors import LogNormal, MultivariateNormal, Normal, Uniform
from grisaille.model.spectra import Spectrum

_DEALT = {"value", "start", "default", "definition", "noise", "spectrum", "scale", "bounds", "nominal", "prior"}


class Declaration(Expression):
    """A member of a model; abstract. ``label`` is the name it was given in a class body."""

    __slots__ = ("fields", "label", "used_for")
    kind: ClassVar[str]
    fields: dict[str, Any]
    label: str
    used_for: str
    """The member of an instance that it replaced, if any."""

    @classmethod
    def _make(cls, size: Any, **fields: Any) -> Any:
        if size is None:
            declaration = object.__new__(cls)
            declaration.fields = fields
            declaration.label = declaration.used_for = ""
            return declaration
        shape = _shape(cls, size)
        return _deal(cls, shape, fields)

    def changed(self, **fields: Any) -> Any:
        """A new declaration of the same kind with some fields changed."""
        unknown = sorted(set(fields) - set(self.fields))
        if unknown:
            raise ModelError(f"{type(self).__name__} has no field {unknown[0]!r}; it has {', '.join(self.fields)}.")
        return self._make(None, **{**self.fields, **fields})

    def check(self, name: str) -> None:
        """Refuses what cannot be meant, under the member's name."""
        for field in ("unit", "description"):
            value = self.fields.get(field, "")
            if not isinstance(value, str):
                raise ModelError(
                    f"{name}: the {field} must be a text such as {'kg' if field == 'unit' else 'mass of the load'!r}, got "
                    f"{value!r} ({type(value).__name__}). Signature: {self._signature()}."
                )
        self._check_own(name)

    def _check_own(self, name: str) -> None:
        pass

    def _signature(self) -> str:
        return f"{type(self).__name__}({', '.join(self.fields)})"

    def leaf_text(self) -> str:
        return self.label or f"<{self.kind}>"


class Parameter(Declaration):
    """A constant of the model: a number, a formula of other parameters, or (``None``) still to be given.

    bounds : (low, high) for estimation; ``None`` on one side leaves it open
    prior : ``gr.Normal``, ``gr.LogNormal`` or ``gr.Uniform``
    transform : how the optimizer sees it: ``"log"``, ``None`` (as it is) or ``"auto"``
    """

    __slots__ = ()
    kind = "parameter"
    varies = False

    def __new__(
        cls, value: Any = None, unit: str = "", description: str = "", *, bounds: Any = None, prior: Any = None,
        transform: str | None = "auto", size: Any = None,
    ) -> Any:  # fmt: skip
        return cls._make(
            size, value=value, unit=unit, description=description, bounds=bounds, prior=prior, transform=transform
        )

    def _check_own(self, name: str) -> None:
        fields = self.fields
        _check_value(name, "value", fields["value"], constant=True)
        fields["bounds"] = check_bounds(name, fields["bounds"])
        check_inside(name, fields["value"], fields["bounds"])
        if fields["prior"] is not None and not isinstance(fields["prior"], Normal | LogNormal | Uniform | MultivariateNormal):
            raise ModelError(
                f"{name}: prior must be gr.Normal(mean, std), gr.LogNormal(median, log_std) or gr.Uniform(low, high), "
                f"got {fields['prior']!r}."
            )
        if fields["transform"] not in ("auto", "log", None):
            raise ModelError(f"{name}: transform must be 'auto', 'log' or None, got {fields['transform']!r}.")
        if fields["transform"] == "log" and fields["bounds"] and fields["bounds"][0] < 0:
            raise ModelError(
                f"{name}: transform='log' needs positive values, but the lower bound is {fields['bounds'][0]:g}."
            )


class Variable(Declaration):
    """An unknown function of time.

    start : its value at the first instant, a number or a formula of parameters: a wish, or a demand with ``fixed=True``
    nominal : its typical size, used to weigh residuals and start values
    """

    __slots__ = ()
    kind = "variable"

    def __new__(
        cls, start: Any = None, unit: str = "", description: str = "", *, fixed: bool = False, nominal: Any = None,
        bounds: Any = None, size: Any = None,
    ) -> Any:  # fmt: skip
        return cls._make(
            size, start=start, unit=unit, description=description, fixed=fixed, nominal=nominal, bounds=bounds
        )

    def _check_own(self, name: str) -> None:
        fields = self.fields
        _check_value(name, "start", fields["start"])
        if not isinstance(fields["fixed"], bool):
            raise ModelError(f"{name}: fixed must be True or False, got {fields['fixed']!r}.")
        if fields["fixed"] and fields["start"] is None:
            raise ModelError(f"{name}: fixed=True demands a start value; give start=….")
        fields["bounds"] = check_bounds(name, fields["bounds"])
        nominal = fields["nominal"]
        if nominal is not None and not (isinstance(nominal, int | float | np.number) and 0 < nominal < np.inf):
            raise ModelError(f"{name}: nominal must be a positive number, got {nominal!r}.")


class Input(Declaration):
    """A signal that is known from outside; ``default`` is used where none is given."""

    __slots__ = ()
    kind = "input"

    def __new__(cls, unit: str = "", description: str = "", *, default: Any = None, size: Any = None) -> Any:
        return cls._make(size, unit=unit, description=description, default=default)

    def _check_own(self, name: str) -> None:
        default = self.fields["default"]
        if isinstance(default, Expression):
            raise ModelError(f"{name}: the default of an input must be a number, got the formula `{default}`.")
        if default is not None:
            _check_value(name, "default", default)


class Output(Declaration):
    """What is measured: a formula, or a variable of its own when an equation determines it.

    noise : standard deviation of the measurement noise; ``None`` when unknown
    """

    __slots__ = ()
    kind = "output"

    def __new__(cls, definition: Any = None, *, noise: Any = None, unit: str = "", description: str = "") -> Any:
        size = np.shape(definition) if isinstance(definition, np.ndarray | list | tuple) else None
        return cls._make(size, definition=definition, noise=noise, unit=unit, description=description)

    def _check_own(self, name: str) -> None:
        if isinstance(self.fields["definition"], str):
            raise ModelError(f"{name}: the definition of an output is a formula; write unit={self.fields['definition']!r}.")
        _check_value(name, "definition", self.fields["definition"])
        _check_value(name, "noise", self.fields["noise"])
        noise = self.fields["noise"]
        if noise is not None and not isinstance(noise, Expression) and not noise >= 0:
            raise ModelError(f"{name}: noise is a standard deviation and cannot be negative, got {noise!r}.")


class Disturbance(Declaration):
    """A random signal: ``scale`` times the output of a filter driven by white noise (``gr.spectra``).

    correlation : with ``size=n``, the n × n correlation of the driving noises
    """

    __slots__ = ()
    kind = "disturbance"

    def __new__(
        cls, spectrum: Any, *, scale: Any = 1.0, size: Any = None, correlation: Any = None, unit: str = "",
        description: str = "",
    ) -> Any:  # fmt: skip
        return cls._make(
            size, spectrum=spectrum, scale=scale, correlation=correlation, unit=unit, description=description
        )

    def _check_own(self, name: str) -> None:
        spectrum = self.fields["spectrum"]
        if not isinstance(spectrum, Spectrum):
            raise ModelError(
                f"{name}: a disturbance needs a spectrum such as gr.spectra.white() or gr.spectra.lowpass(2.0), "
                f"got {spectrum!r}."
            )
        for formula in spectrum.leaves():
            _check_value(name, "spectrum", formula, constant=True)
        _check_value(name, "scale", self.fields["scale"], constant=True)
        if self.fields["scale"] is None:
            raise ModelError(f"{name}: scale must be a number or a formula of parameters, got None.")
        if self.fields["correlation"] is not None:
            raise ModelError(f"{name}: correlation needs size=n and an n × n matrix.")


def _check_value(name: str, field: str, value: Any, constant: bool = False) -> None:
    """A number, a formula or None; with ``constant`` only parameters may occur in the formula."""
    if value is None:
        return
    try:
        expression = as_expression(value)
    except ModelError as error:
        raise ModelError(f"{name}: {field} must be a number or a formula. {error}") from None
    for leaf in postorder((expression,)) if constant else ():
        kind = leaf_kind(leaf)
        if kind in ("variable", "input", "disturbance", "output", "time"):
            raise ModelError(
                f"{name}: {field} may depend on parameters only, but `{expression}` contains the {kind} `{leaf}`."
            )


def leaf_kind(leaf: Expression) -> str:
    """``"parameter"``, ``"variable"``, …; ``""`` for numbers and operations."""
    if isinstance(leaf, Declaration | Reference):
        return leaf.kind
    return "time" if not isinstance(leaf, Call | Constant) else ""


def check_bounds(name: str, bounds: Any) -> tuple[float, float] | None:
    """(low, high) as floats, open sides as infinities."""
    if bounds is None:
        return None
    try:
        low, high = bounds
        pair = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError, ModelError):
        raise ModelError(f"{name}: bounds must be a pair of numbers (low, high), got {bounds!r}.") from None
    if not pair[0] < pair[1]:
        raise ModelError(f"{name}: the bounds are reversed or empty: {pair[0]:g} is not below {pair[1]:g}.")
    return pair


def check_inside(name: str, value: Any, bounds: tuple[float, float] | None) -> None:
    """A number must lie within its bounds."""
    number = value.value if isinstance(value, Constant) else value
    if bounds is None or number is None or isinstance(number, Expression):
        return
    if not bounds[0] <= float(number) <= bounds[1]:
        raise ModelError(
            f"{name}: the value {float(number):g} lies outside its bounds [{bounds[0]:g}, {bounds[1]:g}]. "
            "Change the value or widen the bounds."
        )


def _shape(cls: type[Declaration], size: Any) -> tuple[int, ...]:
    shape = size if isinstance(size, tuple) else (size,)
    if not shape or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise ModelError(f"{cls.__name__}: size must be a whole number or a tuple of them, got {size!r}.")
    return tuple(int(n) for n in shape)


def _deal(cls: type[Declaration], shape: tuple[int, ...], fields: dict[str, Any]) -> SymbolArray:
    correlation = fields.get("correlation")
    if correlation is not None:
        fields = {**fields, "correlation": None}
    dealt = {field: _spread(cls, field, value, shape) for field, value in fields.items()}
    result = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        result[index] = cls._make(None, **{field: values[index] for field, values in dealt.items()})
    symbols = result.view(CorrelatedArray if correlation is not None else SymbolArray)
    if correlation is not None:
        symbols.correlation = correlation  # type: ignore[attr-defined]
    return symbols


def _spread(cls: type[Declaration], field: str, value: Any, shape: tuple[int, ...]) -> Any:
    given = np.array(value, dtype=object) if field in _DEALT and isinstance(value, list | tuple | np.ndarray) else None
    if field == "bounds" and given is not None and given.shape == (2,):
        given = None  # one pair for all
    if given is None:
        boxed = np.empty((), dtype=object)
        boxed[()] = value
        return np.broadcast_to(boxed, shape)
    if given.shape[: len(shape)] != shape:
        raise ModelError(
            f"{cls.__name__} of size {shape if len(shape) > 1 else shape[0]}: {field} has shape {given.shape}; give one "
            "value for all or one for each element."
        )
    if given.shape == shape:
        return given
    rows = np.empty(shape, dtype=object)  # pairs of bounds, one for each element
    for index in np.ndindex(*shape):
        rows[index] = tuple(given[index])
    return rows


class CorrelatedArray(SymbolArray):
    """An array of disturbances together with the correlation of their driving noises."""

    correlation: Any = None


def check_correlation(name: str, correlation: Any, n: int) -> list[list[Expression]]:
    """An n × n symmetric matrix with unit diagonal, entries as formulas."""
    matrix = np.array(correlation, dtype=object)
    if matrix.shape != (n, n):
        raise ModelError(f"{name}: correlation must be a {n} × {n} matrix, got shape {matrix.shape}.")
    rows = [[as_expression(entry) for entry in row] for row in matrix]
    numbers = [[entry.value if isinstance(entry, Constant) else None for entry in row] for row in rows]
    for i, j in np.ndindex(n, n):
        if i == j and numbers[i][i] not in (None, 1.0):
            raise ModelError(f"{name}: correlation has {numbers[i][i]:g} on its diagonal; it must be 1 (use scale=).")
        if numbers[i][j] != numbers[j][i]:
            raise ModelError(f"{name}: correlation is not symmetric in entries ({i}, {j}) and ({j}, {i}).")
        if i != j and numbers[i][j] is not None and not abs(numbers[i][j]) <= 1:  # type: ignore[arg-type]
            raise ModelError(f"{name}: correlation ({i}, {j}) = {numbers[i][j]:g} lies outside [-1, 1].")
    return rows
