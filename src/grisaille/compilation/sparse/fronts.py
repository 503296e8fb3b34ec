"""How the gradients of hidden constraints are orthogonalised front by front, A = W^(1/2) Cxᵀ = Q R, with the entries of
Cx (``kernels/gr_sparse_qr.h``).

Rows of A are states, columns constraints. Columns are eliminated in an order of minimum degree of AᵀA, along its
elimination tree; columns with about the same entries below them are one *front*, a small full matrix of the states that
come first in it and of what its children pass on. A front passes on at most as many rows as it has columns that are not
its own, so that chains and independent subsystems take time in proportion to their number of constraints.

Reference: Davis: Direct Methods for Sparse Linear Systems, chapters 4 and 5; Davis, ACM TOMS 38 (2011), 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.compilation.sparse.pattern import Ints, SparsityPattern, eliminate

MAX_COLUMNS_TO_JOIN = 4
"""Columns up to which a front is joined with its parent for less overhead."""
MAX_ZERO_SHARE = 0.25
"""Part of a joined front that may be zeros."""


@dataclass(frozen=True)
class Fronts:
    """Fronts in an order with children before their parents. Lists of all fronts are concatenated, ``*_begin`` gives
    where each begins.
    """

    column_begin: Ints
    column: Ints
    """Constraints of each front, its own first."""
    own: Ints
    """How many are its own."""
    up: Ints
    """Of each entry of ``column``: its place in the parent's list; 0 for own ones."""
    state_begin: Ints
    state: Ints
    """States whose rows begin in each front."""
    child_begin: Ints
    child: Ints
    height: Ints
    """Rows that each may have at most."""
    at: Ints
    """Where its matrix begins among those of all fronts."""
    size: int
    """Entries of all these matrices."""
    place: Ints
    """Of each entry of Cx, by states: which column of its front it belongs to."""


def fronts(slopes: SparsityPattern) -> Fronts:
    """Return the fronts of the pattern of Cx, constraints by states."""
    order, parent, below = _tree(slopes)
    groups = _grouped(parent, below)
    order, below = _as_given(order, groups, below)
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    group_of = np.empty(order.size, np.int64)
    for g, (first, last) in enumerate(groups):
        group_of[first:last] = g
    columns = [np.concatenate([np.arange(first, last), below[last - 1]]) for first, last in groups]
    above = [int(group_of[below[last - 1][0]]) if below[last - 1].size else -1 for _, last in groups]
    states, place = _states(slopes, position, group_of, columns)
    children: list[list[int]] = [[] for _ in groups]
    height = np.array([len(s) for s in states], dtype=np.int64)
    up = []
    for g, (first, last) in enumerate(groups):
        own = last - first
        up.append(np.zeros(columns[g].size, np.int64))
        if above[g] >= 0:
            children[above[g]].append(g)
            up[-1][own:] = np.searchsorted(columns[above[g]], columns[g][own:])
            height[above[g]] += min(height[g], columns[g].size - own)
    sizes = height * np.array([c.size for c in columns], dtype=np.int64)
    return Fronts(
        _begins(columns), order[_joined(columns)], np.array([last - first for first, last in groups], dtype=np.int64),
        _joined(up), _begins(states), _joined(states), _begins(children), _joined(children), height,
        np.concatenate(([0], np.cumsum(sizes)))[:-1], int(sizes.sum()), place,
    )  # fmt: skip


def _tree(slopes: SparsityPattern) -> tuple[Ints, Ints, list[Ints]]:
    """Return constraints in the order of elimination, children before parents without gaps; the parent of each
    position, and the positions after it that its row of R has entries in.
    """
    from scipy.sparse import csc_array, eye_array

    shape = slopes.shape
    ones = csc_array((np.ones(slopes.size), slopes.row, slopes.begin), shape=shape)
    normal = csc_array(ones @ ones.T + eye_array(shape[0]))
    normal.sort_indices()
    pattern = SparsityPattern((shape[0], shape[0]), normal.indptr.astype(np.int64), normal.indices.astype(np.int64))
    found = eliminate(pattern)
    assert found is not None  # the diagonal is full
    order = found.order
    parent, _ = _eliminated(pattern, order)
    order = order[_postorder(parent)]
    return order, *_eliminated(pattern, order)


