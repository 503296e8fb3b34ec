"""States that an equation gives explicitly: x' = v, φ₁ = n φ₂.

An equation that is differentiated (c_i > 0) holds at all its levels k = 0 … c_i. Where it is linear in one of its
leading unknowns with a *numeric* coefficient, it is solved for that unknown at every level: velocities of a first-order
form stop being separate states, rigid connections leave one coordinate. The coefficient is a number, so nothing can
vanish on the way; all other constraints stay and are projected on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.equations import Equations
from grisaille.structure.signature import Offsets
from grisaille.structure.switching_pieces import is_affine

MIN_LARGE_SIZE = 100
"""Differentiated equations from which on formulas are kept short, for the sake of sparse matrices,"""
MANY_UNKNOWNS = 5
"""where they would speak of more unknowns than these on average:"""
MAX_UNKNOWNS = 8
"""then of no more than these."""


@dataclass(frozen=True)
class EliminatedUnknown:
    """symbol := formula, where the formula may use symbols defined before it."""

    name: str
    order: int
    symbol: ca.SX
    formula: ca.SX


def eliminate_explicit(
    equations: Equations, offsets: Offsets, levels: Sequence[Sequence[ca.SX]]
) -> tuple[dict[int, int], list[EliminatedUnknown], frozenset[str]]:
    """Return pairs equation → unknown that are solved at all levels, the definitions in the order of substitution, and
    unknowns that could be given by a formula but are kept for the sake of sparse matrices.

    ``levels[i][k]`` is equation i differentiated k times.
    """
    pairs, kept = _choose_pairs(equations, offsets)
    jets = equations.jets
    definitions = []
    for stage in range(-max(offsets.equations, default=0), 1):
        for i in _by_dependence(pairs, equations, offsets):
            k = stage + offsets.equations[i]
            if k < 0:
                continue
            name = equations.unknowns[pairs[i]]
            order = offsets.unknowns[pairs[i]] + stage
            symbol = jets.symbol(name, order)
            definitions.append(EliminatedUnknown(name, order, symbol, solve_linear(levels[i][k], symbol)))
    return pairs, definitions, frozenset(equations.unknowns[j] for j in kept)


def solve_linear(residual: ca.SX, symbol: ca.SX) -> ca.SX:
    """Return the root of a residual that is linear in ``symbol``: −residual(0)/slope."""
    slope = ca.jacobian(residual, symbol)
    return -ca.substitute(residual, symbol, ca.SX(0)) / slope


def _choose_pairs(equations: Equations, offsets: Offsets) -> tuple[dict[int, int], set[int]]:
    position = {name: j for j, name in enumerate(equations.unknowns)}
    # constraints first: a velocity can be eliminated by its own equation, a position only by the constraint
    order = sorted((i for i, c in enumerate(offsets.equations) if c > 0), key=lambda i: -offsets.equations[i])
    leading = {i: _leading(equations, offsets, i, position) for i in order}
    candidates = {i: _candidates(equations, offsets, i, position) for i in order}
    growth = _Growth(None)
    pairs = _paired(candidates, leading, growth)
    if len(order) >= MIN_LARGE_SIZE and growth.is_large:
        growth = _Growth(MAX_UNKNOWNS)
        short = {i: j for i, j in pairs.items() if growth.admits(j, leading[i] - {j})}
        return short, set(pairs.values()) - set(short.values())
    return pairs, set()


def _paired(candidates: dict[int, list[int]], leading: dict[int, set[int]], growth: _Growth) -> dict[int, int]:
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for i, found in candidates.items():
        for j in found:
            if j not in taken and not _closes_cycle(pairs, i, j, leading) and growth.admits(j, leading[i] - {j}):
                pairs[i] = j
                taken.add(j)
                break
    return pairs


class _Growth:
    """How many unknowns a formula speaks of once all others are put in: flows of a large network, each eliminated at
    one of its nodes, would become sums of all flows. Beyond ``most`` a constraint stays, to be projected on; without,
    it is only told that they are many."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.unknowns: dict[int, set[int]] = {}
        self.used: dict[int, set[int]] = {}
        self.total = 0
        self.is_large = False

    def admits(self, j: int, others: set[int]) -> bool:
        """Return whether j may be given by a formula of the others; noted if it may."""
        if self.is_large:
            return True
        whole = set().union(*(self.unknowns.get(u, {u}) for u in others))
        changed = {k: (self.unknowns[k] - {j}) | whole for k in self.used.get(j, ())} | {j: whole}
        if self.most is not None and any(len(found) > self.most for found in changed.values()):
            return False
        for k, found in changed.items():
            self.total += len(found) - len(self.unknowns.get(k, ()))
            self.unknowns[k] = found
            for u in found:
                self.used.setdefault(u, set()).add(k)
        self.used.pop(j, None)
        self.is_large = self.most is None and self.total > MANY_UNKNOWNS * max(len(self.unknowns), MIN_LARGE_SIZE)
        return True


def _candidates(equations: Equations, offsets: Offsets, i: int, position: dict[str, int]) -> list[int]:
    """Return leading unknowns with a numeric nonzero coefficient; derivatives first, then names without a start
    value.
    """
    residual = equations.rows[i].residual
    found = []
    for name, order in equations.jets.unknowns(residual).items():
        j = position[name]
        if not offsets.is_tight(i, j, order):
            continue
        symbol = equations.jets.symbol(name, order)
        slope = ca.jacobian(residual, symbol)
        if slope.is_constant() and slope.nnz() == 1 and float(slope) != 0 and is_affine(residual, symbol):
            variable = equations.model.variables.get(name)
            has_start = variable is not None and variable.start is not None
            found.append((-order, has_start, -name.count("."), -j, j))
    return [j for *_, j in sorted(found)]


def _leading(equations: Equations, offsets: Offsets, i: int, position: dict[str, int]) -> set[int]:
    return {
        position[name]
        for name, order in equations.jets.unknowns(equations.rows[i].residual).items()
        if offsets.is_tight(i, position[name], order)
    }


def _closes_cycle(pairs: dict[int, int], i: int, j: int, leading: dict[int, set[int]]) -> bool:
    solver = {unknown: equation for equation, unknown in pairs.items()}
    queue, seen = [i], {i}
    for equation in queue:
        own = j if equation == i else pairs[equation]
        for unknown in leading[equation] - {own}:
            if unknown == j:
                return True
            next_equation = solver.get(unknown)
            if next_equation is not None and next_equation not in seen:
                seen.add(next_equation)
                queue.append(next_equation)
    return False


def _by_dependence(pairs: dict[int, int], equations: Equations, offsets: Offsets) -> list[int]:
    """Return equations of ``pairs`` so that each comes after those that define its leading unknowns."""
    position = {name: j for j, name in enumerate(equations.unknowns)}
    solver = {unknown: equation for equation, unknown in pairs.items()}
    needs = {
        i: {solver[u] for u in _leading(equations, offsets, i, position) - {j} if u in solver} for i, j in pairs.items()
    }
    ordered: list[int] = []
    done: set[int] = set()
    while len(ordered) < len(pairs):
        ready = [i for i in pairs if i not in done and needs[i] <= done]
        ordered.extend(ready)
        done.update(ready)
    return ordered
