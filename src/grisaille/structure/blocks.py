"""The leading system, block by block: what can be solved in formulas, what stays implicit.

After index reduction the leading derivatives and algebraic unknowns v satisfy a square system f(v, …) = 0. Its
strongly connected blocks are taken in order of dependence. A block is

- *explicit*: one equation, affine in its unknown: v = −f(0)/slope, where the slope is the block's only pivot;
- *linear*, up to three torn unknowns: solved by Cramer's rule, so that the only divisor is the determinant;
- *implicit*: everything else. Its torn unknowns become entries of z, solved by Newton with pivoted elimination in
  every step. Relations of its own unknowns across which its equations jump become entries of z too
  (``relations_as_unknowns.py``).

Tearing inside a block only divides by numbers and by functions of parameters; the latter are recorded as pivots and
checked before each run, and a block whose pivot vanishes is not torn there. Nor is it torn where rounding would grow
(``elimination_growth.py``), which is seen here where numbers are known, and before each run where parameters are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.model.ordering import strong_components
from grisaille.structure.bipartite_matching import maximum_matching
from grisaille.structure.elimination_growth import Elimination, determinant_text, pivot_text
from grisaille.structure.relations_as_unknowns import DEFAULT_LEEWAY, HeldRelation, hold_relations
from grisaille.structure.row_slopes import slopes_of, with_relations
from grisaille.structure.switching_pieces import is_affine
from grisaille.structure.tearing import CRAMER_LIMIT, tear_block


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
    elimination: Elimination | None = field(default=None, compare=False, repr=False)
    """Its matrix before it was torn, where that depends on parameters."""


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


@dataclass(frozen=True)
class _Torn:
    """A torn block: the others in the order in which they are given, the torn unknowns, the equations left for them."""

    order: list[tuple[int, int]]
    torn: list[int]
    rest: list[int]
    is_ill_conditioned: bool
    elimination: Elimination | None


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
        self.parameters = {p.element_hash(): p for p in parameters}
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
        tearing = self._tear(rows, columns)
        order, torn, rest = tearing.order, tearing.torn, tearing.rest
        inner = [(self.unknowns[j].symbol, self._solve_for(i, j)) for i, j in order]
        residuals = substitute_sequence(inner, [self.equations[i].residual for i in rest])
        symbols = [self.unknowns[j].symbol for j in torn]
        may_be_solved = len(torn) <= CRAMER_LIMIT and not self._is_ill_conditioned(tearing, rows)
        if may_be_solved and is_affine(ca.vertcat(*residuals), ca.vertcat(*symbols)):
            matrix = ca.jacobian(ca.vertcat(*residuals), ca.vertcat(*symbols))
            zero = ca.SX.zeros(len(torn))
            constant = ca.substitute(ca.vertcat(*residuals), ca.vertcat(*symbols), zero)
            for symbol, value in zip(symbols, cramer(matrix, -constant), strict=True):
                self.definitions.append((symbol, value))
            self.definitions.extend(inner)
            self.blocks.append(Block(tuple(rows), tuple(columns), "linear", tuple(torn), tearing.elimination))
        else:
            self._leave_implicit(rows, columns, residuals, torn, rest, tearing.elimination)
            self.definitions.extend(inner)

    def _leave_implicit(
        self, rows: list[int], columns: list[int], residuals: Sequence[ca.SX], torn: list[int], rest: list[int],
        elimination: Elimination | None = None,
    ) -> None:  # fmt: skip
        texts = [self.equations[i].text for i in rest]
        held, pieces = hold_relations(residuals, texts, [self.unknowns[j] for j in torn], self.leeway)
        self.implicit.extend(torn)
        self.residuals.extend(held)
        self.texts.extend(texts)
        self.pieces.extend(pieces)
        self.blocks.append(Block(tuple(rows), tuple(columns), "implicit", tuple(torn), elimination))

    def _solve_for(self, row: int, column: int) -> ca.SX:
        residual, symbol = self.equations[row].residual, self.unknowns[column].symbol
        slope = ca.jacobian(residual, symbol)
        if not slope.is_constant():
            text = self._pivot_text(row, column)
            self.pivots.append(Pivot(slope, text))
        return -ca.substitute(residual, symbol, ca.SX(0)) / slope

    def _pivot_text(self, row: int, column: int) -> str:
        return pivot_text(self.equations[row].text, self.unknowns[column].text)

    def _may_divide(self, row: int, column: int, slope: ca.SX | None) -> bool:
        """Whether an equation may be solved for an unknown by which it has this slope, None where others move it."""
        if slope is None or not is_affine(self.equations[row].residual, self.unknowns[column].symbol):
            return False
        if slope.is_constant() and not (slope.nnz() == 1 and float(slope) != 0):
            return False
        return not self.refused_pivots or self._pivot_text(row, column) not in self.refused_pivots

    def _is_ill_conditioned(self, tearing: _Torn, rows: list[int]) -> bool:
        """Whether Cramer's rule would make rounding grow where torn unknowns are solved for."""
        text = determinant_text([self.equations[i].text for i in rows]) if self.refused_pivots else ""
        return tearing.is_ill_conditioned or text in self.refused_pivots

    def _elimination(self, rows: list[int], columns: list[int]) -> Elimination:
        inside = set(columns)
        open_rows = {i: self.incidence[i] & inside for i in rows}
        wanted = [sorted(open_rows[i]) for i in rows]
        symbols = [[self.unknowns[j].symbol for j in entries] for entries in wanted]
        slopes = slopes_of([self.equations[i].residual for i in rows], symbols)
        known: dict[tuple[int, int], ca.SX] = {}
        switched: dict[tuple[int, int], ca.SX] = {}
        for i, entries, found in zip(rows, wanted, slopes, strict=True):
            for j, slope in zip(entries, found, strict=True):
                others = [s for s in ca.symvar(slope) if s.element_hash() not in self.parameters]
                if not others:
                    known[i, j] = slope
                elif ca.jacobian(slope, ca.vertcat(*others)).is_zero():
                    switched[i, j] = slope
        return Elimination(
            open_rows,
            {i: {j for j in open_rows[i] if self._may_divide(i, j, known.get((i, j)))} for i in rows},
            (*known, *switched),
            ca.SX(ca.densify(ca.vertcat(*known.values(), *switched.values()))),
            ca.SX(ca.vertcat(*self.parameters.values())),
            {j: self.unknowns[j].nominal for j in columns},
        )

    def _tear(self, rows: list[int], columns: list[int]) -> _Torn:
        """Greedy tearing, judged at once where all numbers are known."""
        elimination = self._elimination(rows, columns)
        divisible, is_ill_conditioned = elimination.divisible, False
        if not elimination.depends_on_parameters:
            refused, is_ill_conditioned = elimination.refused_pivots(np.zeros(len(self.parameters)))
            divisible = {i: {j for j in found if (i, j) not in refused} for i, found in divisible.items()}
        torn, order = tear_block(elimination.rows, divisible)
        taken = {i for i, _ in order}
        kept = elimination if elimination.depends_on_parameters else None
        return _Torn(order, sorted(torn), sorted(set(rows) - taken), is_ill_conditioned, kept)


def _is_free_of(slope: ca.SX, symbol: ca.SX) -> bool:
    return bool(slope.is_constant()) or not ca.depends_on(slope, symbol)


def substitute_sequence(definitions: Sequence[tuple[ca.SX, ca.SX]], formulas: Sequence[ca.SX]) -> list[ca.SX]:
    """Formulas with every defined symbol replaced; a definition may use symbols that are defined before it."""
    if not definitions or not formulas:
        return list(formulas)
    names = [d[0] for d in definitions]
    values = [d[1] for d in definitions]
    _, replaced = ca.substitute_inplace(names, values, list(formulas), False)
    return list(replaced)


def cramer(matrix: ca.SX, right: ca.SX) -> list[ca.SX]:
    """Solution of a linear system of up to three equations; the determinant is the only divisor."""
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
