"""The flat model in symbols: residuals 0 = left − right over jets and parameters.

Receives a ``FlatModel``, hands on ``Equations``: the same content as CasADi ``SX``, one row per equation with the
user's text beside it. Quantities and outputs that contain ``der`` become unknowns with an equation of their own, so
that the index reduction also finds *their* derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import casadi as ca

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Expression, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.structure.delays.delay import Delays
from grisaille.structure.differentiability import differentiate
from grisaille.structure.jets import Jets
from grisaille.structure.time_switches import Switches
from grisaille.structure.when_lowering import WhenClauses, lower_whens

ELAPSED_STATE = "elapsed time"
"""The state of a model with events that has none."""


@dataclass(frozen=True)
class EquationRow:
    """One equation: 0 = residual."""

    residual: ca.SX
    text: str
    source: str = ""
    kind: str = "equation"
    raised: int | None = None
    """How often the written equations are differentiated in a row that replaced one of them; None for a written row."""


@dataclass(frozen=True)
class Equations:
    """Rows, unknowns and observed formulas of one model, over the symbols of ``jets`` and ``parameters``."""

    model: FlatModel
    jets: Jets
    parameters: dict[str, ca.SX]
    unknowns: tuple[str, ...]
    rows: tuple[EquationRow, ...]
    observed: dict[str, ca.SX]
    """Every name the user knows, as a formula of jets and parameters."""
    switches: Switches
    delays: Delays
    aliases: dict[str, str]
    """Eliminated unknown → what replaced it, in words (``"-r.p.i"``, ``"0"``)."""
    whens: WhenClauses | None = None
    repeated: tuple[EquationRow, ...] = ()
    """Equations that were dropped because others already say the same."""
    initial: tuple[str, ...] = ()
    """Texts of the equations of the first instant; their residuals stand in ``observed``, too."""


def lower_equations(model: FlatModel, *, idle: bool = False) -> Equations:
    """Return the rows of a flat model.

    idle : its derivatives are found to leave no state; where there are events it then gets one all the same
    """
    jets = Jets()
    differentiated = _names_with_der(model)
    idle_states = _without_states(model, idle)
    unknowns = (*model.variables, *differentiated, *idle_states)
    for name in unknowns:
        jets.declare(name, "unknown")
    for name in model.inputs:
        jets.declare(name, "input")
    for name in model.disturbances:
        jets.declare(name, "disturbance")
    parameters = {name: ca.SX.sym(f"p{k}") for k, name in enumerate(model.parameters)}

    switches = Switches(jets, {n: s for n, s in parameters.items() if n not in model.discretes})
    delays = Delays(model.name, jets, parameters, model.discretes)
    der = partial(differentiate, jets, parameters)
    formulas = {**model.quantities, **{n: o.definition for n, o in model.outputs.items() if n not in model.variables}}
    known: dict[str, ca.SX] = {}
    moving = {*unknowns, *model.inputs, *model.disturbances}

    def inspect(node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        if node.operation == "delay":
            return delays.lowered(node, *arguments)
        return switches.inspect(node, arguments, value)

    def leaf(path: str) -> ca.SX:
        if path == "time":
            return jets.time
        if path in parameters:
            return parameters[path]
        if path in moving:
            return jets.symbol(path)
        if path in formulas:
            if path not in known:
                known[path] = lower([formulas[path]], leaf, der, inspect)[0]
            return known[path]
        raise ModelError(f"'{path}' occurs in an equation of {model.name} but is not one of its members.")

    sides = lower([side for e in model.equations for side in (e.left, e.right)], leaf, der, inspect)
    rows = [
        EquationRow(sides[2 * k] - sides[2 * k + 1], e.text, e.source, e.kind) for k, e in enumerate(model.equations)
    ]
    for name in differentiated:
        definition = lower([formulas[name]], leaf, der, inspect)[0]
        rows.append(EquationRow(jets.symbol(name) - definition, f"{name} == <its formula>", "named quantity"))
    rows += [
        EquationRow(jets.symbol(n, 1) - 1, f"der({n}) == 1", "events need something that goes on") for n in idle_states
    ]
    seen = (*model.variables, *model.discretes, *formulas, *model.inputs, *model.disturbances)
    observed = {name: leaf(name) for name in seen}
    whens, hidden = lower_whens(model, parameters, leaf, der, switches, delays)
    first = [lower([side], leaf, der, inspect)[0] for e in model.initial for side in (e.left, e.right)]
    initial = {f"{e.text} (at the start)": first[2 * k] - first[2 * k + 1] for k, e in enumerate(model.initial)}
    return Equations(
        model, jets, parameters, unknowns, tuple(rows), observed | hidden | initial, switches, delays, {}, whens,
        initial=tuple(initial),
    )  # fmt: skip


def _without_states(model: FlatModel, idle: bool) -> tuple[str, ...]:
    """Return a state for models that have events and no state of their own: integrators go from event to event."""
    formulas = [side for e in model.equations for side in (e.left, e.right)]
    formulas += [*model.quantities.values(), *(o.definition for o in model.outputs.values())]
    moves = any(isinstance(node, Call) and node.operation == "der" for node in postorder(formulas))
    return (ELAPSED_STATE,) if model.whens and (idle or not moves) else ()


def _names_with_der(model: FlatModel) -> tuple[str, ...]:
    formulas: dict[str, Expression] = dict(model.quantities)
    formulas.update({n: o.definition for n, o in model.outputs.items() if n not in model.variables})
    return tuple(
        name
        for name, formula in formulas.items()
        if any(isinstance(node, Call) and node.operation == "der" for node in postorder([formula]))
    )
