"""Points of an arrangement: where one gap of many is zero and others are below or above zero as wished.

Gaps that are functions of each other (x − 1, 2 x − 6) form a family, known by its first gap: a position of a family is
a value of that gap between two of the places where its gaps are zero. A combination of positions is reached by
Gauss–Newton steps of least norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import numpy as np

PARALLEL_TOLERANCE = 1e-12
"""Slopes that enclose a smaller angle, squared, are those of functions of each other."""
MAX_STEPS = 20
GAP_TOLERANCE = 1e-9
"""Of their sizes: how far gaps may be from the values wished for."""

Matrix = np.ndarray
Gaps = Callable[[Matrix], tuple[Matrix, Matrix]]
"""point → values, slopes (gaps × symbols)."""


def families_beside(values: Matrix, slopes: Matrix, k: int, among: Sequence[int]) -> list[list[tuple[int, float]]]:
    """Return the families of those gaps of ``among`` that move independently of gap ``k``.

    Each gap of a family has its place and the change of the family's first gap at which it is zero, in the linear
    approximation.
    """
    along = _directions(slopes)
    if not np.isfinite(along[k]).all():
        return []
    finite = [j for j in among if np.isfinite(along[j]).all()]
    cosines = along[finite] @ along[k]
    apart = [j for j, cosine in zip(finite, cosines, strict=True) if 1.0 - cosine**2 >= PARALLEL_TOLERANCE]
    return families_among(values, slopes, apart)


def families_among(values: Matrix, slopes: Matrix, among: Sequence[int]) -> list[list[tuple[int, float]]]:
    """Return the families of these gaps, as ``families_beside`` has them."""
    lengths, along = np.linalg.norm(slopes, axis=1), _directions(slopes)
    left = [j for j in among if np.isfinite(along[j]).all()]
    families = []
    while left:
        head = left[0]
        cosines = along[left] @ along[head]
        like = [(j, float(c)) for j, c in zip(left, cosines, strict=True) if 1.0 - c**2 < PARALLEL_TOLERANCE]
        families.append([(j, -float(values[j] * lengths[head] / (lengths[j] * np.sign(c)))) for j, c in like])
        taken = {j for j, _ in like}
        left = [j for j in left if j not in taken]
    return families


def _directions(slopes: Matrix) -> Matrix:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
        return np.asarray(slopes / lengths[:, None])


def positions(family: Sequence[tuple[int, float]], share: float = 0.5) -> list[float]:
    """Return changes of a family's first gap that lead between (at a share of the way from one to the next), below and
    above all places where its gaps are zero."""
    places = sorted({change for _, change in family})
    beyond = max(1.0, 0.5 * float(np.abs(places).max()), places[-1] - places[0])
    inner = [a + share * (b - a) for a, b in pairwise(places)]
    return [places[0] - beyond, *inner, places[-1] + beyond]


def combinations(counts: Sequence[int], most: int, random: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Yield choices, one of each of ``counts``, the extremes first: all up to ``most``, else random ones."""
    yield tuple(n - 1 for n in counts)
    yield tuple(0 for _ in counts)
    if np.prod(np.array(counts, dtype=float)) <= most:
        yield from product(*map(range, counts))
        return
    for _ in range(most - 2):
        yield tuple(int(random.integers(n)) for n in counts)


def reach_values(
    gaps: Gaps, point: Matrix, rows: Sequence[int], goals: Matrix, columns: Sequence[int]
) -> Matrix | None:
    """Return the point near ``point`` where the gaps ``rows`` have the values ``goals``; None where none is found."""
    point, places, among = point.copy(), list(rows), list(columns)
    for _ in range(MAX_STEPS):
        values, slopes = gaps(point)
        misfit = goals - values[places]
        matrix = slopes[np.ix_(places, among)]
        if not (np.isfinite(misfit).all() and np.isfinite(matrix).all()):
            return None
        if np.all(np.abs(misfit) <= GAP_TOLERANCE * (1e-300 + np.abs(goals) + np.abs(matrix) @ np.abs(point[among]))):
            return point
        point[among] += np.linalg.lstsq(matrix, misfit, rcond=1e-12)[0]
    return None
