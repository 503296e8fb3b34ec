"""Declared start values as functions of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from grisaille.errors import ModelError
from grisaille.model.expression import Constant
from grisaille.model.flat import FlatModel
from grisaille.model.lowering import lower


@dataclass(frozen=True)
class DeclaredStarts:
    """Names of variables with a start, their start formulas over p, and which of them are demands."""

    names: tuple[str, ...]
    formulas: ca.SX
    fixed: tuple[bool, ...]


def declared_starts(model: FlatModel, parameters: dict[str, ca.SX]) -> DeclaredStarts:
    """Every start as a formula of parameters; a start may refer to the start of another variable."""
    closed: dict[str, ca.SX] = {}
    open_names: list[str] = []

    def leaf(path: str) -> ca.SX:
        if path in parameters:
            return parameters[path]
        if path in model.variables:
            return start_of(path)
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
    return DeclaredStarts(tuple(named), ca.densify(formulas), tuple(model.variables[n].fixed for n in named))
