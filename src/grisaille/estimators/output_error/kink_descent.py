"""Minima beside a minimum, where trajectories cross switches of their states.

An event that passes a sample as θ moves gives the residual there another slope: the criterion has an edge, and may have
a minimum on either side of it, a part of a standard error apart. So it is compared with its parabola at points half a
standard error away along the axes of the confidence ellipsoid,

    f(θ̂ ± ½ a_k) − f(θ̂) ≈ ½ (½)² s²,       JᵀJ a_k = s² λ a_k,   |J a_k| = s,

and where it has risen by less than half of that, another search begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error.least_squares_minimum import LeastSquaresMinimum, Squares

EDGE_DISTANCE = 0.5
"""Standard errors."""
MIN_RISE_SHARE = 0.5
"""Part of the parabola's rise."""
MIN_SINGULAR_VALUE = 1e-8
"""Singular values of J, relative to the largest, of axes that are looked along."""


MAX_MINIMA = 4
"""Minima that are gone on to, at most."""


def lies_on_kinks(found: LeastSquaresMinimum) -> bool:
    """Return whether events may bend the criterion; differences over wide steps have smoothed it."""
    jumps = (case.trial.structure.jumps.of_states for case in found.problem.cases)
    return found.problem.differences is None and found.evaluation.completed and any(jumps)


def search_beside_kinks(
    search: Squares,
    found: LeastSquaresMinimum,
    free: Callable[[Squares, Evaluation], np.ndarray],
    solve: Callable[[EstimationProblem, Squares], LeastSquaresMinimum],
) -> LeastSquaresMinimum:
    """Return the lowest of the minima that lie beside one another."""
    left: list[np.ndarray] = []
    for _ in range(MAX_MINIMA):
        at = found.evaluation
        theta = find_lower_beside_kinks(search, at, free(search, at) & search.moving(at), left)
        if theta is None:
            break
        search.restart(theta, found.problem)
        other = solve(found.problem, search)
        if not (other.evaluation.completed and other.whole < found.whole):
            search.restart(at.theta, found.problem)
            search.best = at
            break
        left.append(at.theta)
        found = other
    return found


def find_lower_beside_kinks(
    search: Squares, at: Evaluation, free: np.ndarray, left: Sequence[np.ndarray] = ()
) -> np.ndarray | None:
    """Return the lowest point where the criterion rises less than its quadratic model predicts; None where there is
    none.

    left : minima that were higher; points nearer to them are not looked at
    """
    if not free.any():
        return None
    xi, lowest, found = search.where(at), np.inf, None
    J = search.jacobian(at)[:, free]
    _, size, axes = np.linalg.svd(J, full_matrices=False)
    others = [search.inner(theta) for theta in left]
    level = 2 * at.objective / max(len(at.residuals) - int(free.sum()), 1)
    enough = at.objective + MIN_RISE_SHARE * 0.5 * EDGE_DISTANCE**2 * level
    lower, upper = search.inner_bounds()
    for s, axis in zip(size, axes, strict=True):
        if s <= MIN_SINGULAR_VALUE * size[0]:
            continue
        for side in (-EDGE_DISTANCE, EDGE_DISTANCE):
            trial = xi.copy()
            trial[free] += side * np.sqrt(level) / s * axis
            is_back = any(
                np.linalg.norm(J @ (trial - x)[free]) < np.linalg.norm(J @ (trial - xi)[free]) for x in others
            )
            if not search.left or is_back or np.any(trial < lower) or np.any(trial > upper):
                continue
            there = search.evaluate(search.outer(trial), sensitive=False, quietly=True)
            if there.completed and there.objective < min(enough, lowest):
                lowest, found = there.objective, there.theta
    return found
