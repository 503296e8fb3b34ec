"""A second look at a block that was found singular: rounding may have hidden what its rank rests on.

Four diodes in a ring, with slopes γδ exp(δU) and δ = 18 per volt: at voltages of one volt the slopes differ by 1e30, the
larger ones swallow the smaller in every sum, and what is left is singular. At voltages that happen to be near to each
other it is not. Such points are searched for: all symbols of one size, which is drawn between a hundredth and ten times
the usual ones, and time between parts of a second and years.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.structure.equations import Equations
from grisaille.structure.singular.cancellation import MAGNITUDES, typical_sizes
from grisaille.structure.singular.scaling import RANK_TOLERANCE, equilibrated

LOOKS = 200
WORK = 2e7
"""Bound of points times the cube of the block's size: about a second."""
CLEARLY = 1e-6
"""Smallest singular value, relative to the largest, of a block that is regular; and how often it must be seen."""
TIMES = 2


@dataclass(frozen=True)
class Look:
    is_regular: bool
    points: tuple[np.ndarray, ...]
    """Where the block shows most of its rank."""
    rank: int


def look_closer(equations: Equations, block: ca.SX, symbols: Sequence[ca.SX]) -> Look:
    """What many points say of a square block of formulas of these symbols."""
    points = _points(equations, symbols, max(len(MAGNITUDES), int(min(LOOKS, WORK / block.shape[0] ** 3))))
    function = ca.Function("block", [ca.vertcat(*symbols)], [ca.densify(block)])
    values = np.array([function(point).full() for point in points])
    usable = np.isfinite(values).all(axis=(1, 2))
    points, values = points[usable], values[usable]
    if not len(points):
        return Look(False, (), 0)
    singular = np.linalg.svd(equilibrated(values)[0], compute_uv=False)
    singular = singular / np.maximum(singular[:, :1], 1e-300)
    ranks = np.sum(singular > RANK_TOLERANCE, axis=1)
    margin = singular[np.arange(len(points)), np.maximum(ranks, 1) - 1]
    best = np.lexsort((-margin, -ranks))[: len(MAGNITUDES)]
    regular = int(np.sum(singular[:, -1] > CLEARLY)) >= TIMES
    return Look(regular, tuple(points[best]), int(ranks[best[0]]))


def _points(equations: Equations, symbols: Sequence[ca.SX], count: int) -> np.ndarray:
    random = np.random.default_rng(7)
    sizes = 10.0 ** random.uniform(-2.0, 1.0, (count, 1)) * typical_sizes(equations, symbols)
    instant = equations.jets.time.element_hash()
    for k, symbol in enumerate(symbols):
        if symbol.element_hash() == instant:
            sizes[:, k] = 10.0 ** random.uniform(-9.0, 6.0, count)
    low = np.where(np.arange(count) % 2, -1.0, 0.1)[:, None]  # logarithms and roots need positive ones
    return np.asarray(sizes * (low + (1.0 - low) * random.uniform(size=sizes.shape)))
