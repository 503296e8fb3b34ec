"""Newton's step for levels of noise that are found in turn with the unknowns.

In turn, σ → θ(σ) → σ, levels converge by a constant factor, which is close to one where outputs contradict each other.
The derivative of that map is known where θ(σ) is a minimum: with r_k, J_k the residuals and Jacobian of output k,
g_k = J_kᵀ r_k and H = JᵀJ over the unknowns that are free,

    ∂ log φ_k / ∂ log σ_j = 2 g_kᵀ H⁻¹ g_j / |r_k|² = D_kj,        log σ ← log σ + (I − D)⁻¹ (log φ(σ) − log σ).

It costs no simulation, and changes nothing where levels stay.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.numerics.flat_directions import pseudo_inverse

MAX_CORRECTED_STEP = 1.0
"""Of a step that is corrected, in log σ."""
MAX_EIGENVALUE = 0.98
"""Eigenvalue of D: beyond it levels run away, or hardly converge, and the map itself is followed."""


def newton_levels(
    problem: EstimationProblem, evaluation: Evaluation, found: Mapping[str, float], free: np.ndarray
) -> dict[str, float]:
    """Return the levels to continue with, where those of the evaluation lead to ``found``."""
    names = list(problem.sigma)
    before = np.log([problem.sigma[n] for n in names])
    step = np.log([found[n] for n in names]) - before
    if np.abs(step).max(initial=0.0) > MAX_CORRECTED_STEP or not free.any():
        return dict(found)
    J, r = evaluation.jacobian, evaluation.residuals
    inverse = pseudo_inverse(J.T @ J, free & J.any(axis=0))[0]
    mine = [problem.output_of == problem.outputs.index(n) for n in names]
    slopes = np.array([J[: problem.count][m].T @ r[: problem.count][m] for m in mine])
    squares = np.array([float(np.sum(r[: problem.count][m] ** 2)) for m in mine])
    if not (squares > 0).all():
        return dict(found)
    D = 2 * slopes @ inverse @ slopes.T / squares[:, None]
    if not np.isfinite(D).all() or np.linalg.eigvals(D).real.max() > MAX_EIGENVALUE:
        return dict(found)
    step = np.linalg.solve(np.eye(len(names)) - D, step)
    if np.abs(step).max() > MAX_CORRECTED_STEP:
        return dict(found)
    return {n: float(np.exp(b + s)) for n, b, s in zip(names, before, step, strict=True)}
