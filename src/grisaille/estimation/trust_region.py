"""Trust-region reflective least squares (SciPy), on exact Jacobians; the default optimizer.

Reference: M. A. Branch, T. F. Coleman, Y. Li, SIAM J. Sci. Comput. 21 (1999) 1.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.search import Outcome, Search

FAILED = 1e8
"""Factor on the first residuals where a simulation fails: the step is rejected and the region shrinks."""


def minimize(search: Search, *, loss: str, loss_scale: float, max_evaluations: int, tolerance: float) -> Outcome:
    """Minimise ½ Σ ρ(r²) from the problem's guess."""
    from scipy.optimize import least_squares

    first = search.first()
    wall = FAILED * (1.0 + np.abs(first.residuals))

    def residuals(xi: np.ndarray) -> np.ndarray:
        evaluation = search.at(xi)
        return evaluation.residuals if evaluation.completed else wall

    def jacobian(xi: np.ndarray) -> np.ndarray:
        return search.jacobian(search.at(xi))

    lower, upper = search.inner_bounds()
    start = np.clip(search.guess, lower, upper)
    found = least_squares(
        residuals, _strictly_inside(start, lower, upper), jacobian, bounds=(lower, upper), method="trf", x_scale="jac",
        loss=loss, f_scale=loss_scale, ftol=tolerance, xtol=tolerance, gtol=tolerance, max_nfev=max_evaluations,
    )  # fmt: skip
    search.settle(found.x)
    return search.finish(found.status > 0, _REASONS.get(found.status, found.message))


_REASONS = {
    0: "the limit of evaluations was reached",
    1: "the gradient vanished",
    2: "the objective no longer falls",
    3: "the unknowns no longer move",
    4: "neither the objective nor the unknowns move any more",
}


def _strictly_inside(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The reflective method needs an interior start: a guess on its bound is moved by a millionth of the range."""
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    inside = np.where(x <= lower, lower + 1e-6 * span, x)
    return np.where(inside >= upper, upper - 1e-6 * span, inside)
