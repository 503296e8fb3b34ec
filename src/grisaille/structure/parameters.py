"""Values of all parameters from the independent ones, and how they move with them.

A parameter may be a formula of others (``Parameter(2 * sqrt(sigma0 * m))``); giving it a number cuts the formula. The
vector p of the reduced system holds every parameter, so kernels do not depend on which of them are tied together.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Constant, Expression
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.numerics.flat_functions import FlatEvaluation, flat_function


@dataclass(frozen=True)
class ParameterValues:
    """Numbers for every parameter, and ``jacobian[i, j]`` = ∂p_i/∂p_j through the formulas."""

    names: tuple[str, ...]
    values: np.ndarray
    slopes: Callable[[], np.ndarray]

    @cached_property
    def jacobian(self) -> np.ndarray:
        """Return the full name: thousands of parameters have it only where it is asked for."""
        return self.slopes()

    def __getitem__(self, name: str) -> float:
        return float(self.values[self._places[name]])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}


class ParameterFormulas:
    """The formulas of a model with some parameters given as numbers; evaluated again and again."""

    def __init__(self, model: FlatModel, given: Iterable[str] = ()) -> None:
        self.given = frozenset(given)
        unknown_parameter(model, self.given)
        self.names = tuple(model.parameters)
        symbols = {name: ca.SX.sym(f"p{k}") for k, name in enumerate(self.names)}
        formulas, self._numbers = _split(model, self.given)
        self._has_formulas = bool(formulas)
        closed = _close(model, formulas, symbols)
        self._p = ca.vertcat(*symbols.values()) if self.names else ca.SX(0, 1)
        self._target = ca.densify(ca.vertcat(*(closed[n] for n in self.names))) if self.names else ca.SX(0, 1)
        self._function = ca.Function("parameters", [self._p], [self._target])

    def symbolic(self, given: Mapping[str, ca.SX]) -> ca.SX:
        """Return all parameters as formulas of symbols for exactly the given ones."""
        return self._function(ca.vertcat(*(given.get(n, self._numbers.get(n, 0.0)) for n in self.names)))

    def evaluate(self, given: Mapping[str, float]) -> np.ndarray:
        """Return all values at numbers for exactly the given parameters."""
        return self._values(self._arguments(given))

    def differentiate(self, given: Mapping[str, float]) -> ParameterValues:
        """Return the same with their derivatives."""
        arguments = self._arguments(given)
        return ParameterValues(self.names, self._values(arguments), lambda: np.array(self._slopes(arguments).full()))

    @cached_property
    def _slopes(self) -> ca.Function:
        return ca.Function("slopes", [self._p], [ca.jacobian(self._target, self._p)])

    @cached_property
    def _evaluated(self) -> FlatEvaluation:
        return flat_function(self._function)

    def _arguments(self, given: Mapping[str, float]) -> np.ndarray:
        numbers = {**self._numbers, **{name: _as_number(name, value) for name, value in given.items()}}
        return np.array([numbers.get(n, 0.0) for n in self.names])

    def _values(self, arguments: np.ndarray) -> np.ndarray:
        values = self._evaluated(arguments)[0] if self._has_formulas else arguments
        for k in np.flatnonzero(~np.isfinite(values)):
            raise ModelError(
                f"The formula of parameter '{self.names[k]}' gives {values[k]} at the values of the others."
            )
        return values


def evaluate_parameters(model: FlatModel, given: Mapping[str, float] | None = None) -> ParameterValues:
    """Return all parameter values, with ``given`` replacing declared values or formulas."""
    return formulas_of(model, given or {}).differentiate(given or {})


def formulas_of(model: FlatModel, given: Iterable[str]) -> ParameterFormulas:
    """Return the formulas of a model where these parameters are given."""
    names = frozenset(given)
    return model.cached_value(("formulas", names), lambda: ParameterFormulas(model, names))


def unknown_parameter(model: FlatModel, names: Iterable[str]) -> None:
    """Refuse names that are not parameters, with the three nearest."""
    for name in names:
        if name not in model.parameters:
            near = difflib.get_close_matches(name, list(model.parameters), n=3, cutoff=0.3)
            hint = (
                f" Nearest: {', '.join(near)}."
                if near
                else f" Its parameters: {', '.join(model.parameters) or 'none'}."
            )
            if name.startswith("noise("):
                hint = f" The noise of an output is declared: gr.Output(…, noise=…); {hint[1:]}"
            raise ModelError(f"{model.name} has no parameter '{name}'.{hint}")


def _as_number(name: str, value: float) -> float:
    try:
        if isinstance(value, bool | str | Expression):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"Parameter '{name}' needs a number, not {value!r}.") from None
    if not np.isfinite(number):
        raise ModelError(f"Parameter '{name}' is {number}; give a finite number.")
    return number


def _split(model: FlatModel, given: frozenset[str]) -> tuple[dict[str, Expression], dict[str, float]]:
    formulas: dict[str, Expression] = {}
    numbers: dict[str, float] = {}
    missing = []
    for name, parameter in model.parameters.items():
        if name in given:
            continue
        if parameter.value is None:
            missing.append(name)
        elif isinstance(parameter.value, Constant):
            numbers[name] = parameter.value.value
        else:
            formulas[name] = parameter.value
    if missing:
        raise ModelError(
            f"{model.name} needs a value for {', '.join(repr(n) for n in missing)}: give it when the model is made "
            f"({model.name}({missing[0].split('.')[0]}=…)) or with parameters={{'{missing[0]}': …}}."
        )
    return formulas, numbers


def _close(model: FlatModel, formulas: Mapping[str, Expression], symbols: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    closed: dict[str, ca.SX] = {n: s for n, s in symbols.items() if n not in formulas}
    open_names: list[str] = []

    def leaf(path: str) -> ca.SX:
        if path in closed:
            return closed[path]
        if path in open_names:
            raise ModelError(f"The parameters {' → '.join([*open_names, path])} are defined by each other in a circle.")
        if path in formulas:
            open_names.append(path)
            closed[path] = lower([formulas[path]], leaf)[0]
            open_names.pop()
            return closed[path]
        if path in model.quantities:
            return lower([model.quantities[path]], leaf)[0]
        raise ModelError(
            f"The formula of parameter '{open_names[-1]}' contains '{path}', which is not a parameter: "
            f"only parameters and numbers may stand there."
        )

    for name in formulas:
        leaf(name)
    return closed
