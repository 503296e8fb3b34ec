"""Which entries of a model's derivatives can differ from zero, and in which order sparse equations are eliminated.

For a square matrix with a perfect matching of its columns with rows, columns and rows are put into block-triangular
form (Tarjan's strong components of the matched graph), and inside each block into an order of minimum degree of
A + Aᵀ; where much fills in, columns with the same rows next to each other. What a pivot is, is decided by numbers at
run time (``kernels/gr_sparse_factors.h``); the matching says which is wanted.

Reference: Duff, Erisman, Reid: Direct Methods for Sparse Matrices, 2nd edition, chapters 6, 7 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.model.ordering import strong_components

Ints = NDArray[np.int64]

FILL_RESERVE = 4
"""There is room for so many times the entries that the wanted pivots give; untouched memory costs nothing."""

MIN_PRODUCTS_FOR_PANELS = 100
"""Products a column from which on columns are eliminated several at a time (``GR_PANEL_WORK`` in
``kernels/gr_sparse_panels.h``), so that those with the same rows should be neighbours. Elsewhere they should not:
eliminations that wait for one another take 1.3 times as long along a rod."""

MAX_UNORDERED_COLUMNS = 3
"""Columns of a block whose order does not matter."""


@dataclass(frozen=True)
class SparsityPattern:
    """Entries by columns, rows rising inside each column."""

    shape: tuple[int, int]
    begin: Ints
    row: Ints

    @property
    def size(self) -> int:
        return int(self.row.size)

    @property
    def column(self) -> Ints:
        return np.repeat(np.arange(self.shape[1]), np.diff(self.begin))


@dataclass(frozen=True)
class Elimination:
    """The order of a square pattern: column, wanted pivot row and beginning of the block of each position."""

    order: Ints
    wanted: Ints
    block: Ints
    fill: int
    """Entries of L, or of U, with the wanted pivots."""

    @property
    def room(self) -> int:
        n = self.order.size
        return min(FILL_RESERVE * self.fill + n, n * (n + 1) // 2)


def with_diagonal(matrix: ca.SX, count: int) -> ca.SX:
    """Return ``matrix`` with room for its first ``count`` diagonal entries, zeros where it had none."""
    n = matrix.size1()
    places = ca.Sparsity.triplet(n, n, list(range(count)), list(range(count)))
    return ca.project(matrix, matrix.sparsity() + places)


def lower_right(pattern: SparsityPattern, first: int) -> tuple[SparsityPattern, Ints]:
    """Return rows and columns from ``first`` on, and which entry of the whole each entry is."""
    inside = (pattern.row >= first) & (pattern.column >= first)
    n = pattern.shape[0] - first
    begin = np.concatenate(([0], np.cumsum(np.bincount(pattern.column[inside] - first, minlength=n))))
    return SparsityPattern((n, n), begin, pattern.row[inside] - first), np.flatnonzero(inside)


def eliminate(pattern: SparsityPattern) -> Elimination | None:
    """Return an order in which little fills in, or ``None`` where columns cannot be matched with rows."""
    n = pattern.shape[0]
    matched = _match(pattern)
    if matched is None:
        return None
    owner = np.empty(n, np.int64)
    owner[matched] = np.arange(n)
    position = owner[pattern.row]
    # a column leads to those whose matched rows it has entries in: what comes later is upper triangular
    begin, targets = pattern.begin.tolist(), position.tolist()
    blocks = strong_components([targets[begin[c] : begin[c + 1]] for c in range(n)])
    order: list[int] = []
    block: list[int] = []
    number, label = np.empty(n, np.int64), np.empty(n, np.int64)
    for k, members in enumerate(blocks):
        number[members], label[members] = np.arange(len(members)), k
    for members in blocks:
        block += [len(order)] * len(members)
        order += (
            members
            if len(members) <= MAX_UNORDERED_COLUMNS
            else _minimum_degree(members, pattern, position, number, label)
        )
    places, begins = np.array(order, np.int64), np.array(block, np.int64)
    tree = _tree(pattern, position, places, begins)
    counts = _counts(tree)
    if sum(count**2 for count in counts) >= MIN_PRODUCTS_FOR_PANELS * n:
        places = places[_postorder(tree, counts)]
    return Elimination(places, matched[places], begins, sum(counts) + tree.between + n)


def _match(pattern: SparsityPattern) -> Ints | None:
    """Match each column with a row, its own wherever it has an entry there."""
    n = pattern.shape[0]
    diagonal = pattern.row == pattern.column
    matched = np.full(n, -1, np.int64)
    matched[pattern.column[diagonal]] = pattern.row[diagonal]
    if (matched >= 0).all():
        return matched
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = coo_array((np.ones(pattern.size), (pattern.row, pattern.column)), shape=(n, n)).tocsr()
    found = maximum_bipartite_matching(graph, perm_type="row").astype(np.int64)
    return None if (found < 0).any() else found


def _minimum_degree(
    members: Sequence[int], pattern: SparsityPattern, position: Ints, number: Ints, label: Ints
) -> list[int]:
    """Return the block's columns in the order of elimination; ``number``: of each column in its block."""
    from scipy.sparse import coo_array, csc_array
    from scipy.sparse.linalg import splu

    m = len(members)
    chosen = np.concatenate([np.arange(pattern.begin[c], pattern.begin[c + 1]) for c in members])
    chosen = chosen[label[position[chosen]] == label[members[0]]]
    rows, columns = number[position[chosen]], number[pattern.column[chosen]]
    ones = np.ones(rows.size)
    graph = coo_array((ones, (rows, columns)), shape=(m, m)).tocsc()
    symmetric = csc_array(graph + graph.T)
    symmetric.data[:] = -1.0
    dominant = csc_array(symmetric + coo_array((np.full(m, 2.0 * m + 2.0), (np.arange(m), np.arange(m))), shape=(m, m)))
    factors = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return [members[i] for i in np.argsort(factors.perm_c)]


