"""Inverses of curvatures some of whose directions are flat: the data do not see them.

A Hessian H by differences has errors that hide how flat a direction is, the expected information I has not: the null
space of I, in units of its diagonal, is what no output sees, unless H bends along it clearly (where first derivatives
vanish and second ones do not). Over the rest H is inverted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FLAT_EIGENVALUE = 1e-9
"""Eigenvalue of a curvature with unit diagonal below which a direction is flat."""


NULL_EIGENVALUE = 1e-10
"""Eigenvalue of the expected information with unit diagonal below which no output sees a direction."""
MIN_CURVATURE = 1e-4
"""Curvature of H along such a direction, by its diagonal, that is more than an error of differences."""


def pseudo_inverse(
    curvature: Floats, own: NDArray[np.bool_], expected: Floats | None = None, flat: float = FLAT_EIGENVALUE
) -> tuple[Floats, NDArray[np.bool_], float]:
    """Return the inverse over some unknowns, without flat directions; what these leave open; and the least eigenvalue.

    expected : the expected information, where it is known beside a Hessian by differences
    flat : eigenvalues, in units of the diagonal, that are below the accuracy of the curvature
    """
    inverse, lost = np.zeros(curvature.shape), ~own
    part = curvature[np.ix_(own, own)]
    if not len(part):
        return inverse, lost, 0.0
    size = np.sqrt(np.abs(np.diag(part)))
    scaled = part / np.outer(size, size)
    unseen = np.zeros((len(part), 0)) if expected is None else _unseen(scaled, expected[np.ix_(own, own)], size)
    rest = np.linalg.svd(unseen)[0][:, unseen.shape[1] :]
    values, vectors = np.linalg.eigh(rest.T @ scaled @ rest)
    kept = values > flat
    axes = rest @ vectors
    root = axes[:, kept] / np.sqrt(values[kept]) / size[:, None]
    inverse[np.ix_(own, own)] = root @ root.T
    lost[own] = np.abs(np.hstack([unseen, axes[:, ~kept]])).max(axis=1, initial=0.0) > 1e-6
    return inverse, lost, float(values[0]) if len(values) else 0.0


def _unseen(scaled: Floats, expected: Floats, size: Floats) -> Floats:
    """Return an orthonormal basis, in units of ``size``, of what the expected information does not see and H does not
    bend.
    """
    diagonal = np.diag(expected)
    if not (np.isfinite(expected).all() and (diagonal > 0).all()):
        return np.zeros((len(size), 0))
    errors = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(expected * np.outer(errors, errors))
    directions = (vectors[:, values < NULL_EIGENVALUE] * (errors * size)[:, None]).T
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    flat = [d for d in directions if abs(d @ scaled @ d) < MIN_CURVATURE]
    return np.asarray(np.linalg.qr(np.array(flat).T)[0]) if flat else np.zeros((len(size), 0))


def or_nan(inverse: Floats, lost: NDArray[np.bool_]) -> Floats:
    """Return a covariance with NaN for what is not determined."""
    return np.asarray(np.where(lost[:, None] | lost[None, :], np.nan, inverse))
