"""Levenberg–Marquardt: (JᵀJ + μD²) Δ = −Jᵀr, the damping μ steered by the ratio of real to predicted gain.

D holds the largest column norms seen (Moré's scaling). Bounds by projection. Reference: J. J. Moré, The
Levenberg–Marquardt algorithm: implementation and theory (1978); H. B. Nielsen's update of μ (1999).
"""

from __future__ import annotations

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.gauss_newton import pushed_out
from grisaille.optimization.search import Outcome, Search


def minimize(search: Search[E], *, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """Minimise ½|r|² from the problem's guess."""
    limit = search.evaluations + max_evaluations
    now = search.first()
    xi = search.where(now)
    lower, upper = search.inner_bounds()
    damping, growth = 1e-3, 2.0
    scale = np.zeros_like(xi)
    while search.evaluations < limit:
        J = search.jacobian(now)
        scale = np.maximum(scale, np.linalg.norm(J, axis=0))
        D = np.where(scale > 0, scale, 1.0)
        free = ~pushed_out(xi, -(J.T @ now.residuals), lower, upper)
        step = _damped_step(J, now.residuals, damping * D**2, free)
        predicted = _gain(now.residuals, J @ step)
        if (
            np.abs(step).max(initial=0.0) <= tolerance * (1 + np.abs(xi).max())
            or predicted <= tolerance * now.objective
        ):
            return search.finish(True, "the step or its predicted gain vanished")
        trial = np.clip(xi + step, lower, upper)
        predicted = _gain(now.residuals, J @ (trial - xi))
        # a step cut off at a bound may lead uphill: it needs more damping, not an end
        evaluation = search.at(trial) if predicted > 0 else None
        ratio = -1.0
        if evaluation is not None and evaluation.completed:
            ratio = (now.objective - evaluation.objective) / predicted
        if evaluation is not None and ratio > 0:
            xi, now = trial, evaluation
            damping *= max(1 / 3, 1 - (2 * ratio - 1) ** 3)
            growth = 2.0
        else:
            damping, growth = damping * growth, growth * 2
            if damping > 1e20:
                return search.finish(False, "no step lowers the objective, however short")
    return search.finish(False, "the limit of evaluations was reached")


def _damped_step(J: np.ndarray, r: np.ndarray, weights: np.ndarray, free: np.ndarray) -> np.ndarray:
    step = np.zeros(J.shape[1])
    stacked = np.vstack([J[:, free], np.diag(np.sqrt(weights[free]))])
    step[free] = np.linalg.lstsq(stacked, np.concatenate([-r, np.zeros(int(free.sum()))]), rcond=None)[0]
    return step


def _gain(r: np.ndarray, change: np.ndarray) -> float:
    """Fall of ½|r|² that the linear model promises."""
    return 0.5 * float(r @ r) - 0.5 * float(np.sum((r + change) ** 2))
