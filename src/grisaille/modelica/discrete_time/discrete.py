"""Variables that are no unknowns: Booleans, Integers, enumerations and texts that equations give as formulas.

Each is determined by one equation in which it stands alone on a side. Which one that is follows by peeling: an equation
with one open variable determines it. Their formulas are then evaluated in the order in which they use each other.

Variables that a ``when`` sets are determined by it and need what its conditions and formulas contain outside ``pre``.
Those that need each other in a circle are refused. Where only the clauses do, not the variables, they are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grisaille.model.content import WrittenAction
from grisaille.model.expression import Call, Condition, Expression, Name, postorder
from grisaille.model.ordering import order_by_use, strong_components
from grisaille.model.rewriting import Rewriter
from grisaille.modelica import tree
from grisaille.modelica.evaluation import Local
from grisaille.modelica.refusals import Refused


@dataclass(frozen=True, slots=True)
class DiscreteDefinition:
    """``name`` is the value of ``node``."""

    name: str
    node: tree.Node
    local: Local
    at: int


def assign(
    candidates: list[list[DiscreteDefinition]],
) -> tuple[dict[str, DiscreteDefinition], list[list[DiscreteDefinition]]]:
    """Return definitions by name, and the equations that were left over."""
    open_in: dict[str, list[int]] = {}
    for k, choices in enumerate(candidates):
        for choice in choices:
            open_in.setdefault(choice.name, []).append(k)
    found: dict[str, DiscreteDefinition] = {}
    used = [False] * len(candidates)
    ready = [k for k, choices in enumerate(candidates) if len({c.name for c in choices}) == 1]
    rest = iter(range(len(candidates)))
    while True:
        while ready:
            k = ready.pop()
            left = [c for c in candidates[k] if c.name not in found]
            if used[k] or not left:
                continue
            used[k] = True
            found[left[0].name] = left[0]
            for other in open_in[left[0].name]:
                if not used[other] and len({c.name for c in candidates[other] if c.name not in found}) == 1:
                    ready.append(other)
        k = next((k for k in rest if not used[k] and any(c.name not in found for c in candidates[k])), -1)
        if k < 0:
            return found, [c for c, done in zip(candidates, used, strict=True) if not done]
        ready.append(k)


def in_order(definitions: dict[str, DiscreteDefinition], uses: Callable[[tree.Node], list[str]]) -> list[str]:
    """Return names, each after those its formula uses; a circle is refused."""

    def circle(name: str, other: str) -> Refused:
        return Refused(definitions[name].at, f"'{name}' and '{other}' change at events and are defined by each other")

    return order_by_use(definitions, lambda n: [u for u in uses(definitions[n].node) if u in definitions], circle)


Group = tuple[list[tuple[Condition, list[WrittenAction]]], int]
"""Branches of one ``when``, conditions with actions, and its place."""


def taken_apart(groups: list[Group]) -> list[Group]:
    """Return the events, those taken apart that need each other's new values where no variable does."""
    owner = {target: k for k, (branches, _) in enumerate(groups) for target in _targets(branches)}
    needs = {target: _needs(groups[k][0], target, owner) for target, k in owner.items()}
    _refuse_circles(groups, owner, needs)
    after: list[set[int]] = [set() for _ in groups]
    for target, k in owner.items():
        after[k] |= {owner[n] for n in needs[target]} - {k}
    crossed = {k for members in strong_components(after) if len(members) > 1 for k in members}
    found: list[Group] = []
    for k, group in enumerate(groups):
        found += _by_target(group) if k in crossed and not _lasts(group[0]) else [group]
    return found


def _targets(branches: list[tuple[Condition, list[WrittenAction]]]) -> list[str]:
    actions = [a for _, done in branches for a in done if a.kind == "assign" and isinstance(a.target, Name)]
    return list(dict.fromkeys(a.target.path for a in actions if isinstance(a.target, Name)))


def _is_of(action: WrittenAction, target: str) -> bool:
    return action.kind == "assign" and isinstance(action.target, Name) and action.target.path == target


def _lasts(branches: list[tuple[Condition, list[WrittenAction]]]) -> bool:
    return any(condition.operation == "whenever" for condition, _ in branches)


def _needs(branches: list[tuple[Condition, list[WrittenAction]]], target: str, known: Iterable[str]) -> set[str]:
    """Return variables without whose new values the one of the target is not known."""
    values = [a.value for _, actions in branches for a in actions if _is_of(a, target)]
    names = {n.path for n in postorder(_without_pre([*(c for c, _ in branches), *values])) if isinstance(n, Name)}
    return names & set(known) - ({target} if _lasts(branches) else set())


def _without_pre(formulas: Iterable[Expression]) -> tuple[Expression, ...]:
    bare = Rewriter(lambda node: Name("time") if isinstance(node, Call) and node.operation == "pre" else None)
    return tuple(bare(formula) for formula in formulas)


def _refuse_circles(groups: list[Group], owner: dict[str, int], needs: dict[str, set[str]]) -> None:
    """Equations of what is remembered may need each other: they are iterated. What a ``when`` sets may not."""
    order = list(owner)
    place = {target: k for k, target in enumerate(order)}
    for members in strong_components([{place[n] for n in needs[t]} for t in order]):
        names = [order[k] for k in sorted(members)]
        whens = [n for n in names if not _lasts(groups[owner[n]][0])]
        if not whens or (len(names) == 1 and names[0] not in needs[names[0]]):
            continue
        at = groups[owner[whens[0]]][1]
        if len(names) == 1:
            raise Refused(
                at, f"the new value of '{names[0]}' needs itself: write pre({names[0]}) where its value before is meant"
            )
        listed = ", ".join(f"'{n}'" for n in names[:6])
        raise Refused(
            at,
            f"the new values of {listed} need each other in a circle, by 'when' clauses at one instant: write pre(…) "
            f"where a value before is meant",
        )


def _by_target(group: Group) -> list[Group]:
    """Return one ``when`` for each variable, with all conditions; what states become is with the first."""
    branches, at = group
    found: list[Group] = []
    for k, target in enumerate(_targets(branches)):
        stays = WrittenAction("assign", Name(target), Call("pre", (Name(target),)))
        own = [
            (c, [a for a in actions if _is_of(a, target) or (k == 0 and a.kind == "reinit")]) for c, actions in branches
        ]
        found.append(([(c, actions or [stays]) for c, actions in own], at))
    return found
