"""Sums over the counts of an interval as nodes and weights, at a cost that does not grow with the counts.

Few counts are summed one by one. Of many, which change slowly from one to the next, the first and the last
``EXACT_COUNTS_AT_ENDS``
are, and what is between them is the integral of the formula between whole numbers, with Euler and Maclaurin's
correction in central differences of step one,

    Σ_{k=a}^{b} f(k) = ∫_{a−½}^{b+½} f − [δf/24 − 17 δ³f/5760] at b + ½ + [the same] at a − ½ + …

Only counts inside the interval are used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grisaille.laws.intervals.interval_pieces import Pieces
from grisaille.laws.intervals.interval_quadrature import Nodes, exponential_nodes, scale_and_reach

EXACT_COUNTS_AT_ENDS = 16
"""Counts summed one by one at each end of a long piece."""
LONG, COARSE_LONG = 512, 128
"""Counts above which a piece is integrated, unless the formula has steps between whole numbers; the error is below
1e-10, or below 1e-8 where nodes are coarse."""
COARSE_SPACING = 0.2
MIN_NODES = 8
END_CORRECTION = ((-1.5, -17 / 5760), (-0.5, 1 / 24 + 51 / 5760), (0.5, -1 / 24 - 51 / 5760), (1.5, 17 / 5760))
"""Weights of f(b + ½ + offset) at the upper end; at the lower end they are those of the opposite offset."""


def count_nodes(pieces: Pieces, step: float) -> Iterator[Nodes]:
    """Return nodes and weights of sums over pieces, which start at a count and have ``length`` counts each."""
    scale, reach = scale_and_reach(pieces)
    reach = np.minimum(np.ceil(reach) + 1, pieces.length)
    fewest, most = 0, MIN_NODES
    longest = np.inf if pieces.law.has_steps else COARSE_LONG if step > COARSE_SPACING else LONG
    while fewest < min(longest, reach.max()):
        chosen = np.flatnonzero((reach > fewest) & (reach <= most))
        if len(chosen):
            yield _one_by_one(pieces.where(chosen), reach[chosen], most)
        fewest, most = most, 2 * most
    chosen = np.flatnonzero(reach > fewest)
    if len(chosen):
        yield from _integrated(pieces.where(chosen), scale[chosen], reach[chosen], step)


def _one_by_one(pieces: Pieces, reach: np.ndarray, most: int) -> Nodes:
    k = np.arange(most)[:, None]
    return Nodes(pieces.law, pieces.rows, pieces.at(np.minimum(k, reach - 1)), (k < reach).astype(float))


def _integrated(pieces: Pieces, scale: np.ndarray, reach: np.ndarray, step: float) -> Iterator[Nodes]:
    """Return the edges with their corrections, and the integral between them."""
    ends = reach == pieces.length
    first, last = (
        np.full(reach.shape, EXACT_COUNTS_AT_ENDS - 0.5),
        np.where(ends, reach - EXACT_COUNTS_AT_ENDS - 0.5, reach),
    )
    edge = np.arange(EXACT_COUNTS_AT_ENDS)[:, None] + 0.0 * reach
    offsets, weights = (np.array(c)[:, None] for c in zip(*END_CORRECTION, strict=True))
    k = np.concatenate([edge, first + offsets, last + offsets, reach - 1 - edge])
    weight = np.concatenate([edge * 0 + 1, weights[::-1] + 0 * reach, weights * ends, edge * 0 + ends])
    yield Nodes(pieces.law, pieces.rows, pieces.at(np.where(weight == 0, 0.0, k)), weight)
    inner = Pieces(pieces.law, pieces.rows, pieces.at(first), pieces.side, last - first)
    yield exponential_nodes(inner, np.minimum(scale, inner.length), inner.length, step)
