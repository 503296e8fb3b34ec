"""A second look at a block that was found singular: rounding may have hidden what its rank rests on.

Four diodes in a ring, with slopes γδ exp(δU) and δ = 18 per volt: at voltages of one volt the slopes differ by 1e30,
the larger ones swallow the smaller in every sum, and what is left is singular. At voltages near to each other it is
not. Such points are searched for: all symbols of one size, which is drawn between a hundredth and ten times the usual
ones, and time between parts of a second and years; then from some of them towards slopes of one size,

    minimise  Σ (log|a_ij(s)| − m)²   over s and m, entries that are no constants,   by Gauss and Newton,

and from there by a random way on which no slope changes by more than some powers of e.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.model.expression import Constant
from grisaille.structure.equations import Equations
from grisaille.structure.singular.cancellation import SIZE_FACTORS, typical_sizes
from grisaille.structure.singular.scaling import RANK_TOLERANCE, equilibrated

MAX_LOOKS = 200
MAX_WORK = 2e7
"""Bound of points times the cube of the block's size: about a second."""
MIN_SINGULAR_VALUE = 1e-6
"""Smallest singular value, relative to the largest, of a block that is regular; and how often it must be seen."""
CONFIRMATIONS = 2
EVENED_STRIDE = 10
"""From every tenth point slopes are brought to one size,"""
MAX_ITERATIONS = 8
NEIGHBOURING_POINTS = 5
"""and this many points beside the one found are looked at,"""
MAX_LOG_CHANGE = 3.0
"""in whose slopes this is the largest change of logarithms."""


@dataclass(frozen=True)
class RankDecision:
    is_regular: bool
    points: tuple[np.ndarray, ...]
    """Where the block shows most of its rank, with entries as near to one size as they come."""
    rank: int


def refine_rank(equations: Equations, block: ca.SX, symbols: Sequence[ca.SX]) -> RankDecision:
    """Decide at many points whether a square block of formulas of these symbols is singular."""
    points = _points(equations, symbols, max(len(SIZE_FACTORS), int(min(MAX_LOOKS, MAX_WORK / block.shape[0] ** 3))))
    if block.nnz() * len(symbols) ** 2 < MAX_WORK:
        points = np.vstack([points, *_Evening(equations, block, symbols).from_points(points)])
    function = ca.Function("block", [ca.vertcat(*symbols)], [ca.densify(block)])
    points, values = _with_values(function, points)
    if _is_hidden(block, values):
        further = _with_values(function, _far_points(equations, symbols, len(SIZE_FACTORS) * EVENED_STRIDE))
        points, values = np.vstack([points, further[0]]), np.concatenate([values, further[1]])
    if not len(points):
        return RankDecision(False, (), 0)
    scaled = equilibrated(values)[0]
    singular = np.linalg.svd(scaled, compute_uv=False)
    singular = singular / np.maximum(singular[:, :1], 1e-300)
    ranks = np.sum(singular > RANK_TOLERANCE, axis=1)
    smallest = np.where(scaled == 0, np.inf, np.abs(scaled)).min(axis=(1, 2))
    best = np.lexsort((-smallest, -ranks))[: len(SIZE_FACTORS)]
    regular = int(np.sum(singular[:, -1] > MIN_SINGULAR_VALUE)) >= CONFIRMATIONS
    return RankDecision(regular, tuple(points[best]), int(ranks[best[0]]))


def _points(equations: Equations, symbols: Sequence[ca.SX], count: int) -> np.ndarray:
    random = np.random.default_rng(7)
    sizes = 10.0 ** random.uniform(-2.0, 1.0, (count, 1)) * typical_sizes(equations, symbols)
    instant = equations.jets.time.element_hash()
    for k, symbol in enumerate(symbols):
        if symbol.element_hash() == instant:
            sizes[:, k] = 10.0 ** random.uniform(-9.0, 6.0, count)
    low = np.where(np.arange(count) % 2, -1.0, 0.1)[:, None]  # logarithms and roots need positive ones
    return np.asarray(sizes * (low + (1.0 - low) * random.uniform(size=sizes.shape)))


