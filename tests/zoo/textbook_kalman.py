"""Kalman filtering as it stands in textbooks, written apart from the package: the judge of its filters."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm


def van_loan(A, W, h):
    """Transition and noise covariance of one step."""
    n = len(A)
    block = expm(np.block([[-A, W], [np.zeros((n, n)), A.T]]) * h)
    F = block[n:, n:].T
    return F, F @ block[:n, n:]


def held(A, B, h):
    """∫ e^{As} ds B: what a constant input adds."""
    n, m = B.shape
    return expm(np.block([[A, B], [np.zeros((m, n + m))]]) * h)[:n, n:]


def ramped(A, B, h):
    """What an input that rises from zero to one over the step adds."""
    n, m = B.shape
    big = np.zeros((n + 2 * m, n + 2 * m))
    big[:n, :n], big[:n, n : n + m], big[n : n + m, n + m :] = A, B, np.eye(m)
    return expm(big * h)[:n, n + m :] / h


def kalman(F, c, Q, H, d, R, y, x, P):
    """Log-likelihood; the prior (x, P) is that of the first sample; lists over samples, NaN where not measured."""
    total = 0.0
    filtered = []
    for k in range(len(y)):
        if k:
            x, P = F[k - 1] @ x + c[k - 1], F[k - 1] @ P @ F[k - 1].T + Q[k - 1]
        seen = np.isfinite(y[k])
        if seen.any():
            Hk, Rk = H[seen], R[np.ix_(seen, seen)]
            S = Hk @ P @ Hk.T + Rk
            e = y[k][seen] - Hk @ x - d[seen]
            gain = P @ Hk.T @ np.linalg.inv(S)
            total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1] + len(e) * np.log(2 * np.pi))
            x, P = x + gain @ e, P - gain @ Hk @ P
        filtered.append((x, P))
    return total, filtered


def dense(F, c, Q, H, d, R, y, x, P):
    """The same log-likelihood from the joint normal distribution of all measurements, and smoothed states."""
    N, n = len(y), len(x)
    mean, blocks = [x], [[None] * N for _ in range(N)]
    blocks[0][0] = P
    for k in range(1, N):
        mean.append(F[k - 1] @ mean[-1] + c[k - 1])
        for j in range(k):
            blocks[k][j] = F[k - 1] @ blocks[k - 1][j]
            blocks[j][k] = blocks[k][j].T
        blocks[k][k] = F[k - 1] @ blocks[k - 1][k - 1] @ F[k - 1].T + Q[k - 1]
    X, C = np.concatenate(mean), np.block(blocks)
    tall = np.kron(np.eye(N), H)
    seen = np.isfinite(y).ravel()
    V = (tall @ C @ tall.T + np.kron(np.eye(N), R))[np.ix_(seen, seen)]
    e = (y.ravel() - tall @ X - np.tile(d, N))[seen]
    total = -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(V)[1] + len(e) * np.log(2 * np.pi))
    gain = C @ tall.T[:, seen] @ np.linalg.inv(V)
    return (
        total,
        (X + gain @ e).reshape(N, n),
        [(C - gain @ tall[seen] @ C)[k * n : k * n + n, k * n : k * n + n] for k in range(N)],
    )
