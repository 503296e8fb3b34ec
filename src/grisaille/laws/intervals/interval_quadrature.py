"""Averages of functions over the part of a law that lies in an interval, for many samples at once.

    P = ∫ p over the interval          E f = ∫ f p / P

as Σ wₖ p(xₖ) on nodes that are laid where the mass of the interval lies (``pieces``): Gauss–Legendre where the density
hardly changes, double exponential quadrature (H. Takahasi, M. Mori, 1974) elsewhere, which converges for tails of any
kind and for densities that are infinite at an end. All is relative to the largest summand: an interval may be as
unlikely as numbers can say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.intervals.interval_pieces import SHORT_FALL, Pieces, cut_at_peak
from grisaille.laws.law_arguments import rows_of, shape_of

if TYPE_CHECKING:
    from grisaille.laws.measured import Measured
    from grisaille.laws.values import Values


SAMPLES_PER_CHUNK = 4096
"""Samples that are averaged together."""
GAUSS_NODES = np.polynomial.legendre.leggauss(12)
MAX_SCALES_TO_CENTRE = 64.0
"""The nodes are centred between the scale of a piece and its reach, at most so many scales away."""
NODE_EXTENT = 3.6
SINGULAR_EXTENT = 5.6
"""Up to where the nodes are laid; the weights there are below 1e-12, of an integrable singularity likewise."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes (q, P) at which densities are evaluated, their weights, and the samples (P,) that they belong to."""

    law: Measured
    rows: np.ndarray
    x: np.ndarray
    weight: np.ndarray


def average(
    law: Measured,
    low: Values,
    high: Values,
    of: Callable[[Measured, np.ndarray], np.ndarray],
    size: int,
    step: float = 0.125,
    half: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log P (N,) and E f (N, size) over intervals of a filled law; P is zero where an interval is empty.

    of : ``of(law, x)`` returns f (q, P, size) at nodes (q, P) of a law that is filled for P samples
    step : of the quadrature; the error of 1/8 is about 1e-11, that of 1/4 about 1e-6
    half : half the widths of intervals, where they are known better than from the ends
    """
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    count = len(low)
    log_mass, means = np.full(count, -np.inf), np.zeros((count, size))
    for first in range(0, count, SAMPLES_PER_CHUNK):
        rows = np.arange(first, min(first + SAMPLES_PER_CHUNK, count))
        part = rows_of(law, rows, count)
        with np.errstate(all="ignore"):
            nodes = _nodes(part, low[rows], high[rows], step, None if half is None else half[rows])
            log_mass[rows], means[rows] = _combined(list(nodes), len(rows), of, size)
    return log_mass, means


def average_of_all(
    law: Measured, of: Callable[[Measured, np.ndarray], np.ndarray], size: int, step: float = 0.125
) -> np.ndarray:
    """Return E f (N, size) over everything; (1, size) of a law without arrays."""
    count = int(np.prod(shape_of(law)))
    flat = law.filled({p: np.ravel(np.broadcast_to(v, shape_of(law))) for p, v in law.arguments.items() if np.ndim(v)})
    everything = np.full(count, np.inf)
    return average(flat, -everything, everything, of, size, step)[1]


def _combined(
    groups: list[Nodes], count: int, of: Callable[[Measured, np.ndarray], np.ndarray], size: int
) -> tuple[np.ndarray, np.ndarray]:
    densities = [g.law.log_formula(g.x) for g in groups]
    top = np.full(count, -np.inf)
    for g, density in zip(groups, densities, strict=True):
        summands = np.where(g.weight != 0, density + np.log(np.abs(g.weight)), -np.inf)
        np.maximum.at(top, g.rows, np.max(np.where(summands < np.inf, summands, -np.inf), axis=0))
    total, sums = np.zeros(count), np.zeros((count, size))
    for g, density in zip(groups, densities, strict=True):
        parts = np.where(g.weight != 0, g.weight * np.exp(density - top[g.rows]), 0.0)
        parts = np.where(np.isfinite(parts), parts, 0.0)
        np.add.at(total, g.rows, parts.sum(axis=0))
        if size:
            values = of(g.law, g.x)
            np.add.at(sums, g.rows, np.einsum("qp,qpm->pm", parts, np.where(parts[..., None] == 0, 0.0, values)))
    return top + np.log(total), sums / total[:, None]


def _nodes(law: Measured, low: np.ndarray, high: np.ndarray, step: float, half: np.ndarray | None) -> Iterator[Nodes]:
    if half is not None and not law.is_discrete:
        is_cell = _is_cell(law, 0.5 * (low + high), half)
        if is_cell.any():
            yield _cells(law, np.flatnonzero(is_cell), 0.5 * (low + high), half)
        low = np.where(is_cell, high, low)
    pieces = cut_at_peak(law, low, high)
    if not len(pieces.rows):
        return
    if law.is_discrete:
        from grisaille.laws.intervals.count_sums import count_nodes

        yield from count_nodes(pieces, step)
        return
    is_short, is_singular = pieces.is_short(), pieces.is_singular()
    if is_short.any():
        yield gauss_nodes(pieces.where(np.flatnonzero(is_short)))
    for chosen, extent in ((~is_short & ~is_singular, NODE_EXTENT), (is_singular & ~is_short, SINGULAR_EXTENT)):
        if chosen.any():
            some = pieces.where(np.flatnonzero(chosen))
            yield exponential_nodes(some, *scale_and_reach(some), step, extent)


def scale_and_reach(pieces: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """Return the scale of pieces and how far they reach."""
    scale = pieces.scale()
    return scale, pieces.reach(scale)


def _is_cell(law: Measured, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return whether the density hardly changes over intervals around a middle."""
    here, below, above = (law.log_formula(x) for x in (middle, middle - half, middle + half))
    return np.asarray((np.abs(below - here) < SHORT_FALL) & (np.abs(above - here) < SHORT_FALL))


def _cells(law: Measured, rows: np.ndarray, middle: np.ndarray, half: np.ndarray) -> Nodes:
    points, weights = (g[:, None] * half[rows] for g in GAUSS_NODES)
    return Nodes(rows_of(law, rows, len(middle)), rows, middle[rows] + points, weights)


def gauss_nodes(pieces: Pieces) -> Nodes:
    """Return the nodes of Gauss and Legendre on whole pieces."""
    points, weights = GAUSS_NODES
    half = 0.5 * pieces.length
    return Nodes(pieces.law, pieces.rows, pieces.at(half * (1 + points[:, None])), half * weights[:, None])


def exponential_nodes(
    pieces: Pieces, scale: np.ndarray, reach: np.ndarray, step: float, extent: float = NODE_EXTENT
) -> Nodes:
    """Return nodes c ± y/(1 + y/reach) with y = middle · exp(½π sinh t), t in equal steps."""
    t = np.arange(-extent, extent + 0.5 * step, step)[:, None]
    y = np.sqrt(scale * np.minimum(reach, MAX_SCALES_TO_CENTRE * scale)) * np.exp(0.5 * np.pi * np.sinh(t))
    shrunk = 1 / (1 + y / reach)
    weight = step * 0.5 * np.pi * np.cosh(t) * y * shrunk * shrunk
    return Nodes(pieces.law, pieces.rows, pieces.at(y * shrunk), weight)