def _eliminated(pattern: SparsityPattern, order: Ints) -> tuple[Ints, list[Ints]]:
    """Return the parents of all positions, and the entries of R behind each."""
    n = order.size
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    parent = np.full(n, -1, np.int64)
    waiting: list[list[Ints]] = [[] for _ in range(n)]
    below: list[Ints] = []
    for k in range(n):
        c = order[k]
        entries = position[pattern.row[pattern.begin[c] : pattern.begin[c + 1]]]
        found = np.unique(np.concatenate([entries[entries > k], *waiting[k]]))
        found = found[found > k]
        below.append(found)
        if found.size:
            parent[k] = found[0]
            waiting[found[0]].append(found)
    return parent, below


def _postorder(parent: Ints) -> Ints:
    """Return positions with the children of each right before it."""
    children: list[list[int]] = [[] for _ in parent]
    roots: list[int] = []
    for k, p in enumerate(parent.tolist()):
        (roots if p < 0 else children[p]).append(k)
    found: list[int] = []
    for root in roots:
        stack, backwards = [root], []
        while stack:
            k = stack.pop()
            backwards.append(k)
            stack += children[k]
        found += backwards[::-1]
    return np.array(found, dtype=np.int64)


def _grouped(parent: Ints, below: list[Ints]) -> list[tuple[int, int]]:
    """Return ranges of positions that make a front each: a position is joined with the one before it where that is its
    child and few zeros come in.
    """
    groups: list[tuple[int, int]] = []
    zeros = 0
    for k in range(parent.size):
        if groups and parent[k - 1] == k:
            first = groups[-1][0]
            more = zeros + (k - first) * (below[k].size + 1 - below[k - 1].size)
            width = k + 1 - first + below[k].size
            if width <= MAX_COLUMNS_TO_JOIN or more <= MAX_ZERO_SHARE * (k + 1 - first) * width:
                groups[-1] = (first, k + 1)
                zeros = more
                continue
        groups.append((k, k + 1))
        zeros = 0
    return groups


def _as_given(order: Ints, groups: list[tuple[int, int]], below: list[Ints]) -> tuple[Ints, list[Ints]]:
    """Return each front's own constraints in the order of the model, so that of several that depend on each other the
    later one is left out; what lies behind the last one of each front, accordingly.
    """
    moved = np.empty(order.size, np.int64)
    for first, last in groups:
        moved[first + np.argsort(order[first:last])] = np.arange(first, last)
    sorted_order = np.empty_like(order)
    sorted_order[moved] = order
    return sorted_order, [np.sort(moved[entries]) for entries in below]


def _states(
    slopes: SparsityPattern, position: Ints, group_of: Ints, columns: list[Ints]
) -> tuple[list[list[int]], Ints]:
    """Return the states whose first constraint belongs to each front, and the place of each entry of Cx in its
    front.
    """
    states: list[list[int]] = [[] for _ in columns]
    place = np.zeros(slopes.size, np.int64)
    begin = slopes.begin.tolist()
    for i in range(slopes.shape[1]):
        entries = position[slopes.row[begin[i] : begin[i + 1]]]
        if entries.size:
            g = int(group_of[entries.min()])
            states[g].append(i)
            place[begin[i] : begin[i + 1]] = np.searchsorted(columns[g], entries)
    return states, place


def _begins(lists: list[list[int]] | list[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum([len(entries) for entries in lists]))).astype(np.int64)


def _joined(lists: list[list[int]] | list[Ints]) -> Ints:
    return (
        np.concatenate([np.asarray(entries, dtype=np.int64) for entries in lists]) if lists else np.zeros(0, np.int64)
    )
