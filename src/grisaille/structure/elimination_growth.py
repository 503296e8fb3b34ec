"""Rounding that grows where the equations of a block are solved one after the other.

Tearing is block elimination with

    A = [T C; B D],   W = -T^-1 C,   S = D + B W,

T triangular: an unknown is T^-1 b + W x of the torn ones, x. Its backward error is that of the product of the factors,
|L| |U|, beside |A| (Higham, Accuracy and Stability of Numerical Algorithms, sections 9.3 and 13.2). With rows and
columns of A scaled to one size, that is small as long as the entries of W are moderate; each pivot by whose equation a
row of W becomes large is refused, and its unknown is torn instead. Cramer's rule is not backward stable: where S is
ill-conditioned, elimination with pivoting has to solve for x.

Entries of A that depend on more than parameters are not known beforehand, and count as zero; those that are numbers on
each side of relations count with the largest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.structure.singular.scaling import equilibrated, equilibrated_triplets
from grisaille.structure.tearing import CRAMER_LIMIT, tear_block

if TYPE_CHECKING:
    from grisaille.structure.reduction import Structure

MIN_PIVOT = 1e-3
"""Of the largest numbers in a pivot's row and column."""
MAX_FACTORS = 100.0
"""Sum of the factors of torn unknowns in a formula, in units in which all rows and columns have one size."""
MAX_CRAMER_CONDITION = 1e3
"""Condition number of scaled equations up to which Cramer's rule solves them."""
SAMPLED_SIDES = 8
"""Points at which entries are looked at that relations decide."""

Entries = Mapping[tuple[int, int], float]
"""Numbers of a matrix by equation and unknown."""


@dataclass(frozen=True)
class Elimination:
    """The matrix of a block before it is torn, as a function of parameters.

    rows : for each equation the unknowns in it
    divisible : for each equation the unknowns that it may be solved for
    """

    rows: Mapping[int, set[int]]
    divisible: Mapping[int, set[int]]
    places: Sequence[tuple[int, int]]
    values: ca.SX
    parameters: ca.SX
    nominal: Mapping[int, float]

    @cached_property
    def depends_on_parameters(self) -> bool:
        """Whether the entries are not numbers."""
        return bool(self.parameters.numel()) and bool(ca.depends_on(self.values, self.parameters))

    @cached_property
    def _function(self) -> ca.Function:
        own = {s.element_hash() for s in ca.symvar(self.parameters)}
        switched = [s for s in ca.symvar(self.values) if s.element_hash() not in own]
        return ca.Function("entries", [self.parameters, ca.SX(ca.vertcat(*switched))], [self.values])

    def at(self, p: np.ndarray) -> np.ndarray:
        """The entries at these parameters, on the sides of relations where they are largest."""
        count = self._function.size1_in(1)
        random = np.random.default_rng(3)
        points = random.uniform(-1.0, 1.0, (SAMPLED_SIDES if count else 1, count)) * 10.0 ** random.uniform(
            -3, 3, count
        )
        values = np.array([self._function(p, point).full().ravel() for point in points])
        return np.asarray(values[np.abs(values).argmax(axis=0), np.arange(values.shape[1])])

    def refused_pivots(self, p: np.ndarray) -> tuple[set[tuple[int, int]], bool]:
        """Pivots that the tearing must not divide by at these parameters, and whether Cramer's rule is refused, too."""
        entries = self._scaled(self.at(p))
        refused = {(i, j) for (i, j), v in entries.items() if abs(v) < MIN_PIVOT and j in self.divisible[i]}
        while True:
            divisible = {i: {j for j in found if (i, j) not in refused} for i, found in self.divisible.items()}
            torn, order = tear_block(self.rows, divisible)
            factors, growing = eliminate(self.rows, order, torn, entries)
            if not growing:
                return refused, self._is_ill_conditioned(torn, order, entries, factors)
            refused |= growing

    def _scaled(self, values: np.ndarray) -> Entries:
        row, column = ({i: k for k, i in enumerate(found)} for found in (self.rows, self.nominal))
        known = {place: v for place, v in zip(self.places, values.tolist(), strict=True) if v and np.isfinite(v)}
        at, to = np.array([row[i] for i, _ in known], dtype=int), np.array([column[j] for _, j in known], dtype=int)
        sized = np.array([v * self.nominal[j] for (_, j), v in known.items()])
        scaled, *_ = equilibrated_triplets(sized, at, to, (len(row), len(column)))
        return dict(zip(known, scaled.tolist(), strict=True))

    def _is_ill_conditioned(
        self, torn: Sequence[int], order: Sequence[tuple[int, int]], entries: Entries, factors: Factors
    ) -> bool:
        if not 1 < len(torn) <= CRAMER_LIMIT:
            return False
        left = sorted(set(self.rows) - {i for i, _ in order})
        if any((i, j) not in entries for i in left for j in self.rows[i]):
            return False
        matrix = np.array([[_sum(self.rows[i], i, entries, factors).get(j, 0.0) for j in torn] for i in left])
        return not np.linalg.cond(equilibrated(matrix)[0]) <= MAX_CRAMER_CONDITION


Factors = dict[int, dict[int, float]]
"""For each unknown the factors of torn unknowns in its formula."""


def eliminate(
    rows: Mapping[int, set[int]], order: Sequence[tuple[int, int]], torn: Sequence[int], entries: Entries
) -> tuple[Factors, set[tuple[int, int]]]:
    """The rows of W, and pivots by which they become large; what follows from one of these counts as torn."""
    factors: Factors = {j: {j: 1.0} for j in torn}
    growing = set()
    for i, j in order:
        pivot = entries.get((i, j), 0.0)
        found = _sum(rows[i] - {j}, i, entries, factors)
        if sum(map(abs, found.values())) > MAX_FACTORS * abs(pivot):
            growing.add((i, j))
            factors[j] = {j: 1.0}
        else:
            factors[j] = {k: -v / pivot for k, v in found.items()} if pivot else {}
    return factors, growing


def _sum(unknowns: set[int], i: int, entries: Entries, factors: Factors) -> dict[int, float]:
    total: dict[int, float] = {}
    for u in unknowns:
        entry = entries.get((i, u))
        if entry is not None:
            for k, v in factors[u].items():
                total[k] = total.get(k, 0.0) + entry * v
    return total


def growing_pivots(structure: Structure, p: np.ndarray) -> frozenset[str]:
    """Texts of what must not be divided by at these parameters, for rounding would grow."""
    texts: set[str] = set()
    own = np.array([n not in structure.model.discretes for n in structure.equations.parameters], dtype=bool)
    for block in structure.blocks:
        if block.elimination is not None:
            pairs, determinant = block.elimination.refused_pivots(p[own])
            texts.update(pivot_text(structure.leading_texts[i], structure.leading_unknowns[j]) for i, j in pairs)
            if determinant and block.kind == "linear":
                texts.add(determinant_text([structure.leading_texts[i] for i in block.equations]))
    return frozenset(texts)


def pivot_text(equation: str, unknown: str) -> str:
    """A divisor of the tearing in words."""
    return f"the factor of {unknown} in '{equation}'"


def determinant_text(equations: Sequence[str]) -> str:
    """The divisor of Cramer's rule in words."""
    return "the determinant of '" + "', '".join(sorted(equations)) + "'"
