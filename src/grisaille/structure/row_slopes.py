"""Derivatives of many equations at once, and which of them contain relations.

One call of CasADi for a formula of five operations costs as much as for a hundred such formulas, so large models are
looked at whole. Rows with many unknowns are taken one by one: together with columns in which many rows meet they would
make the coloured Jacobian dense.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from grisaille.structure.switching_pieces import SWITCHING_OPERATIONS

MAX_TOGETHER_SYMBOLS = 12
"""Symbols of a row that is differentiated together with others."""
MIN_TOGETHER_ROWS = 4
"""Rows from which on that is quicker than one by one."""


def slopes_of(residuals: Sequence[ca.SX], wanted: Sequence[Sequence[ca.SX]]) -> list[list[ca.SX]]:
    """Return each residual's derivatives by the symbols wanted of it; a derivative without entry where it has none."""
    short = [i for i, symbols in enumerate(wanted) if 0 < len(symbols) <= MAX_TOGETHER_SYMBOLS]
    found: list[list[ca.SX]] = [[] for _ in residuals]
    if len(short) < MIN_TOGETHER_ROWS:
        short = []
    else:
        _together(residuals, wanted, short, found)
    for i in set(range(len(residuals))).difference(short):
        if wanted[i]:
            row = ca.jacobian(residuals[i], ca.vertcat(*wanted[i]))
            found[i] = [row[0, k] for k in range(len(wanted[i]))]
    return found


def _together(
    residuals: Sequence[ca.SX], wanted: Sequence[Sequence[ca.SX]], rows: Sequence[int], found: list[list[ca.SX]]
) -> None:
    place: dict[int, int] = {}
    symbols: list[ca.SX] = []
    for i in rows:
        for s in wanted[i]:
            if place.setdefault(s.element_hash(), len(symbols)) == len(symbols):
                symbols.append(s)
    matrix = ca.jacobian(ca.vertcat(*(residuals[i] for i in rows)), ca.vertcat(*symbols))
    entries = dict(zip(zip(*matrix.sparsity().get_triplet(), strict=True), matrix.nonzeros(), strict=True))
    nothing = ca.SX(1, 1)
    for k, i in enumerate(rows):
        found[i] = [entries.get((k, place[s.element_hash()]), nothing) for s in wanted[i]]


def with_relations(formulas: Sequence[ca.SX]) -> list[bool]:
    """Return for each scalar formula whether a relation, ``sign``, ``floor`` or ``ceil`` stands in it."""
    if not formulas:
        return []
    column = ca.densify(ca.vertcat(*formulas))
    symbols = ca.symvar(column)
    function = ca.Function("rows", [ca.vertcat(*symbols)] if symbols else [], [column])
    operations = [function.instruction_id(k) for k in range(function.n_instructions())]
    if SWITCHING_OPERATIONS.isdisjoint(operations):
        return [False] * len(formulas)
    found = [False] * len(formulas)
    slots: dict[int, bool] = {}
    for k, operation in enumerate(operations):
        if operation == ca.OP_OUTPUT:
            found[function.instruction_output(k)[1]] = slots[function.instruction_input(k)[0]]
        elif operation in (ca.OP_INPUT, ca.OP_CONST):
            slots[function.instruction_output(k)[0]] = False
        else:
            inside = any(slots[i] for i in function.instruction_input(k))
            slots[function.instruction_output(k)[0]] = inside or operation in SWITCHING_OPERATIONS
    return found
