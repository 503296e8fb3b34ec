"""Trust-region reflective least squares (SciPy), on exact Jacobians; the default optimizer.

Reference: M. A. Branch, T. F. Coleman, Y. Li, SIAM J. Sci. Comput. 21 (1999) 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.growing_search import GrowingSearch, GrowingSearchEnd, minimize_with_dead_unknowns
from grisaille.optimization.search import LIMIT_STATUS, Search, SearchOutcome

FAILURE_FACTOR = 1e8
"""Factor on the first residuals where a simulation fails: the step is rejected and the region shrinks."""
SLOW_STATUS = "the objective falls too slowly for the number of evaluations"
WINDOW, PER_UNKNOWN, MIN_GAIN = 40, 10, 1e-3
"""Evaluations, and further ones for each unknown, in which an objective must fall by a part of itself."""


class SlowDescent(Exception):
    """Raised where a search has gained too little for long."""


BESIDE_BOUND = "beside the bounds, where it would go on, the model cannot be simulated"
Loss = str | Callable[[np.ndarray], np.ndarray]
"""A name that SciPy knows, or ρ, ρ' and ρ'' of (r / scale)²."""


def minimize(
    search: Search[E], tolerance: float, loss: Loss = "linear", loss_scale: float = 1.0, *, may_crawl: bool = True
) -> SearchOutcome[E]:
    """Minimise ½ Σ ρ(r²) from the guess.

    may_crawl : False ends a search, with the reason ``SLOW_STATUS``, that gains next to nothing by many evaluations,
    as in a
        narrow valley that bends, for another one to go on
    """
    from scipy.optimize import least_squares

    wall = FAILURE_FACTOR * (1.0 + np.abs(search.first().residuals))
    lower, upper = search.inner_bounds()
    gains = [(search.evaluations, search.lowest.objective)]

    def watch() -> None:
        lowest, now = search.lowest.objective, search.evaluations
        if lowest < gains[-1][1]:
            gains.append((now, lowest))
        before = [f for n, f in gains if n <= now - WINDOW - PER_UNKNOWN * len(search.unknowns)]
        if before and before[-1] - lowest < MIN_GAIN * abs(lowest):
            raise SlowDescent

    def reflect(part: GrowingSearch[E]) -> tuple[np.ndarray, bool, str]:
        def residuals(x: np.ndarray) -> np.ndarray:
            part.go_on()
            evaluation = search.at(part.whole(x))
            if not may_crawl:
                watch()
            return evaluation.residuals if evaluation.completed else wall

        def jacobian(x: np.ndarray) -> np.ndarray:
            xi = part.whole(x)
            part.examine(xi)
            if not search.at(xi).completed:  # SciPy moves a start away from its bounds
                raise GrowingSearchEnd(BESIDE_BOUND)
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
    try:
        return search.finish(*minimize_with_dead_unknowns(search, xi, reflect))
    except SlowDescent:
        return search.finish(False, SLOW_STATUS)


_REASONS = {
    0: LIMIT_STATUS,
    1: "the gradient is below the tolerance",
    2: "the decrease of the objective is below the tolerance",
    3: "the step is below the tolerance",
    4: "the step and the decrease of the objective are below the tolerance",
}


def _strictly_inside(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Move a guess on its bound inwards by a millionth of the range: the reflective method needs an interior start."""
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    inside = np.where(x <= lower, lower + 1e-6 * span, x)
    return np.where(inside >= upper, upper - 1e-6 * span, inside)
