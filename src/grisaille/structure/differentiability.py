"""Decides what may be differentiated by time: formulas that do not jump with a state, an unknown or an input.

Where ``where(x > 0, 1, 2)`` is differentiated, by ``der`` or by index reduction, its derivative contains an impulse at
x = 0 that the chain rule does not see. Formulas that only bend there (``abs``, ``maximum``) may be differentiated once.
Jumps of time alone are looked at before each run, when their instants are known (``experiment/switching_times.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from grisaille.errors import StructureError
from grisaille.model.expression import SMOOTH_MARK
from grisaille.model.lowering.lowering import MARK_VALUES
from grisaille.structure.jets import Jets
from grisaille.structure.switching_pieces import certain_jumps_of


def differentiate(jets: Jets, parameters: Mapping[str, ca.SX], formula: ca.SX, text: str = "") -> ca.SX:
    """Return the total time derivative of a formula; ``text`` is the equation that index reduction differentiates."""
    if not formula.is_symbolic():
        refuse_jump(jets, parameters, formula, f"'{text}'" if text else "")
    return jets.differentiate(_with_relations(formula))


def _with_relations(formula: ca.SX) -> ca.SX:
    """Return a formula whose bends without events are relations: the slope jumps where the formula only bends.

    Where slopes meet as well (``SMOOTH_MARK``) they stay as they are.
    """
    symbols = ca.symvar(formula)
    if not symbols:
        return formula
    function = ca.Function("formula", [ca.vertcat(*symbols)], [formula])
    steps = range(function.n_instructions())
    if not any(function.instruction_id(k) == ca.OP_COPYSIGN for k in steps):
        return formula
    work: dict[int, ca.SX] = {}
    for k in steps:
        operation, inputs, outputs = (
            function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        )  # fmt: skip
        if operation == ca.OP_OUTPUT:
            return work[inputs[0]]
        if operation == ca.OP_INPUT:
            work[outputs[0]] = symbols[inputs[1]]
        elif operation == ca.OP_CONST:
            work[outputs[0]] = ca.SX(function.instruction_constant(k))
        elif operation == ca.OP_COPYSIGN and not _is_smooth(work[inputs[0]]):
            work[outputs[0]] = work[inputs[0]] * (2 * (work[inputs[1]] >= 0) - 1)
        elif len(inputs) == 1:
            work[outputs[0]] = ca.SX.unary(operation, work[inputs[0]])
        else:
            work[outputs[0]] = ca.SX.binary(operation, work[inputs[0]], work[inputs[1]])
    return formula


def _is_smooth(chosen: ca.SX) -> bool:
    return bool(chosen.is_constant()) and float(chosen) == MARK_VALUES[SMOOTH_MARK]


def refuse_jump(jets: Jets, parameters: Mapping[str, ca.SX], formula: ca.SX, text: str = "") -> None:
    """Refuse a formula that is to be differentiated and jumps; ``text`` names the equations it stands for."""
    symbols = [jets.symbol(m.name, m.order) for m in jets.within(formula) if m.kind != "switch"]
    jumping = certain_jumps_of(formula, ca.vertcat(*symbols)) if symbols else []
    if jumping:
        relation = in_names(jets, parameters, jumping[0].value)
        what = f"Index reduction differentiates {text}, but" if text else "der(…) is taken of a formula, but there"
        raise StructureError(
            f"{what} '{relation}' makes it jump: the derivative would be an impulse. Replace the relation by a smooth "
            f"formula (gr.smooth_sign, or a ramp with gr.minimum and gr.maximum), or let a state with an equation of "
            f"its own follow it, der(y) == (formula - y) / tau, and differentiate that.{_of_tables(text)}"
        )


def _of_tables(text: str) -> str:
    if "table(" not in text:
        return ""
    return " A table's slope jumps at no knot with kind='monotone' or 'cubic', and at no end with outside='extend'."


def in_names(jets: Jets, parameters: Mapping[str, ca.SX], formula: ca.SX) -> str:
    """Return a short formula in the user's names."""
    names = {s.element_hash(): name for name, s in parameters.items()} | {jets.time.element_hash(): "time"}
    symbols = ca.symvar(formula)
    texts = [m.text if (m := jets.meaning(s)) else names.get(s.element_hash(), "…") for s in symbols]
    shown = str(ca.substitute(formula, ca.vertcat(*symbols), ca.vertcat(*map(ca.SX.sym, texts))))
    return shown[1:-1] if shown.startswith("(") and shown.endswith(")") else shown
