"""The values of a table as formulas of the unknowns of one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.model.curve_tables import CurveTable
from grisaille.model.expression import Constant, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower

if TYPE_CHECKING:
    pass


def unknowns_in(flat: FlatModel, curve: CurveTable, unknowns: Sequence[Unknown]) -> list[Unknown]:
    """Return the unknowns that the values depend on, directly or through formulas of parameters."""
    reached = set(curve.parameters).union(*(_tied(flat, name) for name in curve.parameters))
    return [u for u in unknowns if u.kind == "parameter" and u.target in reached]


def _tied(flat: FlatModel, name: str) -> set[str]:
    """Return parameters in the formula of a parameter, through all formulas."""
    value, found = flat.parameters[name].value, set[str]()
    for leaf in postorder((value,)) if value is not None else ():
        if isinstance(leaf, Name) and leaf.path not in found:
            found |= {leaf.path} | _tied(flat, leaf.path)
    return found


def curve_values(
    flat: FlatModel, curve: CurveTable, unknowns: Sequence[Unknown], experiment: Any
) -> tuple[ca.SX, list[ca.SX]]:
    """Return a symbol for the unknowns, and the values as formulas of it; other parameters as the experiment has
    them.
    """
    theta = ca.SX.sym("theta", len(unknowns))
    applies = [u.applies_to(experiment.name) and u.kind == "parameter" for u in unknowns]
    moving = {u.target: theta[k] for k, u in enumerate(unknowns) if applies[k]}

    def leaf(path: str) -> ca.SX:
        if path in moving:
            return moving[path]
        if path in experiment.constants:
            return ca.SX(float(experiment.constants[path]))
        value = flat.parameters[path].value
        if value is None:
            raise EstimationError(
                f"The values of {curve.text} contain '{path}', which has no value and is not estimated: give it one, "
                f"or estimate it too."
            )
        return ca.SX(value.value) if isinstance(value, Constant) else lower([value], leaf)[0]

    return theta, lower(curve.values, leaf)
