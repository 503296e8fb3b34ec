"""Which unknowns of a coupled block are torn, and which equations give the others in terms of them.

Reference: F. Cellier, E. Kofman, Continuous System Simulation, section 7.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

MIN_LARGE_SIZE = 100
"""Equations of a block from which on formulas are kept short, for the sake of sparse matrices,"""
MANY_UNKNOWNS = 20
"""where they would speak of more unknowns than these on average:"""
MAX_UNKNOWNS = 8
"""then of no more than these. Blocks that can be solved in formulas are not touched:"""
CRAMER_LIMIT = 3
"""those with up to so many torn unknowns."""


def tear_block(
    rows: Mapping[int, set[int]], divisible: Mapping[int, set[int]]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the torn unknowns and the others with their equations, such that formulas of large blocks stay short."""
    torn, order = tear(rows, divisible)
    if len(torn) > CRAMER_LIMIT and len(rows) >= MIN_LARGE_SIZE and _grows(rows, order):
        torn, order = tear(rows, divisible, MAX_UNKNOWNS)
    return torn, order


def _grows(rows: Mapping[int, set[int]], order: Sequence[tuple[int, int]]) -> bool:
    """Whether formulas that are put into each other speak of more and more unknowns, as in a net of pipes."""
    within: dict[int, set[int]] = {}
    total = 0
    for i, j in order:
        within[j] = set().union(*(within.get(u, set()) | {u} for u in rows[i] - {j}))
        total += len(within[j])
        if total > MANY_UNKNOWNS * len(rows):
            return True
    return False


def tear(
    rows: Mapping[int, set[int]], divisible: Mapping[int, set[int]], most: int | None = None
) -> tuple[list[int], list[tuple[int, int]]]:
    """The unknowns to tear and the others with the equations that give them, in an order in which they can be found:
    that of the first equation with one unknown left; where there is none, what occurs most often, and least often as
    something that could be solved for, is torn.

    most : unknowns that a formula may speak of, those put into it included; unlimited without
    """
    place = {i: k for k, i in enumerate(rows)}
    equations = list(rows)
    left = {i: set(entries) for i, entries in rows.items()}
    users: dict[int, list[int]] = {}
    for i, entries in rows.items():
        for j in entries:
            users.setdefault(j, []).append(i)
    solvable = Counter(j for entries in divisible.values() for j in entries)
    uses = Counter({j: len(found) for j, found in users.items()})
    ready = [place[i] for i in rows if len(left[i]) == 1 and left[i] <= divisible[i]]
    busiest = [(solvable[j], -uses[j], j) for j in users]
    heapify(ready)
    heapify(busiest)
    torn: list[int] = []
    order: list[tuple[int, int]] = []
    known: set[int] = set()
    closed: set[int] = set()
    within: dict[int, set[int]] = {}
    """What the formula of each unknown that is not torn speaks of, where that is limited."""

    def is_short(i: int, j: int) -> bool:
        if most is None:
            return True
        found = set().union(*(within.get(u, set()) | {u} for u in rows[i] - {j}))
        if len(found) <= most:
            within[j] = found
        return len(found) <= most

    def know(j: int) -> None:
        known.add(j)
        for i in users[j]:
            left[i].discard(j)
            if i not in closed and len(left[i]) == 1 and left[i] <= divisible[i]:
                heappush(ready, place[i])

    while len(known) < len(users):
        while ready and not left[equations[ready[0]]]:
            heappop(ready)
        if ready:
            i = equations[heappop(ready)]
            (j,) = left[i]
            if not is_short(i, j):
                continue
            order.append((i, j))
            closed.add(i)
            for other in rows[i]:
                uses[other] -= 1
                solvable[other] -= other in divisible[i]
                if other not in known:
                    heappush(busiest, (solvable[other], -uses[other], other))
            know(j)
            continue
        while busiest[0][2] in known or busiest[0] != (solvable[busiest[0][2]], -uses[busiest[0][2]], busiest[0][2]):
            heappop(busiest)
        torn.append(busiest[0][2])
        know(torn[-1])
    return torn, order
