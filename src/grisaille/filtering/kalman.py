"""The Kalman filter with missing data, its log-likelihood, and exact derivatives of both, run by ``kalman.c``.

::

    predict   x ← F x + c        P ← F P Fᵀ + Q
    update    e = y − H x − d    S = H P Hᵀ + R    K = P Hᵀ S⁻¹    x ← x + K e    P ← (I − KH) P (I − KH)ᵀ + K R Kᵀ
    log L = −½ Σ_k ( ρ(eᵀS⁻¹e) + log det S + n_y log 2π )

Only S is factorised, so singular Q, P and noise-free states are no special cases and nothing has an undefined
derivative there. Since K minimises P, its own variation drops out of dP:

    dP⁺ = J dP Jᵀ + K dR Kᵀ − J P dHᵀ Kᵀ − (J P dHᵀ Kᵀ)ᵀ,  J = I − KH,        da = S⁻¹ (de − dS a),  a = S⁻¹ e.

Rows of y that are NaN are left out of e, H and R. ρ(v) = v, or Huber's c (2√v − c) beyond v = c², or the smooth
2c² (√(1 + v/c²) − 1) for all v.

A diffuse start has a flat prior on x₀ + X₀ δ: e becomes (e, E) with one column per entry of δ, and
log L = ∫ p(y | δ) dδ = … − ½ log det M + ½ sᵀM⁻¹s + ½ n_δ log 2π,  M = Σ EᵀS⁻¹E,  s = Σ EᵀS⁻¹e.

References: P. de Jong, Ann. Statist. 19 (1991) 1073 (diffuse); N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica
40 (2004) 225, eqs. (9), (42), (44)–(52).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.duals import Floats

Whole = NDArray[np.int64]
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class DiscreteModel:
    """Matrices as duals, (count, 1 + ns, rows, columns), and which of them holds where; K cells, N samples."""

    F: Floats
    F_of: Whole
    """(K,) which F carries the state over a cell."""
    c: Floats
    """(K, 1 + ns, n)"""
    Q: Floats
    Q_of: Whole
    H: Floats
    H_of: Whole
    """(N,)"""
    d: Floats
    """(N, 1 + ns, ny)"""
    R: Floats
    R_of: Whole
    y: Floats
    """(N, ny), NaN where not measured."""
    sample_at: Whole
    """(K + 1,) the sample at each cell boundary, −1 for none."""
    x0: Floats
    """(1 + ns, n) before the first sample."""
    P0: Floats
    """(1 + ns, n, n)"""
    X0: Floats
    """(n, nδ) directions of a flat prior."""

    @property
    def ns(self) -> int:
        return len(self.x0) - 1

    @property
    def n(self) -> int:
        return int(self.x0.shape[1])


@dataclass(frozen=True, eq=False)
class LikelihoodSums:
    """What a pass over the data adds up; ``likelihood_of_sums`` makes the likelihood of it."""

    count: int
    """Scalar measurements that entered."""
    base: Floats
    """(1 + ns,) Σ log det S (+ Σ ρ without a flat prior)"""
    G: Floats
    """(1 + ns, 1 + nδ, 1 + nδ) Σ (e, E)ᵀS⁻¹(e, E)"""
    information: Floats
    """(ns, ns)"""
    cross: Floats
    """(ns, 1 + nδ) Σ deᵀS⁻¹(e, E)"""
    innovations: Floats
    """(N, ny)"""
    variances: Floats
    """(N, ny) diagonal of S."""
    slopes: Floats
    """(N, ns, ny) derivatives of the innovations."""
    failed: int = -1
    """The sample whose S is not positive definite."""


@dataclass(frozen=True, eq=False)
class FilterMoments:
    """Means (K + 1, n) and covariances (K + 1, n, n) at every cell boundary."""

    x_pred: Floats
    P_pred: Floats
    x_filt: Floats
    P_filt: Floats


@dataclass(frozen=True, eq=False)
class Likelihood:
    """log L, constants included, its gradient in the directions, and the expected information."""

    value: float
    gradient: Floats
    information: Floats
    innovations: Floats
    variances: Floats
    slopes: Floats
    count: int
    failed: int = -1
    """The sample where S is not positive definite; the number of samples where the data leave a flat prior flat."""
    covariances: Floats | None = None
    """(N, ny, ny) S itself, where the filter has no derivatives: differences make the information of it."""

    @classmethod
    def of(cls, innovations: Floats, covariances: Floats, value: float | None = None) -> Likelihood:
        """Return the likelihood of a filter without derivatives.

        innovations : (N, ny), NaN where nothing was measured
        covariances : (N, ny, ny), S of each sample
        value : log L; that of normal innovations where it is not given
        """
        found, count, failed = 0.0, 0, -1
        for sample, (e, S) in enumerate(zip(innovations, covariances, strict=True)):
            seen = np.flatnonzero(~np.isnan(e))
            size = S[np.ix_(seen, seen)]
            try:
                root = np.linalg.cholesky(size)
            except np.linalg.LinAlgError:
                failed = sample
                break
            white = np.linalg.solve(root, e[seen])
            found -= 0.5 * float(white @ white) + float(np.log(np.diag(root)).sum()) + 0.5 * len(seen) * LOG_2PI
            count += len(seen)
        found = found if value is None else value
        failed = 0 if failed < 0 and not np.isfinite(found) else failed
        return cls(
            found if failed < 0 else -np.inf, np.zeros(0), np.zeros((0, 0)), innovations,
            np.einsum("kii->ki", covariances), np.zeros((len(innovations), 0, innovations.shape[1])), count, failed,
            covariances,
        )  # fmt: skip


def likelihood_of_sums(sums: LikelihoodSums) -> Likelihood:
    """Return the likelihood from its sums."""
    base, information, free = sums.base.copy(), sums.information, sums.G.shape[-1] - 1
    if free and sums.failed < 0:
        M, s, v = sums.G[:, 1:, 1:], sums.G[:, 1:, 0], sums.G[:, 0, 0]
        sign, log_det = np.linalg.slogdet(M[0])
        if sign <= 0 or not np.isfinite(log_det) or np.linalg.cond(M[0]) > 1e15:
            return _failed(sums, len(sums.innovations))
        delta = np.linalg.solve(M[0], s[0])
        inverse = np.linalg.inv(M[0])
        base += v
        base[0] += log_det - s[0] @ delta
        base[1:] += np.einsum("ij,aji->a", inverse, M[1:]) - 2 * s[1:] @ delta
        base[1:] += np.einsum("i,aij,j->a", delta, M[1:], delta)
        information = information - sums.cross[:, 1:] @ inverse @ sums.cross[:, 1:].T
    if sums.failed >= 0 or not np.isfinite(base).all():
        return _failed(sums, max(sums.failed, 0))
    value = -0.5 * (base[0] + (sums.count - free) * LOG_2PI)
    return _likelihood(sums, float(value), -0.5 * base[1:], information)


def with_centred_start(model: DiscreteModel, sums: LikelihoodSums) -> DiscreteModel:
    """Return the same with x₀ moved along X₀ to its best value for the data: log L stays, innovations are those of the
    best δ.
    """
    M, s = sums.G[0, 1:, 1:], sums.G[0, 1:, 0]
    x0 = model.x0.copy()
    x0[0] -= model.X0 @ np.linalg.lstsq(M, s, rcond=1e-14)[0]
    return replace(model, x0=x0)


def _failed(sums: LikelihoodSums, sample: int) -> Likelihood:
    return _likelihood(sums, -np.inf, np.full(len(sums.base) - 1, np.nan), sums.information, sample)


def _likelihood(
    sums: LikelihoodSums, value: float, gradient: Floats, information: Floats, failed: int = -1
) -> Likelihood:
    return Likelihood(
        value, gradient, information, sums.innovations, sums.variances, sums.slopes, sums.count, failed
    )  # fmt: skip
