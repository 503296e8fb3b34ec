"""What does not change from step to step, computed once.

A formula of fast arguments (time, states, signals) and slow ones (parameters, nominal values) is split in two::

    c = once(slow)                  every subexpression of slow arguments that a fast one needs, and 1/d for divisors d
    formula(fast, slow, c)          the rest; a quotient with a slow divisor becomes a product

A division takes as long as four to ten multiplications and a step is one long chain of operations: for a pendulum whose
equations divide by its mass this takes a quarter off. Products with a reciprocal differ from quotients by one rounding.
On the way, equal subexpressions are shared, ``a·b`` and ``b·a`` included.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca

_COMMUTATIVE = frozenset({ca.OP_ADD, ca.OP_MUL, ca.OP_FMIN, ca.OP_FMAX, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR})


@dataclass(frozen=True)
class Hoisted:
    """``constants`` is the symbol that stands for ``once`` in ``formulas``."""

    once: ca.SX
    constants: ca.SX
    formulas: list[ca.SX]


def hoist(fast: list[ca.SX], slow: list[ca.SX], formulas: list[ca.SX]) -> Hoisted:
    """Splits ``formulas``, which must not contain symbols besides ``fast`` and ``slow``."""
    function = ca.Function("f", [*fast, *slow], formulas)
    values, outputs = _distinct_values(function)
    symbols = [ca.vertsplit(ca.vec(a)) if a.numel() else [] for a in (*fast, *slow)]
    rebuilt = _Rebuilt(values, symbols, len(fast))
    results = []
    for o in range(function.n_out()):
        entries = [rebuilt.operand(outputs[o, i]) for i in range(function.nnz_out(o))]
        results.append(ca.SX(function.sparsity_out(o), _column(entries)))
    return Hoisted(_column(rebuilt.once), _column(list(rebuilt.constants.values())), results)


@dataclass(frozen=True)
class _Value:
    """One operation; operands are indices of earlier values (of an argument and its entry for inputs)."""

    code: int
    operands: tuple[int, ...]
    constant: float = 0.0


def _distinct_values(function: ca.Function) -> tuple[list[_Value], dict[tuple[int, int], int]]:
    numbers: dict[tuple[object, ...], int] = {}
    values: list[_Value] = []
    slots: dict[int, int] = {}
    outputs: dict[tuple[int, int], int] = {}
    for k in range(function.n_instructions()):
        value = _value(function, k, slots)
        where = function.instruction_output(k)
        if value.code == ca.OP_OUTPUT:
            outputs[where[0], where[1]] = value.operands[0]
            continue
        key = (value.code, value.operands, value.constant.hex())
        if key not in numbers:
            numbers[key] = len(values)
            values.append(value)
        slots[where[0]] = numbers[key]
    return values, outputs


def _value(function: ca.Function, k: int, slots: dict[int, int]) -> _Value:
    code = function.instruction_id(k)
    if code == ca.OP_CONST:
        return _Value(code, (), float(function.instruction_constant(k)))
    if code == ca.OP_INPUT:
        return _Value(code, tuple(function.instruction_input(k)))
    operands = tuple(slots[i] for i in function.instruction_input(k))
    return _Value(code, tuple(sorted(operands)) if code in _COMMUTATIVE else operands)


@dataclass
class _Rebuilt:
    """The formulas once more, as graphs of the symbols and of the constants allotted on the way."""

    values: list[_Value]
    symbols: list[list[ca.SX]]
    n_fast: int
    nodes: list[ca.SX] = field(default_factory=list)
    is_slow: list[bool] = field(default_factory=list)
    once: list[ca.SX] = field(default_factory=list)
    constants: dict[tuple[int, bool], ca.SX] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for value in self.values:
            slow = self._depends_on_slow_only(value)
            self.is_slow.append(slow)
            self.nodes.append(self._node(value, slow))

    def operand(self, k: int) -> ca.SX:
        """Return value ``k`` as the fast formula reads it."""
        if not self.is_slow[k] or self.values[k].code in (ca.OP_CONST, ca.OP_INPUT):
            return self.nodes[k]
        return self._constant(k, inverted=False)

    def _depends_on_slow_only(self, value: _Value) -> bool:
        if value.code == ca.OP_INPUT:
            return value.operands[0] >= self.n_fast
        return all(self.is_slow[i] for i in value.operands)

    def _node(self, value: _Value, slow: bool) -> ca.SX:
        if value.code == ca.OP_CONST:
            return ca.SX(value.constant)
        if value.code == ca.OP_INPUT:
            return self.symbols[value.operands[0]][value.operands[1]]
        if slow:
            return _apply(value.code, [self.nodes[i] for i in value.operands])
        if value.code == ca.OP_DIV and self.is_slow[value.operands[1]]:
            return self.operand(value.operands[0]) * self._constant(value.operands[1], inverted=True)
        return _apply(value.code, [self.operand(i) for i in value.operands])

    def _constant(self, k: int, *, inverted: bool) -> ca.SX:
        if (k, inverted) not in self.constants:
            self.once.append(1.0 / self.nodes[k] if inverted else self.nodes[k])
            self.constants[k, inverted] = ca.SX.sym(f"c{len(self.once)}")
        return self.constants[k, inverted]


def _apply(code: int, operands: list[ca.SX]) -> ca.SX:
    return ca.SX.unary(code, *operands) if len(operands) == 1 else ca.SX.binary(code, *operands)


def _column(entries: list[ca.SX]) -> ca.SX:
    return ca.vertcat(*entries) if entries else ca.SX(0, 1)
