"""What the C file of a sparse kernel says about its matrices: which entries they have, in which order they are
eliminated; and from which size on a kernel is sparse.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from grisaille.compilation.derivatives import SPARSE
from grisaille.compilation.sparse.pattern import Elimination, Ints, Pattern, eliminate, lower_right
from grisaille.structure.system import System

LEAST = 30
"""States and implicit unknowns from which on sparse equations are considered: a step of a rod or a grid takes as long
with either at 12, and half as long with sparse ones at 30."""

WORTH = 0.25
"""Nonzeros of the factors, as a part of all entries, up to which they are worth it."""


def is_worth_it(system: System) -> bool:
    """Whether the equations of an implicit step are large and sparse enough."""
    n = system.nx + system.nz
    if n < LEAST:
        return False
    rates = ca.vertcat(system.rhs, system.residual)
    unknowns = ca.vertcat(system.x, system.z)
    sparsity = ca.jacobian_sparsity(rates, unknowns) + ca.Sparsity.diag(n)
    if sparsity.nnz() > WORTH * n * n:
        return False
    order = eliminate(Pattern((n, n), np.array(sparsity.colind()), np.array(sparsity.row(), dtype=np.int64)))
    return order is not None and 2 * order.fill - n <= WORTH * n * n


def declare(functions: Mapping[str, ca.Function], nx: int, nz: int) -> list[str]:
    """Sizes, patterns and orders as C, for gr_matrix.h and gr_sparse.h."""
    lines = []
    for name in SPARSE:
        if name in functions:
            lines += _pattern(name, _of(functions[name]))
    J = _of(functions["J"])
    diagonal = np.flatnonzero((J.row == J.column) & (J.column < nx))
    lines += [_ints("gr_J_diagonal", diagonal), *_order("J", J)]
    if nz:
        z, places = lower_right(J, nx)
        lines += [*_pattern("Z", z), _ints("gr_Z_from", places), *_order("Z", z)]
    return lines


def _of(function: ca.Function) -> Pattern:
    sparsity = function.sparsity_out(0)
    shape = (function.size1_out(0), function.size2_out(0))
    return Pattern(shape, np.array(sparsity.colind()), np.array(sparsity.row(), dtype=np.int64))


def _pattern(name: str, pattern: Pattern) -> list[str]:
    return [
        f"#define GR_{name}_SIZE {pattern.size}",
        _ints(f"gr_{name}_begin", pattern.begin),
        _ints(f"gr_{name}_row", pattern.row),
    ]


def _order(name: str, pattern: Pattern) -> list[str]:
    found = eliminate(pattern) or _as_given(pattern.shape[0])
    return [
        f"#define GR_{name}_ROOM {found.room}L",
        _ints(f"gr_{name}_order", found.order),
        _ints(f"gr_{name}_wanted", found.wanted),
        _ints(f"gr_{name}_block", found.block),
    ]


def _as_given(n: int) -> Elimination:
    """Where no pivots can be found beforehand, which the factorization will say itself."""
    return Elimination(np.arange(n), np.arange(n), np.zeros(n, np.int64), n * (n + 1) // 2)


def _ints(name: str, values: Ints) -> str:
    text = ",".join(map(str, values.tolist())) or "0"
    return f"static const int {name}[{max(values.size, 1)}] = {{{text}}};"
