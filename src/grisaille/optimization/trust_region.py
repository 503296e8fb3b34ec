"""Trust-region reflective least squares (SciPy), on exact Jacobians; the default optimizer.

Reference: M. A. Branch, T. F. Coleman, Y. Li, SIAM J. Sci. Comput. 21 (1999) 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import LIMIT, Outcome, Search

ROUNDS = 8
"""Changes of what is held, at most."""
NOTHING_MOVES = "no unknown moves anything"
FAILED = 1e8
"""Factor on the first residuals where a simulation fails: the step is rejected and the region shrinks."""


@dataclass(frozen=True, eq=False)
class _Part(Generic[E]):
    """The problem in those unknowns that move something, the others held."""

    search: Search[E]
    held_at: np.ndarray
    live: np.ndarray
    wall: np.ndarray
    """Residuals where a simulation fails."""

    def whole(self, part: np.ndarray) -> np.ndarray:
        xi = self.held_at.copy()
        xi[self.live] = part
        return xi

    def residuals(self, part: np.ndarray) -> np.ndarray:
        evaluation = self.search.at(self.whole(part))
        return evaluation.residuals if evaluation.completed else self.wall

    def jacobian(self, part: np.ndarray) -> np.ndarray:
        return np.asarray(self.search.jacobian(self.search.at(self.whole(part)))[:, self.live])


def minimize(search: Search[E], *, loss: str, loss_scale: float, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """Minimise ½ Σ ρ(r²) from the problem's guess.

    Unknowns that no residual moves with at the beginning are held until they move something: the reflective method
    would walk them through their whole range.
    """
    from scipy.optimize import least_squares

    limit = search.evaluations + max_evaluations
    wall = FAILED * (1.0 + np.abs(search.first().residuals))
    lower, upper = search.inner_bounds()
    xi = _strictly_inside(np.clip(search.start, lower, upper), lower, upper)
    live, reason, well = _moving(search, xi), "", False
    for _ in range(ROUNDS):
        left = limit - search.evaluations
        if not live.any() or left <= 0:
            reason = reason or (LIMIT if left <= 0 else NOTHING_MOVES)
            break
        part = _Part(search, xi, live, wall)
        found = least_squares(
            part.residuals, xi[live], part.jacobian, bounds=(lower[live], upper[live]), method="trf", x_scale="jac",
            loss=loss, f_scale=loss_scale, ftol=tolerance, xtol=tolerance, gtol=tolerance, max_nfev=left,
        )  # fmt: skip
        xi, well, reason = part.whole(found.x), found.status > 0, _REASONS.get(found.status, found.message)
        search.settle(xi)
        born = _moving(search, xi) & ~part.live
        if not born.any():
            break
        live, xi = part.live | born, _strictly_inside(xi, lower, upper)
    return search.finish(well, reason)


def _moving(search: Search[E], xi: np.ndarray) -> np.ndarray:
    """Unknowns that some residual moves with."""
    return np.asarray(search.jacobian(search.at(xi)).any(axis=0))


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
