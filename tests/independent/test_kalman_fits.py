"""Kalman likelihoods and fits against filters in NumPy and SciPy that share no code with the package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import grisaille as gr
from grisaille import der

GAUSS = np.polynomial.legendre.leggauss(12)


def discretised(A, B, W, h):
    """e^{Ah}, its integral times B, and the covariance by Gauss–Legendre quadrature and doubling."""
    n = len(A)
    E = expm(h * np.block([[A, B], [np.zeros((B.shape[1], n + B.shape[1]))]]))
    s = int(max(0, np.ceil(np.log2(4 * np.abs(A).sum(axis=0).max() * h))))
    d = h / 2**s
    Q, F = np.zeros((n, n)), expm(A * d)
    for x, w in zip(*GAUSS, strict=True):
        f = expm(A * d * (1 + x) / 2)
        Q += w / 2 * d * f @ W @ f.T
    for _ in range(s):
        Q, F = Q + F @ Q @ F.T, F @ F
    return E[:n, :n], E[:n, n:], Q


def log_likelihood(F, c, Q, C, R, x, P, y):
    """Of a plain filter; c (N − 1, n) is what inputs add between samples."""
    total = 0.0
    for k, seen in enumerate(y):
        if k:
            x, P = F @ x + c[k - 1], F @ P @ F.T + Q
        S, e = C @ P @ C.T + R, seen - C @ x
        total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        K = np.linalg.solve(S, C @ P).T
        x, J = x + K @ e, np.eye(len(x)) - K @ C
        P = J @ P @ J.T + K @ R @ K.T
    return float(total)


def pipe(n, up, down):
    """A chain of n cells, each fed by its neighbours; white noise enters at the first."""

    class Chain(gr.Model):
        up_ = gr.Parameter(up, bounds=(1e-3, 1e6))
        x = gr.Variable(start=1.0, size=n)
        w = gr.Disturbance(gr.spectra.white(), scale=2.0)
        y = gr.Output(x[n // 2], noise=0.1)
        z = gr.Output(x[n - 1], noise=0.1)

        def equations(self):
            x, feed = self.x, self.w
            before = np.concatenate([[feed / self.up_], x[:-1]])
            after = np.concatenate([x[1:], [x[n - 1]]])
            yield der(x) == self.up_ * (before - x) + down * (after - x)

    return Chain()


def pipe_matrices(n, up, down):
    A = np.diag(np.full(n, -up - down)) + np.diag(np.full(n - 1, up), -1) + np.diag(np.full(n - 1, down), 1)
    A[-1, -1] += down
    W, C = np.zeros((n, n)), np.zeros((2, n))
    W[0, 0], C[0, n // 2], C[1, n - 1] = 4.0, 1.0, 1.0
    return A, W, C


def pipe_likelihood(n, up, down, h, y):
    A, W, C = pipe_matrices(n, up, down)
    F, _, Q = discretised(A, np.zeros((n, 1)), W, h)
    return log_likelihood(F, np.zeros((len(y), n)), Q, C, 0.01 * np.eye(2), np.ones(n), Q, y)


@pytest.mark.parametrize(
    ("n", "up", "down"),
    [(75, 1.1, 0.7), (100, 9.0, 0.0), (60, 1e4, 1e4)],
    ids=["pipe of 75 cells", "advection through 100 cells", "stiff ladder"],
)
def test_likelihoods_of_long_chains(n, up, down):
    h, y = 5.0, 0.3 * np.random.default_rng(n).normal(size=(8, 2))
    data = gr.Experiment(h * np.arange(8), outputs={"y": y[:, 0], "z": y[:, 1]})
    found = gr.evaluate(pipe(n, up, down), data, gr.KalmanML(), parameters={"up_": up})
    assert found.log_likelihood == pytest.approx(pipe_likelihood(n, up, down, h, y), abs=1e-9)
    step = 1e-4 * up
    higher, lower = (pipe_likelihood(n, up + s, down, h, y) for s in (step, -step))
    assert found.gradient["up_"] == pytest.approx(-(higher - lower) / (2 * step), rel=1e-4, abs=1e-7)
