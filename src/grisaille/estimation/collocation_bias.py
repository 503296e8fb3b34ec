"""How far approximate maximum likelihood leans, and the estimate without it.

Its criterion J(β, θ) is minimised over trajectories where a likelihood integrates over them:

    −log L(θ) ≈ min_β J(β, θ) + D(θ),       D = ½ log|H| − ½ log|G|     (``collocation.laplace``)

H, the curvature of J by the trajectories, moves with θ, so that leaving D out moves the estimate by  C ∇D,  C its
covariance: the first Newton step from one criterion to the other, backwards. Of the stirred tank's parameters it
predicts the way to a tenth. To take it off, up to ten such steps are taken, each with slope and curvature of its own
place, as far as they lower −log L. Reference for corrections by such steps: D. Firth, Biometrika 80 (1993) 27.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grisaille.estimation.unknowns import Unknown

Look = Callable[[np.ndarray], tuple[float, np.ndarray] | None]
"""θ → −log L by Laplace's method and Newton's step towards its minimum; None where they cannot be had."""
NOTICED, BELIEVED = 0.25, 4.0
"""Standard errors from which on it is told, and up to which steps are thought to take it off."""
STEPS, ENOUGH = 10, 0.03
"""Steps to take it off, and standard errors below which another is not needed."""
LENGTHS = (1.0, 0.5, 0.25, 0.125)
"""Of a step, until it lowers −log L."""


def lean(covariance: np.ndarray, determinant_slope: np.ndarray) -> np.ndarray:
    """How far each estimate is from where the marginal likelihood has its maximum."""
    return np.asarray(covariance @ determinant_slope)


def without_lean(
    bounds: tuple[np.ndarray, np.ndarray], theta: np.ndarray, covariance: np.ndarray, look: Look
) -> np.ndarray | None:
    """θ moved towards the least −log L inside its bounds, by steps each of which lowers it; None where none does."""
    errors, here = np.sqrt(np.clip(np.diag(covariance), 0.0, None)), look(theta)
    moved_once = False
    for _ in range(STEPS):
        found = None if here is None else _lower(bounds, theta, here, look)
        if found is None:
            break
        size = float(np.abs(_shares(found[0] - theta, errors)).max(initial=0.0))
        (theta, here), moved_once = found, True
        if size < ENOUGH:
            break
    return theta if moved_once else None


def _lower(
    bounds: tuple[np.ndarray, np.ndarray], theta: np.ndarray, here: tuple[float, np.ndarray], look: Look
) -> tuple[np.ndarray, tuple[float, np.ndarray]] | None:
    """A place along the step where −log L is lower, and what is seen there."""
    value, step = here
    for length in LENGTHS:
        trial = np.clip(theta + length * step, *bounds)
        there = look(trial)
        if there is not None and there[0] < value:
            return trial, there
    return None


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
