"""How many valleys a cost on a grid has: points below all their neighbours, the border included."""

from __future__ import annotations

import itertools

import numpy as np


def count_valleys(cost: np.ndarray, below: float = np.inf) -> int:
    """Local minima of an array of one or two dimensions that lie under ``below``; level ground counts once."""
    from scipy.ndimage import label

    cost = np.where(np.isfinite(cost), cost, np.inf)
    padded = np.pad(cost, 1, constant_values=np.inf)
    lowest = cost < below
    for shift in itertools.product((-1, 0, 1), repeat=cost.ndim):
        part = tuple(slice(1 + s, 1 + s + n) for s, n in zip(shift, cost.shape, strict=True))
        lowest &= cost <= padded[part]
    return int(label(lowest, structure=np.ones((3,) * cost.ndim))[1])
