"""Smoothed states: means and covariances given all data, before and after.

The Rauch–Tung–Striebel smoother in the form of Bryson and Frazier, which inverts innovation covariances only, so that
singular state covariances (constraints, noise-free states) need no care:

    r̃ = −HᵀS⁻¹e + Jᵀ r        Ñ = HᵀS⁻¹H + Jᵀ N J        J = I − KH        at a sample, backwards
    r ← Fᵀ r̃                   N ← Fᵀ Ñ F                                    over a cell
    x_smooth = x_filt − P_filt r        P_smooth = P_filt − P_filt N P_filt

Reference: G. J. Bierman, Automatica 9 (1973) 671.
"""

from __future__ import annotations

import numpy as np

from grisaille.filtering.duals import Floats
from grisaille.filtering.kalman import DiscreteModel, States


def smooth(model: DiscreteModel, states: States) -> tuple[Floats, Floats]:
    """Means (K + 1, n) and covariances (K + 1, n, n) at every cell boundary."""
    x, P = np.empty_like(states.x_filt), np.empty_like(states.P_filt)
    r, N = np.zeros(model.n), np.zeros((model.n, model.n))
    for k in range(len(model.sample_at) - 1, -1, -1):
        x[k] = states.x_filt[k] - states.P_filt[k] @ r
        P[k] = states.P_filt[k] - states.P_filt[k] @ N @ states.P_filt[k]
        r, N = _back_over_sample(model, states, k, r, N)
        if k:
            F = model.F[model.F_of[k - 1], 0]
            r, N = F.T @ r, F.T @ N @ F
    return x, (P + np.swapaxes(P, -1, -2)) / 2


def _back_over_sample(model: DiscreteModel, states: States, k: int, r: Floats, N: Floats) -> tuple[Floats, Floats]:
    sample = int(model.sample_at[k])
    seen = np.flatnonzero(np.isfinite(model.y[sample])) if sample >= 0 else np.zeros(0, dtype=int)
    if not len(seen):
        return r, N
    H = model.H[model.H_of[sample], 0][seen]
    R = model.R[model.R_of[sample], 0][np.ix_(seen, seen)]
    P = states.P_pred[k]
    inverse = np.linalg.inv(H @ P @ H.T + R)
    e = model.y[sample, seen] - H @ states.x_pred[k] - model.d[sample, 0][seen]
    J = np.eye(model.n) - P @ H.T @ inverse @ H
    return J.T @ r - H.T @ inverse @ e, H.T @ inverse @ H + J.T @ N @ J
