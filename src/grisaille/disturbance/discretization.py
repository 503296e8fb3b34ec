"""Exact discretisation of a linear process driven by white noise, for any step.

::

    dx = A x dt + B dv,  E dv dvᵀ = I dt        x(t + h) = F x(t) + q,  q ~ N(0, Q)
    F = e^{Ah}        Q = ∫₀ʰ e^{As} W e^{Aᵀs} ds,  W = B Bᵀ

At h/2ˢ, where ‖A h/2ˢ‖ ≤ ½, both are their Taylor series (Q in powers of the operator X ↦ AX + XAᵀ); then s doublings,

    Q ← Q + F Q Fᵀ        E ← 2E + E²,  E = F − I.

E keeps its relative accuracy however small the first step is, so slow modes beside fast ones lose nothing; F itself is
exact to rounding of I. The same lines work on numbers and on CasADi ``SX``, where s must be given (frozen) and
derivatives are exact. Reference: C. F. Van Loan, IEEE Trans. Autom. Control 23 (1978) 395, whose block exponential this
replaces: it overflows for stiff A.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import DataError, EstimationError

Floats = NDArray[np.float64]

TAYLOR_DEGREE = 16
"""Of the Taylor series, plus 2n: in a chain of n filters the covariance of the last begins with power 2n − 1 of the
step, and each entry must have its own sixteen digits for the factor of Q to have any."""

EXTRA_DOUBLINGS = 2
"""Doublings added when they are frozen: ‖A‖ may grow fourfold before the series loses accuracy."""

STEP_ROUNDING = 8 * np.finfo(float).eps
"""Steps are the same when they differ by less than this part of the largest time."""


def discretize(A: ArrayLike, W: ArrayLike, h: ArrayLike) -> tuple[Floats, Floats]:
    """Return F and Q of one step h, or of an array of steps (then with one more leading dimension).

    A, W : (n, n); W = B Bᵀ, symmetric and positive semidefinite (not checked)
    """
    a, w, steps = np.asarray(A, dtype=float), np.asarray(W, dtype=float), np.asarray(h, dtype=float)
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(w))):
        raise DataError("A disturbance's filter has coefficients that are not finite at these parameter values.")
    if not np.all((steps >= 0) & np.isfinite(steps)):
        raise DataError(f"A disturbance can be carried forward by finite steps from zero up, not by {np.min(steps):g}.")
    s = doublings(a, float(np.max(steps, initial=0.0)))
    F, Q = _scaled_and_doubled(a, w, steps[..., None, None], s, np.eye(len(a)))
    return F, (Q + np.swapaxes(Q, -1, -2)) / 2


def discretize_symbolic(A: ca.SX, W: ca.SX, h: ca.SX | float, doublings: int) -> tuple[ca.SX, ca.SX]:
    """Return F and Q as formulas, with a frozen number of doublings (see :func:`frozen_doublings`)."""
    F, Q = _scaled_and_doubled(ca.SX(A), ca.SX(W), h, doublings, ca.SX.eye(ca.SX(A).shape[0]))
    return F, Q


def doublings(A: ArrayLike, h: float) -> int:
    """Return the smallest s with ‖A h/2ˢ‖ ≤ ½ in balanced coordinates."""
    size = balanced_norm(A) * h
    return max(0, int(np.ceil(np.log2(2 * size)))) if size > 0 else 0


def frozen_doublings(A: ArrayLike, h: float) -> int:
    """Return the number of doublings to keep while parameters move: right until ‖A‖ has grown fourfold."""
    return doublings(A, h) + EXTRA_DOUBLINGS


def balanced_norm(A: ArrayLike) -> float:
    """Return ‖D⁻¹AD‖₁ with the diagonal D that balances rows and columns: units of the states do not matter."""
    from scipy.linalg.lapack import dgebal

    a = np.asarray(A, dtype=float)
    if not a.size:
        return 0.0
    if not np.isfinite(a).all():
        raise EstimationError(
            "The model's slope in its states is infinite or undefined at these values: a division by zero, or a root "
            "or logarithm outside its domain. Give bounds= that keep the parameters inside it."
        )
    return float(np.abs(dgebal(a, scale=1, permute=0)[0]).sum(axis=0).max())


def distinct_steps(times: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Return the different steps of a grid, in order of appearance, and which of them each cell has.

    Steps that differ by rounding only are one; the first seen stands for all.
    """
    grid = np.asarray(times, dtype=float)
    steps = np.diff(grid)
    if grid.ndim != 1 or not np.all(np.isfinite(grid)) or not np.all(steps > 0):
        raise DataError("The grid of a disturbance must be a list of finite, increasing times.")
    order = np.argsort(steps, kind="stable")
    rounding = STEP_ROUNDING * np.max(np.abs(grid), initial=0.0)
    group = np.cumsum(np.diff(steps[order], prepend=steps[order[:1]]) > rounding)
    cell_group = np.empty(steps.size, dtype=np.int64)
    cell_group[order] = group
    _, first, which = np.unique(cell_group, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return steps[np.sort(first)], rank[which]


def _scaled_and_doubled(
    A: np.ndarray | ca.SX, W: np.ndarray | ca.SX, h: np.ndarray | ca.SX, s: int, identity: np.ndarray | ca.SX
) -> tuple[ca.SX, ca.SX]:
    small = h * 2.0**-s
    E, Q = _taylor(A, W, small)
    for _ in range(s):
        F = identity + E
        Q = Q + F @ Q @ _transposed(F)
        E = 2 * E + E @ E
    return identity + E, Q


def _taylor(A: np.ndarray | ca.SX, W: np.ndarray | ca.SX, h: np.ndarray | ca.SX) -> tuple[ca.SX, ca.SX]:
    power, operated = A * h, W * h
    E, Q = power, operated
    for k in range(2, TAYLOR_DEGREE + 2 * A.shape[0] + 1):
        power = A @ power * (h / k)
        moved = A @ operated
        operated = (moved + _transposed(moved)) * (h / k)
        E, Q = E + power, Q + operated
    return E, Q


def _transposed(X: np.ndarray | ca.SX) -> np.ndarray | ca.SX:
    return X.T if isinstance(X, ca.SX) else np.swapaxes(X, -1, -2)
