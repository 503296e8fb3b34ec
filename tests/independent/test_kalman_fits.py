"""Kalman likelihoods and fits against filters in NumPy and SciPy that share no code with the package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
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


def varying_likelihood(A, b, W, C, R, x, P, times, y):
    """Of a filter whose moments are integrated by a Runge–Kutta method of order eight."""
    n, total = len(x), 0.0

    def rates(t, z):
        moved = A(t) @ z[n:].reshape(n, n)
        return np.concatenate([A(t) @ z[:n] + b(t), (moved + moved.T + W(t)).ravel()])

    for k, seen in enumerate(y):
        if k:
            begin = np.concatenate([x, P.ravel()])
            z = solve_ivp(rates, times[k - 1 : k + 1], begin, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
            x, P = z[:n], z[n:].reshape(n, n)
        S, e = float(C @ P @ C) + R, seen - float(C @ x)
        total -= 0.5 * (e * e / S + np.log(2 * np.pi * S))
        K = P @ C / S
        x, J = x + K * e, np.eye(n) - np.outer(K, C)
        P = J @ P @ J.T + R * np.outer(K, K)
    return total


class Breathing(gr.Model):
    """A time constant and an intensity that vary."""

    k = gr.Parameter(3.0, bounds=(-10.0, 10.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -(1 + k * gr.sin(5 * gr.time)) * x + w * (1 + 0.8 * gr.cos(3 * gr.time))]


class Parametric(gr.Model):
    """A stiffness that follows an input joined by lines."""

    k = gr.Parameter(0.7, bounds=(0.01, 10.0))
    u = gr.Input()
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == v, der(v) == -(2 + k * u) * x - 0.3 * v + w]


class Forced(gr.Model):
    """A forcing and an intensity that a polynomial over an interval does not describe."""

    k = gr.Parameter(0.7, bounds=(0.01, 10.0))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == v + gr.exp(gr.sin(9 * gr.time)), der(v) == -2 * x - k * v + w * (1.5 + gr.sin(7 * gr.time))]


TIMES = 0.5 * np.arange(9)
VALUES = 0.3 * np.random.default_rng(3).normal(size=9)
INPUT = np.cos(1.7 * np.arange(9))
ONE, TWO = np.ones(1), np.array([1.0, 0.0])
REFERENCES = {
    Breathing: lambda k: varying_likelihood(
        lambda t: np.array([[-1 - k * np.sin(5 * t)]]), lambda t: 0 * ONE,
        lambda t: np.array([[0.09 * (1 + 0.8 * np.cos(3 * t)) ** 2]]), ONE, 0.01, ONE, np.eye(1) / 10, TIMES, VALUES,
    ),
    Parametric: lambda k: varying_likelihood(
        lambda t: np.array([[0, 1], [-2 - k * np.interp(t, TIMES, INPUT), -0.3]]), lambda t: 0 * TWO,
        lambda t: np.diag([0, 0.09]), TWO, 0.01, TWO, np.eye(2) / 10, TIMES, VALUES,
    ),
    Forced: lambda k: varying_likelihood(
        lambda t: np.array([[0, 1], [-2, -k]]), lambda t: np.exp(np.sin(9 * t)) * TWO,
        lambda t: np.diag([0, 0.09 * (1.5 + np.sin(7 * t)) ** 2]), TWO, 0.01, TWO, np.eye(2) / 10, TIMES, VALUES,
    ),
}  # fmt: skip


def varying_data(model):
    return gr.Experiment(TIMES, {"u": INPUT} if model is Parametric else {}, {"y": VALUES}, hold="foh")


@pytest.mark.parametrize("model", REFERENCES, ids=lambda m: m.__name__)
def test_likelihoods_of_coefficients_that_vary_between_samples(model):
    start = dict.fromkeys(("x",) if model is Breathing else ("x", "v"), 0.1)
    method = gr.KalmanML(initial_covariance=start)
    k, step = 3.0 if model is Breathing else 0.7, 1e-4
    found = gr.evaluate(model(), varying_data(model), method, parameters={"k": k})
    assert found.log_likelihood == pytest.approx(REFERENCES[model](k), abs=1e-8)
    slope = (REFERENCES[model](k + step) - REFERENCES[model](k - step)) / (2 * step)
    assert found.gradient["k"] == pytest.approx(-slope, rel=1e-6, abs=1e-6)


def assert_maximum(fit, name, likelihood):
    """An independent likelihood is largest at the estimate, and as curved as the standard error says."""
    at, error = fit.parameters.loc[name, ["estimate", "std_error"]].astype(float)
    low, middle, high = (likelihood(at + s * error) for s in (-0.05, 0.0, 0.05))
    assert abs(high - low) / 0.1 < 1e-3
    assert (2 * middle - low - high) / 0.05**2 == pytest.approx(1.0, rel=0.02)


def test_fit_of_a_model_whose_coefficients_vary():
    method = gr.KalmanML(initial_covariance={"x": 0.1})
    fit = gr.fit(Breathing(), varying_data(Breathing), ["k"], method)
    assert_maximum(fit, "k", REFERENCES[Breathing])
    assert gr.fit(Breathing(), varying_data(Breathing), ["k"]).why["KalmanML"] == (
        "chosen: Breathing is linear in its states, with coefficients that vary with time"
    )


def test_fit_of_a_long_chain():
    n, h = 20, 2.0
    paths = gr.simulate(pipe(n, 1.5, 0.4), h * np.arange(30), realizations=1, seed=1, noise=True)
    y = np.stack([paths[name].values.ravel() for name in ("y", "z")], axis=1)
    data = gr.Experiment(h * np.arange(30), outputs={"y": y[:, 0], "z": y[:, 1]})
    fit = gr.fit(pipe(n, 1.5, 0.4), data, ["up_"], gr.KalmanML(), guess={"up_": 1.0})
    assert_maximum(fit, "up_", lambda up: pipe_likelihood(n, up, 0.4, h, y))
