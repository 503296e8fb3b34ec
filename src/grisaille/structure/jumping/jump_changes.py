"""Computes by how much a formula changes where one of its pieces does.

Terms that do not change are left out, not subtracted, so that a jump is seen however small it is beside them. The
formula is walked through once; of each piece only what depends on it is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

Value = tuple[ca.SX | None, ca.SX | None, ca.SX, ca.SX]
"""Before and after, where they are asked for, their difference, and the size of the terms of that."""
_ZERO = ca.SX(0)
_SUMS = {ca.OP_ADD: 1, ca.OP_SUB: -1}


@dataclass(frozen=True)
class _JumpNode:
    operation: int
    operands: tuple[int, ...]
    value: ca.SX


class Changes:
    """A formula of a vector of symbols and of marks, which stand for its pieces."""

    def __init__(self, formula: ca.SX, vector: ca.SX, marks: Sequence[ca.SX]) -> None:
        self.vector, self.marks = vector, ca.vertcat(*marks)
        function = ca.Function("value", [vector, self.marks], [ca.densify(ca.vec(formula))])
        arguments = [*ca.vertsplit(vector), *marks]
        self._nodes: list[_JumpNode] = []
        self._users: list[list[int]] = []
        self._outputs: dict[int, int] = {}
        self._places: dict[int, int] = {}
        slots: dict[int, int] = {}
        for number in range(function.n_instructions()):
            operation = function.instruction_id(number)
            inputs, outputs = function.instruction_input(number), function.instruction_output(number)
            if operation == ca.OP_OUTPUT:
                self._outputs[outputs[1]] = slots[inputs[0]]
                continue
            if operation == ca.OP_INPUT:
                place = inputs[1] + (vector.numel() if inputs[0] else 0)
                self._places[place - vector.numel()] = len(self._nodes)
                node = _JumpNode(operation, (), arguments[place])
            elif operation == ca.OP_CONST:
                node = _JumpNode(operation, (), ca.SX(function.instruction_constant(number)))
            else:
                operands = tuple(slots[i] for i in inputs)
                node = _JumpNode(operation, operands, _apply(operation, [self._nodes[i].value for i in operands]))
            slots[outputs[0]] = len(self._nodes)
            for operand in set(node.operands):
                self._users[operand].append(len(self._nodes))
            self._nodes.append(node)
            self._users.append([])

    def across(self, k: int, rows: Sequence[int] | None = None) -> ca.Function:
        """(vector, marks, both values of mark k) → by how much these rows of the formula change, and the size of the
        terms of that."""
        sides = ca.SX.sym("sides", 2)
        found: dict[int, Value] = {}
        if k in self._places:
            apart = sides[1] - sides[0]
            found[self._places[k]] = sides[0], sides[1], apart, ca.fabs(apart)
            behind = self._behind(self._places[k])
            on_both_sides = self._on_both_sides({self._places[k], *behind}, behind)
            for number in behind:
                found[number] = self._changed(number, found, number in on_both_sides)
        asked = range(len(self._outputs)) if rows is None else rows
        values = [found.get(self._outputs[row]) for row in asked]
        change, size = ([_ZERO if v is None else v[part] for v in values] for part in (2, 3))
        return ca.Function("change", [self.vector, self.marks, sides], [ca.vertcat(*change), ca.vertcat(*size)])

    def _behind(self, start: int) -> list[int]:
        """Return nodes that depend on one, in order."""
        reached, stack = {start}, [start]
        while stack:
            for user in self._users[stack.pop()]:
                if user not in reached:
                    reached.add(user)
                    stack.append(user)
        return sorted(reached - {start})

    def _on_both_sides(self, moving: set[int], behind: Sequence[int]) -> set[int]:
        """Return nodes whose values before and after are needed: those that enter others otherwise than linearly."""
        needed: set[int] = set()
        for number in reversed(behind):
            node = self._nodes[number]
            if number in needed or not _is_linear(node.operation, [i in moving for i in node.operands]):
                needed |= moving.intersection(node.operands)
        return needed

    def _changed(self, number: int, found: dict[int, Value], on_both_sides: bool) -> Value:
        node = self._nodes[number]
        operands = [found.get(i) for i in node.operands]
        values = [self._nodes[i].value for i in node.operands]
        before = after = None
        linear = _is_linear(node.operation, [o is not None for o in operands])
        if on_both_sides or not linear:
            before, after = (
                _apply(
                    node.operation, [v if o is None else _known(o[side]) for o, v in zip(operands, values, strict=True)]
                )
                for side in (0, 1)
            )
        moved = [(o[2], o[3]) if o is not None else (_ZERO, _ZERO) for o in operands]
        if all(change.is_zero() for change, _ in moved):
            return before, after, _ZERO, _ZERO
        if linear:
            return before, after, *_linear(node.operation, values, moved)
        if node.operation == ca.OP_MUL and operands[0] is not None and operands[1] is not None:
            (a, size_a), (b, size_b) = moved
            one, other = _known(operands[0][0]), _known(operands[1][1])
            return before, after, a * other + one * b, size_a * ca.fabs(other) + ca.fabs(one) * size_b
        return before, after, _known(after) - _known(before), ca.fabs(_known(before)) + ca.fabs(_known(after))


def _known(value: ca.SX | None) -> ca.SX:
    assert value is not None
    return value


def _is_linear(operation: int, moves: Sequence[bool]) -> bool:
    """Return whether the change of a result is a multiple of, or the sum of, those of its operands."""
    if operation in _SUMS or operation in (ca.OP_NEG, ca.OP_TWICE):
        return True
    if operation == ca.OP_MUL:
        return not all(moves)
    return (operation == ca.OP_DIV and not moves[1]) or (operation == ca.OP_IF_ELSE_ZERO and not moves[0])


def _linear(operation: int, values: Sequence[ca.SX], moved: Sequence[tuple[ca.SX, ca.SX]]) -> tuple[ca.SX, ca.SX]:
    """Change and size of its terms."""
    change, size = moved[0]
    if operation == ca.OP_NEG:
        return -change, size
    if operation == ca.OP_TWICE:
        return 2 * change, 2 * size
    if operation == ca.OP_DIV:
        return change / values[1], size / ca.fabs(values[1])
    if operation == ca.OP_IF_ELSE_ZERO:
        change, size = moved[1]
        return ca.if_else(values[0], change, 0), ca.if_else(values[0], size, 0)
    if operation == ca.OP_MUL:
        place = 0 if moved[1][0].is_zero() else 1
        (change, size), factor = moved[place], values[1 - place]
        return change * factor, size * ca.fabs(factor)
    if moved[1][0].is_zero():
        return change, size
    other, size_of_other = _SUMS[operation] * moved[1][0], moved[1][1]
    return (other, size_of_other) if change.is_zero() else (change + other, size + size_of_other)


def _apply(operation: int, values: Sequence[ca.SX]) -> ca.SX:
    return ca.SX.unary(operation, *values) if len(values) == 1 else ca.SX.binary(operation, *values)
