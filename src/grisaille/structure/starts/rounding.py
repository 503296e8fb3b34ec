"""Rounding of equations: by how much their values may be wrong where every operation is right to the last bit.

A residual such as (x + 10⁶) − (y + 10⁶) is right to 10⁻¹⁰ however small x and y are: terms that cancel, and numbers,
count as well as unknowns. Each result v of an operation is taken as v (1 + δ), and

    rounding = ε Σ |∂residual/∂δ|   at δ = 0.

It takes several times as long as the equations themselves, and is asked for in doubt only.
"""

from __future__ import annotations

import casadi as ca

EPSILON = 2.0**-52
EXACT_OPERATIONS = frozenset((ca.OP_ASSIGN, ca.OP_NEG, ca.OP_FABS, ca.OP_TWICE))
"""Operations that round nothing."""


def rounding_of(formula: ca.SX, arguments: list[ca.SX], exact: int) -> ca.Function:
    """Return the function (arguments) → rounding of each entry of the formula.

    exact : the place of the argument that is right as it is given; the others are rounded numbers
    """
    function = ca.Function("f", arguments, [ca.densify(formula)])
    results, deltas = _perturbed(function, arguments, exact)
    slopes = ca.jacobian(results, deltas) if deltas.numel() else ca.SX(results.numel(), 0)
    amount = ca.mtimes(ca.fabs(slopes), ca.SX.ones(deltas.numel(), 1)) * EPSILON
    amount = ca.substitute(amount, deltas, ca.SX.zeros(deltas.numel(), 1)) if deltas.numel() else amount
    return ca.Function("rounding", arguments, [ca.densify(amount)])


def _perturbed(function: ca.Function, arguments: list[ca.SX], exact: int) -> tuple[ca.SX, ca.SX]:
    """Return the results of a function with a relative error in each operation, and the symbols of these errors."""
    slots: dict[int, ca.SX] = {}
    deltas: list[ca.SX] = []
    results = [ca.SX(0.0)] * function.numel_out(0)
    for k in range(function.n_instructions()):
        operation, inputs = function.instruction_id(k), function.instruction_input(k)
        outputs = function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            results[outputs[1]] = slots[inputs[0]]
            continue
        if operation == ca.OP_INPUT:
            value = arguments[inputs[0]].nonzeros()[inputs[1]]
        elif operation == ca.OP_CONST:
            value = ca.SX(function.instruction_constant(k))
        else:
            operands = [slots[i] for i in inputs]
            value = ca.SX.unary(operation, *operands) if len(operands) == 1 else ca.SX.binary(operation, *operands)
        if operation not in EXACT_OPERATIONS and not (operation == ca.OP_INPUT and inputs[0] == exact):
            deltas.append(ca.SX.sym("delta"))
            value = value * (1 + deltas[-1])
        slots[outputs[0]] = value
    return ca.vertcat(*results), ca.vertcat(*deltas) if deltas else ca.SX(0, 1)
