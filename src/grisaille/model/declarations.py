"""Declarations of a model's members: parameters, variables, inputs, outputs, disturbances.

A declaration is a formula as soon as it is written, so later ones can use it: ``Variable(start=-L)``. With ``size=``
the call gives an array of such symbols; lists given for a value are then dealt out to the elements. What is wrong with
a declaration is said when it gets its name, so that the message can carry it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws.law_content import refuse_no_prior
from grisaille.model.array_shapes import read_shape, shape_of, spread
from grisaille.model.checking import check_bounds, check_inside, check_value
from grisaille.model.expression import Expression
from grisaille.model.measurement.distributions import check_distribution
from grisaille.model.spectra import Spectrum
from grisaille.model.symbol_arrays import SymbolArray

if TYPE_CHECKING:
    from grisaille.laws import Law, Prior
    from grisaille.model.expression import FormulaLike
    from grisaille.model.given import Bounds, Size


class Declaration(Expression):
    """A member of a model; abstract. ``label`` is the name it was given in a class body."""

    __slots__ = ("fields", "label", "used_for")
    kind: ClassVar[str]
    fields: dict[str, Any]
    label: str
    used_for: str
    """The member of an instance that it replaced, if any."""

    @classmethod
    def _make(cls, size: Size, **fields: Any) -> Any:
        if size is None:
            declaration = object.__new__(cls)
            declaration.fields = fields
            declaration.label = declaration.used_for = ""
            return declaration
        return _vector(cls, read_shape(cls.__name__, size), fields)

    def changed(self, **fields: Any) -> Any:
        """Return a new declaration of the same kind with some fields changed."""
        unknown = sorted(set(fields) - set(self.fields))
        if unknown:
            raise ModelError(f"{type(self).__name__} has no field {unknown[0]!r}; it has {', '.join(self.fields)}.")
        return self._make(None, **{**self.fields, **fields})

    def check(self, name: str) -> None:
        """Refuse what cannot be meant, under the member's name."""
        for field in ("unit", "description"):
            value = self.fields.get(field, "")
            if not isinstance(value, str):
                raise ModelError(
                    f"{name}: the {field} must be a text such as {'kg' if field == 'unit' else 'mass of the load'!r}, "
                    f"got {value!r} ({type(value).__name__}). Signature: {self._signature()}."
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

    value : a number, a formula of parameters, or None: given with the instance, or estimated
    unit, description : for tables and axes; units are labels and never converted
    bounds : (low, high) for estimation; ``None`` on one side leaves it open
    prior : a law (``gr.laws``) such as ``gr.Normal`` or ``gr.LogNormal``; ``gr.Smoothness`` for the values of a table
    transform : how the optimizer sees it: ``"log"``, ``None`` (as it is) or ``"auto"``
    size : None for one, n for a vector, (n, m) for a matrix of them; other arguments may then be lists
    """

    __slots__ = ()
    kind = "parameter"
    varies = False

    def __new__(
        cls,
        value: FormulaLike | None = None,
        unit: str = "",
        description: str = "",
        *,
        bounds: Bounds = None,
        prior: Prior | Sequence[Prior | None] | None = None,
        transform: str | None = "auto",
        size: Size = None,
    ) -> Any:
        return cls._make(
            size, value=value, unit=unit, description=description, bounds=bounds, prior=prior, transform=transform
        )

    def _check_own(self, name: str) -> None:
        fields = self.fields
        check_value(name, "value", fields["value"], constant=True)
        fields["bounds"] = check_bounds(name, fields["bounds"])
        check_inside(name, fields["value"], fields["bounds"])
        if fields["prior"] is not None:
            refuse_no_prior(name, fields["prior"])
        if not isinstance(fields["transform"], str | None) or fields["transform"] not in ("auto", "log", None):
            raise ModelError(f"{name}: transform must be 'auto', 'log' or None, got {fields['transform']!r}.")
        if fields["transform"] == "log" and fields["bounds"] and fields["bounds"][0] < 0:
            raise ModelError(
                f"{name}: transform='log' needs positive values, but the lower bound is {fields['bounds'][0]:g}."
            )


class Variable(Declaration):
    """An unknown function of time.

    start : its value at the first instant, a number or a formula of parameters: a wish, or a demand with ``fixed=True``
    unit, description : for tables and axes; units are labels and never converted
    fixed : whether ``start`` is a demand that consistent initialization must meet
    nominal : its typical size, used to weigh residuals and start values
    bounds : (low, high), its physical range. An estimated start stays inside, and so do trajectories of
        ``gr.Collocation``; simulations and filters do not enforce it. Every fit says where its trajectories touch or
        leave the range
    size : None for one, n for a vector, (n, m) for a matrix of them; other arguments may then be lists
    """

    __slots__ = ()
    kind = "variable"

    def __new__(
        cls,
        start: FormulaLike | None = None,
        unit: str = "",
        description: str = "",
        *,
        fixed: bool = False,
        nominal: FormulaLike | None = None,
        bounds: Bounds = None,
        size: Size = None,
    ) -> Any:
        return cls._make(
            size, start=start, unit=unit, description=description, fixed=fixed, nominal=nominal, bounds=bounds
        )

    def _check_own(self, name: str) -> None:
        fields = self.fields
        check_value(name, "start", fields["start"])
        if not isinstance(fields["fixed"], bool):
            raise ModelError(f"{name}: fixed must be True or False, got {fields['fixed']!r}.")
        if fields["fixed"] and fields["start"] is None:
            raise ModelError(f"{name}: fixed=True needs a start value; give start=….")
        fields["bounds"] = check_bounds(name, fields["bounds"])
        check_inside(name, fields["start"], fields["bounds"])
        nominal = fields["nominal"]
        if nominal is not None and not (isinstance(nominal, int | float | np.number) and 0 < nominal < np.inf):
            raise ModelError(f"{name}: nominal must be a positive number, got {nominal!r}.")


class Discrete(Declaration):
    """A quantity that changes at events only, by ``n == formula`` inside ``gr.when``, and holds its value between them.

    start : its value at the first instant, a number or a formula of parameters
    unit, description : for tables and axes; units are labels and never converted
    size : None for one, n for a vector, (n, m) for a matrix of them; other arguments may then be lists
    """

    __slots__ = ()
    kind = "discrete"

    def __new__(
        cls, start: FormulaLike | None = 0.0, unit: str = "", description: str = "", *, size: Size = None
    ) -> Any:
        return cls._make(size, start=start, unit=unit, description=description)

    def _check_own(self, name: str) -> None:
        start = self.fields["start"]
        if isinstance(start, bool):
            self.fields["start"] = start = float(start)
        if start is None:
            raise ModelError(f"{name}: a discrete variable needs a start, a number or a formula of parameters.")
        check_value(name, "start", start, constant=True)


class Input(Declaration):
    """A signal that is known from outside.

    unit, description : for tables and axes; units are labels and never converted
    default : a number, used where no signal is given; None demands one
    size : None for one, n for a vector, (n, m) for a matrix of them
    """

    __slots__ = ()
    kind = "input"

    def __new__(
        cls, unit: str = "", description: str = "", *, default: FormulaLike | None = None, size: Size = None
    ) -> Any:
        return cls._make(size, unit=unit, description=description, default=default)

    def _check_own(self, name: str) -> None:
        default = self.fields["default"]
        if isinstance(default, Expression):
            raise ModelError(f"{name}: the default of an input must be a number, got the formula `{default}`.")
        if default is not None:
            check_value(name, "default", default)


class Output(Declaration):
    """What is measured: a formula, or a variable of its own when an equation determines it.

    definition : a formula, or an array of them; None where an equation determines the output
    noise : standard deviation of normal measurement noise, a number or a formula; ``None`` when unknown
    distribution : in place of ``noise``, the law of measurements around the prediction, such as
        ``gr.laws.Poisson()`` or ``gr.laws.Student(df=4, scale=0.1)``; its numbers may be formulas
    unit, description : for tables and axes; units are labels and never converted
    """

    __slots__ = ()
    kind = "output"

    def __new__(
        cls,
        definition: FormulaLike | None = None,
        *,
        noise: FormulaLike | None = None,
        distribution: Law | None = None,
        unit: str = "",
        description: str = "",
    ) -> Any:
        size = shape_of("Output", definition) if isinstance(definition, np.ndarray | list | tuple) else None
        return cls._make(
            size, definition=definition, noise=noise, distribution=distribution, unit=unit, description=description
        )

    def _check_own(self, name: str) -> None:
        if isinstance(self.fields["definition"], str):
            raise ModelError(
                f"{name}: the definition of an output is a formula; write unit={self.fields['definition']!r}."
            )
        check_value(name, "definition", self.fields["definition"])
        check_value(name, "noise", self.fields["noise"])
        noise = self.fields["noise"]
        if noise is not None and not isinstance(noise, Expression) and not noise >= 0:
            raise ModelError(f"{name}: noise is a standard deviation and cannot be negative, got {noise!r}.")
        if self.fields["distribution"] is not None:
            check_distribution(name, self.fields["distribution"], noise)


class Disturbance(Declaration):
    """A random signal: ``scale`` times the output of a filter driven by white noise (``gr.spectra``).

    spectrum : of ``gr.spectra``: ``white()``, ``lowpass(bandwidth)``, …
    scale : a factor, a number from zero up or a formula of parameters; ``"scale(w)"`` estimates it
    size : None for one, n for a vector of independent ones
    correlation : with ``size=n``, the n × n correlation of the driving noises
    unit, description : for tables and axes; units are labels and never converted
    """

    __slots__ = ()
    kind = "disturbance"

    def __new__(
        cls,
        spectrum: Spectrum,
        *,
        scale: FormulaLike | None = 1.0,
        size: Size = None,
        correlation: FormulaLike | None = None,
        unit: str = "",
        description: str = "",
    ) -> Any:
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
            check_value(name, "spectrum", formula, constant=True)
        check_value(name, "scale", self.fields["scale"], constant=True)
        scale = self.fields["scale"]
        if scale is None or not (isinstance(scale, Expression) or scale >= 0):
            raise ModelError(f"{name}: scale must be a number from zero up or a formula of parameters, got {scale!r}.")
        if self.fields["correlation"] is not None:
            raise ModelError(f"{name}: correlation needs size=n and an n × n matrix.")


def _vector(cls: type[Declaration], shape: tuple[int, ...], fields: dict[str, Any]) -> SymbolArray:
    correlation = fields.get("correlation")
    if correlation is not None:
        fields = {**fields, "correlation": None}
    dealt = {field: spread(cls.__name__, field, value, shape) for field, value in fields.items()}
    result = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        result[index] = cls._make(None, **{field: values[index] for field, values in dealt.items()})
    result.flags.writeable = False
    if correlation is None:
        return result.view(SymbolArray)
    symbols = result.view(CorrelatedArray)
    symbols.correlation = correlation
    return symbols


class CorrelatedArray(SymbolArray):
    """An array of disturbances together with the correlation of their driving noises."""

    correlation: Any = None
