"""How far approximate maximum likelihood leans.

Its criterion J(β, θ) is minimised over trajectories where a likelihood integrates over them:

    −log L(θ) ≈ min_β J(β, θ) + D(θ),       D = ½ log|H| − ½ log|G|     (``collocation.laplace``)

H, the curvature of J by the trajectories, moves with θ, so that leaving D out moves the estimate by  C ∇D,  C its
covariance: the first Newton step from one criterion to the other, backwards. Of the stirred tank's parameters it
predicts the way to a tenth. To take it off, −log L is minimised from there on, the intensities staying as they are.
Reference for corrections by such steps: D. Firth, Biometrika 80 (1993) 27.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.trial.unknown import Unknown

NOTICED, MOVED = 0.25, 0.01
"""Standard errors from which on it is told, and from which on it is told to have been taken off."""


def lean(covariance: np.ndarray, determinant_slope: np.ndarray) -> np.ndarray:
    """How far each estimate is from where the marginal likelihood has its maximum, to first order."""
    return np.asarray(covariance @ determinant_slope)


def describe_lean(
    unknowns: Sequence[Unknown], leaning: np.ndarray, covariance: np.ndarray, taken_off: bool
) -> list[str]:
    """One sentence, where some estimate leans noticeably; ``covariance`` of the estimates that are told beside it."""
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((errors > 0) & np.isfinite(errors), leaning / errors, 0.0)
    told = [k for k in np.argsort(-np.abs(share)) if abs(share[k]) > (MOVED if taken_off else NOTICED)]
    if not told:
        return []
    much = ", ".join(f"{unknowns[k].name} by {share[k]:+.2g}" for k in told).replace("-", "−")
    if taken_off:
        return [f"bias: the criterion leans, {much} standard errors; this was taken off."]
    return [
        f"bias: the criterion leans, {much} standard errors to first order; criterion='laplace' (the "
        f"default) does not, debias=True takes it off."
    ]
