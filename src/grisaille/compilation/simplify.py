"""Fewer and cheaper instructions for formulas that run millions of times.

One walk over the instruction list with value numbering: ``a·b`` and ``b·a`` become one node, and quotients that share a
denominator multiply by its reciprocal (a division takes as long as four to ten multiplications). The latter changes
results by a rounding, so it is applied to the formula itself, before printing: interpreted and compiled code agree.
"""

from __future__ import annotations

from collections import Counter

import casadi as ca

_COMMUTATIVE = frozenset({ca.OP_ADD, ca.OP_MUL, ca.OP_FMIN, ca.OP_FMAX, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR, ca.OP_HYPOT})

Key = tuple[object, ...]


def simplify(arguments: list[ca.SX], formulas: list[ca.SX]) -> list[ca.SX]:
    """The same formulas (dense columns or matrices) with shared subexpressions and reciprocals."""
    function = ca.Function("f", arguments, formulas)
    symbols = [ca.vertsplit(ca.vec(a)) if a.numel() else [] for a in arguments]
    keys, outputs = _number(function)
    divisors = Counter(key[2] for key in keys if key[0] == ca.OP_DIV)
    nodes: list[ca.SX] = []
    reciprocals: dict[object, ca.SX] = {}
    for key in keys:
        nodes.append(_node(key, nodes, symbols, divisors, reciprocals))
    return [
        ca.SX(function.sparsity_out(o), ca.vertcat(*(nodes[outputs[o, i]] for i in range(function.nnz_out(o)))))
        for o in range(function.n_out())
    ]


def _number(function: ca.Function) -> tuple[list[Key], dict[tuple[int, int], int]]:
    """Distinct values in order of first use, and which one each output entry is."""
    numbers: dict[Key, int] = {}
    slots: dict[int, int] = {}
    outputs: dict[tuple[int, int], int] = {}
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        if code == ca.OP_OUTPUT:
            where = function.instruction_output(k)
            outputs[where[0], where[1]] = slots[function.instruction_input(k)[0]]
            continue
        key: Key
        if code == ca.OP_CONST:
            key = (code, float(function.instruction_constant(k)).hex())
        elif code == ca.OP_INPUT:
            key = (code, *function.instruction_input(k))
        else:
            operands = [slots[i] for i in function.instruction_input(k)]
            key = (code, *(sorted(operands) if code in _COMMUTATIVE else operands))
        slots[function.instruction_output(k)[0]] = numbers.setdefault(key, len(numbers))
    return list(numbers), outputs


def _node(
    key: Key, nodes: list[ca.SX], symbols: list[list[ca.SX]], divisors: Counter[object], reciprocals: dict[object, ca.SX]
) -> ca.SX:
    code, *rest = key
    if code == ca.OP_CONST:
        return ca.SX(float.fromhex(str(rest[0])))
    indices = [int(str(i)) for i in rest]
    if code == ca.OP_INPUT:
        return symbols[indices[0]][indices[1]]
    operands = [nodes[i] for i in indices]
    if code == ca.OP_DIV and divisors[indices[1]] > 1:
        if indices[1] not in reciprocals:
            reciprocals[indices[1]] = 1.0 / operands[1]
        return operands[0] * reciprocals[indices[1]]
    return ca.SX.unary(code, *operands) if len(operands) == 1 else ca.SX.binary(code, *operands)
