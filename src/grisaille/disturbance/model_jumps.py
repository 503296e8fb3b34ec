"""Where a stochastic model jumps with its states: which relation, in which formula, in the user's names.

A formula that only bends (``abs(x)``, ``where(h > 1, 2*h - 1, h)``) has a slope on both sides that linearisation sees;
across a jump (``where(h > 1, 0.5, 0)``, ``sign(v)``) the slope says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.switching_pieces import Relation, jumps_of

MAX_RELATION_LENGTH = 60
"""Characters of a relation that are still read with pleasure."""


@dataclass(frozen=True, eq=False)
class FormulaGroup:
    """Formulas of one kind, a row for each name, and the words for a row."""

    words: str
    formula: ca.SX
    names: Sequence[str]


@dataclass(frozen=True, eq=False)
class ModelJump:
    """A relation across which ``place`` jumps; ``gap`` vanishes (``floor``, ``ceil``: is an integer) at the switch."""

    text: str
    place: str
    kind: str
    gap: ca.SX

    @property
    def is_stair(self) -> bool:
        return self.kind in ("floor", "ceil")


def find_jumps(parts: Sequence[FormulaGroup], unknowns: ca.SX, names: Mapping[int, str]) -> tuple[ModelJump, ...]:
    """Return every relation of the unknowns once, with the first formula that jumps across it."""
    found: dict[tuple[str, str], ModelJump] = {}
    for part in parts:
        if not part.formula.numel():
            continue
        for i, name in enumerate(part.names):
            for relation in jumps_of(part.formula[i, :], unknowns):
                key = relation.kind, str(relation.gap)
                found.setdefault(
                    key, ModelJump(relation_text(relation, names), part.words.format(name), relation.kind, relation.gap)
                )
    return tuple(found.values())


def relation_text(relation: Relation, names: Mapping[int, str]) -> str:
    """Return the relation in the user's names."""
    inside = ca.symvar(relation.value)
    named = [ca.SX.sym(names.get(s.element_hash(), s.name())) for s in inside]
    text = str(ca.substitute(relation.value, ca.vertcat(*inside), ca.vertcat(*named)))
    if len(text) > MAX_RELATION_LENGTH or "@" in text:
        known = [names[s.element_hash()] for s in ca.symvar(relation.gap) if s.element_hash() in names]
        return f"a relation of {', '.join(known)}"
    bare = _bare(text)
    if relation.kind in ("sign", "floor", "ceil"):
        return f"{relation.kind}({_bare(bare.removeprefix(relation.kind)[1:-1])})"
    for symbol in ("<=", "<", "==", "!="):
        if bare.count(symbol) == 1 and relation.kind in ("lt", "le", "eq", "ne"):
            left, _, right = bare.partition(symbol)
            return f"{_bare(left)} {symbol} {_bare(right)}"
    return bare


def _bare(text: str) -> str:
    """Without parentheses around the whole."""
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and k < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text
