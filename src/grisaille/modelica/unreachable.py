"""Branches that parameters rule out are never chosen, not even while relations switch one after the other.

In ``if x < a then 1 elseif x < b then (b - x)/(b - a) else 0`` the second branch needs a ≤ x < b, so that b > a. Where
b = a both relations switch at one instant, of which rounding and the order of events may show one first, and the branch
in between divides by zero. What two relations say together without x,

    not (x < a)  and  x < b    ⟹    b − a > 0,

is put into the condition: ``elseif x < b and b - a > 0``. That changes nothing where the branch can be reached. Only
conditions of branches that divide by formulas of parameters are changed.

What a condition says is of use further in only where another one compares the same moving terms: facts are handed down
to formulas that hold such a condition, so that what a formula shares is rewritten once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder

_GAPS = {"lt": (0, 1, True), "le": (0, 1, False), "gt": (1, 0, True), "ge": (1, 0, False)}
"""Relation → which side minus which is below zero where it holds, and whether strictly."""
MAX_REWRITINGS = 20_000
"""Of the parts of one formula, once for each set of facts; beyond, the formula stays as it is written."""
_CHOICE = 1
"""The bit of formulas that hold a choice; the bits above it are those of groups."""
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
Terms = dict[int, tuple[Expression, float]]
"""A sum: for each term, by the number of its formula, the formula and a factor."""


class _TooManyError(Exception):
    """More parts than are rewritten."""


@dataclass(frozen=True, eq=False)
class Fact:
    """A sum that is below zero (strictly: True) where a condition holds."""

    terms: Terms
    is_strict: bool
    group: int
    """The bit of relations that compare the same moving terms."""


class Unreachable:
    """Rewrites formulas; ``is_parameter`` says which names stay the same in a run."""

    def __init__(self, is_parameter: Callable[[str], bool]) -> None:
        self._is_parameter = is_parameter
        self._settled: dict[int, bool] = {}
        self._divides: dict[int, bool] = {}
        self._numbers: dict[int, int] = {}
        """Formulas that are the same, node by node, have one number."""
        self._known: dict[Any, int] = {}
        self._groups: dict[frozenset[tuple[int, float]], int] = {}
        self._compared: dict[int, int] = {}
        """The groups of the conditions of choices at and below a formula, as bits; none where it holds no choice."""
        self._said: dict[tuple[int, bool], list[Fact]] = {}
        self._done: dict[tuple[int, ...], tuple[Expression, tuple[Fact, ...]]] = {}
        self._kept: list[Expression] = []
        """Formulas whose identities are keys above."""
        self._left = 0

    def __call__(self, root: Expression) -> Expression:
        self._look(root)
        if not self._divides[id(root)]:
            return root
        self._left = MAX_REWRITINGS
        try:
            return self._changed(root, ())
        except (RecursionError, _TooManyError):  # sums of thousands of terms, loops unrolled over one quantity
            return root

    def _look(self, root: Expression) -> None:
        """Which formulas hold parameters alone, which divide by such formulas, and what their choices compare."""
        self._kept.append(root)
        for node in postorder((root,)):
            if id(node) in self._settled:
                continue
            below = node.arguments if isinstance(node, Call) else ()
            self._numbers[id(node)] = self._known.setdefault(self._written(node), len(self._known))
            self._settled[id(node)] = (
                self._is_parameter(node.path) if isinstance(node, Name) else all(self._settled[id(a)] for a in below)
            )
            own = isinstance(node, Call) and node.operation == "div" and self._is_open(node.arguments[1])
            self._divides[id(node)] = own or any(self._divides[id(a)] for a in below)
            compared = 0
            for argument in below:
                compared |= self._compared[id(argument)]
            if isinstance(node, Call) and node.operation == "where":
                compared |= _CHOICE
                for holds in (True, False):
                    for fact in self._facts(node.arguments[0], holds):
                        compared |= fact.group
            self._compared[id(node)] = compared

    def _written(self, node: Expression) -> tuple[object, ...]:
        """Return what tells a formula from others, given the numbers of its parts."""
        if isinstance(node, Call):
            data: Any = node.data
            try:
                hash(data)
            except TypeError:
                data = id(data)
            return (node.operation, data, *(self._numbers[id(a)] for a in node.arguments))
        if isinstance(node, Name):
            return ("", node.path)
        return ("number", node.value) if isinstance(node, Constant) else ("leaf", id(node))

    def _is_open(self, divisor: Expression) -> bool:
        return not isinstance(divisor, Constant) and self._settled[id(divisor)]

    def _changed(self, node: Expression, facts: tuple[Fact, ...]) -> Expression:
        if not isinstance(node, Call) or not self._divides[id(node)]:
            return node
        facts = tuple(fact for fact in facts if self._compared[id(node)] & fact.group)
        key = (id(node), *map(id, facts))
        if key not in self._done:
            self._left -= 1
            if self._left < 0:
                raise _TooManyError
            self._done[key] = (self._rewritten(node, facts), facts)
        return self._done[key][0]

    def _rewritten(self, node: Call, facts: tuple[Fact, ...]) -> Expression:
        if node.operation != "where":
            arguments = tuple(self._changed(a, facts) for a in node.arguments)
            is_same = all(a is b for a, b in zip(arguments, node.arguments, strict=True))
            return node if is_same else node.rebuilt(arguments)
        condition, yes, no = node.arguments
        holds, fails = self._facts(condition, True), self._facts(condition, False)
        needed = self._needed(holds, facts) if self._divides[id(yes)] else []
        excluded = self._needed(fails, facts) if self._divides[id(no)] else []
        changed = condition
        for inequality in needed:
            changed = Condition("and", (changed, inequality))
        for inequality in excluded:
            changed = Condition("or", (changed, Condition("not", (inequality,))))
        if not (needed or excluded or self._compared[id(yes)] or self._compared[id(no)]):
            return node
        chosen, other = (tuple(dict.fromkeys((*facts, *more))) for more in (holds, fails))
        return node.rebuilt((changed, self._changed(yes, chosen), self._changed(no, other)))

    def _facts(self, condition: Expression, holds: bool) -> list[Fact]:
        """Return sums that are below zero where a condition holds, or where it does not."""
        key = (id(condition), holds)
        if key not in self._said:
            self._said[key] = self._read(condition, holds)
        return self._said[key]

    def _read(self, condition: Expression, holds: bool) -> list[Fact]:
        if not isinstance(condition, Condition):
            return []
        kind = condition.operation
        if kind == "not":
            return self._facts(condition.arguments[0], not holds)
        if kind == ("and" if holds else "or"):
            return [fact for part in condition.arguments for fact in self._facts(part, holds)]
        kind = kind if holds else _OPPOSITE.get(kind, "")
        if kind not in _GAPS:
            return []
        low, high, strictly = _GAPS[kind]
        terms: Terms = {}
        self._add(terms, condition.arguments[low], 1.0)
        self._add(terms, condition.arguments[high], -1.0)
        moving = any(factor and not self._settled[id(node)] for node, factor in terms.values())
        return [Fact(terms, strictly, self._group(terms))] if moving else []

    def _group(self, terms: Terms) -> int:
        """Return the bit of facts that can cancel each other's moving terms, whichever side they stand on."""
        moving = sorted((k, factor) for k, (node, factor) in terms.items() if factor and not self._settled[id(node)])
        sign = -1.0 if moving and moving[0][1] < 0 else 1.0
        group = frozenset((k, sign * factor) for k, factor in moving)
        return self._groups.setdefault(group, _CHOICE << (len(self._groups) + 1))

    def _needed(self, own: list[Fact], facts: tuple[Fact, ...]) -> list[Expression]:
        """Return what the sum of two facts says of parameters alone."""
        found: list[Expression] = []
        for fact in own:
            for other in facts:
                if fact.group != other.group:
                    continue
                left = {**fact.terms}
                for key, (node, factor) in other.terms.items():
                    left[key] = (node, left[key][1] + factor if key in left else factor)
                rest = [(node, factor) for node, factor in left.values() if factor]
                moving = any(not self._settled[id(node)] for node, _ in rest)
                if not moving and any(not isinstance(node, Constant) for node, _ in rest):
                    kind = "lt" if fact.is_strict or other.is_strict else "le"
                    found.append(Condition(kind, (_sum(rest), Constant(0.0))))
        return found

    def _add(self, terms: Terms, node: Expression, factor: float) -> None:
        """Add the terms of a sum; equal ones are one."""
        if isinstance(node, Call) and node.operation in ("add", "sub"):
            self._add(terms, node.arguments[0], factor)
            self._add(terms, node.arguments[1], factor if node.operation == "add" else -factor)
        elif isinstance(node, Call) and node.operation == "neg":
            self._add(terms, node.arguments[0], -factor)
        else:
            key = self._numbers[id(node)]
            before = terms[key][1] if key in terms else 0.0
            terms[key] = (node, before + factor)


def _sum(terms: list[tuple[Expression, float]]) -> Expression:
    result: Expression | None = None
    for node, factor in terms:
        term = node if factor == 1.0 else Call("mul", (Constant(factor), node))
        result = term if result is None else Call("add", (result, term))
    assert result is not None
    return result
