"""The leading system, block by block: what can be solved in formulas, what stays implicit.

After index reduction the leading derivatives and algebraic unknowns v satisfy a square system f(v, …) = 0. Its
strongly connected blocks are taken in order of dependence. A block is

- *explicit*: one equation, affine in its unknown: v = −f(0)/slope, where the slope is the block's only pivot;
- *linear*, up to three torn unknowns: solved by Cramer's rule, so that the only divisor is the determinant;
- *implicit*: everything else. Its torn unknowns become entries of z, solved by Newton with pivoted elimination in
  every step. Relations of its own unknowns across which its equations jump become entries of z too
  (``relations_as_unknowns.py``).

Tearing inside a block only divides by numbers and by functions of parameters; the latter are recorded as pivots and
checked before each run, and a block whose pivot vanishes is not torn there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.model.ordering import strong_components
from grisaille.structure.bipartite_matching import maximum_matching
from grisaille.structure.relations_as_unknowns import DEFAULT_LEEWAY, HeldRelation, hold_relations
from grisaille.structure.row_slopes import slopes_of, with_relations
from grisaille.structure.singular.scaling import equilibrated_triplets
from grisaille.structure.switching_pieces import is_affine

CRAMER_LIMIT = 3
MIN_PIVOT = 1e-3
"""Of the other numbers in a pivot's row and column; smaller ones are left to elimination with pivoting."""
MIN_LARGE_SIZE = 100
"""Equations of a block from which on formulas are kept short, for the sake of sparse matrices,"""
MANY_UNKNOWNS = 20
"""where they would speak of more unknowns than these on average:"""
MAX_UNKNOWNS = 8
"""then of no more than these."""


@dataclass(frozen=True)
class BlockUnknown:
    symbol: ca.SX
    text: str
    nominal: float = 1.0


@dataclass(frozen=True)
class Leading:
    """One equation of the leading system."""

    residual: ca.SX
    text: str


@dataclass(frozen=True)
class Block:
    """A solved block, for the record: which equations give which unknowns, and how."""

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]
    kind: Literal["explicit", "linear", "implicit"]
    torn: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pivot:
    """A function of parameters that tearing divides by."""

    value: ca.SX
    text: str


@dataclass(frozen=True)
class SolvedBlocks:
    blocks: tuple[Block, ...]
    definitions: tuple[tuple[ca.SX, ca.SX], ...]
    """(symbol, formula) in the order of substitution."""
    implicit: tuple[int, ...]
    """Unknowns that stay, in order: the entries of z."""
    residuals: tuple[ca.SX, ...]
    residual_texts: tuple[str, ...]
    pivots: tuple[Pivot, ...]
    incidence: tuple[frozenset[int], ...]
    """For each equation the unknowns in it."""
    pieces: tuple[HeldRelation, ...] = ()
    """Relations of implicit unknowns that are unknowns themselves; they follow the others in z."""


def solve_blocks(
    equations: Sequence[Leading],
    unknowns: Sequence[BlockUnknown],
    parameters: Sequence[ca.SX],
    refused_pivots: frozenset[str] = frozenset(),
    leeway: Callable[[], ca.SX] = lambda: ca.SX(DEFAULT_LEEWAY),
) -> SolvedBlocks:
    """Order the leading system and solve every block as far as formulas go."""
    position = {u.symbol.element_hash(): k for k, u in enumerate(unknowns)}
    incidence = [
        {position[s.element_hash()] for s in ca.symvar(e.residual) if s.element_hash() in position} for e in equations
    ]
    partner = maximum_matching(incidence, len(unknowns))
    if -1 in partner:
        missing = [equations[i].text for i, j in enumerate(partner) if j < 0]
        raise StructureError(
            f"After index reduction no unknown is left for the equation '{missing[0]}': it follows from the others. "
            f"Remove it or replace it by an independent one."
        )
    owner = {j: i for i, j in enumerate(partner)}
    components = strong_components([{owner[j] for j in row} for row in incidence])
    solver = _Solver(equations, unknowns, incidence, parameters, refused_pivots, leeway)
    alone = [rows[0] for rows in components if len(rows) == 1]
    solver.note_slopes(alone, [partner[i] for i in alone])
    for rows in components:
        solver.solve(rows, [partner[i] for i in rows])
    return solver.result()


