"""How far approximate maximum likelihood leans, and the estimate without it.

Its criterion J(β, θ) is minimised over trajectories where a likelihood integrates over them:

    −log L(θ) ≈ min_β J(β, θ) + D(θ),       D = ½ log|H| − ½ log|G|     (``collocation.laplace``)

H, the curvature of J by the trajectories, moves with θ, so that leaving D out moves the estimate by  C ∇D,  C its
covariance: the first Newton step from one criterion to the other, backwards. Of the stirred tank's parameters it
predicts the way to a tenth. To take it off, up to four such steps are taken, each with slope and curvature of its own
place. Reference for corrections by such steps: D. Firth, Biometrika 80 (1993) 27.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grisaille.estimation.unknowns import Unknown

StepAt = Callable[[np.ndarray], np.ndarray | None]
"""θ → Newton's step towards the maximum of the marginal likelihood there; None where it cannot be had."""
NOTICED, BELIEVED = 0.25, 4.0
"""Standard errors from which on it is told, and up to which steps are thought to take it off."""
STEPS, ENOUGH = 4, 0.03
"""Steps to take it off, and standard errors below which another is not needed."""


def lean(covariance: np.ndarray, determinant_slope: np.ndarray) -> np.ndarray:
    """How far each estimate is from where the marginal likelihood has its maximum."""
    return np.asarray(covariance @ determinant_slope)


def without_lean(
    bounds: tuple[np.ndarray, np.ndarray], theta: np.ndarray, covariance: np.ndarray, step_at: StepAt
) -> np.ndarray | None:
    """θ moved to where −log L is least, inside its bounds; None where a first step cannot be had."""
    errors, last = np.sqrt(np.clip(np.diag(covariance), 0.0, None)), np.inf
    for count in range(STEPS):
        step = step_at(theta)
        if step is None:
            return theta if count else None
        moved = np.clip(theta + step, *bounds)
        size = float(np.abs(_shares(moved - theta, errors)).max(initial=0.0))
        if size >= last:
            break
        theta, last = moved, size
        if size < ENOUGH:
            break
    return theta


def is_believed(leaning: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether steps may take it off."""
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    return bool(np.abs(_shares(leaning, errors)).max(initial=0.0) <= BELIEVED)


def _shares(change: np.ndarray, errors: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors > 0, change / errors, 0.0)


def describe_lean(
    unknowns: Sequence[Unknown], leaning: np.ndarray, covariance: np.ndarray, taken_off: bool
) -> list[str]:
    """One sentence, where some estimate leans by more than a quarter of its standard error."""
    share = _shares(leaning, np.sqrt(np.clip(np.diag(covariance), 0.0, None)))
    told = [k for k in np.argsort(-np.abs(share)) if abs(share[k]) > NOTICED]
    if not told:
        return []
    much = ", ".join(f"{unknowns[k].name} by {share[k]:+.1f}" for k in told).replace("-", "−")
    if taken_off:
        return [f"bias: the criterion leans, {much} standard errors; this was taken off."]
    if not is_believed(leaning, covariance):
        return [f"bias: the criterion leans too far to be corrected, {much} standard errors; use criterion='laplace'."]
    return [
        f"bias: the criterion leans, {much} standard errors to first order; gr.Collocation(debias=True) takes this "
        f"off, criterion='laplace' does not have it."
    ]
