"""Equations whose bends are averaged over a step, so that what steps make of them is a smooth function of the unknowns.

The slope of |g| jumps where g is zero. A filter that takes slopes at the middle of its steps, or at their ends, counts
each side by how many of these points lie on it, and its likelihood is a staircase in every unknown that moves the
crossing. Here a bend is the mean of itself over times around a point, with the weights of a B-spline k over steps. With
τ = g/w, w = h |dg/dt| / (1 + (h ρ/2)²)^½ and ρ the rate at which the gap settles by itself, so that w is how far it
comes in a step,

    max(g, 0) → w R(τ), R'' = k of order 2, a hat from -1 to 1:   R = (1 + 3 τ + 3 τ² - |τ|³)/6
    [g > 0]   → S(τ),   S' = k of order 3, from -3/2 to 3/2:      S = Σ_i (-1)ⁱ (3 over i) (τ + 3/2 - i)₊³/6

|g| = 2 max(g, 0) - g, and so on; where a formula f is chosen by a relation m and is continuous across it,
f → f + ∂f/∂m (S - m). B-splines over points one step apart add up to one: the slopes along a crossing have the right
sum wherever the points lie, and as steps get shorter nothing is left of the average.

Inputs count as constant in dg/dt. Jumps stay as they are; so do formulas with logarithms, roots or powers beside a
relation, which may mean nothing on its other side, and relations of models with more than ``MAX_RELATIONS`` of them:
each bend of a fine table is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.structure.switching_pieces import SwitchingPiece, separate_relations, which_jump, written_out

MAX_RELATIONS = 16
"""Relations, knots of tables among them, that are averaged."""
SMALLEST_WIDTH = 1e-30
"""Added to w, which may be zero."""
WIDEST = 1e30
"""A width over which a bend has the mean of both slopes."""
BENDING_OPERATIONS = frozenset((ca.OP_FABS, ca.OP_FMAX, ca.OP_FMIN))
ONE_SIDED_OPERATIONS = frozenset(
    (ca.OP_SQRT, ca.OP_LOG, ca.OP_LOG1P, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ACOSH, ca.OP_ATANH)
)
"""What may mean nothing on the other side of a relation."""
ARITHMETIC: dict[int, Callable[..., ca.SX]] = {
    ca.OP_IF_ELSE_ZERO: lambda m, value: m * value,
    ca.OP_NOT: lambda m: 1 - m,
    ca.OP_AND: lambda a, b: a * b,
    ca.OP_OR: lambda a, b: a + b - a * b,
}
"""Operations on relations as sums and products, which have slopes by them."""
Width = Callable[[ca.SX], ca.SX]
"""w of a gap."""


@dataclass(frozen=True, eq=False)
class AveragedModel:
    """The equations of a model with their bends averaged over a step."""

    drift: ca.SX
    residual: ca.SX
    widths: ca.SX
    """Symbols in both, so that slopes of averages are averages of slopes."""
    formulas: ca.SX
    """Of the widths."""


def average_bends(model: StochasticModel, h: ca.SX) -> AveragedModel:
    """Return the averages over a step of length h."""
    nothing, moving = ca.SX(0, 1), ca.vertcat(model.X, model.z)
    both = ca.densify(ca.vertcat(model.drift, model.residual))
    if not ca.depends_on(both, moving):
        return AveragedModel(model.drift, model.residual, nothing, nothing)
    widths = _Widths(model, h)
    (smooth,), pieces = separate_relations([both], moving)
    averaged = _with_averaged_extremes(smooth, moving, widths.of)
    averaged = _with_averaged_relations(averaged, smooth, pieces, moving, widths)
    if not widths.symbols:
        return AveragedModel(model.drift, model.residual, nothing, nothing)
    n, averaged = model.n, _with_relations(averaged, pieces)
    formulas = _with_relations(widths.along(both[:n], averaged[:n]), pieces)
    return AveragedModel(averaged[:n], averaged[n:], ca.vertcat(*widths.symbols), formulas)


class _Widths:
    """Widths of gaps, as symbols and as formulas."""

    def __init__(self, model: StochasticModel, h: ca.SX) -> None:
        self.model, self.h = model, h
        self.symbols: list[ca.SX] = []
        self.slopes: list[ca.SX] = []
        """Of a gap by states and time, for each symbol."""
        self._known: dict[tuple[int, ...], ca.SX] = {}

    def of(self, gap: ca.SX) -> ca.SX:
        """Return the width of a gap; that of one which is known where they move alike."""
        m = self.model
        moved = ca.vertcat(m.X, m.t)
        slope = ca.jacobian(gap, moved)
        if m.z.numel() and ca.depends_on(gap, m.z):
            slope -= ca.mtimes(
                ca.jacobian(gap, m.z), ca.solve(ca.jacobian(m.residual, m.z), ca.jacobian(m.residual, moved))
            )
        slope = ca.densify(slope)
        key = tuple(entry.element_hash() for entry in ca.horzsplit(slope))
        if key not in self._known:
            self._known[key] = ca.SX.sym(f"width{len(self.symbols)}")
            self.symbols.append(self._known[key])
            self.slopes.append(slope)
        return self._known[key]

    def along(self, drift: ca.SX, averaged: ca.SX) -> ca.SX:
        """Return the widths where states move so; what settles within a step moves no further than it settles."""
        n, symbols = self.model.n, ca.vertcat(*self.symbols)
        mean = ca.substitute(averaged, symbols, ca.SX(symbols.numel() * [WIDEST]))
        found = []
        for slope in self.slopes:
            along, rate = slope[:n].T, ca.mtimes(slope, ca.vertcat(drift, 1))
            own = ca.dot(along, ca.jtimes(mean, self.model.X, along)) / (ca.sumsqr(along) + SMALLEST_WIDTH)
            found.append(ca.fabs(self.h * rate) / ca.sqrt(1 + (self.h * own / 2) ** 2) + SMALLEST_WIDTH)
        return ca.vertcat(*found)


def positive_part(gap: ca.SX, width: ca.SX) -> ca.SX:
    """Return the average of max(g, 0)."""
    tau = ca.fmin(ca.fmax(gap / width, -1.0), 1.0)
    inside = width * (1 + 3 * tau + 3 * tau**2 - ca.fabs(tau) * tau**2) / 6
    return inside + ca.fmax(gap - width, 0.0)


def share_above(gap: ca.SX, width: ca.SX) -> ca.SX:
    """Return the average of [g > 0]."""
    tau = ca.fmin(ca.fmax(gap / width, -1.5), 1.5)
    inner = ca.fmax(tau + 0.5, 0.0) ** 3 - ca.fmax(tau - 0.5, 0.0) ** 3
    return ((tau + 1.5) ** 3 - 3 * inner) / 6


def _with_averaged_extremes(formula: ca.SX, X: ca.SX, width: Width) -> ca.SX:
    """Return the formula with ``abs``, ``maximum`` and ``minimum`` of states averaged, over widths of plain gaps."""

    def averaged(operation: int, plain: Sequence[ca.SX], moved: Sequence[ca.SX]) -> ca.SX:
        if operation == ca.OP_FABS:
            return 2 * positive_part(moved[0], width(plain[0])) - moved[0]
        (a, b), part = moved, positive_part(moved[0] - moved[1], width(plain[0] - plain[1]))
        return b + part if operation == ca.OP_FMAX else a - part

    return _replaced(formula, X, BENDING_OPERATIONS, averaged)


def _as_arithmetic(formula: ca.SX, marks: ca.SX) -> ca.SX:
    """Return the formula with sums and products of marks in place of choices."""
    return _replaced(formula, marks, frozenset(ARITHMETIC), lambda operation, _, values: ARITHMETIC[operation](*values))


def _replaced(
    formula: ca.SX,
    symbols: ca.SX,
    operations: frozenset[int],
    replace: Callable[[int, Sequence[ca.SX], Sequence[ca.SX]], ca.SX],
) -> ca.SX:
    """Return the formula with operations on some symbols replaced.

    replace : operation, its operands as they are, the same with what is inside them replaced → what takes its place
    """
    arguments = ca.symvar(formula)
    function = ca.Function("formula", [ca.vertcat(*arguments)], [ca.cse(formula)])
    if operations.isdisjoint(function.instruction_id(k) for k in range(function.n_instructions())):
        return formula
    own = {s.element_hash() for s in ca.symvar(symbols)}
    # each value as it is, as it becomes, and whether it depends on the symbols
    slots: dict[int, tuple[ca.SX, ca.SX, bool]] = {}
    results = [ca.SX(0)] * formula.numel()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            results[outputs[1]] = slots[inputs[0]][1]
        elif operation == ca.OP_INPUT:
            symbol = arguments[inputs[1]]
            slots[outputs[0]] = symbol, symbol, symbol.element_hash() in own
        elif operation == ca.OP_CONST:
            value = ca.SX(function.instruction_constant(k))
            slots[outputs[0]] = value, value, False
        else:
            known = [slots[i] for i in inputs]
            plain, moved, depends = [v[0] for v in known], [v[1] for v in known], any(v[2] for v in known)
            is_other = depends and operation in operations
            made = replace(operation, plain, moved) if is_other else _apply(operation, moved)
            slots[outputs[0]] = _apply(operation, plain), made, depends
    return ca.reshape(ca.vertcat(*results), *formula.shape)


def _apply(operation: int, values: Sequence[ca.SX]) -> ca.SX:
    return ca.SX.unary(operation, *values) if len(values) == 1 else ca.SX.binary(operation, *values)


def _with_averaged_relations(
    averaged: ca.SX, smooth: ca.SX, pieces: Sequence[SwitchingPiece], moving: ca.SX, widths: _Widths
) -> ca.SX:
    """Return the formula with those relations averaged across which it only bends.

    smooth : the formula before anything was averaged
    """
    if not 0 < len(pieces) <= MAX_RELATIONS:
        return averaged
    marks, rest = ca.vertcat(*(p.symbol for p in pieces)), ca.SX(*averaged.shape)
    slopes = ca.jacobian(_as_arithmetic(averaged, marks), marks)
    bending = _which_bend(smooth, pieces, moving)
    for k, (piece, whole) in enumerate(zip(pieces, written_out(pieces), strict=True)):
        if bending[k]:
            gap = -whole.relation.gap  # a < b holds where a - b is negative
            rest += slopes[:, k] * (share_above(gap, widths.of(gap)) - piece.symbol)
    return averaged + rest


def _with_relations(formula: ca.SX, pieces: Sequence[SwitchingPiece]) -> ca.SX:
    """Return a formula with relations in place of their symbols."""
    for piece in reversed(pieces):
        formula = ca.substitute(formula, piece.symbol, piece.relation.value)
    return formula


def _which_bend(smooth: ca.SX, pieces: Sequence[SwitchingPiece], moving: ca.SX) -> list[bool]:
    """Return which relations only bend the formula, where its slope by them says so and has a meaning on both sides."""
    marks = ca.vertcat(*(p.symbol for p in pieces))
    slopes = ca.densify(ca.jacobian(_as_arithmetic(smooth, marks), marks))
    jumps = which_jump(smooth, pieces, moving)
    changes = ca.mtimes(slopes, ca.diag(marks))
    is_wrong = which_jump(ca.vec(changes), pieces, moving)
    return [
        not (jumps[k] or is_wrong[k]) and piece.relation.kind in ("lt", "le") and not _is_one_sided(slopes[:, k])
        for k, piece in enumerate(pieces)
    ]


def _is_one_sided(formula: ca.SX) -> bool:
    function = ca.Function("slope", [ca.vertcat(*ca.symvar(formula))], [formula])
    return not ONE_SIDED_OPERATIONS.isdisjoint(function.instruction_id(k) for k in range(function.n_instructions()))
