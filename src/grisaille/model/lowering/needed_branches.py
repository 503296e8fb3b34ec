"""When the value of each node of formulas is needed: under which conditions of ``where`` around it.

need(n) is a set of alternatives, each a set of literals (condition, holds or not); the empty alternative means always.
A node that several branches share has the alternatives of all of them, so that one guard serves all uses. Widening a
need is safe, since a guard only changes what nobody needs; so a condition that may itself depend on the node is left
out, and beyond ``MAX_ALTERNATIVES`` alternatives only what they have in common is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from grisaille.model.expression import Call, Condition, Expression, postorder

Alternative = frozenset[tuple[int, bool]]
Need = frozenset[Alternative]
ALWAYS_NEEDED: Need = frozenset([frozenset()])
MAX_ALTERNATIVES = 6


class Needs:
    """Finds under which condition each node below ``roots`` is needed."""

    def __init__(self, roots: Sequence[Expression]) -> None:
        conditions = [n.arguments[0] for n in postorder(roots) if isinstance(n, Call) and n.operation == "where"]
        # conditions first: what is only needed behind one comes after it, and it cannot depend on that
        self.order = list(postorder((*conditions, *roots)))
        self._place = {id(node): k for k, node in enumerate(self.order)}
        self._needs: dict[int, Need] = {id(root): ALWAYS_NEEDED for root in roots}
        self._written: dict[Need, Condition | None] = {}
        for node in reversed(self.order):
            if isinstance(node, Call):
                self._pass_on(node)

    def _pass_on(self, node: Call) -> None:
        need = self._needs[id(node)]
        for k, argument in enumerate(node.arguments):
            inner = need
            if node.operation == "where" and k > 0:
                literal = (id(node.arguments[0]), k == 1)
                inner = frozenset(alternative | {literal} for alternative in need)
            self._needs[id(argument)] = self._widened(argument, inner | self._needs.get(id(argument), frozenset()))

    def _widened(self, node: Expression, need: Need) -> Need:
        place = self._place[id(node)]
        known = {frozenset(lit for lit in a if self._place[lit[0]] < place) for a in need}
        kept = frozenset(a for a in known if not any(b < a for b in known))
        return kept if len(kept) <= MAX_ALTERNATIVES else frozenset([frozenset.intersection(*kept)])

    def condition(self, node: Expression, done: dict[int, Expression]) -> Condition | None:
        """When ``node`` is needed, in terms of the conditions in ``done``; ``None`` where that is always."""
        need = self._needs[id(node)]
        if need not in self._written:
            alternatives = [self._all_of(a, done) for a in sorted(need, key=lambda a: sorted(map(self._rank, a)))]
            self._written[need] = (
                None if frozenset() in need else _joined("or", [a for a in alternatives if a is not None])
            )
        return self._written[need]

    def _all_of(self, alternative: Alternative, done: dict[int, Expression]) -> Condition | None:
        literals: list[Condition] = []
        for literal in sorted(alternative, key=self._rank):
            condition = done[literal[0]]
            assert isinstance(condition, Condition)
            literals.append(condition if literal[1] else Condition("not", (condition,)))
        return _joined("and", literals)

    def _rank(self, literal: tuple[int, bool]) -> tuple[int, bool]:
        return self._place[literal[0]], literal[1]


def _joined(operation: str, parts: list[Condition]) -> Condition | None:
    result: Condition | None = None
    for part in parts:
        result = part if result is None else Condition(operation, (result, part))
    return result
