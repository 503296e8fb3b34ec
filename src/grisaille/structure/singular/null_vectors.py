"""Combinations of equations in which derivatives cancel: vectors λ with λᵀ 𝐉 = 0, as numbers or as formulas.

Rows that depend on each other are found numerically, at random values of all symbols. Where λ (one entry of it set to
one) is the same at all of them, it is used as numbers. Else it is a formula of the symbols on which it depends:
those on which it does not, although entries of 𝐉 do, are given fixed values first. A factor that all of λ has in
common, as the slope of an unrelated equation in a determinant, would make that equation's unknowns part of the
combination, and its derivative regular wherever the combination does not hold.

    λ_rest = −(𝐉_rest)⁻ᵀ 𝐉_anchor,   pivots that are numbers first, what is left by determinants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.model.expression import Constant
from grisaille.structure.equations import Equations
from grisaille.structure.singular.cancellation import SIZE_FACTORS, random_point
from grisaille.structure.singular.refined_rank import RankDecision, refine_rank
from grisaille.structure.singular.scaling import (
    NUMBERS_TOLERANCE,
    balanced,
    is_clearly_regular,
    is_regular,
    rank,
)
from grisaille.structure.switching_pieces import SwitchingPiece, separate_relations

if TYPE_CHECKING:
    from scipy.sparse import csc_array

SAMPLED_POINTS = len(SIZE_FACTORS)
EPS = float(np.finfo(float).eps)
FACTOR_TOLERANCE = 1e-7
"""Relative difference of factors that are the same."""
WORST_PRECISION = 1e-3
"""Factors that rounding leaves less precise tell nothing."""
MOVE_FACTORS = (0.7, 1e3, 1e6, 1e9)
OTHER_SIDES = {"lt": (0.0, 1.0), "le": (0.0, 1.0), "eq": (0.0, 1.0), "ne": (0.0, 1.0), "sign": (-1.0, 1.0)}
MAX_MEANT = 1e3
"""Factors above are products of units; a fraction lies near to any of them."""
TIME_SCALES = (1e-3, 1e3, 1e-6, 1e6, 1e-9, 1e9)
"""Derivatives are tried at these times their variables' sizes, and its powers for higher ones."""
MIN_LARGE_SIZE = 100
"""Rows of a block from which on sparse factors are asked before its singular values are."""
BY_DETERMINANTS = 5
"""Largest system of formulas that is solved by determinants, whose size grows with its factorial."""


