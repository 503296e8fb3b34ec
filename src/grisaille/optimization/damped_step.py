"""Damped steps inside bounds, and how they bend along a curved valley.

    (H + λ D²) v = −g,    D² = diag |H|,        (H + λ D²) a = −½ Jᵀ r_vv,    ξ → ξ + v + a

Where the parameters of a model compensate each other the sum of squares of residuals r has a narrow valley, and where
that is curved straight steps v must be short. The second derivative of the residuals along v tells how it bends: with
the acceleration a steps become ten times as long, at the cost of one evaluation without derivatives each.
Reference: M. K. Transtrum, J. P. Sethna, arXiv:1201.5885 (2012), geodesic acceleration.
"""

from __future__ import annotations

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.hessian import DEAD
from grisaille.optimization.search import Search

LONGEST = 2.0
"""A step changes the logarithm of an unknown, or an unknown relative to its size, by no more than this."""
PART = 0.1
"""Of the step over which residuals are differenced."""
MOST = 0.75
"""Accelerations longer than this part of the step say that two terms of the expansion are not enough."""


def damped_step(
    xi: np.ndarray, g: np.ndarray, H: np.ndarray, damping: float, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """−(H + λ D²)⁻¹ g inside the bounds and a box of side ``LONGEST``; λ is at least what makes the matrix definite.

    Components that leave the box go to its side and the others are solved for again, so that a direction that the data
    hardly see does not shorten the whole step.
    """
    low, high = np.maximum(lower - xi, -LONGEST), np.minimum(upper - xi, LONGEST)
    free = ~(((xi <= lower) & (g > 0)) | ((xi >= upper) & (g < 0)))
    step = np.zeros_like(xi)
    for _ in range(len(xi)):
        if not free.any():
            break
        part, slope = H[np.ix_(free, free)], g[free] + H[np.ix_(free, ~free)] @ step[~free]
        wanted = _solve(part, slope, damping)
        step[free] = np.clip(wanted, low[free], high[free])
        outside = np.flatnonzero(free)[wanted != step[free]]
        if not len(outside):
            break
        free[outside] = False
    return step


def acceleration(search: Search[E], now: E, step: np.ndarray, H: np.ndarray, damping: float) -> np.ndarray:
    """What bends a step along a valley of the squared innovations; zero where it is not known, or not small."""
    none, seen = np.zeros_like(step), (step != 0) & (np.diag(H) > DEAD)
    if not seen.any():
        return none
    ahead = search.evaluate(search.outer(search.where(now) + PART * step), sensitive=False)
    if not ahead.completed:
        return none
    J = search.jacobian(now)
    bend = 2 / PART * ((ahead.residuals - now.residuals) / PART - J @ step)
    found = none.copy()
    found[seen] = 0.5 * _solve(H[np.ix_(seen, seen)], (J.T @ bend)[seen], damping)
    found, size = np.clip(step + found, -LONGEST, LONGEST) - step, _size(H)
    return found if np.linalg.norm(size * found) <= MOST * np.linalg.norm(size * step) else none


def _size(H: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.maximum(np.abs(np.diag(H)), DEAD)))


def _solve(H: np.ndarray, g: np.ndarray, damping: float) -> np.ndarray:
    size = _size(H)
    values, vectors = np.linalg.eigh(H / np.outer(size, size))
    damping = max(damping, damping - 1.5 * float(values.min()))
    return np.asarray(-(vectors @ ((vectors.T @ (g / size)) / (values + damping))) / size)
