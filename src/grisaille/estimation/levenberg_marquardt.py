"""Levenberg–Marquardt: (JᵀJ + μD²) Δ = −Jᵀr, the damping μ steered by the ratio of real to predicted gain.

D holds the largest column norms seen (Moré's scaling). Bounds by projection. Reference: J. J. Moré, The
Levenberg–Marquardt algorithm: implementation and theory (1978); H. B. Nielsen's update of μ (1999).
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.search import Outcome, Search


def minimize(search: Search, *, max_evaluations: int, tolerance: float) -> Outcome:
    """Minimise ½|r|² from the problem's guess."""
    now = search.first()
    xi = search.where(now)
    lower, upper = search.inner_bounds()
    damping, growth = 1e-3, 2.0
    scale = np.zeros_like(xi)
    while search.problem.evaluations < max_evaluations:
        J = search.jacobian(now)
        scale = np.maximum(scale, np.linalg.norm(J, axis=0))
        D = np.where(scale > 0, scale, 1.0)
        step = np.linalg.lstsq(
            np.vstack([J, np.sqrt(damping) * np.diag(D)]),
            np.concatenate([-now.residuals, np.zeros(len(xi))]),
            rcond=None,
        )[0]
        trial = np.clip(xi + step, lower, upper)
        step = trial - xi
        predicted = now.objective - 0.5 * float(np.sum((now.residuals + J @ step) ** 2))
        if (
            np.abs(step).max(initial=0.0) <= tolerance * (1 + np.abs(xi).max())
            or predicted <= tolerance * now.objective
        ):
            return search.finish(True, "the step or its predicted gain vanished")
        evaluation = search.at(trial)
        ratio = (now.objective - evaluation.objective) / predicted if evaluation.completed else -1.0
        if ratio > 0:
            xi, now = trial, evaluation
            damping *= max(1 / 3, 1 - (2 * ratio - 1) ** 3)
            growth = 2.0
        else:
            damping, growth = damping * growth, growth * 2
            if damping > 1e20:
                return search.finish(False, "no step lowers the objective, however short")
    return search.finish(False, "the limit of evaluations was reached")
