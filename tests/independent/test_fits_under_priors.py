"""Fits with priors and bounds beside code of its own: SciPy on closed forms, nothing of the package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import norm

import grisaille as gr
from grisaille import der

T = np.linspace(0, 6, 13)
Y = 2 - 1.5 * np.exp(-0.8 * T) + 0.15 * np.random.default_rng(5).standard_normal(13)


class Charge(gr.Model):
    """x' = b − k x, noise unknown."""

    k, b = gr.Parameter(0.6, bounds=(0.01, 10)), gr.Parameter(1.0, bounds=(-10, 10))
    x = gr.Variable(start=0.5)
    y = gr.Output(x)
    equations = [der(x) == b - k * x]


def course(k: float, b: float) -> np.ndarray:
    return b / k + (0.5 - b / k) * np.exp(-k * T)


def test_open_noise_under_a_lognormal_prior() -> None:
    fit = gr.fit(Charge(), gr.Experiment(T, {}, {"y": Y}), ["k", "b"], priors={"k": gr.LogNormal(0.4, 0.1)})

    def minus_log(v: np.ndarray) -> float:
        e = Y - course(np.exp(v[0]), v[1])
        return len(T) * v[2] + 0.5 * e @ e * np.exp(-2 * v[2]) + 0.5 * ((v[0] - np.log(0.4)) / 0.1) ** 2

    found = minimize(minus_log, [-0.5, 1.0, -2.0], method="BFGS", options={"gtol": 1e-9}).x
    assert float(fit["k"]) == pytest.approx(np.exp(found[0]), abs=1e-4 * fit["k"].std_error)
    assert float(fit["b"]) == pytest.approx(found[1], abs=1e-4 * fit["b"].std_error)
    kalman = gr.fit(
        Charge(), gr.Experiment(T, {}, {"y": Y}), ["k", "b"], gr.KalmanML(), priors={"k": gr.LogNormal(0.4, 0.1)}
    )
    assert float(kalman["noise(y)"]) == pytest.approx(np.exp(found[2]), rel=1e-4)


def test_a_rate_that_belongs_below_zero() -> None:
    class Drift(gr.Model):
        k, b = gr.Parameter(0.1, bounds=(0.0, 10)), gr.Parameter(0.3, bounds=(-10, 10))
        x = gr.Variable(start=0.5)
        y = gr.Output(x, noise=0.15)
        equations = [der(x) == b - k * x]

    grown = 0.5 + 0.2 * T * (1 + 0.03 * T) + 0.15 * np.random.default_rng(7).standard_normal(13)
    fit = gr.fit(Drift(), gr.Experiment(T, {}, {"y": grown}), ["k", "b"])

    def deviance(k: float) -> float:
        rises = (1 - np.exp(-k * T)) / k if k else T
        left = grown - 0.5 * np.exp(-k * T)
        return float(np.sum((left - rises * (rises @ left) / (rises @ rises)) ** 2)) / 0.15**2

    limit = brentq(lambda k: deviance(k) - deviance(0.0) - norm.ppf(0.95) ** 2, 1e-6, 1.0)
    assert fit.parameters.loc["k", ["estimate", "lower", "upper"]].tolist() == pytest.approx(
        [0.0, 0.0, limit], rel=1e-3
    )