@dataclass(frozen=True)
class _Tree:
    """The elimination tree of A + Aᵀ inside the blocks: column k needs ``below[starts[k] : starts[k + 1]]`` and what
    leads there, and is needed first by ``parent[k]``, or by none (-1)."""

    starts: list[int]
    below: list[int]
    parent: list[int]
    between: int
    """Entries between blocks, which nothing fills."""


def _tree(pattern: SparsityPattern, position: Ints, order: Ints, block: Ints) -> _Tree:
    n = order.size
    at = np.empty(n, np.int64)
    at[order] = np.arange(n)
    rows, columns = at[position], at[pattern.column]
    same = block[rows] == block[columns]
    low, high = np.minimum(rows, columns)[same], np.maximum(rows, columns)[same]
    sort = np.lexsort((low, high))
    low, high = low[sort], high[sort]
    starts = np.searchsorted(high, np.arange(n + 1)).tolist()
    below = low.tolist()
    parent = [-1] * n
    ancestor = [-1] * n
    for k in range(n):
        for e in range(starts[k], starts[k + 1]):
            i = below[e]
            while i != -1 and i < k:
                following = ancestor[i]
                ancestor[i] = k
                if following == -1:
                    parent[i] = k
                i = following
    return _Tree(starts, below, parent, int((~same).sum()))


def _counts(tree: _Tree) -> list[int]:
    """Return entries of each column of L below the diagonal: a row of L is made of paths in the tree."""
    n = len(tree.parent)
    starts, below, parent = tree.starts, tree.below, tree.parent
    mark, counts = [-1] * n, [0] * n
    for k in range(n):
        mark[k] = k
        for e in range(starts[k], starts[k + 1]):
            i = below[e]
            while mark[i] != k:
                mark[i] = k
                counts[i] += 1
                i = parent[i]
    return counts


def _postorder(tree: _Tree, counts: list[int]) -> list[int]:
    """Return the same elimination with every column right after those that lead to it, the fullest of these last:
    neighbours then have the same rows (``kernels/gr_sparse_panels.h``).
    """
    n = len(counts)
    children: list[list[int]] = [[] for _ in range(n)]
    for k, above in enumerate(tree.parent):
        if above >= 0:
            children[above].append(k)
    found: list[int] = []
    for root in range(n):
        if tree.parent[root] >= 0:
            continue
        # parents before children, then turned around
        begin, stack = len(found), [root]
        while stack:
            k = stack.pop()
            found.append(k)
            stack += sorted(children[k], key=counts.__getitem__)
        found[begin:] = found[begin:][::-1]
    return found
