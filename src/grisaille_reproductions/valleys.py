"""How many valleys a cost on a grid has.

Water rises over the grid; a basin begins at each local minimum and ends where it meets a deeper one. Basins that end
within ``depth`` of where they began are ripples of the grid and are not counted.
"""

from __future__ import annotations

import itertools

import numpy as np

RIPPLE = 1e-2
"""Depth that counts, relative to the median height above the lowest point."""


def count_valleys(cost: np.ndarray, below: float = np.inf) -> int:
    """Valleys of an array of any dimension whose bottom lies under ``below``."""
    depth = RIPPLE * float(np.nanmedian(cost) - np.nanmin(cost))
    level = np.where(np.isfinite(cost), cost, np.inf)
    basin: dict[tuple[int, ...], int] = {}
    parent: list[int] = []
    bottom: list[float] = []
    drowned: set[int] = set()
    for flat in np.argsort(level, axis=None, kind="stable"):
        cell = tuple(int(i) for i in np.unravel_index(flat, level.shape))
        height = float(level[cell])
        if not np.isfinite(height):
            break
        meets = sorted({_root(parent, basin[n]) for n in _neighbours(cell) if n in basin}, key=lambda k: bottom[k])
        if not meets:
            parent.append(len(parent))
            bottom.append(height)
            meets = [len(parent) - 1]
        for shallower in meets[1:]:
            parent[shallower] = meets[0]
            if height - bottom[shallower] <= depth:
                drowned.add(shallower)
        basin[cell] = meets[0]
    return sum(b < below for k, b in enumerate(bottom) if k not in drowned)


def _root(parent: list[int], k: int) -> int:
    while parent[k] != k:
        k = parent[k]
    return k


def _neighbours(cell: tuple[int, ...]) -> list[tuple[int, ...]]:
    shifts = itertools.product((-1, 0, 1), repeat=len(cell))
    return [tuple(i + s for i, s in zip(cell, shift, strict=True)) for shift in shifts if any(shift)]
