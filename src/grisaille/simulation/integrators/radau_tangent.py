"""Sensitivities of one Radau IIA step: the derivative of the step that was taken; the twin of gr_radau_tangent.h.

::

    M V_i = h Σ_j a_ij (J_j (S + V_j) + ∂F/∂p_j dp),   S(t + h) = S + V_3

Arrays hold one entry per direction first: ``S (ns, n)``, ``V (ns, 3, n)``.
"""

from __future__ import annotations

import math

import numpy as np

from grisaille.compilation.task import Status
from grisaille.simulation.integrators import steps
from grisaille.simulation.integrators.radau import TI, Polynomial, Step, T, rms
from grisaille.simulation.integrators.steps import Floats, StepFailure


def stage_sensitivities(
    step: Step, S: Floats, polynomial: Polynomial | None, t: float, h: float, tolerance: float, expected: int
) -> tuple[Floats, Floats]:
    """``V`` and the derivative of F at the end of the step.

    Newton's matrices serve where about ``expected`` iterations are cheaper than one LU of the whole system.
    """
    ns, n = S.shape
    step.linearise_stages(t, h)
    B = np.array([step.task.dp @ step.kernel.FP(*step.at_stage(j, t, h)).T for j in range(3)]).transpose(1, 0, 2)
    direct = 18 * (n + ns) < 16 * expected * ns
    V = np.zeros((ns, 3, n))
    if polynomial is not None and not direct:
        V = (polynomial.S - S)[:, None, :] + np.einsum("kj,djn->dkn", polynomial.stages(t, h), polynomial.V)
    if direct or not all(_iterate(step, S[d], V[d], B[d], h, tolerance) for d in range(ns)):
        V = _solve(step, S, B, h)
    return V, (S + V[:, 2]) @ step.stage_jacobians[2].T + B[:, 2]


def _values(step: Step, S: Floats, V: Floats, B: Floats) -> Floats:
    return np.array([J @ (S + v) + b for J, v, b in zip(step.stage_jacobians, V, B, strict=True)])


def _iterate(step: Step, S: Floats, V: Floats, B: Floats, h: float, tolerance: float) -> bool:
    """One direction with the matrices of Newton's iteration, in place; false when it does not converge."""
    old, start, W = math.inf, rms(S, step.scale), TI @ V
    for m in range(15):
        d = step.transformed_solve(h, W, _values(step, S, V, B))
        size, whole = rms(d, step.scale), start + rms(V, step.scale)
        if not math.isfinite(size) or (m > 0 and size > 0.3 * old and size > 1e-13 * whole):
            return False
        W = W + d
        V[:] = T @ W
        if size <= tolerance * whole:
            return True
        old = size
    return False


def _solve(step: Step, S: Floats, B: Floats, h: float) -> Floats:
    """All directions with the exact matrix."""
    try:
        factors = step.factor_whole(h)
    except StepFailure:
        raise StepFailure(Status.SINGULAR) from None
    right = np.array([_values(step, s, np.zeros((3, s.size)), b).ravel() for s, b in zip(S, B, strict=True)])
    return steps.lu_solve(factors, right.T).T.reshape(B.shape)
