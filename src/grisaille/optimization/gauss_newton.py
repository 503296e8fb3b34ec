"""Gauss–Newton with a line search: Δ = −J⁺r, shortened until the objective falls enough; bounds by projection.

Reference: J. Nocedal, S. Wright, Numerical Optimization (2006), section 10.3.
"""

from __future__ import annotations

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import Outcome, Search

SHORTEST = 2.0**-20


def minimize(search: Search[E], *, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """Minimise ½|r|² from the problem's guess."""
    limit = search.evaluations + max_evaluations
    now = search.first()
    xi = search.where(now)
    lower, upper = search.inner_bounds()
    while search.evaluations < limit:
        J = search.jacobian(now)
        free = ~pushed_out(xi, -(J.T @ now.residuals), lower, upper)
        step = np.zeros_like(xi)
        step[free] = np.linalg.lstsq(J[:, free], -now.residuals, rcond=1e-12)[0]
        gain = float(now.residuals @ (J @ step))
        if np.abs(step).max(initial=0.0) <= tolerance * (1 + np.abs(xi).max()) or -gain <= tolerance * now.objective:
            return search.finish(True, "the step or its predicted gain vanished")
        length = 1.0
        while length > SHORTEST:
            trial = np.clip(xi + length * step, lower, upper)
            evaluation = search.at(trial)
            if evaluation.completed and evaluation.objective <= now.objective + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return search.finish(False, "no step along the Gauss–Newton direction lowers the objective")
        xi, now = trial, evaluation
    return search.finish(False, "the limit of evaluations was reached")


def pushed_out(xi: np.ndarray, descent: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Unknowns on a bound that the objective pushes further out."""
    return ((xi <= lower) & (descent < 0)) | ((xi >= upper) & (descent > 0))
