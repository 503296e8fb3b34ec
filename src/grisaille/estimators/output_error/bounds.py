"""Unknowns that a bound of the search holds at its end."""

from __future__ import annotations

import numpy as np

from grisaille.estimation.problem import Evaluation
from grisaille.estimators.output_error.least_squares_minimum import Squares


def free_unknowns(search: Squares, evaluation: Evaluation) -> np.ndarray:
    """Return False for unknowns that a bound holds."""
    lower, upper = search.bounds
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    bend = np.sum(evaluation.jacobian**2, axis=0)
    # bounds may be far apart: near is also what is small against the standard error that an unknown alone would have
    near = np.minimum(1e-9 * span, np.divide(1e-3, np.sqrt(bend), out=np.full(len(bend), np.inf), where=bend > 0))
    descent = -(evaluation.jacobian.T @ evaluation.residuals)
    low = (evaluation.theta <= lower + near) & (descent <= 0)
    high = (evaluation.theta >= upper - near) & (descent >= 0)
    return np.asarray(~(low | high))


def on_bounds(search: Squares, evaluation: Evaluation, *, moves: bool) -> tuple[Evaluation, np.ndarray]:
    """Return the point with unknowns that a bound holds on it, not beside it, and which unknowns are free.

    moves : whether the point is put there; else only told
    """
    free = free_unknowns(search, evaluation)
    lower, upper = search.bounds
    nearer = np.where(evaluation.theta - lower <= upper - evaluation.theta, lower, upper)
    theta = np.where(free, evaluation.theta, nearer)
    if not moves or np.array_equal(theta, evaluation.theta):
        return evaluation, free
    moved = search.evaluate(theta, quietly=True)
    return (moved, free_unknowns(search, moved)) if moved.completed else (evaluation, free)
