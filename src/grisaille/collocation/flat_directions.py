"""Inverses of curvatures some of whose directions are flat: the data do not see them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FLAT = 1e-9
"""Eigenvalue of a curvature with unit diagonal below which a direction is flat."""


def pseudo_inverse(curvature: Floats, own: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_], float]:
    """The inverse over some unknowns, without flat directions; what these leave open; and the least eigenvalue."""
    inverse, lost = np.zeros(curvature.shape), ~own
    part = curvature[np.ix_(own, own)]
    if not len(part):
        return inverse, lost, 0.0
    size = np.sqrt(np.abs(np.diag(part)))
    values, vectors = np.linalg.eigh(part / np.outer(size, size))
    kept = values > FLAT
    root = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]
    inverse[np.ix_(own, own)] = root @ root.T
    lost[own] = np.abs(vectors[:, ~kept]).max(axis=1, initial=0.0) > 1e-6
    return inverse, lost, float(values[0])


def or_nan(inverse: Floats, lost: NDArray[np.bool_]) -> Floats:
    """A covariance with NaN for what is not determined."""
    return np.asarray(np.where(lost[:, None] | lost[None, :], np.nan, inverse))
