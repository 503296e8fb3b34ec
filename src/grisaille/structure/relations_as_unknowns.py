"""Relations of an implicit block's own unknowns, held as unknowns.

Where a block 0 = r(z) jumps with a relation of z (``z + 0.5*sign(z) == u``, a diode with a constant drop), Newton's
method does not see the jump. Each such relation becomes an unknown m of its own with the equation 0 = m − relation(z):
for a given piece the block is smooth, m has no derivative, and a solution is one only where the pieces agree with it.

At the switch itself a piece is kept as long as the relation's gap is on its side within

    δ = leeway · |change of the gap when the piece changes|,

so that a solution that tends to the switch (a diode that charges a capacitor to the end) does not lose it to the
errors of integration. The leeway is a signal, which a simulation sets to ten times its own tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import casadi as ca

from grisaille.structure.switching_pieces import SwitchingPiece, separate_jumps

LEEWAY_SIGNAL = "[leeway]"
"""The name of the signal; not one that a user can give."""
DEFAULT_LEEWAY = 1e-5
TRUTH_KINDS = ("lt", "le", "eq", "ne")
SOLVED_IN_FORMULAS = 10
"""Largest block whose change with a piece is written out; beyond, the gap's own size stands for it."""


class HeldUnknown(Protocol):
    @property
    def symbol(self) -> ca.SX: ...
    @property
    def text(self) -> str: ...
    @property
    def nominal(self) -> float: ...


@dataclass(frozen=True)
class HeldRelation:
    """An entry of z for one relation."""

    symbol: ca.SX
    residual: ca.SX
    relation: ca.SX
    text: str
    """Of the equation that jumps with it."""


def hold_relations(
    residuals: Sequence[ca.SX], texts: Sequence[str], unknowns: Sequence[HeldUnknown], leeway: Callable[[], ca.SX]
) -> tuple[list[ca.SX], list[HeldRelation]]:
    """Return the residuals over unknowns and pieces, and the pieces with their equations."""
    z = ca.vertcat(*(u.symbol for u in unknowns))
    smooth, pieces = separate_jumps(residuals, z)
    # a truth value found by iteration is 1e-18 as well as 0
    truths = [p.symbol for p in pieces if p.relation.kind in TRUTH_KINDS]
    clear = [symbol > 0.5 for symbol in truths]
    if truths:
        smooth = ca.substitute(smooth, truths, clear)
        gaps = ca.substitute([p.relation.gap for p in pieces], truths, clear)
        pieces = [replace(p, relation=replace(p.relation, gap=g)) for p, g in zip(pieces, gaps, strict=True)]
    held = []
    for piece in pieces:
        width = leeway() * _change_of_gap(piece, smooth, z, unknowns)
        text = next((t for t, r in zip(texts, smooth, strict=True) if ca.depends_on(r, piece.symbol)), texts[0])
        residual = piece.symbol - _with_leeway(piece, width)
        held.append(HeldRelation(piece.symbol, residual, piece.relation.value, text))
    return smooth, held


def _change_of_gap(piece: SwitchingPiece, smooth: Sequence[ca.SX], z: ca.SX, unknowns: Sequence[HeldUnknown]) -> ca.SX:
    """|∂gap/∂z · J⁻¹ (r(other side) − r(this side))|, or the gap's nominal size where that is not a number.

    The nominal size of a derivative depends on a model's time scale, which is not known: 1e-7 of it may be all of what
    the gap ever is. Where nothing else limits it, derivatives count for nothing.
    """
    slope = ca.jacobian(piece.relation.gap, z)
    is_large = z.numel() > SOLVED_IN_FORMULAS
    sizes = [0.0 if is_large and u.text.startswith("der(") else u.nominal for u in unknowns]
    typical = ca.mtimes(ca.fabs(slope), ca.DM(sizes))
    if is_large:
        return typical
    r = ca.vertcat(*smooth)
    here, there = (0, 1) if piece.relation.kind in TRUTH_KINDS else (piece.symbol - 1, piece.symbol + 1)
    change = ca.substitute(r, piece.symbol, ca.SX(there)) - ca.substitute(r, piece.symbol, ca.SX(here))
    moved = ca.fabs(ca.mtimes(slope, ca.solve(ca.jacobian(r, z), change)))
    return ca.fmin(typical, moved)


def _with_leeway(piece: SwitchingPiece, leeway: ca.SX) -> ca.SX:
    """Return the relation, decided in favour of the piece that is held where the gap is within the leeway."""
    m, relation = piece.symbol, piece.relation
    gap = relation.gap
    if relation.kind == "lt":
        return gap < leeway * (2 * m - 1)
    if relation.kind == "le":
        return gap <= leeway * (2 * m - 1)
    if relation.kind == "sign":
        return ca.sign(gap + leeway * m)
    if relation.kind == "floor":
        return ca.floor(gap + leeway * (gap < m) - leeway * (gap >= m + 1))
    if relation.kind == "ceil":
        return ca.ceil(gap + leeway * (gap <= m - 1) - leeway * (gap > m))
    return relation.value