@dataclass(frozen=True, eq=False)
class SampledJacobian:
    """A matrix of formulas with its values at random points."""

    equations: Equations
    matrix: ca.SX
    chosen: tuple[np.ndarray, ...] = ()
    """Points that are better than random ones."""

    @cached_property
    def symbols(self) -> list[ca.SX]:
        return list(ca.symvar(self.matrix))

    @cached_property
    def _function(self) -> ca.Function:
        vector = ca.vertcat(*self.symbols) if self.symbols else ca.SX(0, 1)
        return ca.Function("jacobian", [vector], [self.matrix])

    def at(self, point: np.ndarray) -> np.ndarray:
        """Return the structural nonzeros, column by column."""
        return np.array(self._function(point).nonzeros())

    @cached_property
    def _places(self) -> list[list[tuple[int, int]]]:
        """For each row (column, number of the entry)."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.matrix.shape[0])]
        rows, columns = self.matrix.sparsity().get_triplet()
        for entry, (i, j) in enumerate(zip(rows, columns, strict=True)):
            found[i].append((j, entry))
        return found

    def _part(self, value: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        part = np.zeros((len(rows), len(columns)))
        position = {j: k for k, j in enumerate(columns)}
        for k, i in enumerate(rows):
            for j, entry in self._places[i]:
                if j in position:
                    part[k, position[j]] = value[entry]
        return part

    def _entries(self, value: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> csc_array:
        """Return the same by its entries."""
        from scipy.sparse import csc_array, csr_array

        pattern = self.matrix.sparsity()
        whole = csc_array((value, pattern.row(), pattern.colind()), shape=self.matrix.shape)
        part = csc_array(csr_array(whole[:, list(columns)])[list(rows)])
        part.eliminate_zeros()
        return part

    def block(self, sample: int, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        """Return some rows and columns at one of the points."""
        return self._part(self.values[sample], rows, columns)

    def blocks(self, rows: Sequence[int], columns: Sequence[int]) -> Iterator[np.ndarray]:
        """At all points."""
        return (self._part(value, rows, columns) for value in self.values)

    @cached_property
    def points(self) -> list[np.ndarray]:
        """Return where all entries are finite."""
        if self.chosen:
            return list(self.chosen)
        random = np.random.default_rng(20011)
        found: list[np.ndarray] = []
        for attempt in range(6 * SAMPLED_POINTS):
            # positive first: logarithms, roots and concentrations live there; then of any sign
            low = 0.3 if attempt < 3 * SAMPLED_POINTS else -1.3
            point = random_point(self.equations, self.symbols, random, attempt, low)
            if np.isfinite(self.at(point)).all():
                found.append(point)
            if len(found) == SAMPLED_POINTS:
                break
        return found

    @cached_property
    def values(self) -> list[np.ndarray]:
        return [self.at(point) for point in self.points]

    def is_singular(self, rows: Sequence[int], columns: Sequence[int]) -> bool:
        """Return whether a block is, wherever it is looked at; derivatives that are far from their variables' sizes, as
        they are in a model whose time scale is far from one, must not hide its other terms.
        """
        if len(rows) > MIN_LARGE_SIZE and any(is_clearly_regular(self._entries(v, rows, columns)) for v in self.values):
            return False
        if any(is_regular(value) for value in self.blocks(rows, columns)):
            return False
        if self.matrix[list(rows), list(columns)].is_constant():
            return not is_regular(self.block(0, rows, columns), NUMBERS_TOLERANCE)
        others = (*self._switched(rows, columns), *self._sized(rows, columns))
        if any(np.isfinite(value).all() and is_regular(value) for value in others):
            return False
        orders = np.array([m.order if (m := self.equations.jets.meaning(s)) else 0 for s in self.symbols])
        if not orders.any() or not any(ca.depends_on(self.matrix[list(rows), list(columns)], self.symbols[k])
                                       for k in np.flatnonzero(orders)):  # fmt: skip
            return True
        scaled = (self._part(self.at(self.points[0] * s**orders), rows, columns) for s in TIME_SCALES)
        return not any(np.isfinite(value).all() and is_regular(value) for value in scaled)

    def closer(self, rows: Sequence[int], columns: Sequence[int]) -> SampledJacobian | None:
        """Return the matrix at points that show most of a block that was found singular, itself where random ones show
        more; None where the block is regular there.
        """
        block = self.matrix[list(rows), list(columns)]
        own = ca.symvar(block)
        look = refine_rank(self.equations, block, own) if own else RankDecision(False, (), 0)
        if look.is_regular:
            return None
        if look.rank < max(rank(value) for value in self.blocks(rows, columns)):
            return self
        position = {s.element_hash(): k for k, s in enumerate(self.symbols)}
        places = [position[s.element_hash()] for s in own]
        points = tuple(self.points[0].copy() for _ in look.points)
        for point, values in zip(points, look.points, strict=True):
            point[places] = values
        return SampledJacobian(self.equations, self.matrix, points)

    def _switched(self, rows: Sequence[int], columns: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield a block with signals that switch on and off at random; elsewhere all of them are on."""
        meanings = [self.equations.jets.meaning(s) for s in self.symbols]
        switches = [k for k, m in enumerate(meanings) if m is not None and m.kind == "switch"]
        if not switches or not ca.depends_on(
            self.matrix[list(rows), list(columns)], ca.vertcat(*(self.symbols[k] for k in switches))
        ):
            return
        random = np.random.default_rng(20012)
        for point in (*self.points, *self.points):
            turned = point.copy()
            turned[switches] = random.integers(0, 2, len(switches))
            yield self._part(self.at(turned), rows, columns)

    def _sized(self, rows: Sequence[int], columns: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield a block with parameters of the size of their values: x / 1e5 with x of its nominal size is of size
        one.
        """
        declared = {
            self.equations.parameters[n].element_hash(): p.value for n, p in self.equations.model.parameters.items()
        }
        values = [declared.get(s.element_hash()) for s in self.symbols]
        sizes = np.array([abs(v.value) if isinstance(v, Constant) else 1.0 for v in values])
        sizes[~np.isfinite(sizes) | (sizes == 0.0)] = 1.0
        if (sizes != 1.0).any():
            yield from (self._part(self.at(point * sizes), rows, columns) for point in self.points)

    def dependent_rows(self, rows: Sequence[int], columns: Sequence[int]) -> list[int]:
        """Return a minimal set of dependent rows: rows are dropped while the rest stays dependent."""
        members = list(rows)
        for row in list(members):
            fewer = [m for m in members if m != row]
            if fewer and all(rank(value) < len(fewer) for value in self.blocks(fewer, columns)):
                members = fewer
        return members

    def null_vector(self, rows: Sequence[int], columns: Sequence[int], anchor: int) -> tuple[ca.SX, ...] | None:
        """λ over a minimal set of dependent rows, that of ``anchor`` being one; None where there is none."""
        block = ca.densify(self.matrix[list(rows), list(columns)])
        essential = _essential_symbols(block, self.symbols, self.points, anchor)
        if essential is None:
            return None
        kept = {s.element_hash() for s in essential}
        fixed = [(s, v) for s, v in zip(self.symbols, self.points[0], strict=True) if s.element_hash() not in kept]
        if fixed:
            block = ca.substitute(block, ca.vertcat(*(s for s, _ in fixed)), ca.DM([v for _, v in fixed]))
        if not essential:
            found = (_left_null(value, anchor) for value in self.blocks(rows, columns))
            numbers = min((f for f in found if f is not None), key=lambda f: f.precision, default=None)
            return None if numbers is None else tuple(ca.SX(_tidy(v)) for v in numbers.factors)
        return _solve(ca.densify(block), self.block(0, rows, columns), anchor)


def _essential_symbols(
    block: ca.SX, symbols: Sequence[ca.SX], points: Sequence[np.ndarray], anchor: int
) -> list[ca.SX] | None:
    """Return symbols on which λ depends, not only entries of the block; None where it has no λ.

    Each is moved by itself, also far, since nobody knows how large it becomes: a density that grows by 1e-10 with a
    pressure is no constant. Relations are turned to their other sides, whatever they ask for.
    """
    (smooth,), pieces = separate_relations([block], ca.vertcat(*symbols) if symbols else ca.SX(0, 1))
    marks = [p.symbol for p in pieces]
    inside = {s.element_hash() for s in ca.symvar(smooth)}
    vector = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
    within = ca.Function("within", [vector, ca.vertcat(*marks) if marks else ca.SX(0, 1)], [smooth])
    now = ca.Function("now", [vector], [_written_out(pieces)])
    found: dict[int, ca.SX] = {}
    known = 0
    for point in points:
        mark = np.array(now(point).full()).ravel()
        before = _left_null(np.array(within(point, mark).full()), anchor)
        if before is None:
            continue
        known += 1
        for k, symbol in enumerate(symbols):
            if k in found or symbol.element_hash() not in inside:
                continue
            for factor in MOVE_FACTORS:
                moved = point.copy()
                moved[k] *= factor
                if _differs(np.array(within(moved, mark).full()), before, anchor, factor):
                    found[k] = symbol
                    break
        for j, piece in enumerate(pieces):
            asked = [k for k, s in enumerate(symbols) if ca.depends_on(piece.relation.value, s)]
            for other in OTHER_SIDES.get(piece.relation.kind, (-1.0, 0.0, 1.0, 2.0)):
                turned = mark.copy()
                turned[j] = other
                if _differs(np.array(within(point, turned).full()), before, anchor, 1.0):
                    found.update({k: symbols[k] for k in asked})
    return [found[k] for k in sorted(found)] if known else None


def _written_out(pieces: Sequence[SwitchingPiece]) -> ca.SX:
    """Return relations one after the other, those before them inserted."""
    values: list[ca.SX] = []
    for k, piece in enumerate(pieces):
        value = piece.relation.value
        for j in reversed(range(k)):
            value = ca.substitute(value, pieces[j].symbol, values[j])
        values.append(value)
    return ca.vertcat(*values) if values else ca.SX(0, 1)


@dataclass(frozen=True)
class _Null:
    factors: np.ndarray
    precision: float
    """Relative error that rounding may leave in them."""


def _differs(value: np.ndarray, before: _Null, anchor: int, factor: float) -> bool:
    """Return whether λ is another one; not where it cannot be told."""
    after = _left_null(value, anchor) if np.isfinite(value).all() else None
    if after is None:
        return False
    tolerance = (FACTOR_TOLERANCE if factor < 1.0 else 10 * FACTOR_TOLERANCE) + before.precision + after.precision
    return bool((np.abs(after.factors - before.factors) > tolerance * np.abs(before.factors)).any())


def _left_null(rows: np.ndarray, anchor: int) -> _Null | None:
    """λ as numbers; None where the rows depend on each other in no way, in several, or too nearly so to tell."""
    if rank(rows) != rows.shape[0] - 1:
        return None
    scaled, scale = balanced(rows)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factors = np.linalg.svd(scaled)[0][:, -1] / scale
        weighted = rows * factors[:, None]
    if not np.isfinite(weighted).all():
        return None  # units too far apart
    # once more with rows that count alike in every column: small factors are then as precise as large ones
    largest = np.abs(weighted).max(axis=0)
    u, singular, _ = np.linalg.svd(weighted[:, largest > 0] / largest[largest > 0])
    again = u[:, -1]
    if len(singular) < len(rows) - 1:
        return None  # factors that vanish take whole columns with them
    next_one = singular[len(rows) - 2] if len(rows) > 1 else 1.0
    if not (next_one > 0 and again[anchor] and factors[anchor]):
        return None
    largest_one = singular[0] if len(singular) else 1.0  # a row of zeros depends on nothing else
    certain = next_one * np.abs(again).min()
    if not 100 * EPS * largest_one < WORST_PRECISION * certain:
        return None
    factors = factors * again
    return _Null(factors / factors[anchor], 100 * EPS * largest_one / certain)


def _tidy(value: float) -> float:
    """±1, 2, ½ … as they are meant, not as the decomposition found them."""
    for denominator in range(1, 13):
        nearest = round(value * denominator) / denominator
        if 0 < abs(nearest) < MAX_MEANT and abs(value - nearest) <= 1e-12 * abs(value):
            return nearest
    return value


def _solve(block: ca.SX, value: np.ndarray, anchor: int) -> tuple[ca.SX, ...]:
    """λ from 𝐉_restᵀ λ_rest = −𝐉_anchor, over columns on which the rows have full rank but one."""
    from scipy.linalg import qr

    rest = [i for i in range(block.shape[0]) if i != anchor]
    if not rest:
        return (ca.SX(1),)
    scaled = balanced(value)[0]
    chosen = sorted(qr(scaled[rest], mode="r", pivoting=True)[1][: len(rest)].tolist())
    system = _Elimination(block[rest, chosen].T, -block[anchor, chosen].T, scaled[np.ix_(rest, chosen)].T)
    factors = system.solution()
    factors.insert(anchor, ca.SX(1))
    return tuple(factors)


class _Elimination:
    """A x = b in formulas: Gauss–Jordan with pivots that are numbers, then determinants or pivots that are not."""

    def __init__(self, matrix: ca.SX, right: ca.SX, scaled: np.ndarray) -> None:
        self.n = matrix.shape[0]
        self.a = [[matrix[i, j] for j in range(self.n)] for i in range(self.n)]
        self.b = [right[i] for i in range(self.n)]
        self.scaled = scaled.copy()
        self.rows, self.columns = list(range(self.n)), list(range(self.n))
        self.pivots: list[tuple[int, int]] = []

    def solution(self) -> list[ca.SX]:
        while self.rows and self._eliminate(only_numbers=True):
            pass
        while len(self.rows) > BY_DETERMINANTS and self._eliminate(only_numbers=False):
            pass
        x: dict[int, ca.SX] = {}
        if self.rows:
            matrix = ca.vertcat(*(ca.horzcat(*(self.a[i][j] for j in self.columns)) for i in self.rows))
            right = ca.vertcat(*(self.b[i] for i in self.rows))
            whole = ca.det(ca.densify(matrix))
            for k, j in enumerate(self.columns):
                replaced = ca.SX(ca.densify(matrix))
                replaced[:, k] = right
                x[j] = ca.det(replaced) / whole
        for i, j in reversed(self.pivots):
            known = sum((self.a[i][k] * x[k] for k in x if not self.a[i][k].is_zero()), start=ca.SX(0))
            x[j] = (self.b[i] - known) / self.a[i][j]
        return [x[j] for j in range(self.n)]

    def _eliminate(self, *, only_numbers: bool) -> bool:
        """Return one pivot, the largest of what is left in scaled values; False where there is none."""
        best = max(
            ((abs(self.scaled[i, j]), i, j) for i in self.rows for j in self.columns
             if not only_numbers or self.a[i][j].is_constant()),
            default=(0.0, 0, 0),
        )  # fmt: skip
        if (best[0] < 1e-3 and only_numbers) or best[0] == 0.0:
            return False
        _, i, j = best
        for k in self.rows:
            if k == i or self.a[k][j].is_zero():
                continue
            factor, number = self.a[k][j] / self.a[i][j], self.scaled[k, j] / self.scaled[i, j]
            for m in self.columns:
                self.a[k][m] = ca.SX(0) if m == j else self.a[k][m] - factor * self.a[i][m]
            self.b[k] = self.b[k] - factor * self.b[i]
            kept = np.abs(self.scaled[k]) + np.abs(number * self.scaled[i])
            self.scaled[k] = self.scaled[k] - number * self.scaled[i]
            # what cancels is nothing, in numbers as in formulas
            for m in self.columns:
                if abs(self.scaled[k, m]) <= 1e-13 * kept[m] and self.a[k][m].is_constant():
                    self.a[k][m], self.scaled[k, m] = ca.SX(0), 0.0
        self.rows.remove(i)
        self.columns.remove(j)
        self.pivots.append((i, j))
        return True
