"""Trust-region reflective least squares (SciPy), on exact Jacobians; the default optimizer.

Reference: M. A. Branch, T. F. Coleman, Y. Li, SIAM J. Sci. Comput. 21 (1999) 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.live import Ended, Live, minimize_live
from grisaille.optimization.search import LIMIT, Outcome, Search

FAILED = 1e8
"""Factor on the first residuals where a simulation fails: the step is rejected and the region shrinks."""


BESIDE_BOUND = "beside the bounds, where it would go on, the model cannot be simulated"
Loss = str | Callable[[np.ndarray], np.ndarray]
"""A name that SciPy knows, or ρ, ρ' and ρ'' of (r / scale)²."""


def minimize(search: Search[E], tolerance: float, loss: Loss = "linear", loss_scale: float = 1.0) -> Outcome[E]:
    """Minimise ½ Σ ρ(r²) from the guess."""
    from scipy.optimize import least_squares

    wall = FAILED * (1.0 + np.abs(search.first().residuals))
    lower, upper = search.inner_bounds()

    def reflect(part: Live[E]) -> tuple[np.ndarray, bool, str]:
        def residuals(x: np.ndarray) -> np.ndarray:
            part.go_on()
            evaluation = search.at(part.whole(x))
            return evaluation.residuals if evaluation.completed else wall

        def jacobian(x: np.ndarray) -> np.ndarray:
            xi = part.whole(x)
            part.examine(xi)
            if not search.at(xi).completed:  # SciPy moves a start away from its bounds
                raise Ended(BESIDE_BOUND)
            return np.asarray(search.jacobian(search.at(xi))[:, part.live])

        low, high = lower[part.live], upper[part.live]
        begin = _strictly_inside(part.held_at[part.live], low, high)
        if not search.at(part.whole(begin)).completed:
            return part.held_at[part.live], False, BESIDE_BOUND
        found = least_squares(
            residuals, begin, jacobian, bounds=(low, high),
            method="trf", x_scale="jac", loss=loss, f_scale=loss_scale, ftol=tolerance, xtol=tolerance, gtol=tolerance,
            max_nfev=search.left,
        )  # fmt: skip
        return found.x, found.status > 0, _REASONS.get(found.status, found.message)

    xi = _strictly_inside(np.clip(search.start, lower, upper), lower, upper)
    return search.finish(*minimize_live(search, xi, reflect))


_REASONS = {
    0: LIMIT,
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
