"""Declared starts that are missed by the rounding of larger ones: vx = −1e-8 instead of 0 where positions are 1e12.

A correction of all unknowns is right to rounding of its largest entry. Where a start has been found, what is missed by
no more than that is corrected once more, with everything else held: the right-hand sides are then as small as itself.
"""

from __future__ import annotations

import numpy as np

from grisaille.structure.starts.acceptance import MAX_ROUNDED, ROUNDED_VALUE
from grisaille.structure.starts.hierarchy import solve_levels
from grisaille.structure.starts.problem import StartProblem, row_sizes
from grisaille.structure.starts.rounding import EPSILON


def without_rounded_misses(problem: StartProblem, w: np.ndarray) -> np.ndarray:
    """Return the start with wishes met that were missed by rounding; w itself where there are none."""
    scale = problem.owner.nominal
    most = ROUNDED_VALUE * float(np.abs(w / scale).max(initial=0.0))
    if most <= MAX_ROUNDED:
        return w
    gaps = [_rounded(gap, most) for gap in _gaps(problem, w)]
    if not any(gap.any() for gap in gaps):
        return w
    try:
        trial = w + _correction(problem, w, gaps) * scale
    except np.linalg.LinAlgError:
        return w
    before, after = problem.residual(w), problem.residual(trial)
    slope = problem.sparse_slopes(w)[1] if problem.is_large else problem.hard(w)[1] * scale
    is_worse = np.abs(after) > np.abs(before) + EPSILON * np.asarray(abs(slope) @ np.abs(w / scale))
    return w if is_worse.any() or not np.isfinite(after).all() else np.asarray(trial)


def _rounded(gap: np.ndarray, most: float) -> np.ndarray:
    """Return the gaps that can be seen, and that are no larger than rounding."""
    size = np.abs(gap)
    return np.where((size > MAX_ROUNDED) & (size <= most), gap, 0.0)


def _gaps(problem: StartProblem, w: np.ndarray) -> list[np.ndarray]:
    observed = problem.observed(w)
    return [(v.targets - (w if v.of_unknowns else observed)[v.rows]) / v.sizes for v in problem.levels]


def _correction(problem: StartProblem, w: np.ndarray, gaps: list[np.ndarray]) -> np.ndarray:
    """Of the unknowns in nominal values; the last level keeps what no wish speaks of."""
    from scipy.sparse import csc_array, csr_array, diags_array, eye_array

    from grisaille.structure.starts.large_hierarchy import solve_large_levels

    scale, n = problem.owner.nominal, len(w)
    if problem.is_large:
        _, slope = problem.sparse_slopes(w)
        hard = csr_array(diags_array(1.0 / row_sizes(csc_array(slope))) @ slope)
        wishes = [
            csr_array(diags_array(1.0 / level.sizes) @ slopes @ diags_array(scale))
            for level, _, slopes in problem.sparse_guess_slopes(w)
        ]
        levels = [
            (hard, np.zeros(hard.shape[0])),
            *zip(wishes, gaps, strict=True),
            (csr_array(eye_array(n)), np.zeros(n)),
        ]
        return solve_large_levels(levels, n)
    full = problem.hard(w)[1] * scale
    rows = [jw * scale / level.sizes[:, None] for level, _, jw, _ in problem.guess_rows(w)]
    first = (full / row_sizes(full)[:, None], np.zeros(len(full)))
    return solve_levels([first, *zip(rows, gaps, strict=True), (np.eye(n), np.zeros(n))], n)
