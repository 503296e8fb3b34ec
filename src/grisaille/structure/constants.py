"""Unknowns that do not change in time, written into relations of theirs.

``y == abs(a)`` with a parameter a leaves y constant: a relation of y is one of parameters, which is settled before a
run begins and may stand in an equation that index reduction differentiates. As a relation of an unknown it would be
taken for a switch.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from grisaille.structure.equations import Equations
from grisaille.structure.switching_pieces import SWITCHING_OPERATIONS, is_affine


def insert_constants(equations: Equations) -> Equations:
    """Return the equations with constant unknowns written out wherever a formula with relations contains them."""
    jets = equations.jets
    values, defined = _constants(equations)
    rows = list(equations.rows)
    for k, row in enumerate(rows):
        inside = [n for n in jets.unknowns(row.residual) if n in values and n != defined.get(k)]
        if inside and _has_relations(row.residual):
            names = [jets.symbol(n) for n in inside]
            rows[k] = replace(row, residual=ca.substitute([row.residual], names, [values[n] for n in inside])[0])
    return replace(equations, rows=tuple(rows))


def _constants(equations: Equations) -> tuple[dict[str, ca.SX], dict[int, str]]:
    """Return constant unknowns as formulas of parameters, and which row defines which."""
    jets = equations.jets
    moving = ca.vertcat(jets.time, *(s for n, s in equations.parameters.items() if n in equations.model.discretes))
    waiting = {
        k: set(jets.unknowns(row.residual))
        for k, row in enumerate(equations.rows)
        if not ca.depends_on(row.residual, moving)
        and all(m.kind == "unknown" and m.order == 0 for m in jets.within(row.residual))
    }
    users: dict[str, list[int]] = {}
    for k, names in waiting.items():
        for name in names:
            users.setdefault(name, []).append(k)
    values: dict[str, ca.SX] = {}
    defined: dict[int, str] = {}
    ready = [k for k, names in waiting.items() if len(names) == 1]
    while ready:
        k = ready.pop()
        (name,) = waiting[k] or {""}
        formula = _solved(equations, k, name, values) if name and name not in values else None
        if formula is None:
            continue
        values[name], defined[k] = formula, name
        for other in users[name]:
            waiting[other].discard(name)
            if other != k and len(waiting[other]) == 1:
                ready.append(other)
    return values, defined


def _solved(equations: Equations, k: int, name: str, values: dict[str, ca.SX]) -> ca.SX | None:
    """Return the unknown ``name`` from row ``k``; None where that is not plain."""
    symbol, residual = equations.jets.symbol(name), equations.rows[k].residual
    others = [n for n in equations.jets.unknowns(residual) if n != name]
    if not is_affine(residual, symbol):
        return None
    slope = ca.simplify(ca.jacobian(residual, symbol))
    if not slope.is_constant() or float(slope) not in (1.0, -1.0):
        return None
    rest = -ca.substitute(residual, symbol, ca.SX(0)) / slope
    return ca.substitute([rest], [equations.jets.symbol(n) for n in others], [values[n] for n in others])[0]


def _has_relations(formula: ca.SX) -> bool:
    function = ca.Function("formula", [ca.vertcat(*ca.symvar(formula))], [formula])
    return any(function.instruction_id(i) in SWITCHING_OPERATIONS for i in range(function.n_instructions()))