class _Solver:
    """Collects definitions block after block."""

    def __init__(
        self,
        equations: Sequence[Leading],
        unknowns: Sequence[BlockUnknown],
        incidence: Sequence[set[int]],
        parameters: Sequence[ca.SX],
        refused_pivots: frozenset[str],
        leeway: Callable[[], ca.SX],
    ) -> None:
        self.equations, self.unknowns, self.incidence = equations, unknowns, incidence
        self.parameters = {p.element_hash() for p in parameters}
        self.refused_pivots, self.leeway = refused_pivots, leeway
        self.blocks: list[Block] = []
        self.definitions: list[tuple[ca.SX, ca.SX]] = []
        self.implicit: list[int] = []
        self.residuals: list[ca.SX] = []
        self.texts: list[str] = []
        self.pivots: list[Pivot] = []
        self.pieces: list[HeldRelation] = []
        self.slopes: dict[int, ca.SX] = {}
        """Of equations that are solved alone and contain no relation, by the unknown each is solved for."""

    def note_slopes(self, rows: Sequence[int], columns: Sequence[int]) -> None:
        """Find the slopes of equations that are solved alone, all at once."""
        residuals = [self.equations[i].residual for i in rows]
        found = slopes_of(residuals, [[self.unknowns[j].symbol] for j in columns])
        jumps = with_relations(residuals)
        self.slopes = {i: slope for i, (slope,), jump in zip(rows, found, jumps, strict=True) if not jump}

    def result(self) -> SolvedBlocks:
        return SolvedBlocks(
            tuple(self.blocks), tuple(self.definitions), tuple(self.implicit), tuple(self.residuals), tuple(self.texts),
            tuple(self.pivots), tuple(map(frozenset, self.incidence)), tuple(self.pieces),
        )  # fmt: skip

    def solve(self, rows: list[int], columns: list[int]) -> None:
        if len(rows) == 1:
            self._solve_single(rows[0], columns[0])
        else:
            self._solve_coupled(rows, columns)

    def _solve_single(self, row: int, column: int) -> None:
        residual, symbol = self.equations[row].residual, self.unknowns[column].symbol
        slope = self.slopes.get(row)
        if not (is_affine(residual, symbol) if slope is None else _is_free_of(slope, symbol)):
            self._leave_implicit([row], [column], [residual], [column], [row])
            return
        slope = ca.jacobian(residual, symbol) if slope is None else slope
        formula = -ca.substitute(residual, symbol, ca.SX(0)) / slope
        self.definitions.append((symbol, formula))
        self.blocks.append(Block((row,), (column,), "explicit"))

    def _solve_coupled(self, rows: list[int], columns: list[int]) -> None:
        order, torn, rest = self._tear(rows, columns)
        inner = [(self.unknowns[j].symbol, self._solve_for(i, j)) for i, j in order]
        residuals = substitute_sequence(inner, [self.equations[i].residual for i in rest])
        symbols = [self.unknowns[j].symbol for j in torn]
        if len(torn) <= CRAMER_LIMIT and is_affine(ca.vertcat(*residuals), ca.vertcat(*symbols)):
            matrix = ca.jacobian(ca.vertcat(*residuals), ca.vertcat(*symbols))
            zero = ca.SX.zeros(len(torn))
            constant = ca.substitute(ca.vertcat(*residuals), ca.vertcat(*symbols), zero)
            for symbol, value in zip(symbols, cramer(matrix, -constant), strict=True):
                self.definitions.append((symbol, value))
            self.definitions.extend(inner)
            self.blocks.append(Block(tuple(rows), tuple(columns), "linear", tuple(torn)))
        else:
            self._leave_implicit(rows, columns, residuals, torn, rest)
            self.definitions.extend(inner)

    def _leave_implicit(
        self, rows: list[int], columns: list[int], residuals: Sequence[ca.SX], torn: list[int], rest: list[int]
    ) -> None:
        texts = [self.equations[i].text for i in rest]
        held, pieces = hold_relations(residuals, texts, [self.unknowns[j] for j in torn], self.leeway)
        self.implicit.extend(torn)
        self.residuals.extend(held)
        self.texts.extend(texts)
        self.pieces.extend(pieces)
        self.blocks.append(Block(tuple(rows), tuple(columns), "implicit", tuple(torn)))

    def _solve_for(self, row: int, column: int) -> ca.SX:
        residual, symbol = self.equations[row].residual, self.unknowns[column].symbol
        slope = ca.jacobian(residual, symbol)
        if not slope.is_constant():
            text = self._pivot_text(row, column)
            self.pivots.append(Pivot(slope, text))
        return -ca.substitute(residual, symbol, ca.SX(0)) / slope

    def _pivot_text(self, row: int, column: int) -> str:
        return f"the factor of {self.unknowns[column].text} in '{self.equations[row].text}'"

    def _may_divide(self, row: int, column: int) -> bool:
        residual, symbol = self.equations[row].residual, self.unknowns[column].symbol
        slope = ca.jacobian(residual, symbol)
        if not is_affine(residual, symbol):
            return False
        if slope.is_constant():
            return bool(slope.nnz() == 1 and float(slope) != 0)
        only_parameters = all(s.element_hash() in self.parameters for s in ca.symvar(slope))
        return only_parameters and self._pivot_text(row, column) not in self.refused_pivots

    def _small_pivots(self, columns: list[int], divisible: Mapping[int, set[int]]) -> list[tuple[int, int]]:
        """Return numbers that are small beside others of their row and column, whatever the units: dividing by them one
        after the other would make rounding grow (Gaussian elimination without pivoting).
        """
        place, entries = {j: k for k, j in enumerate(columns)}, []
        rows = list(divisible)
        wanted = [[self.unknowns[j].symbol for j in sorted(divisible[i])] for i in rows]
        for k, slopes in enumerate(slopes_of([self.equations[i].residual for i in rows], wanted)):
            for j, slope in zip(sorted(divisible[rows[k]]), slopes, strict=True):
                if slope.is_constant() and slope.nnz():
                    entries.append((k, place[j], abs(float(slope)) * self.unknowns[j].nominal))
        if not entries:
            return []
        at, to, values = (np.array(part) for part in zip(*entries, strict=True))
        _, high, wide = equilibrated_triplets(values, at, to, (len(rows), len(columns)))
        return [(rows[k], columns[m]) for k, m, v in entries if 0 < v < MIN_PIVOT * high[k] * wide[m]]

    def _tear(self, rows: list[int], columns: list[int]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """Tear greedily: assign every unknown that some equation gives explicitly, tear the busiest one
        otherwise.

        Returns the assignments in order, the torn unknowns and the equations left for them.
        """
        inside = set(columns)
        open_rows = {i: self.incidence[i] & inside for i in rows}
        divisible = {i: {j for j in open_rows[i] if self._may_divide(i, j)} for i in rows}
        for i, j in self._small_pivots(columns, divisible):
            divisible[i].discard(j)
        torn, order = tear(open_rows, divisible)
        if len(torn) > CRAMER_LIMIT and len(rows) >= MIN_LARGE_SIZE and _grows(open_rows, order):
            torn, order = tear(open_rows, divisible, MAX_UNKNOWNS)
        taken = {i for i, _ in order}
        return order, sorted(torn), sorted(set(rows) - taken)


def _grows(rows: Mapping[int, set[int]], order: Sequence[tuple[int, int]]) -> bool:
    """Return whether formulas that are put into each other speak of more and more unknowns, as in a net of pipes."""
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
    """Return the unknowns to tear and the others with the equations that give them, in an order in which they can be
    found: that of the first equation with one unknown left; where there is none, what occurs most often, and least
    often as something that could be solved for, is torn.

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


def _is_free_of(slope: ca.SX, symbol: ca.SX) -> bool:
    return bool(slope.is_constant()) or not ca.depends_on(slope, symbol)


def substitute_sequence(definitions: Sequence[tuple[ca.SX, ca.SX]], formulas: Sequence[ca.SX]) -> list[ca.SX]:
    """Return formulas with every defined symbol replaced; a definition may use symbols that are defined before it."""
    if not definitions or not formulas:
        return list(formulas)
    names = [d[0] for d in definitions]
    values = [d[1] for d in definitions]
    _, replaced = ca.substitute_inplace(names, values, list(formulas), False)
    return list(replaced)


def cramer(matrix: ca.SX, right: ca.SX) -> list[ca.SX]:
    """Return solution of a linear system of up to three equations; the determinant is the only divisor."""
    n = matrix.shape[0]
    full = ca.densify(matrix)
    a = [[full[i, j] for j in range(n)] for i in range(n)]
    b = [right[i] for i in range(n)]
    if n == 1:
        return [b[0] / a[0][0]]
    if n == 2:
        scale = 1 / (a[0][0] * a[1][1] - a[0][1] * a[1][0])
        return [(b[0] * a[1][1] - a[0][1] * b[1]) * scale, (a[0][0] * b[1] - b[0] * a[1][0]) * scale]
    cofactor = [
        [
            a[(i + 1) % 3][(j + 1) % 3] * a[(i + 2) % 3][(j + 2) % 3]
            - a[(i + 1) % 3][(j + 2) % 3] * a[(i + 2) % 3][(j + 1) % 3]
            for j in range(3)
        ]
        for i in range(3)
    ]
    scale = 1 / (a[0][0] * cofactor[0][0] + a[0][1] * cofactor[0][1] + a[0][2] * cofactor[0][2])
    return [(cofactor[0][k] * b[0] + cofactor[1][k] * b[1] + cofactor[2][k] * b[2]) * scale for k in range(3)]
