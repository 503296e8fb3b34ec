"""How much rounding there is in the value of a formula, to first order.

Every operation makes a relative error of half a unit in the last place; its effect on the result is the derivative of
the result by that operation's value. The sum of their sizes bounds what rounding makes of the result (Higham, Accuracy
and Stability of Numerical Algorithms, section 3.3).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

UNIT = float(np.finfo(float).eps) / 2


def rounding_of(formula: ca.SX, symbols: ca.SX) -> ca.SX:
    """Return a bound of the rounding error of a scalar formula of ``symbols``, as a formula of them."""
    function = ca.Function("formula", [symbols], [formula])
    slots: dict[int, ca.SX] = {}
    errors, values = [], []
    result = ca.SX(0)
    for k in range(function.n_instructions()):
        operation, inputs = function.instruction_id(k), function.instruction_input(k)
        outputs = function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            result = slots[inputs[0]]
        elif operation == ca.OP_INPUT:
            slots[outputs[0]] = symbols[inputs[1]]
        elif operation == ca.OP_CONST:
            slots[outputs[0]] = ca.SX(function.instruction_constant(k))
        else:
            operands = [slots[i] for i in inputs]
            value = ca.SX.unary(operation, *operands) if len(operands) == 1 else ca.SX.binary(operation, *operands)
            errors.append(ca.SX.sym("error"))
            values.append(value)
            slots[outputs[0]] = value + errors[-1]
    if not errors:
        return ca.SX(0)
    every = ca.vertcat(*errors)
    exact = ca.SX.zeros(len(errors))
    effects, sizes = ca.substitute([ca.gradient(result, every), ca.vertcat(*values)], [every], [exact])
    return UNIT * ca.sum1(ca.fabs(effects * sizes))
