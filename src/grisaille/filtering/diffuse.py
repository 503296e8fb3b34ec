"""States under a flat prior on the start: means and covariances once the data determine them.

Given δ the filter of x₀ + X₀ δ is linear, x(δ) = a + A δ, and the data up to a sample say δ ~ N(δ̂, M⁻¹):

    M = Σ EᵀS⁻¹E,  s = Σ EᵀS⁻¹e,  δ̂ = −M⁻¹ s        e(δ) = e + E δ
    x = a + A δ̂        P = P(δ) + A M⁻¹ Aᵀ

a comes from a pass over the data, each column of A from one over zeros without inputs; smoothed moments alike, with M
and s of all samples. Before M is nonsingular variances are infinite. Reference: P. de Jong, Ann. Statist. 19 (1991)
1073.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.kalman import DiscreteModel, States, run_filter
from grisaille.filtering.smoother import smooth

SINGULAR = 1e-13


def diffuse_states(model: DiscreteModel) -> tuple[States, tuple[Floats, Floats]]:
    """Filtered moments at cell boundaries and smoothed ones; infinite where the data do not yet tell."""
    known = replace(model, X0=np.zeros((model.n, 0)))
    base, innovations = _pass(known)
    still = replace(known, y=np.where(np.isfinite(model.y), 0.0, np.nan), c=0 * model.c, d=0 * model.d)
    columns = [_pass(replace(still, x0=_only(model, k))) for k in range(model.X0.shape[1])]
    M, s = _sums(model, base, innovations, [e for _, e in columns])
    A_pred, A_filt = (np.stack([getattr(c, name) for c, _ in columns], axis=-1) for name in ("x_pred", "x_filt"))
    x_pred, P_pred = _combine(base.x_pred, base.P_pred, A_pred, M[:-1], s[:-1])
    x_filt, P_filt = _combine(base.x_filt, base.P_filt, A_filt, M[1:], s[1:])
    x, P = smooth(known, base)
    A = np.stack([smooth(replace(still, x0=_only(model, k)), c)[0] for k, (c, _) in enumerate(columns)], axis=-1)
    whole = np.broadcast_to(M[-1], (len(x), *M[-1].shape)), np.broadcast_to(s[-1], (len(x), len(s[-1])))
    return States(x_pred, P_pred, x_filt, P_filt), _combine(x, P, A, *whole)


def _pass(model: DiscreteModel) -> tuple[States, Floats]:
    kept: list[States] = []
    sums = run_filter(model, states=kept)
    if sums.failed >= 0:
        raise EstimationError(f"The filter fails at sample {sums.failed}: its innovations have no positive variance.")
    return kept[0], sums.innovations


def _only(model: DiscreteModel, column: int) -> Floats:
    x0 = np.zeros_like(model.x0)
    x0[0] = model.X0[:, column]
    return x0


def _sums(model: DiscreteModel, states: States, e: Floats, E: list[Floats]) -> tuple[Floats, Floats]:
    """M and s before every cell boundary and after the last, (K + 2, …)."""
    free = len(E)
    M, s = [np.zeros((free, free))], [np.zeros(free)]
    for k, sample in enumerate(model.sample_at.tolist()):
        seen = np.flatnonzero(np.isfinite(model.y[sample])) if sample >= 0 else np.zeros(0, dtype=int)
        H = model.H[model.H_of[sample], 0][seen]
        S = H @ states.P_pred[k] @ H.T + model.R[model.R_of[sample], 0][np.ix_(seen, seen)]
        columns = np.stack([column[sample, seen] for column in E], axis=-1)
        weighed = np.linalg.solve(S, columns) if len(seen) else columns
        M.append(M[-1] + columns.T @ weighed)
        s.append(s[-1] + weighed.T @ e[sample, seen])
    return np.array(M), np.array(s)


def _combine(x: Floats, P: Floats, A: Floats, M: Floats, s: Floats) -> tuple[Floats, Floats]:
    mean, covariance = np.full_like(x, np.nan), np.full_like(P, np.inf)
    for k in range(len(x)):
        size = np.sqrt(np.diag(M[k]))
        if not size.all():
            continue
        scaled = M[k] / np.outer(size, size)
        if np.linalg.eigvalsh(scaled)[0] < SINGULAR:
            continue
        inverse = np.linalg.inv(scaled) / np.outer(size, size)
        mean[k], covariance[k] = x[k] - A[k] @ inverse @ s[k], P[k] + A[k] @ inverse @ A[k].T
    return mean, covariance
