"""How far approximate maximum likelihood leans, to first order, and the estimate without it.

Its criterion J(β, θ) is minimised over trajectories where a likelihood integrates over them:

    −log L(θ) ≈ min_β J(β, θ) + D(θ),       D = ½ log|H| − ½ log|G|     (``collocation.laplace``)

H, the curvature of J by the trajectories, moves with θ, so that leaving D out moves the estimate by  C ∇D,  C its
covariance: the first Newton step from one criterion to the other, backwards. Of the stirred tank's parameters it
predicts nine tenths of the way. Reference for the correction by such a step: D. Firth, Biometrika 80 (1993) 27.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.estimation.unknowns import Unknown

NOTICED, BELIEVED = 0.25, 4.0
"""Standard errors from which on it is told, and up to which the first order is enough to take it off."""


def lean(covariance: np.ndarray, determinant_slope: np.ndarray) -> np.ndarray:
    """How far each estimate is from where the marginal likelihood has its maximum."""
    return np.asarray(covariance @ determinant_slope)


def without_lean(
    bounds: tuple[np.ndarray, np.ndarray], theta: np.ndarray, leaning: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """θ moved back, inside its bounds and without what is ``held``; and by how much that was."""
    moved = np.where(held, theta, np.clip(theta - leaning, *bounds))
    return moved, theta - moved


def is_believed(leaning: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether a first-order step may take it off."""
    return bool(np.abs(_in_errors(leaning, covariance)).max(initial=0.0) <= BELIEVED)


def _in_errors(leaning: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors > 0, leaning / errors, 0.0)


def describe_lean(
    unknowns: Sequence[Unknown], leaning: np.ndarray, covariance: np.ndarray, taken_off: bool
) -> list[str]:
    """One sentence, where some estimate leans by more than a quarter of its standard error."""
    share = _in_errors(leaning, covariance)
    told = [k for k in np.argsort(-np.abs(share)) if abs(share[k]) > NOTICED]
    if not told:
        return []
    much = ", ".join(f"{unknowns[k].name} by {share[k]:+.1f}" for k in told).replace("-", "−")
    if taken_off:
        return [f"bias: the criterion leans, {much} standard errors; this was taken off."]
    if not is_believed(leaning, covariance):
        return [
            f"bias: the criterion leans too far for a first-order correction, {much} standard errors; use "
            f"criterion='laplace'."
        ]
    return [
        f"bias: the criterion leans, {much} standard errors to first order; gr.Collocation(debias=True) takes this "
        f"off, criterion='laplace' does not have it."
    ]
