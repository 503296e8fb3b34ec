"""Declared start values as functions of parameters, and of those start values that a run demands.

A start may be a formula of other variables' starts, ``Variable(start=2 * x)``. Where x(t₀) is demanded, the formula
takes the demanded value instead of the declared one:

    start = f(p, m, g),   with m = 1 and g = x(t₀) for a demanded x, m = 0 otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from grisaille.errors import ModelError
from grisaille.model.expression import Constant
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower


@dataclass(frozen=True)
class DeclaredStarts:
    """Names of variables with a start, their start formulas, and which of them are demands."""

    names: tuple[str, ...]
    formulas: ca.SX
    fixed: tuple[bool, ...]
    referred: tuple[str, ...]
    """Variables whose start occurs in the start of another one, with the symbols m and g of each."""
    is_given: ca.SX
    given: ca.SX


def declared_starts(model: FlatModel, parameters: dict[str, ca.SX]) -> DeclaredStarts:
    """Return every start as a formula of parameters; a start may refer to the start of another variable."""
    closed: dict[str, ca.SX] = {}
    referred: dict[str, tuple[ca.SX, ca.SX]] = {}
    open_names: list[str] = []

    def leaf(path: str) -> ca.SX:
        if path in parameters:
            return parameters[path]
        if path in model.variables:
            is_given, given = referred.setdefault(path, (ca.SX.sym("m"), ca.SX.sym("g")))
            return ca.if_else(is_given, given, start_of(path))
        if path in model.quantities:
            return lower([model.quantities[path]], leaf)[0]
        if path == "time":
            raise ModelError(f"The start of '{open_names[-1]}' contains time; starts are functions of parameters.")
        raise ModelError(f"The start of '{open_names[-1]}' contains '{path}', which has no value at the start.")

    def start_of(name: str) -> ca.SX:
        if name in open_names:
            raise ModelError(f"The starts of {' → '.join([*open_names, name])} are defined by each other in a circle.")
        if name not in closed:
            start = model.variables[name].start
            open_names.append(name)
            closed[name] = lower([start if start is not None else Constant(0.0)], leaf)[0]
            open_names.pop()
        return closed[name]

    named = [n for n, v in model.variables.items() if v.start is not None]
    for name, variable in model.variables.items():
        if variable.fixed and variable.start is None:
            raise ModelError(f"Variable '{name}' is fixed but has no start: give start=…")
    formulas = ca.vertcat(*(start_of(n) for n in named)) if named else ca.SX(0, 1)
    symbols = [ca.vertcat(*pair) for pair in zip(*referred.values(), strict=True)] or [ca.SX(0, 1)] * 2
    fixed = tuple(model.variables[n].fixed for n in named)
    return DeclaredStarts(tuple(named), ca.densify(formulas), fixed, tuple(referred), *symbols)