def _with_values(function: ca.Function, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points at which the block is finite, and its values there."""
    values = np.array([function(point).full() for point in points]).reshape(len(points), *function.size_out(0))
    usable = np.isfinite(values).all(axis=(1, 2))
    return points[usable], values[usable]


def _is_hidden(block: ca.SX, values: np.ndarray) -> bool:
    """Return whether an entry that is a formula is nothing at most points, as exp(-5800/T) is at one kelvin."""
    rows, columns = block.sparsity().get_triplet()
    varies = [(i, j) for (i, j), e in zip(zip(rows, columns, strict=True), block.nonzeros(), strict=True)
              if not e.is_constant()]  # fmt: skip
    return any(2 * np.count_nonzero(values[:, i, j]) < max(len(values), 1) for i, j in varies)


def _far_points(equations: Equations, symbols: Sequence[ca.SX], count: int) -> np.ndarray:
    """Return positive points of large sizes: some around the declared start values, all others at ten to ten thousand
    times the usual sizes.
    """
    random = np.random.default_rng(13)
    usual, declared = typical_sizes(equations, symbols), _starts(equations, symbols)
    far = usual * 10.0 ** random.uniform(1.0, 4.0, (count, 1)) * random.uniform(0.3, 1.0, (count, len(symbols)))
    near = np.where(declared, declared, usual) * random.uniform(0.8, 1.2, (count, len(symbols)))
    return np.asarray(np.vstack([near, far]))


def _starts(equations: Equations, symbols: Sequence[ca.SX]) -> np.ndarray:
    """Start values that are numbers; zero for everything else."""
    variables = equations.model.variables
    names = [m.name if (m := equations.jets.meaning(s)) and not m.order else "" for s in symbols]
    starts = [variables[n].start if n in variables else None for n in names]
    return np.array([float(s.value) if isinstance(s, Constant) else 0.0 for s in starts])


class _Evening:
    """Points at which the entries of a block that vary are of one size."""

    def __init__(self, equations: Equations, block: ca.SX, symbols: Sequence[ca.SX]) -> None:
        vector, entries = ca.vertcat(*symbols), ca.vertcat(*(e for e in block.nonzeros() if not e.is_constant()))
        self.function = ca.Function("slopes", [vector], [entries, ca.densify(ca.jacobian(entries, vector))])
        instant = equations.jets.time.element_hash()  # stays: what swings in it is not linear in any step
        self.sizes = typical_sizes(equations, symbols) * [s.element_hash() != instant for s in symbols]

    def from_points(self, points: np.ndarray) -> Iterator[np.ndarray]:
        random = np.random.default_rng(11)
        for start in points[::EVENED_STRIDE]:
            point = start
            for _ in range(MAX_ITERATIONS):
                step = self._step(point)
                point = point if step is None else point + step
            found = self._logarithms(point)
            if found is not None:
                away = random.uniform(-1.0, 1.0, (NEIGHBOURING_POINTS, len(point))) * self.sizes
                change = np.abs(away @ found[1].T).max(axis=1, initial=0.0)
                yield point + away * np.minimum(MAX_LOG_CHANGE / np.maximum(change, 1e-300), 1.0)[:, None]

    def _step(self, point: np.ndarray) -> np.ndarray | None:
        """Return the shortest one towards entries of one size, as far as logarithms are linear; None from a bad
        point.
        """
        found = self._logarithms(point)
        if found is None:
            return None
        values, slopes = (v - v.mean(axis=0) for v in found)
        return np.asarray(np.linalg.lstsq(slopes * self.sizes, -values, rcond=1e-6)[0] * self.sizes)

    def _logarithms(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return log|a| of the entries and its slopes; None where one is zero or has no value."""
        values, slopes = (np.array(m.full()) for m in self.function(point))
        values = values.ravel()
        if not (np.isfinite(values).all() and values.all() and np.isfinite(slopes).all()):
            return None
        return np.log(np.abs(values)), slopes / values[:, None]
