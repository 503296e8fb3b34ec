"""Fits by filters against dense Gaussian algebra written here: likelihood, whole bands, records of a bootstrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

import grisaille as gr
from grisaille import der
from grisaille.study.bootstrap_task import bootstrap_task

N, STEP, SCALE, NOISE = 25, 0.2, 0.3, 0.1
T = STEP * np.arange(N)


class Decay(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 20.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=SCALE)
    y = gr.Output(x, noise=NOISE)
    equations = [der(x) == -k * x + w]


def law(k: float, start: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of x at the samples: x' = −k x + w from N(start, variance)."""
    mean = start * np.exp(-k * T)
    early, late = np.minimum.outer(T, T), np.maximum.outer(T, T)
    driven = SCALE**2 / (2 * k) * (np.exp(-k * (late - early)) - np.exp(-k * (late + early)))
    return mean, driven + variance * np.exp(-k * (early + late))


def record(seed: int, start: float) -> np.ndarray:
    rng, x, found = np.random.default_rng(seed), start, []
    f = np.exp(-0.5 * STEP)
    for _ in range(N):
        found.append(x + NOISE * rng.normal())
        x = f * x + SCALE * np.sqrt(1 - f**2) * rng.normal()
    return np.array(found)


def test_an_uncertain_start_in_the_likelihood_and_in_drawn_records() -> None:
    y, variance = record(1, 4.0), 25.0

    def minus_log_likelihood(k: float) -> float:
        mean, P = law(k, 1.0, variance)
        return -float(multivariate_normal.logpdf(y, mean, P + NOISE**2 * np.eye(N)))

    method = gr.KalmanML(initial_covariance={"x": variance})
    fit = gr.fit(Decay(), gr.Experiment(T, outputs={"y": y}), ["k"], method, progress=False)
    own = minimize_scalar(minus_log_likelihood, bounds=(0.1, 3.0), method="bounded", options={"xatol": 1e-9})
    assert float(fit["k"]) == pytest.approx(own.x, abs=1e-5)
    assert fit.log_likelihood == pytest.approx(-own.fun, abs=1e-7)
    bend = np.diff([minus_log_likelihood(own.x + e) for e in (-1e-3, 0.0, 1e-3)], 2)[0] / 1e-6
    assert fit["k"].std_error == pytest.approx(1 / np.sqrt(bend), rel=1e-3)
    # y ~ N(mean, S): squared distances over records are χ² with N degrees of freedom each
    mean, P = law(float(fit["k"]), 1.0, variance)
    variation: Any = bootstrap_task(fit, "parametric", None, 0).variation
    drawn = np.array([variation.data_set(fit.experiments, seed)[0]["y"] for seed in range(200)]) - mean
    distances = np.einsum("mi,ij,mj->m", drawn, np.linalg.inv(P + NOISE**2 * np.eye(N)), drawn)
    assert abs(distances.sum() - 200 * N) < 4.5 * np.sqrt(2 * 200 * N)
    assert drawn[:, 0].std() == pytest.approx(5.0, rel=4.5 / np.sqrt(400))


def test_whole_bands_of_smoothed_states() -> None:
    y = record(3, 1.0)

    def smoothed(k: float) -> tuple[np.ndarray, np.ndarray]:
        mean, P = law(k, 1.0, 0.0)
        gain = P @ np.linalg.inv(P + NOISE**2 * np.eye(N))
        return mean + gain @ (y - mean), np.diag(P - gain @ P)

    method = gr.KalmanML(initial_covariance={"x": 0.0})
    fit = gr.fit(Decay(), gr.Experiment(T, outputs={"y": y}), ["k"], method, progress=False)
    k, error = float(fit["k"]), fit["k"].std_error
    mean, variance = smoothed(k)
    slope = (smoothed(k + 1e-5)[0] - smoothed(k - 1e-5)[0]) / 2e-5
    noise, whole = (fit.states(bands=b)["x"].sel(given="smoothed") for b in ("noise", "all"))  # type: ignore[arg-type]
    np.testing.assert_allclose(noise.sel(statistic="mean"), mean, atol=1e-8)
    np.testing.assert_allclose(noise.sel(statistic="std")[1:], np.sqrt(variance[1:]), rtol=1e-7)
    expected = np.sqrt(variance + (slope * error) ** 2)
    np.testing.assert_allclose(whole.sel(statistic="std")[1:], expected[1:], rtol=0.02)
    assert (expected[1:] > 1.001 * np.sqrt(variance[1:])).any()
