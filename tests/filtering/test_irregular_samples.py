"""Records whose intervals all differ: the likelihood is that of the textbook's recursion, in time that grows with n."""

from __future__ import annotations

import time

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem


class Drift(gr.Model):
    a, mu = gr.Parameter(0.8, bounds=(1e-3, 50.0)), gr.Parameter(1.5)
    u, x = gr.Input(), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.8)
    y = gr.Output(x, noise=0.2)
    equations = [der(x) == a * (mu - x) + u + w]


def likelihood(t: np.ndarray, u: np.ndarray, y: np.ndarray, a: float, mu: float, P: float) -> float:
    """By scalars; u is joined by lines."""
    x, total = 0.0, 0.0
    for k in range(len(t)):
        S = P + 0.04
        e = y[k] - x
        total -= 0.5 * (np.log(2 * np.pi * S) + e * e / S)
        x, P = x + P / S * e, P * 0.04 / S
        if k + 1 < len(t):
            h = t[k + 1] - t[k]
            f, slope = np.exp(-a * h), (u[k + 1] - u[k]) / h
            x = f * x + (mu + u[k] / a) * (1 - f) + slope * (h / a - (1 - f) / a**2)
            P = f * f * P + 0.64 * (1 - f * f) / (2 * a)
    return float(total)


def record(n: int) -> gr.Experiment:
    random = np.random.default_rng(1)
    t = np.append(0.0, np.cumsum(random.uniform(0.1, 0.3, n - 1)))
    return gr.Experiment(t, {"u": np.sin(t)}, {"y": 1.5 + random.standard_normal(n)}, hold="foh")


@pytest.mark.parametrize("n", [100, 700])
def test_likelihood_and_gradient(n: int) -> None:
    data = record(n)
    method = gr.KalmanML(initial_covariance={"x": 0.5})
    problem = build_problem(Drift(), [data], ["a", "mu"], method)
    t, y, theta = data.grid(), data.measurements("y")[1], np.array([0.9, 1.4])
    at = problem.evaluate(theta)
    assert at.log_likelihood == pytest.approx(likelihood(t, np.sin(t), y, *theta, 0.5), rel=1e-10)
    for k, step in enumerate(1e-5 * np.eye(2)):
        ahead, behind = (likelihood(t, np.sin(t), y, *(theta + s * step), 0.5) for s in (1, -1))
        assert -at.slope[k] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-5)


def test_time_grows_with_the_number_of_samples() -> None:
    seconds = []
    for n in (2_000, 16_000):
        problem = build_problem(Drift(), [record(n)], ["a", "mu"], gr.KalmanML(initial_covariance={"x": 0.5}))
        problem.evaluate(problem.guess)
        begin = time.process_time()
        problem.evaluate(1.01 * problem.guess)
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 30 * seconds[0]
