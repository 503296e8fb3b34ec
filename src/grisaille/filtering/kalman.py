"""The Kalman filter with missing data, its log-likelihood, and exact derivatives of both.

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

from grisaille.disturbance.duals import Floats, times, transpose

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
class Sums:
    """What a pass over the data adds up; ``finish`` makes the likelihood of it."""

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
class States:
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


def finish(sums: Sums) -> Likelihood:
    """The likelihood from its sums."""
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


def centred(model: DiscreteModel, sums: Sums) -> DiscreteModel:
    """The same with x₀ moved along X₀ to where the data want it: log L stays, innovations are those of the best δ."""
    M, s = sums.G[0, 1:, 1:], sums.G[0, 1:, 0]
    x0 = model.x0.copy()
    x0[0] -= model.X0 @ np.linalg.lstsq(M, s, rcond=1e-14)[0]
    return replace(model, x0=x0)


def _failed(sums: Sums, sample: int) -> Likelihood:
    return _likelihood(sums, -np.inf, np.full(len(sums.base) - 1, np.nan), sums.information, sample)


def _likelihood(sums: Sums, value: float, gradient: Floats, information: Floats, failed: int = -1) -> Likelihood:
    return Likelihood(
        value, gradient, information, sums.innovations, sums.variances, sums.slopes, sums.count, failed
    )  # fmt: skip


def run_filter(
    model: DiscreteModel, *, robust: float = np.inf, condition: bool = False, states: list[States] | None = None,
    moments: list[tuple[Floats, Floats]] | None = None,
) -> Sums:  # fmt: skip
    """One pass over the data, in NumPy.

    robust : Huber's c, in standard deviations; −c for the smooth loss
    condition : leave the first sample out of the likelihood
    states : a list that receives the means and covariances (value only; not with a flat prior)
    moments : a list that receives both with derivatives, at every cell boundary after its update
    """
    ns, n, free = model.ns, model.n, model.X0.shape[1]
    total = Totals(model.ns, 1 + free, model.y.shape, robust)
    m = np.zeros((1 + ns, n, 1 + free))
    m[:, :, 0] = model.x0
    m[0, :, 1:] = model.X0
    P = model.P0.copy()
    kept: list[tuple[Floats, Floats, Floats, Floats]] = []
    waiting = condition
    for k, sample in enumerate(model.sample_at.tolist()):
        if k:
            F = model.F[model.F_of[k - 1]]
            m = times(F, m)
            m[:, :, 0] += model.c[k - 1]
            P = times(times(F, P), transpose(F)) + model.Q[model.Q_of[k - 1]]
        before = (m[0, :, 0].copy(), P[0].copy())
        if sample >= 0:
            seen = np.flatnonzero(np.isfinite(model.y[sample]))
            if len(seen):
                found = _at_sample(model, sample, seen, m, P)
                if found is None:
                    total.failed = sample
                    break
                m, P = total.add(sample, seen, found, counted=not waiting)
                waiting = False
        kept.append((*before, m[0, :, 0].copy(), P[0].copy()))
        if moments is not None:
            moments.append((m, P))
    if states is not None:
        x_pred, P_pred, x_filt, P_filt = (np.array(part) for part in zip(*kept, strict=True))
        states.append(States(x_pred, P_pred, x_filt, P_filt))
    return total.sums()


@dataclass(frozen=True, eq=False)
class Update:
    """A measurement update: moments after it, and what the likelihood needs."""

    m: Floats
    P: Floats
    e: Floats
    S: Floats
    inverse: Floats
    a: Floats
    log_det: float


def _at_sample(model: DiscreteModel, sample: int, seen: Whole, m: Floats, P: Floats) -> Update | None:
    H = model.H[model.H_of[sample]][:, seen]
    R = model.R[model.R_of[sample]][:, seen[:, None], seen]
    e = -times(H, m)
    e[:, :, 0] -= model.d[sample][:, seen]
    e[0, :, 0] += model.y[sample, seen]
    return update(m, P, e, H, R)


def update(m: Floats, P: Floats, e: Floats, H: Floats, R: Floats) -> Update | None:
    """One measurement update of duals; None where S is not positive definite.

    m : (1 + ns, n, columns); e : (1 + ns, seen, columns) innovations, the first column those of the data
    """
    PHt = times(P, transpose(H))
    S = times(H, PHt) + R
    if not (np.isfinite(S).all() and np.isfinite(e).all()):
        return None
    try:
        root = np.linalg.cholesky(S[0])
        inverse = np.linalg.inv(S[0])
    except np.linalg.LinAlgError:
        return None
    a = inverse @ e[0]
    moved = inverse @ (e[1:] - S[1:] @ a)
    m = m.copy()
    m[1:] += PHt[1:] @ a + PHt[0] @ moved
    m[0] += PHt[0] @ a
    K = PHt[0] @ inverse
    J = np.eye(m.shape[1]) - K @ H[0]
    bent = J @ P[0] @ transpose(H[1:]) @ K.T
    after = J @ P @ J.T + K @ R @ K.T
    after[1:] -= bent + transpose(bent)
    log_det = 2 * float(np.log(np.diag(root)).sum())
    return Update(m, (after + transpose(after)) / 2, e, S, inverse, a, log_det)


class Totals:
    """Running sums over samples."""

    def __init__(self, ns: int, columns: int, shape: tuple[int, ...], robust: float) -> None:
        self.robust, self.count, self.failed = robust, 0, -1
        self.base = np.zeros(1 + ns)
        self.G = np.zeros((1 + ns, columns, columns))
        self.information, self.cross = np.zeros((ns, ns)), np.zeros((ns, columns))
        self.innovations, self.variances = np.full(shape, np.nan), np.full(shape, np.nan)
        self.slopes = np.zeros((shape[0], ns, shape[1]))

    def add(self, sample: int, seen: Whole, u: Update, counted: bool) -> tuple[Floats, Floats]:
        self.innovations[sample, seen] = u.e[0, :, 0]
        self.variances[sample, seen] = np.diag(u.S[0])
        self.slopes[sample][:, seen] = u.e[1:, :, 0]
        if counted:
            self.count += len(seen)
            G = transpose(u.e) @ u.a
            G[1:] += transpose(G[1:]) - transpose(u.a[None]) @ u.S[1:] @ u.a
            self.G += G
            whitened = u.inverse @ u.S[1:]
            self.base[0] += u.log_det
            self.base[1:] += np.trace(whitened, axis1=-2, axis2=-1)
            if G.shape[-1] == 1:
                rho, slope = loss(float(G[0, 0, 0]), self.robust)
                self.base[0] += rho
                self.base[1:] += slope * G[1:, 0, 0]
            de = u.e[1:, :, 0]
            self.information += de @ u.inverse @ de.T + 0.5 * np.einsum("aij,bji->ab", whitened, whitened)
            self.cross += de @ u.inverse @ u.e[0]
        return u.m, u.P

    def sums(self) -> Sums:
        return Sums(
            self.count, self.base, self.G, self.information, self.cross, self.innovations, self.variances,
            self.slopes, self.failed,
        )  # fmt: skip


def loss(v: float, c: float) -> tuple[float, float]:
    """ρ(v) and ρ'(v): Huber's of threshold c, or the smooth one of threshold −c where c is negative."""
    if c < 0:
        root = np.sqrt(1 + v / (c * c))
        return float(2 * c * c * (root - 1)), float(1 / root)
    if v <= c * c:
        return v, 1.0
    return float(c * (2 * np.sqrt(v) - c)), float(c / np.sqrt(v))
