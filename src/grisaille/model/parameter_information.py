"""Information about a model's parameters and start values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grisaille.errors import ModelError
from grisaille.model.content import Content
from grisaille.model.expression import Constant, Expression, Name, postorder
from grisaille.model.flat import FlatParameter
from grisaille.model.notation.text import render
from grisaille.model.ordering import order_by_use


@dataclass(frozen=True)
class ParameterInformation:
    """One parameter of a model; ``value`` is a number even when a formula gives it, ``None`` when it is still open."""

    name: str
    value: float | None
    unit: str = ""
    description: str = ""
    bounds: tuple[float, float] | None = None
    prior: Any = None
    transform: str | None = "auto"
    formula: str = ""
    """The formula that gives the value; empty for a plain number."""


def describe_parameters(content: Content) -> dict[str, ParameterInformation]:
    """Return every parameter with its value."""
    values = parameter_values(content.parameters, content.quantities)
    return {
        name: ParameterInformation(
            name, values[name], p.unit, p.description, p.bounds, p.prior, p.transform,
            "" if p.value is None or isinstance(p.value, Constant) else render(p.value),
        )
        for name, p in content.parameters.items()
    }  # fmt: skip


def describe_starts(content: Content) -> dict[str, float | str]:
    """Return declared start values: numbers, or the text of a formula."""
    starts = {n: v.start for n, v in content.variables.items()} | {n: d.start for n, d in content.discretes.items()}
    return {
        name: start.value if isinstance(start, Constant) else render(start)
        for name, start in starts.items()
        if start is not None
    }


def parameter_values(
    parameters: Mapping[str, FlatParameter], quantities: Mapping[str, Expression] | None = None
) -> dict[str, float | None]:
    """Return the number of every parameter; ``None`` where one is missing in its formula."""
    values: dict[str, float | None] = {}
    formulas: dict[str, Expression] = {}
    for name, parameter in parameters.items():
        if parameter.value is None or isinstance(parameter.value, Constant):
            values[name] = None if parameter.value is None else parameter.value.value
        else:
            formulas[name] = parameter.value
    if formulas:
        _evaluate(values, {**(quantities or {}), **formulas}, list(formulas))
    return {name: values[name] for name in parameters}


def _evaluate(values: dict[str, float | None], formulas: Mapping[str, Expression], wanted: list[str]) -> None:
    from grisaille.model.lowering.lowering import evaluate  # CasADi is loaded only when formulas are evaluated

    for name in order_formulas(formulas, wanted):
        needed = [leaf.path for leaf in postorder((formulas[name],)) if isinstance(leaf, Name)]
        if any(values.get(path) is None for path in needed):
            values[name] = None
        else:
            values[name] = evaluate([formulas[name]], {path: float(values[path] or 0.0) for path in needed})[0]


class FormulaLoop(ModelError):
    """A formula that uses itself."""

    def __init__(self, name: str, formula: Expression) -> None:
        super().__init__(f"'{name}' is defined by itself: {name} = {formula}.")
        self.name = name


def order_formulas(formulas: Mapping[str, Expression], wanted: list[str]) -> list[str]:
    """Return the wanted formulas and those they use, each after what it uses; a formula that uses itself is refused."""

    def uses(name: str) -> list[str]:
        leaves = postorder((formulas[name],))
        return [leaf.path for leaf in leaves if isinstance(leaf, Name) and leaf.path in formulas]

    return order_by_use(wanted, uses, lambda _, other: FormulaLoop(other, formulas[other]))
