"""The root of implicit equations that the declared starts of their variables point at, whatever tearing has kept.

Newton's method begins at the declared starts of the implicit unknowns z. A declared variable that was eliminated,
y = y(x, z), has no part in that: of two roots the one far from its start may be found. Here z is moved to where all
declared starts are met and, as far as that leaves freedom, the equations hold,

    min |residual(z)|   subject to   y_wish(z) = start,

by a few linear steps; the root that Newton's method finds from there is taken if it lies nearer to the starts. That
costs a few factorisations, so that blocks of any size are asked, where ``roots`` searches small ones from all sides.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from grisaille.structure.starts.hierarchy import solve_levels
from grisaille.structure.starts.nearest_root import distances_from_starts, nearest_of
from grisaille.structure.starts.problem import StartProblem, row_sizes

if TYPE_CHECKING:
    from grisaille.structure.starts.start_search import StartIterate, StartPart

MAX_STEPS = 4
MAX_START_DISTANCE = 0.1
"""Of a declared start: a root that is nearer is the one that was meant."""


def root_at_starts(
    problem: StartProblem,
    found: StartIterate,
    guess: np.ndarray,
    part: StartPart,
    search: Callable[..., StartIterate | None],
) -> StartIterate:
    """Return ``found``, or the root to which the declared starts of eliminated variables lead where it is nearer to
    them.
    """
    if not problem.wishes[1] or max(distances_from_starts(problem, found.w)[:2]) <= MAX_START_DISTANCE:
        return found
    start = _at_starts(problem, guess, part)
    other = None if start is None else search(problem, start, part)
    if other is None or not other.holds:
        return found
    return (found, other)[nearest_of(problem, [found.w, other.w])[0]]


def _at_starts(problem: StartProblem, guess: np.ndarray, part: StartPart) -> np.ndarray | None:
    """Return z at which the declared starts are met, the equations as far as these allow; None where there is none."""
    w, columns, scale = guess.copy(), part.columns, problem.owner.nominal
    for _ in range(MAX_STEPS):
        step = _step(problem, w, part)
        if step is None:
            return None
        w[columns] += step * scale[columns]
        if not np.isfinite(problem.residual(w)[part.rows]).all():
            return None
        if np.abs(step).max(initial=0.0) <= 1e-6 * (1.0 + np.abs(w[columns] / scale[columns]).max(initial=0.0)):
            break
    return w


def _step(problem: StartProblem, w: np.ndarray, part: StartPart) -> np.ndarray | None:
    columns = part.columns
    try:
        if problem.is_large:
            from scipy.sparse import csc_array, csr_array, eye_array

            from grisaille.structure.starts.large_hierarchy import solve_large_levels

            value, slopes = problem.sparse_slopes(w)
            hard = csc_array(slopes[part.rows][:, columns])
            rows = row_sizes(hard)
            hard.data /= rows[hard.indices]
            *_, (wish, off), _ = problem.sparse_soft(w, w)
            levels = [(csr_array(wish[:, columns]), off), (csr_array(hard), -value[part.rows] / rows)]
            return np.asarray(
                solve_large_levels(
                    [*levels, (csr_array(eye_array(len(columns))), np.zeros(len(columns)))], len(columns)
                )
            )
        value, jw, _, _ = problem.hard(w)
        matrix = (jw * problem.owner.nominal)[np.ix_(part.rows, columns)]
        rows = row_sizes(matrix)
        *_, (wish, off), _ = problem.soft(w, w)
        return solve_levels(chain([(wish[:, columns], off)], [(matrix / rows[:, None], -value[part.rows] / rows)]),
                            len(columns))  # fmt: skip
    except np.linalg.LinAlgError:
        return None
