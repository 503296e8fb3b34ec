"""Variables that are no unknowns: Booleans, Integers, enumerations and texts that equations give as formulas.

Each is determined by one equation in which it stands alone on a side. Which one that is follows by peeling: an equation
with one open variable determines it. Their formulas are then evaluated in the order in which they use each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grisaille.model.ordering import ordered
from grisaille.modelica import tree
from grisaille.modelica.evaluation import Local
from grisaille.modelica.refusals import Refused


@dataclass(frozen=True, slots=True)
class Definition:
    """``name`` is the value of ``node``."""

    name: str
    node: tree.Node
    local: Local
    at: int


def assign(candidates: list[list[Definition]]) -> tuple[dict[str, Definition], list[list[Definition]]]:
    """Definitions by name, and the equations that were left over."""
    open_in: dict[str, list[int]] = {}
    for k, choices in enumerate(candidates):
        for choice in choices:
            open_in.setdefault(choice.name, []).append(k)
    found: dict[str, Definition] = {}
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


def in_order(definitions: dict[str, Definition], uses: Callable[[tree.Node], list[str]]) -> list[str]:
    """Names, each after those its formula uses; a circle is refused."""

    def circle(name: str, other: str) -> Refused:
        return Refused(definitions[name].at, f"'{name}' and '{other}' change at events and are defined by each other")

    return ordered(definitions, lambda n: [u for u in uses(definitions[n].node) if u in definitions], circle)
