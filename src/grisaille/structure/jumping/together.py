"""New values of discrete variables that need each other at one instant.

Where they do so through the equations, v = J v + r with J free of v, they are solved for: ``when c then y = 7 - 2 x``
with x + y = 5. Where a formula itself names what it sets, the value before is mostly meant, and they are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import casadi as ca

from grisaille.errors import StructureError
from grisaille.model.expression import Call, Name
from grisaille.model.flat import FlatModel

MAX_TOGETHER = 8
"""Discrete variables whose new values are solved for together."""


def is_circle(members: Sequence[int], uses: Sequence[Collection[int]]) -> bool:
    """Return whether the members of a component, which need each other, are several, or one that needs itself."""
    return len(members) > 1 or members[0] in uses[members[0]]


def named_by_each_other(model: FlatModel, targets: Sequence[str]) -> list[set[int]]:
    """Return for each target the others, by number, that the formulas of its new values name outside of ``pre``."""
    place = {name: k for k, name in enumerate(targets)}
    found: list[set[int]] = [set() for _ in targets]
    for action in (a for when in model.whens for clause in when.clauses for a in clause.actions):
        if action.kind == "assign" and action.target in place:
            stack = [action.value]
            while stack:
                node = stack.pop()
                if isinstance(node, Name) and node.path in place:
                    found[place[action.target]].add(place[node.path])
                if isinstance(node, Call) and node.operation != "pre":
                    stack.extend(node.arguments)
    return found


def words_of_circle(model: FlatModel, names: Sequence[str]) -> str:
    """Return what is said of new values that cannot be solved for."""
    return (
        f"{model.name}: the new values of {' → '.join([*names, names[0]])} are defined by each other in a circle, at "
        f"one instant, and not by equations that are linear in them. Write gr.pre(…) around the one whose value before "
        f"the event is meant."
    )


def solve_together(
    model: FlatModel, unknown: Mapping[str, ca.SX], found: Sequence[ca.SX], fired: ca.SX
) -> dict[str, ca.SX]:
    """Return new values that need each other at one instant, v = J v + r: solved where they do so linearly."""
    symbols, formulas = ca.vertcat(*unknown.values()), ca.vertcat(*found)
    slopes = ca.jacobian(formulas, symbols)
    rest = ca.substitute(formulas, symbols, ca.SX.zeros(symbols.numel()))
    gap = ca.SX.eye(symbols.numel()) - ca.densify(slopes)
    at_once = ca.simplify(ca.det(ca.substitute(gap, fired, ca.SX.ones(fired.numel()))))
    if len(unknown) > MAX_TOGETHER or ca.depends_on(slopes, symbols) or at_once.is_zero():
        raise StructureError(words_of_circle(model, list(unknown)))
    values = rest / gap if len(unknown) == 1 else ca.solve(gap, rest)
    return {name: values[k] for k, name in enumerate(unknown)}
