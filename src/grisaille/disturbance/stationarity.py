"""The stationary covariance of a linear process: where A P + P Aᵀ + W = 0.

In numbers by the Schur form (Bartels and Stewart), after balancing; as ``SX`` by the Kronecker form

    (I ⊗ A₁ + A₂ ⊗ I) vec P = −vec W,        A₁ P + P A₂ᵀ + W = 0,

block by block, so that it stays small and its derivatives are exact, and in balanced units. It exists when every pole
lies left of the imaginary axis; a process without one is refused, never answered with NaN. Reference: R. H. Bartels,
G. W. Stewart, Commun. ACM 15 (1972) 820.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import ModelError

Floats = NDArray[np.float64]

STABILITY_MARGIN = 1e-12
"""Poles must lie left of the axis by this part of their size: closer ones cannot be told from integrators."""


def stationary_covariance(A: ArrayLike, W: ArrayLike, name: str = "disturbance") -> Floats:
    """Return P with A P + P Aᵀ + W = 0, (n, n); ``ModelError`` when a pole is not stable."""
    from scipy.linalg import solve_continuous_lyapunov

    a, w = np.asarray(A, dtype=float), np.asarray(W, dtype=float)
    if not a.size:
        return np.zeros((0, 0))
    refuse_unstable(a, name)
    d = balancing_units(a)
    P = solve_continuous_lyapunov(a / d[:, None] * d, -w / np.outer(d, d)) * np.outer(d, d)
    return np.asarray((P + P.T) / 2)


def refuse_unstable(A: ArrayLike, name: str) -> None:
    """``ModelError`` that names the worst pole unless every one is stable."""
    poles = np.linalg.eigvals(np.asarray(A, dtype=float))
    unstable = ~(poles.real < -STABILITY_MARGIN * np.maximum(np.abs(poles), np.finfo(float).tiny))
    if unstable.any():
        worst = complex(poles[np.argmax(np.where(unstable, poles.real, -np.inf))])
        raise ModelError(
            f"{name} has no stationary distribution: its filter has a pole at {worst:.4g}, not left of the imaginary "
            'axis. Start it from zero (start="zero"), or keep its damping positive (bounds, or transform="log").'
        )


def balancing_units(A: ArrayLike) -> Floats:
    """Return units d of the states, powers of two, in which rows and columns of D⁻¹AD are of equal size."""
    from scipy.linalg import matrix_balance

    a = np.asarray(A, dtype=float)
    return np.asarray(matrix_balance(a, permute=False, separate=True)[1][0]) if a.size else np.zeros(0)


def cross_covariance_symbolic(A1: ca.SX, A2: ca.SX, W: ca.SX, units1: ArrayLike, units2: ArrayLike) -> ca.SX:
    """Return P with A₁ P + P A₂ᵀ + W = 0 as a formula; the stationary covariance when A₁ and A₂ are the same.

    units1, units2 : of the states of either filter (:func:`balancing_units` at some parameter values)
    Not checked: stability, which only numbers can show (:func:`refuse_unstable`).
    """
    D1, D2 = (ca.diag(ca.DM(np.asarray(u, dtype=float))) for u in (units1, units2))
    inverse1, inverse2 = (ca.diag(1 / ca.DM(np.asarray(u, dtype=float))) for u in (units1, units2))
    n1, n2 = A1.shape[0], A2.shape[0]
    system = ca.kron(ca.SX.eye(n2), inverse1 @ A1 @ D1) + ca.kron(inverse2 @ A2 @ D2, ca.SX.eye(n1))
    balanced = ca.solve(system, -ca.vec(ca.densify(inverse1 @ W @ inverse2)))
    return D1 @ ca.reshape(balanced, n1, n2) @ D2
