"""States under a flat prior on the start: exact means and covariances, and what the data leave open.

Given δ the filter of x₀ + X₀ δ is linear, x(δ) = a + A δ, and the data up to a sample say M δ = −s:

    M = Σ EᵀS⁻¹E,  s = Σ EᵀS⁻¹e        e(δ) = e + E δ
    x = a − A M⁺ s        P = P(δ) + A M⁺ Aᵀ        D = A N,  N: directions that M does not see

a comes from a pass over the data, each column of A from one over zeros without inputs; smoothed moments alike, with M
and s of all samples, predictions with A carried on and M and s of the samples up to their origin. A quantity whose
slope has a part along D has an infinite variance and no mean; all others are those of a normal prior as its variance
grows without bound. Reference: P. de Jong, Ann. Statist. 19 (1991) 1073.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.compiled_sums import filter_states
from grisaille.filtering.kalman import DiscreteModel, FilterMoments, Whole
from grisaille.filtering.smoother import smooth

SUM_ROUNDING = 1e-10
"""Of the terms of a sum: what is left of it by rounding alone."""
SINGULAR_EIGENVALUE = 1e-11
"""Of the largest eigenvalue of M, in units of its diagonal: what the data do not see."""


@dataclass(frozen=True, eq=False)
class DiffuseMoments:
    """Moments and what is open: means (…, n), covariances (…, n, n) and directions D (…, n, nδ), zero where closed."""

    x: Floats
    P: Floats
    D: Floats


@dataclass(frozen=True, eq=False)
class DiffusePass:
    """A pass over the data for given δ, with the columns of A and the information of the data on δ."""

    model: DiscreteModel
    base: FilterMoments
    A_pred: Floats
    """(K + 1, n, nδ)"""
    A_filt: Floats
    M: Floats
    """(K + 2, nδ, nδ) before every cell boundary and after the last."""
    s: Floats
    still: DiscreteModel
    columns: tuple[FilterMoments, ...]

    @classmethod
    def of(cls, model: DiscreteModel) -> DiffusePass:
        known = replace(model, X0=np.zeros((model.n, 0)))
        base, innovations = _pass(known)
        still = replace(known, y=np.where(np.isfinite(model.y), 0.0, np.nan), c=0 * model.c, d=0 * model.d)
        passes = [_pass(replace(still, x0=_only(model, k))) for k in range(model.X0.shape[1])]
        A_pred, A_filt = (np.stack([getattr(c, n) for c, _ in passes], axis=-1) for n in ("x_pred", "x_filt"))
        M, s = _sums(model, base, innovations, A_pred, [e for _, e in passes])
        return cls(known, base, A_pred, A_filt, M, s, still, tuple(c for c, _ in passes))

    @property
    def filtered(self) -> DiffuseMoments:
        return combine_diffuse(self.base.x_filt, self.base.P_filt, self.A_filt, self.M[1:], self.s[1:])

    @property
    def smoothed(self) -> DiffuseMoments:
        x, P = smooth(self.model, self.base)
        A = np.stack([smooth(self.still, c)[0] for c in self.columns], axis=-1)
        M, s = self.M[-1], self.s[-1]
        return combine_diffuse(x, P, A, np.broadcast_to(M, (len(x), *M.shape)), np.broadcast_to(s, (len(x), len(s))))

    def columns_after(self, boundaries: Whole) -> Floats:
        """Return (count, 1, n, 1 + nδ) a and A after the data of cell boundaries."""
        both = np.concatenate([self.base.x_filt[..., None], self.A_filt], axis=-1)
        return np.asarray(both[boundaries][:, None])


def combine_diffuse(x: Floats, P: Floats, A: Floats, M: Floats, s: Floats) -> DiffuseMoments:
    """Return moments for all δ of those for a given one, instant by instant."""
    mean, covariance, left = x.copy(), P.copy(), np.zeros_like(A)
    for k in range(len(x)):
        size = np.sqrt(np.clip(np.diag(M[k]), 0.0, None))
        scale = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(M[k] / np.outer(scale, scale))
        seen = values > SINGULAR_EIGENVALUE * max(float(values.max(initial=0.0)), 1e-300)
        root = vectors[:, seen] / np.sqrt(values[seen]) / scale[:, None]
        moved = A[k] @ root
        mean[k] -= moved @ (root.T @ s[k])
        covariance[k] += moved @ moved.T
        # δ along which M vanishes: scaled back, since M is seen in units of its diagonal
        open_ones = vectors[:, ~seen] / scale[:, None]
        along, most = A[k] @ open_ones, np.abs(A[k]) @ np.abs(open_ones)
        left[k][:, : open_ones.shape[1]] = np.where(np.abs(along) > SUM_ROUNDING * most, along, 0.0)
    return DiffuseMoments(mean, covariance, left)


def _pass(model: DiscreteModel) -> tuple[FilterMoments, Floats]:
    sums, states = filter_states(model)
    if sums.failed >= 0:
        raise EstimationError(f"The filter fails at sample {sums.failed}: its innovations have no positive variance.")
    return states, sums.innovations


def _only(model: DiscreteModel, column: int) -> Floats:
    x0 = np.zeros_like(model.x0)
    x0[0] = model.X0[:, column]
    return x0


def _sums(model: DiscreteModel, states: FilterMoments, e: Floats, A: Floats, E: list[Floats]) -> tuple[Floats, Floats]:
    """Return M and s before every cell boundary and after the last, (K + 2, …)."""
    free = len(E)
    M, s = [np.zeros((free, free))], [np.zeros(free)]
    for k, sample in enumerate(model.sample_at.tolist()):
        seen = np.flatnonzero(np.isfinite(model.y[sample])) if sample >= 0 else np.zeros(0, dtype=int)
        H = model.H[model.H_of[sample], 0][seen]
        S = H @ states.P_pred[k] @ H.T + model.R[model.R_of[sample], 0][np.ix_(seen, seen)]
        columns = np.stack([column[sample, seen] for column in E], axis=-1)
        most = np.abs(H) @ np.abs(A[k])
        columns = np.where(np.abs(columns) > SUM_ROUNDING * most, columns, 0.0)
        weighed = np.linalg.solve(S, columns) if len(seen) else columns
        M.append(M[-1] + columns.T @ weighed)
        s.append(s[-1] + weighed.T @ e[sample, seen])
    return np.array(M), np.array(s)
