"""Implicit unknowns of a start from piece to piece: Newton's corrections, cut where they leave their piece.

Residuals of many ideal diodes do not fall along a correction that passes several of their switches, however much it is
damped. Here a correction ends just beyond its first switch (``numerics/sides.py``), and what has to shrink is the next
correction with the same matrix (Deuflhard's natural monotonicity), not the residual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.numerics.sides import reach
from grisaille.structure.starts.problem import StartProblem

if TYPE_CHECKING:
    from grisaille.structure.starts.start_search import StartPart

MAX_PIECES = 400
MAX_GAPS = 2_000
"""Evaluations of the switches of one walk; straight ones, those of ideal diodes, need three for a piece."""
MIN_STEP = 1e-10
NEWTON_CORRECTION = 1e-9
"""Corrections in parts of their unknowns from which on plain Newton's method takes over."""


def newton_through_pieces(problem: StartProblem, guess: np.ndarray, part: StartPart) -> np.ndarray | None:
    """Return a point close to a root of a square part; None where the way ends."""
    from scipy.linalg.lapack import dgetrf, dgetrs

    system, w = problem.owner.system, guess.copy()
    sides = problem.owner.sides
    dz, share, looked = np.zeros(len(w)), 1.0, 0

    def gaps(taken: float) -> np.ndarray:
        nonlocal looked
        looked += 1
        at = w + taken * dz
        return np.array(sides(problem.t, at[: system.nx], at[system.nx :], problem.u, problem.p).full()).ravel()

    for _ in range(MAX_PIECES):
        value, jw, _, _ = problem.hard(w)
        matrix = jw[np.ix_(part.rows, part.columns)]
        if not (np.isfinite(value[part.rows]).all() and np.isfinite(matrix).all()):
            return None
        lu, pivots, refused = dgetrf(matrix)
        if refused:
            return None
        dz[part.columns] = dgetrs(lu, pivots, -value[part.rows])[0]
        size = _size(problem, w, dz)
        if not np.isfinite(size):
            return None
        if size <= NEWTON_CORRECTION:
            return w
        if looked > MAX_GAPS:
            return None
        whole = reach(gaps, gaps(0.0)) if sides.numel_out(0) else 1.0
        share = min(1.0, 4.0 * share)
        while not _is_closer(problem, w, share * whole * dz, part, (lu, pivots), (1.0 - 0.25 * share * whole) * size):
            share *= 0.5
            if share < MIN_STEP:
                return None
        w = w + share * whole * dz
    return None


def _size(problem: StartProblem, w: np.ndarray, dz: np.ndarray) -> float:
    return float(np.max(np.abs(dz) / (problem.owner.nominal + np.abs(w)), initial=0.0))


def _is_closer(
    problem: StartProblem,
    w: np.ndarray,
    step: np.ndarray,
    part: StartPart,
    factors: tuple[np.ndarray, np.ndarray],
    limit: float,
) -> bool:
    """Return whether the next correction with the same matrix would be small enough."""
    from scipy.linalg.lapack import dgetrs

    value = problem.residual(w + step)[part.rows]
    if not np.isfinite(value).all():
        return False
    following = np.zeros(len(w))
    following[part.columns] = dgetrs(*factors, -value)[0]
    return _size(problem, w, following) <= limit * (1.0 + 1e-9)
