"""Whether a point is a minimum, and the last digits of it.

An optimizer's own stopping rule may be met far from a minimum. What counts here is the Gauss–Newton step that is left,
in units of the statistical uncertainty: the relative offset of Bates and Watts,

    offset = |Q₁ᵀ r| / √n  ·  √(N − n) / |r|,

the length of the tangent-plane step relative to the radius of the confidence region; for (nearly) exact data, relative
to the unknowns. Reference: D. M. Bates, D. G. Watts, Technometrics 23 (1981) 179.
"""

from __future__ import annotations

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import Search

OFFSET_TOLERANCE = 1e-4
"""The estimate is then within a ten-thousandth of its standard error."""
ROUNDING_OFFSET = 1e-3
"""Standard errors from a minimum that make no difference, where rounding keeps a search from coming nearer."""
OFFSET_TOLERANCE_OF_DIFFERENCES = 1e-2
"""The same where derivatives are differences, which carry the scatter of adaptive steps."""
NEGLIGIBLE_OFFSET = 1e-11
"""Nothing is left to polish."""
OBJECTIVE_SCATTER = 1e-8
"""Of the objective, relative: implicit steps are solved to a tolerance, and a rise below it tells nothing."""
STEP_SHARES = (1.0, 0.5, 0.25, 0.125)


def polish(search: Search[E], evaluation: E, most: int = 12) -> E:
    """Take plain Gauss–Newton steps from a point that is nearly a minimum, as long as they bring it nearer.

    Near a minimum the objective no longer tells points apart: it is flat and its values scatter. The offset still does.
    """
    offset = relative_offset(search, evaluation)
    for _ in range(most):
        found = _nearer(search, evaluation, offset) if offset >= NEGLIGIBLE_OFFSET and search.left else None
        if found is None:
            break
        evaluation, offset = found
    return evaluation


def _nearer(search: Search[E], evaluation: E, offset: float) -> tuple[E, float] | None:
    """Return the Gauss–Newton step, halved where that is worth it, with the offset that is left."""
    lower, upper = search.inner_bounds()
    xi = search.where(evaluation)
    free = _free(search, evaluation, xi, lower, upper)
    J = search.jacobian(evaluation)
    step = np.zeros_like(xi)
    step[free] = np.linalg.lstsq(J[:, free], -evaluation.residuals, rcond=1e-13)[0]
    if not step.any() or np.abs(step).max() <= 1e-16 * (1 + np.abs(xi).max()):
        return None
    for share in (STEP_SHARES if offset >= OFFSET_TOLERANCE else STEP_SHARES[:1])[: search.left]:
        trial = search.evaluate(search.outer(np.clip(xi + share * step, lower, upper)))
        if trial.completed and trial.objective <= evaluation.objective * (1 + OBJECTIVE_SCATTER):
            nearer = relative_offset(search, trial)
            if nearer < offset:
                return trial, nearer
    return None


def relative_offset(search: Search[E], evaluation: E) -> float:
    """Return the offset of the free unknowns; small means converged."""
    xi = search.where(evaluation)
    free = _free(search, evaluation, xi, *search.inner_bounds())
    J = search.jacobian(evaluation)[:, free]
    n, N = J.shape[1], len(evaluation.residuals)
    if n == 0:
        return 0.0
    step = np.linalg.lstsq(J, -evaluation.residuals, rcond=1e-13)[0]
    tangent = J @ step
    size = float(np.linalg.norm(evaluation.residuals))
    relative = float(np.abs(step / (1e-8 + np.abs(xi[free]))).max())
    if size == 0 or relative < 1e-9:
        return min(relative, 1e-9)
    return float(np.linalg.norm(tangent) / np.sqrt(n) * np.sqrt(max(N - n, 1)) / size)


def _free(search: Search[E], evaluation: E, xi: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    descent = -(search.jacobian(evaluation).T @ evaluation.residuals)
    near = 1e-9 * (1 + np.abs(xi))
    held = ((xi <= lower + near) & (descent < 0)) | ((xi >= upper - near) & (descent > 0))
    return np.asarray(~held & search.moving(evaluation))
