"""Write the matrices of a sparse kernel into its C file: their entries and order of elimination; decide from which size
on a kernel is sparse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.compilation.derivatives import SPARSE_MATRICES
from grisaille.compilation.sparse.fronts import fronts
from grisaille.compilation.sparse.pattern import Elimination, Ints, SparsityPattern, eliminate, lower_right
from grisaille.structure.system import System

MIN_SPARSE_SIZE = 30
"""States and implicit unknowns from which on sparse equations are considered: a step of a rod or a grid takes as long
with either at 12, and half as long with sparse ones at 30."""

MAX_FACTOR_DENSITY = 0.25
"""Nonzeros of the factors, as a part of all entries, up to which they are worth it."""

FRONT_ARRAYS = (
    "column_begin",
    "column",
    "own",
    "up",
    "state_begin",
    "state",
    "child_begin",
    "child",
    "height",
    "at",
    "place",
)


def is_worth_it(system: System) -> bool:
    """Return whether the equations of an implicit step are large and sparse enough."""
    n = system.nx + system.nz
    if n < MIN_SPARSE_SIZE:
        return False
    rates = ca.vertcat(system.rhs, system.residual)
    unknowns = ca.vertcat(system.x, system.z)
    sparsity = ca.jacobian_sparsity(rates, unknowns) + ca.Sparsity.diag(n)
    if sparsity.nnz() > MAX_FACTOR_DENSITY * n * n:
        return False
    order = eliminate(SparsityPattern((n, n), np.array(sparsity.colind()), np.array(sparsity.row(), dtype=np.int64)))
    return order is not None and 2 * order.fill - n <= MAX_FACTOR_DENSITY * n * n


@dataclass(frozen=True)
class MatrixTables:
    """Numbers and arrays of matrices by their names in C: ``J_SIZE``, ``gr_J_begin``."""

    numbers: dict[str, int]
    arrays: dict[str, Ints]

    def as_macros(self) -> list[str]:
        """Return the lines of C as macros, for a file of their own."""
        lines = [f"#define GR_{name} {number}L" for name, number in self.numbers.items()]
        return [*lines, *(f"static {line}" for line in self._arrays())]

    def as_objects(self) -> list[str]:
        """Return the lines of C as objects, for others to be linked with (gr_linked.h)."""
        lines = [f"const long {_variable(name)} = {number};" for name, number in self.numbers.items()]
        return [*lines, *self._arrays()]

    def _arrays(self) -> list[str]:
        return [_ints(name, values) for name, values in self.arrays.items()]


def matrices(functions: Mapping[str, ca.Function], nx: int, nz: int) -> MatrixTables:
    """Return sizes, patterns and orders for gr_matrix.h and gr_sparse.h: of ``J`` and its part dF/dz, where there is a
    J, and sizes and patterns of the other matrices among the functions.
    """
    tables = MatrixTables({}, {})
    for name in SPARSE_MATRICES:
        if name in functions:
            _pattern(tables, name, _of(functions[name]))
    if "CJ" in functions:
        _fronts(tables, _of(functions["CJ"]))
    if "J" not in functions:
        return tables
    J = _of(functions["J"])
    tables.arrays["gr_J_diagonal"] = np.flatnonzero((J.row == J.column) & (J.column < nx))
    _order(tables, "J", J)
    if nz:
        z, places = lower_right(J, nx)
        _pattern(tables, "Z", z)
        tables.arrays["gr_Z_from"] = places
        _order(tables, "Z", z)
    return tables


def _of(function: ca.Function) -> SparsityPattern:
    sparsity = function.sparsity_out(0)
    shape = (function.size1_out(0), function.size2_out(0))
    return SparsityPattern(shape, np.array(sparsity.colind()), np.array(sparsity.row(), dtype=np.int64))


def _pattern(tables: MatrixTables, name: str, pattern: SparsityPattern) -> None:
    tables.numbers[f"{name}_SIZE"] = pattern.size
    tables.arrays[f"gr_{name}_begin"] = pattern.begin
    tables.arrays[f"gr_{name}_row"] = pattern.row


def _fronts(tables: MatrixTables, slopes: SparsityPattern) -> None:
    """Write the tables for gr_sparse_qr.h, where there are hidden constraints."""
    if not slopes.shape[0]:
        return
    found = fronts(slopes)
    tables.numbers["Q_FRONTS"] = found.own.size
    tables.numbers["Q_SIZE"] = found.size
    tables.numbers["Q_COLUMNS"] = found.column.size
    tables.numbers["Q_TALLEST"] = int(found.height.max())
    for name in FRONT_ARRAYS:
        tables.arrays[f"gr_Q_{name}"] = getattr(found, name)


def _order(tables: MatrixTables, name: str, pattern: SparsityPattern) -> None:
    found = eliminate(pattern) or _as_given(pattern.shape[0])
    tables.numbers[f"{name}_ROOM"] = found.room
    tables.arrays[f"gr_{name}_order"] = found.order
    tables.arrays[f"gr_{name}_wanted"] = found.wanted
    tables.arrays[f"gr_{name}_block"] = found.block


def _as_given(n: int) -> Elimination:
    """Return the given order where no pivots can be found beforehand; the factorization then reports it itself."""
    return Elimination(np.arange(n), np.arange(n), np.zeros(n, np.int64), n * (n + 1) // 2)


def _variable(name: str) -> str:
    matrix, what = name.split("_")
    return f"gr_{matrix}_{what.lower()}"


def _ints(name: str, values: Ints) -> str:
    text = ",".join(map(str, values.tolist())) or "0"
    return f"const int {name}[{max(values.size, 1)}] = {{{text}}};"
