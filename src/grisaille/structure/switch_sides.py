"""On which side of each of its switches a formula is: one number per switch, whose sign changes there.

Relations, ``sign``, ``abs``, ``minimum`` and ``maximum`` cut space into pieces on each of which a formula is smooth.
The gap of each cut is below zero exactly where CasADi's derivative is that of this side. On the cut itself a relation
has the derivative of its own side, ``abs``, ``minimum`` and ``maximum`` have the mean of both:

    a < b: a − b,    a ≤ b: b − a,    sign a, |a|, copysign(b, a): a,    min(a, b): b − a,    max(a, b): a − b.

``floor`` and ``ceil`` change at every integer: their gap is ±1, in turns.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

STEP_OPERATIONS = (ca.OP_FLOOR, ca.OP_CEIL)
FORWARD_OPERATIONS = (ca.OP_LT, ca.OP_EQ, ca.OP_NE, ca.OP_FMAX)
BACKWARD_OPERATIONS = (ca.OP_LE, ca.OP_FMIN)
ONE_ARGUMENT_OPERATIONS = (ca.OP_SIGN, ca.OP_FABS)
CUTTING_OPERATIONS = frozenset(
    (*STEP_OPERATIONS, *FORWARD_OPERATIONS, *BACKWARD_OPERATIONS, *ONE_ARGUMENT_OPERATIONS, ca.OP_COPYSIGN)
)


def sides_of(formula: ca.SX, symbols: ca.SX) -> ca.SX:
    """Return the gaps of all cuts in a column ``formula`` that depend on ``symbols``, each once."""
    found: dict[int, ca.SX] = {}
    arguments = ca.symvar(formula)
    if not arguments or not symbols.numel() or not ca.depends_on(formula, symbols):
        return ca.SX(0, 1)
    for operation, values in operations_on(formula, symbols, CUTTING_OPERATIONS):
        gap = _gap(operation, values)
        found.setdefault(gap.element_hash(), gap)
    return ca.vertcat(*found.values()) if found else ca.SX(0, 1)


def operations_on(formula: ca.SX, symbols: ca.SX, wanted: frozenset[int]) -> Iterator[tuple[int, list[ca.SX]]]:
    """Yield the elementary operations of these kinds whose operands depend on ``symbols``, with their operands."""
    arguments = ca.symvar(formula)
    function = ca.Function("operations", [ca.vertcat(*arguments)], [ca.densify(ca.cse(formula))])
    operations = [function.instruction_id(k) for k in range(function.n_instructions())]
    if wanted.isdisjoint(operations):
        return
    of_interest = {s.element_hash() for s in ca.symvar(symbols)}
    slots: dict[int, tuple[ca.SX, bool]] = {}
    for k, operation in enumerate(operations):
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            continue
        if operation == ca.OP_INPUT:
            symbol = arguments[inputs[1]]
            slots[outputs[0]] = symbol, symbol.element_hash() in of_interest
        elif operation == ca.OP_CONST:
            slots[outputs[0]] = ca.SX(function.instruction_constant(k)), False
        else:
            values = [slots[i][0] for i in inputs]
            depends = any(slots[i][1] for i in inputs)
            value = ca.SX.unary(operation, *values) if len(values) == 1 else ca.SX.binary(operation, *values)
            slots[outputs[0]] = value, depends
            if depends and operation in wanted:
                yield operation, values


def _gap(operation: int, values: list[ca.SX]) -> ca.SX:
    if operation in FORWARD_OPERATIONS:
        return values[0] - values[1]
    if operation in BACKWARD_OPERATIONS:
        return values[1] - values[0]
    if operation in ONE_ARGUMENT_OPERATIONS:
        return values[0]
    if operation == ca.OP_COPYSIGN:
        return values[1]
    level = ca.floor(values[0]) if operation == ca.OP_FLOOR else ca.ceil(values[0])
    return 1 - 2 * ca.fmod(ca.fabs(level), 2)
