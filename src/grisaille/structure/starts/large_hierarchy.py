"""Least squares by rank of importance (``hierarchy``) for large systems, whose matrices are given by their entries.

Unknowns that no row of any level connects are solved for apart; small parts are left to ``solve_levels``. A large part
is solved with sparse factors where its levels tell apart which unknowns they speak of,

    A₁Δ = b₁ (hard),   then for each level k its own unknowns Sₖ:   minimise |a (Δ − t)| over Sₖ.

Hard rows are met by unknowns of the last level as far as these go; combinations of rows from which they drop out are
met by those of the last level but one, and so on. Each level is then one problem of least norm,

    minimise |y|   subject to   B y = c:    [ 1  Bᵀ ] [ y ]   [ 0 ]
                                            [ B  0  ] [−μ ] = [ c ].

Where a level does not tell its unknowns apart, or pivots leave a doubt, ``solve_levels`` decides for that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import block_array, csc_array, csr_array, diags_array, eye_array, vstack
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU, splu

from grisaille.structure.singular.scaling import equilibrated_entries
from grisaille.structure.starts.hierarchy import MIN_PIVOT, RANK_TOLERANCE, solve_levels

SMALL_PART = 40
"""Unknowns up to which a part is solved with full matrices."""

MIN_PART = 1e-10
"""Singular values below, of the largest one, count as zero in least squares."""

Level = tuple[csr_array, np.ndarray]


def solve_large_levels(levels: Sequence[Level], n: int) -> np.ndarray:
    """Return the correction Δ, shape (n,) or (n, m), as ``solve_levels`` gives it; the first level is what must hold.

    Raises ``numpy.linalg.LinAlgError`` where a level that is needed is not finite.
    """
    levels = [(_without_zeros(matrix), right) for matrix, right in levels]
    delta = np.zeros((n, *levels[0][1].shape[1:]))
    for rows, columns in _parts([matrix for matrix, _ in levels], n):
        own = [(matrix[r][:, columns], right[r]) for (matrix, right), r in zip(levels, rows, strict=True) if r.size]
        found = None
        if columns.size > SMALL_PART and rows[0].size:
            found = _Apart.found(own, columns.size)
        delta[columns] = solve_levels(((a.toarray(), b) for a, b in own), columns.size) if found is None else found
    return delta


def least_squares(matrix: np.ndarray | csr_array, right: np.ndarray) -> np.ndarray:
    """Return the shortest x with least |A x − b|, b with one column or several; of sparse matrices part by part."""
    if isinstance(matrix, np.ndarray):
        return _full_least_squares(matrix, right)
    matrix = _without_zeros(matrix)
    x = np.zeros((matrix.shape[1], *right.shape[1:]))
    for (rows,), columns in _parts([matrix], matrix.shape[1]):
        if not rows.size:
            continue
        own = csr_array(matrix[rows][:, columns])
        found = None
        if columns.size > SMALL_PART:
            found = _shortest(own, right[rows]) if rows.size <= columns.size else _nearest(own, right[rows])
        x[columns] = _full_least_squares(own.toarray(), right[rows]) if found is None else found
    return x


def _full_least_squares(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """In the units given, unless others show a higher rank: those of rows, which must then be met, and of columns."""
    x, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=MIN_PART)
    if rank == min(matrix.shape) or matrix.shape[0] < matrix.shape[1] or not np.isfinite(matrix).all():
        return np.asarray(x)
    _, rows, columns = equilibrated_entries(csc_array(matrix))
    if matrix.shape[0] > matrix.shape[1]:
        rows = np.ones(len(rows))
    rows, columns = np.where(rows > 0, rows, 1.0), np.where(columns > 0, columns, 1.0)
    other, _, shown, _ = np.linalg.lstsq(matrix / rows[:, None] / columns, (right.T / rows).T, rcond=MIN_PART)
    return np.asarray((other.T / columns).T if shown > rank else x)


def _without_zeros(matrix: csr_array) -> csr_array:
    kept = csr_array(matrix, copy=True)
    kept.eliminate_zeros()
    return kept


def _parts(matrices: Sequence[csr_array], n: int) -> list[tuple[list[np.ndarray], np.ndarray]]:
    """Return rows of each matrix and columns of each set of columns that rows connect; rows without entries are in
    none.
    """
    together = csr_array(vstack(matrices))
    graph = block_array([[None, together], [together.T, None]])
    labels = connected_components(graph, directed=False)[1]
    begins = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)])
    _, number = np.unique(labels[begins[-1] :], return_inverse=True)
    count = int(number.max(initial=-1)) + 1
    lookup = np.full(int(labels.max(initial=0)) + 1, -1)
    lookup[labels[begins[-1] :]] = number
    of_rows = [_grouped(lookup[labels[a:b]], count) for a, b in pairwise(begins)]
    of_columns = _grouped(number, count)
    return [([rows[k] for rows in of_rows], of_columns[k]) for k in range(count)]


def _grouped(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """Return places of each label, rising; those below zero are left out."""
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class _GuessLevel:
    """What one level asks of its own unknowns: a (Δ − t) as small as possible, with t from rows and what is known."""

    columns: np.ndarray
    size: np.ndarray
    """a, positive."""
    rows: csr_array
    """What to take from the level: Σ over rows naming a column, of (right − row · known) entry / a²."""
    matrix: csr_array
    right: np.ndarray

    def target(self, known: np.ndarray) -> np.ndarray:
        return np.asarray(self.rows @ (self.right - self.matrix @ known))


class _Apart:
    """One part whose levels name their unknowns one by one."""

    @classmethod
    def found(cls, levels: Sequence[Level], n: int) -> np.ndarray | None:
        """Δ; None where it is not for this class."""
        (hard, right), soft = levels[0], levels[1:]
        if not (np.isfinite(hard.data).all() and np.isfinite(right).all()):
            return None
        wishes = cls._guess_levels(soft, n)
        if wishes is None:
            return None
        delta = np.zeros((n, *right.shape[1:]))
        fixed = cls._fix(hard, right, delta)
        if fixed is None:
            return None
        is_fixed, rows = fixed
        right = right[rows] - hard[rows] @ delta
        left = _without_zeros(csr_array(hard[rows] @ diags_array((~is_fixed).astype(float))))
        met, none = cls._shared_out(left, wishes)
        contradicting = none @ right
        if (np.abs(contradicting) > RANK_TOLERANCE * (abs(none) @ np.abs(right))).any():
            if is_fixed.any():
                return None
            # what rows that depend on each other contradict is shared among them, as least squares do
            right = right - none.T @ least_squares(csr_array(none @ none.T), contradicting)
        for wish, combined in zip(wishes, met, strict=True):
            step = cls._level(csr_array(combined @ left), combined @ right, wish, is_fixed, delta)
            if step is None:
                return None
            columns, values = step
            delta[columns] = values
        return delta

    @staticmethod
    def _shared_out(hard: csr_array, wishes: Sequence[_GuessLevel]) -> tuple[list[csr_array], csr_array]:
        """Return combinations of hard rows for each level to meet, and those that contain no unknown at all."""
        met: list[csr_array] = []
        passed, left = csr_array(eye_array(hard.shape[0])), hard
        least = RANK_TOLERANCE * float(abs(hard).sum(axis=1).max(initial=0.0))
        for wish in reversed(wishes):
            own = np.zeros(hard.shape[1])
            own[wish.columns] = 1.0
            kept, others = _combinations(csr_array(left[:, wish.columns]), least)
            met.append(csr_array(kept @ passed))
            left, passed = csr_array(others @ left @ diags_array(1.0 - own)), csr_array(others @ passed)
            left.data[np.abs(left.data) <= least] = 0.0  # rounding of what drops out
        return met[::-1], passed

    @staticmethod
    def _guess_levels(levels: Sequence[Level], n: int) -> list[_GuessLevel] | None:
        """Return every unknown with the first level that names it; None where a row names several at once."""
        wishes: list[_GuessLevel] = []
        known = np.zeros(n, dtype=bool)
        for matrix, right in levels:
            if known.all():
                break
            new = ~known[matrix.indices]
            row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[new]
            if np.bincount(row, minlength=1).max(initial=0) > 1:
                return None
            used = np.unique(row)
            if not (np.isfinite(matrix[used].data).all() and np.isfinite(right[used]).all()):
                return None
            columns, entries = matrix.indices[new], matrix.data[new]
            square = np.bincount(columns, entries**2, minlength=n)
            named = np.unique(columns)
            place = np.full(n, -1)
            place[named] = np.arange(named.size)
            rows = csr_array((entries / square[columns], (place[columns], row)), shape=(named.size, matrix.shape[0]))
            wishes.append(_GuessLevel(named, np.sqrt(square[named]), rows, matrix, right))
            known[named] = True
        return wishes if known.all() else None

    @staticmethod
    def _fix(hard: csr_array, right: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return which unknowns are fixed by hard rows that contain nothing else, written to ``delta``, and the rows
        that are left; None where two such rows contradict each other, or a row of fixed ones does.
        """
        is_fixed = np.zeros(hard.shape[1], dtype=bool)
        rows = np.arange(hard.shape[0])
        while True:
            part = hard[rows]
            free = _without_zeros(csr_array(part @ diags_array((~is_fixed).astype(float))))
            counts = np.diff(free.indptr)
            gap = right[rows] - part @ delta
            sizes = np.abs(right[rows]) + abs(part) @ np.abs(delta)
            if (np.abs(gap[counts == 0]) > RANK_TOLERANCE * sizes[counts == 0]).any():
                return None
            alone = np.flatnonzero(counts == 1)
            if not alone.size:
                return is_fixed, rows[counts > 1]
            columns = free.indices[free.indptr[alone]]
            columns, first = np.unique(columns, return_index=True)
            entries = free.data[free.indptr[alone[first]]]
            if (np.abs(entries) < MIN_PIVOT).any():
                return None
            delta[columns] = (gap[alone[first]].T / entries).T
            is_fixed[columns] = True
            rows = np.delete(rows, alone[first])

    @staticmethod
    def _level(
        rows: csr_array, right: np.ndarray, wish: _GuessLevel, is_fixed: np.ndarray, delta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the unknowns of one level and their values, those of the levels before it being in ``delta``."""
        # what is fixed is no part of the rows, and its own unknowns are zero in delta still
        target = wish.target(delta)
        free = ~is_fixed[wish.columns]
        columns, size, target = wish.columns[free], wish.size[free], target[free]
        if not rows.shape[0]:
            return columns, target
        own = csr_array(rows[:, columns])
        matrix = csr_array(own @ diags_array(1.0 / size))
        known = np.where(is_fixed.reshape(-1, *[1] * (delta.ndim - 1)), 0.0, delta)
        y = _shortest(matrix, right - rows @ known - own @ target)
        return None if y is None else (columns, target + (y.T / size).T)


def _combinations(matrix: csr_array, least: float) -> tuple[csr_array, csr_array]:
    """Return combinations of rows that are independent, and of those that vanish, with singular values below
    ``least``.
    """
    matrix = _without_zeros(matrix)
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    kept, passed = [], [(np.array([[1.0]]), np.array([k])) for k in empty]
    for (rows,), columns in _parts([matrix], matrix.shape[1]):
        if not rows.size:
            continue
        own = csr_array(matrix[rows][:, columns])
        if rows.size == 1 or (rows.size > SMALL_PART and _shortest(own, np.zeros(rows.size)) is not None):
            kept += [(np.eye(1), rows[k : k + 1]) for k in range(rows.size)]
            continue
        full = own.toarray()
        u, singular, _ = np.linalg.svd(full)
        rank = int(np.sum(singular > max(least, RANK_TOLERANCE * singular[0])))
        kept.append((u[:, :rank].T, rows))
        passed.append((u[:, rank:].T, rows))
    return _stacked(kept, matrix.shape[0]), _stacked(passed, matrix.shape[0])


def _stacked(blocks: Sequence[tuple[np.ndarray, np.ndarray]], width: int) -> csr_array:
    """Return rows of small matrices, each with the columns it speaks of."""
    height, data, rows, columns = 0, [], [], []
    for block, own in blocks:
        data.append(block.ravel())
        rows.append(np.repeat(height + np.arange(block.shape[0]), block.shape[1]))
        columns.append(np.tile(own, block.shape[0]))
        height += block.shape[0]
    if not data:
        return csr_array((0, width))
    return csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(height, width))


def _shortest(matrix: csr_array, right: np.ndarray) -> np.ndarray | None:
    """Return the shortest y with B y = c; None where rows may depend on each other."""
    rows, columns = matrix.shape
    if rows > columns:
        return None
    if rows == columns:
        return _solved(matrix, right)
    sizes = np.asarray(abs(matrix).max(axis=1).toarray()).ravel()
    if not (sizes > 0).all():
        return None
    scaled = csr_array(diags_array(1.0 / sizes) @ matrix)
    whole = csr_array(block_array([[eye_array(columns), scaled.T], [scaled, None]]))
    zero = np.zeros((columns, *right.shape[1:]))
    found = _solved(whole, np.concatenate([zero, (right.T / sizes).T]))
    return None if found is None else found[:columns]


def _nearest(matrix: csr_array, right: np.ndarray) -> np.ndarray | None:
    """Return x with the least |A x − b|, A higher than wide; None where columns may depend on each other."""
    rows, columns = matrix.shape
    sizes = np.asarray(abs(matrix).max(axis=0).toarray()).ravel()
    if not (sizes > 0).all():
        return None
    scaled = csr_array(matrix @ diags_array(1.0 / sizes))
    whole = csr_array(block_array([[eye_array(rows), scaled], [scaled.T, None]]))
    found = _solved(whole, np.concatenate([right, np.zeros((columns, *right.shape[1:]))]))
    return None if found is None else (found[rows:].T / sizes).T


def solve_equilibrated(matrix: csc_array, right: np.ndarray) -> np.ndarray | None:
    """Return x of square equations A x = b with rows and columns of one size, whatever their units; None where pivots
    leave a doubt about their rank.
    """
    return _solved(csr_array(matrix), right)


def _solved(matrix: csr_array, right: np.ndarray) -> np.ndarray | None:
    """Return the solution of square equations; None where pivots leave a doubt about their rank."""
    if not np.isfinite(matrix.data).all():
        return None
    scaled, sizes, units = equilibrated_entries(csc_array(matrix))
    factors = _factored(scaled) if sizes.all() and units.all() else None
    if factors is None:
        return None
    b = np.asarray((right.T / sizes).T)
    x = factors.solve(b)
    x += factors.solve(b - scaled @ x)
    return np.asarray((x.T / units).T) if np.isfinite(x).all() else None


def _factored(matrix: csc_array) -> SuperLU | None:
    try:
        factors = splu(matrix)
    except RuntimeError:  # "Factor is exactly singular"
        return None
    pivots = np.abs(factors.U.diagonal())
    return factors if pivots.min() > MIN_PIVOT * pivots.max() else None
