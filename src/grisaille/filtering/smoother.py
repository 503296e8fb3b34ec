"""Smoothed states: means and covariances given all data, before and after.

The Rauch–Tung–Striebel smoother in the form of Bryson and Frazier, which inverts innovation covariances only, so that
singular state covariances (constraints, noise-free states) need no care:

    r̃ = −HᵀS⁻¹e + Jᵀ r        Ñ = HᵀS⁻¹H + Jᵀ N J        J = I − KH        at a sample, backwards
    r ← Fᵀ r̃                   N ← Fᵀ Ñ F                                    over a cell
    x_smooth = x_filt − P_filt r        P_smooth = P_filt − P_filt N P_filt

Nonlinear filters have no H that stands for their update, but moments before and after it; for them the form of Rauch,
Tung and Striebel,

    G = P_filt Fᵀ P_pred⁺
    x_smooth = x_filt + G (x_smooth − x_pred)'        P_smooth = P_filt + G (P_smooth − P_pred)' Gᵀ

where ' means at the next instant, F = ∂x_pred'/∂x_filt, and ⁺ is the inverse on the directions that have uncertainty.

References: G. J. Bierman, Automatica 9 (1973) 671; S. Särkkä, Bayesian Filtering and Smoothing (2013), section 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import DiscreteModel, FilterMoments

NO_VARIANCE = 1e-13
"""Eigenvalues of a covariance with unit diagonal that count as zero."""


def smooth(model: DiscreteModel, states: FilterMoments) -> tuple[Floats, Floats]:
    """Return means (K + 1, n) and covariances (K + 1, n, n) at every cell boundary."""
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


def _back_over_sample(
    model: DiscreteModel, states: FilterMoments, k: int, r: Floats, N: Floats
) -> tuple[Floats, Floats]:
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


def smooth_moments(states: FilterMoments, F: Sequence[Floats], tangent: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the same from moments, the transition F of each cell, and projectors at the predicted means.

    On hidden constraints the smoothed moments belong to another point than the predicted ones: what leaves the tangent
    there is no uncertainty, and is cut off by the projector (the identity without constraints).
    """
    x, P = states.x_filt.copy(), states.P_filt.copy()
    for k in range(len(F) - 1, -1, -1):
        gain = states.P_filt[k] @ F[k].T @ pseudo_inverse(states.P_pred[k + 1]) @ tangent[k + 1]
        x[k] += gain @ (x[k + 1] - states.x_pred[k + 1])
        P[k] += gain @ (P[k + 1] - states.P_pred[k + 1]) @ gain.T
        P[k] = (P[k] + P[k].T) / 2
    return x, P


def pseudo_inverse(P: Floats) -> Floats:
    """Return P⁺ over directions with uncertainty, whatever the units of the states."""
    size = np.sqrt(np.maximum(np.diag(P), 0.0))
    there = size > 0
    scale = np.where(there, size, 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(there, there), P / np.outer(scale, scale), 0.0))
    kept = values > NO_VARIANCE * max(float(values.max(initial=0.0)), 1e-300)
    root = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    return np.asarray(root @ root.T)
