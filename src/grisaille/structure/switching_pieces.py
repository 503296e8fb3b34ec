"""Formulas in pieces: relations, ``sign`` and ``floor``, whose slope does not tell that they change.

CasADi's derivative of ``x > 1``, ``sign(x)``, ``floor(x)`` is zero, so a formula may look affine by its slope and still
jump. *Affine* here means affine everywhere: a slope that does not depend on the symbols, and no relation of them.

A formula is taken apart by replacing every relation by a symbol of its own, its *piece*: between switches the pieces
are constant and the formula is smooth. Whether it *jumps* at a switch or only bends (``where(h > 1, 2*h - 1, h)``) is
found by computing: points on the switch are looked for, and the formula is compared for the pieces on its two sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.jumping.jump_changes import Changes
from grisaille.structure.jumping.switch import Surroundings, Switch

COMPARISONS = {ca.OP_LT: "lt", ca.OP_LE: "le", ca.OP_EQ: "eq", ca.OP_NE: "ne"}
STEP_OPERATIONS = {ca.OP_SIGN: "sign", ca.OP_FLOOR: "floor", ca.OP_CEIL: "ceil"}
SWITCHING_OPERATIONS = frozenset((*COMPARISONS, *STEP_OPERATIONS))


@dataclass(frozen=True)
class Relation:
    """One relation inside a formula."""

    value: ca.SX
    """The relation itself: 0 or 1, a sign, an integer."""
    gap: ca.SX
    """Zero at the switch; for ``floor`` and ``ceil`` an integer there."""
    kind: str
    """``"lt"``, ``"le"``, ``"eq"``, ``"ne"``, ``"sign"``, ``"floor"`` or ``"ceil"``."""


@dataclass(frozen=True)
class SwitchingPiece:
    """A relation with the symbol that stands for it; ``relation`` may contain symbols of pieces before it."""

    symbol: ca.SX
    relation: Relation


def separate_relations(formulas: Sequence[ca.SX], symbols: ca.SX) -> tuple[list[ca.SX], list[SwitchingPiece]]:
    """Return the formulas with every relation whose argument depends on ``symbols`` replaced by a symbol of its own."""
    return _PieceWalk(formulas, symbols).run()


def relations_of(formula: ca.SX, symbols: ca.SX) -> list[Relation]:
    """Return every relation in ``formula`` (of any shape) whose argument depends on ``symbols``, written out in
    full.
    """
    return [p.relation for p in written_out(separate_relations([formula], symbols)[1])]


def is_affine(formula: ca.SX, symbols: ca.SX) -> bool:
    """Return whether a formula of any shape is affine in ``symbols`` everywhere: one slope, and no relation of them."""
    formula = ca.vec(formula)
    if not formula.numel() or not symbols.numel() or not ca.depends_on(formula, symbols):
        return True
    return not ca.depends_on(ca.jacobian(formula, symbols), symbols) and not separate_relations([formula], symbols)[1]


def jumps_of(formula: ca.SX, symbols: ca.SX) -> list[Relation]:
    """Return the relations of ``symbols`` across which ``formula`` (of any shape) is not continuous."""
    (smooth,), pieces = separate_relations([formula], symbols)
    if not pieces:
        return []
    full = written_out(pieces)
    return [f.relation for f, jumps in zip(full, which_jump(smooth, pieces, symbols), strict=True) if jumps]


def certain_jumps_of(formula: ca.SX, symbols: ca.SX) -> list[Relation]:
    """Return those of ``jumps_of`` at which ``formula`` jumps wherever their switch was examined.

    Formulas of devices are often continuous only where their arguments have a meaning (a transistor's drain above its
    source): they jump on a part of a switch that no trajectory visits.
    """
    (smooth,), pieces = separate_relations([formula], symbols)
    if not pieces:
        return []
    found = which_jump(smooth, pieces, symbols, everywhere=True)
    return [f.relation for f, jumps in zip(written_out(pieces), found, strict=True) if jumps]


def separate_jumps(formulas: Sequence[ca.SX], symbols: ca.SX) -> tuple[list[ca.SX], list[SwitchingPiece]]:
    """As ``separate_relations``, for the relations across which some formula jumps; those that only bend stay as they
    are."""
    smooth, pieces = separate_relations(formulas, symbols)
    if not pieces:
        return list(formulas), []
    jumping = which_jump(ca.vertcat(*map(ca.vec, smooth)), pieces, symbols)
    rest = [(p.symbol, p.relation.value) for p, jumps in zip(pieces, jumping, strict=True) if not jumps]
    kept = [p for p, jumps in zip(pieces, jumping, strict=True) if jumps]

    def back(formula: ca.SX) -> ca.SX:
        for symbol, value in reversed(rest):
            formula = ca.substitute(formula, symbol, value)
        return formula

    kept = [
        SwitchingPiece(p.symbol, Relation(back(p.relation.value), back(p.relation.gap), p.relation.kind)) for p in kept
    ]
    return [back(f) for f in smooth], kept


class _PieceWalk:
    """One walk over the instructions of the formulas, rebuilt with pieces in place of relations."""

    def __init__(self, formulas: Sequence[ca.SX], symbols: ca.SX) -> None:
        self.formulas = list(formulas)
        arguments = ca.symvar(ca.vertcat(*map(ca.vec, self.formulas))) if self.formulas else []
        of_interest = {s.element_hash() for s in ca.symvar(ca.vec(symbols))}
        self.arguments = [(s, s.element_hash() in of_interest) for s in arguments]
        self.pieces: list[SwitchingPiece] = []
        self._known: dict[tuple[int, tuple[int, ...]], ca.SX] = {}

    def run(self) -> tuple[list[ca.SX], list[SwitchingPiece]]:
        if not any(touched for _, touched in self.arguments):
            return self.formulas, []
        vector = ca.vertcat(*(s for s, _ in self.arguments))
        function = ca.Function("pieces", [vector], [ca.densify(ca.vec(f)) for f in self.formulas])
        if not any(function.instruction_id(k) in SWITCHING_OPERATIONS for k in range(function.n_instructions())):
            return self.formulas, []
        # equal relations are one piece, also where they were written twice
        shared = ca.cse([ca.densify(ca.vec(f)) for f in self.formulas])
        function = ca.Function("pieces", [vector], shared)
        slots: dict[int, tuple[ca.SX, bool]] = {}
        results = [[ca.SX(0)] * f.numel() for f in self.formulas]
        for k in range(function.n_instructions()):
            operation, inputs, outputs = (
                function.instruction_id(k),
                function.instruction_input(k),
                function.instruction_output(k),
            )
            if operation == ca.OP_OUTPUT:
                results[outputs[0]][outputs[1]] = slots[inputs[0]][0]
            elif operation == ca.OP_INPUT:
                slots[outputs[0]] = self.arguments[inputs[1]]
            elif operation == ca.OP_CONST:
                slots[outputs[0]] = ca.SX(function.instruction_constant(k)), False
            else:
                slots[outputs[0]] = self._apply(operation, [slots[i] for i in inputs])
        if not self.pieces:
            return self.formulas, []
        return [
            ca.reshape(ca.vertcat(*entries), *f.shape) if entries else f
            for f, entries in zip(self.formulas, results, strict=True)
        ], self.pieces

    def _apply(self, operation: int, operands: list[tuple[ca.SX, bool]]) -> tuple[ca.SX, bool]:
        values = [value for value, _ in operands]
        touched = any(flag for _, flag in operands)
        value = ca.SX.unary(operation, *values) if len(values) == 1 else ca.SX.binary(operation, *values)
        if not touched or value.is_constant():
            return value, touched
        if operation in COMPARISONS:
            return self._piece(operation, values, Relation(value, values[0] - values[1], COMPARISONS[operation])), True
        if operation in STEP_OPERATIONS:
            return self._piece(operation, values, Relation(value, values[0], STEP_OPERATIONS[operation])), True
        return value, True

    def _piece(self, operation: int, values: list[ca.SX], relation: Relation) -> ca.SX:
        key = operation, tuple(v.element_hash() for v in values)
        if key not in self._known:
            self._known[key] = ca.SX.sym(f"piece{len(self.pieces)}")
            self.pieces.append(SwitchingPiece(self._known[key], relation))
        return self._known[key]


def written_out(pieces: Sequence[SwitchingPiece]) -> list[SwitchingPiece]:
    """Return pieces whose relations contain no symbols of other pieces."""
    done: list[SwitchingPiece] = []
    for piece in pieces:
        value, gap = piece.relation.value, piece.relation.gap
        inside = {s.element_hash() for s in ca.symvar(value)}
        for before in reversed(done):
            # what is put in is written out already
            if before.symbol.element_hash() in inside:
                value, gap = ca.substitute([value, gap], [before.symbol], [before.relation.value])
        done.append(SwitchingPiece(piece.symbol, Relation(value, gap, piece.relation.kind)))
    return done


def which_jump(
    formula: ca.SX,
    pieces: Sequence[SwitchingPiece],
    symbols: ca.SX,
    *,
    everywhere: bool = False,
    asked: Sequence[bool] | None = None,
) -> list[bool]:
    """Return for every piece whether the formula changes across its switch; False for those not ``asked`` for."""
    if asked is not None and not any(
        wanted and ca.depends_on(formula, p.symbol) for wanted, p in zip(asked, pieces, strict=True)
    ):
        return [False] * len(pieces)
    full = written_out(pieces)
    own = {p.symbol.element_hash() for p in pieces}
    inside = ca.symvar(ca.vertcat(ca.vec(formula), *(p.relation.gap for p in full)))
    free = [s for s in inside if s.element_hash() not in own]
    movable = {s.element_hash() for s in ca.symvar(ca.vec(symbols))}
    columns = [i for i, s in enumerate(free) if s.element_hash() in movable]
    vector, marks = ca.vertcat(*free), [p.symbol for p in pieces]
    binary = _truths(ca.vertcat(ca.vec(formula), *(p.relation.gap for p in pieces)), vector, marks)
    surroundings = Surroundings(full, vector, binary)
    column = ca.vec(formula)
    felt = ca.jacobian_sparsity(column, ca.vertcat(*marks))
    changes = Changes(column, vector, marks)
    return [
        (asked is None or asked[k])
        and bool(rows := felt.row()[felt.colind(k) : felt.colind(k + 1)])
        and Switch(changes.across(k, rows), surroundings, k, piece, vector, columns).jumps(everywhere)
        for k, piece in enumerate(full)
    ]


def _truths(formula: ca.SX, vector: ca.SX, marks: Sequence[ca.SX]) -> list[int]:
    """Return entries of the vector that decide something by themselves: signals that are 0 or 1, such as `time < 0`."""
    function = ca.Function("value", [vector, ca.vertcat(*marks)], [ca.densify(formula)])
    holds: dict[int, int] = {}
    found: set[int] = set()
    for number in range(function.n_instructions()):
        operation = function.instruction_id(number)
        inputs, outputs = function.instruction_input(number), function.instruction_output(number)
        if operation == ca.OP_OUTPUT:
            continue
        deciding = inputs if operation in (ca.OP_NOT, ca.OP_AND, ca.OP_OR) else inputs[:1]
        if operation in (ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO):
            found |= {holds[slot] for slot in deciding if slot in holds}
        holds.pop(outputs[0], None)
        if operation == ca.OP_INPUT and inputs[0] == 0:
            holds[outputs[0]] = inputs[1]
    return sorted(found)
