"""Statistics of stochastic differential equations: known moments, and the limit of coloured noise (Wong, Zakai)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from zoo.brownian import draw_brownian, noise_root, simulate_sde

import grisaille as gr
from grisaille import der
from grisaille.compilation import ChartPoint, WhiteNoiseInfo, formulate_step, white_step
from grisaille.disturbance import build_process, sample_path
from grisaille.structure import evaluate_parameters, structure_of

W = gr.spectra.white
DEVIATIONS = 4.0
"""Standard errors that a Monte Carlo mean may be off; the seeds are fixed."""


def run(model: gr.Model, x0: Any, grid: np.ndarray, realizations: int, seed: int = 1) -> tuple[Any, WhiteNoiseInfo]:
    structure = structure_of(model)
    values = evaluate_parameters(structure.model)
    names = [n for n, d in structure.model.disturbances.items() if d.spectrum.is_white]
    D, _ = noise_root(structure.model, names, values)
    u = np.zeros(structure.system.nu)
    step, info = white_step(structure, point=ChartPoint(0.0, np.asarray(x0, dtype=float), u, values.values, D))
    normals = draw_brownian(grid, len(names), seed, realizations).normals()
    p = np.concatenate([values.values, D.ravel(order="F")])
    return simulate_sde(step, x0, grid, normals, p), info


def assert_mean(sample: np.ndarray, wanted: float) -> None:
    error = sample.std(axis=0) / np.sqrt(len(sample))
    assert abs(sample.mean() - wanted) < DEVIATIONS * error, (sample.mean(), wanted, error)


def test_ornstein_uhlenbeck():
    """Mean and variance at t = 2 of dx = −x dt + 0.7 dW from 3; steps of 0.1."""

    class Process(gr.Model):
        x = gr.Variable(start=3.0)
        w = gr.Disturbance(W(), scale=0.7)
        equations = [der(x) == -x + w]

    x, _ = run(Process(), [3.0], np.linspace(0, 2, 21), 4000)
    mean, variance = 3 * np.exp(-2.0), 0.245 * (1 - np.exp(-4.0))
    assert_mean(x[:, -1, 0], mean)
    assert_mean((x[:, -1, 0] - mean) ** 2, variance)


def test_cox_ingersoll_ross():
    """Mean and variance at t = 1 of dx = κ(θ − x) dt + σ√x dW, by the transform."""
    kappa, theta, sigma, start = 2.0, 1.0, 0.6, 0.5

    class Process(gr.Model):
        x = gr.Variable(start=start)
        w = gr.Disturbance(W(), scale=sigma)
        equations = [der(x) == kappa * (theta - x) + gr.sqrt(x) * w]

    x, info = run(Process(), [start], np.linspace(0, 1, 33), 4000)
    assert info.choice.name == "lamperti"
    fade = np.exp(-kappa)
    mean = theta + (start - theta) * fade
    variance = sigma**2 / kappa * (start * (fade - fade**2) + 0.5 * theta * (1 - fade) ** 2)
    assert_mean(x[:, -1, 0], mean)
    assert_mean((x[:, -1, 0] - mean) ** 2, variance)


def test_brownian_motion_on_a_circle():
    """The angle is a Wiener process, E cos φ = e^{−t/2}; the radius stays one."""

    class Circle(gr.Model):
        a, b, f = gr.Variable(start=1.0), gr.Variable(start=0.0), gr.Variable()
        v, w = (gr.Disturbance(W(interpretation="stratonovich")) for _ in range(2))
        equations = [der(a) == f * a + v, der(b) == f * b + w, a**2 + b**2 == 1]

    x, info = run(Circle(), [1.0, 0.0], np.linspace(0, 1, 129), 4000)
    assert info.choice.strong_order == 0.5
    assert np.abs(np.sum(x**2, axis=2) - 1).max() < 1e-4
    assert_mean(x[:, -1, 0], np.exp(-0.5))
    assert_mean(x[:, -1, 0] ** 2, 0.5 * (1 + np.exp(-2.0)))


def test_correlated_white_noise():
    """Covariance of two integrals at t = 1."""

    class Pair(gr.Model):
        x, y = gr.Variable(start=0.0), gr.Variable(start=0.0)
        n = gr.Disturbance(W(), scale=[1.0, 2.0], size=2, correlation=[[1, -0.7], [-0.7, 1]])
        equations = [der(x) == n[0], der(y) == n[1]]

    x, _ = run(Pair(), [0.0, 0.0], np.linspace(0, 1, 3), 4000)
    assert_mean(x[:, -1, 0] * x[:, -1, 1], -1.4)
    assert_mean(x[:, -1, 1] ** 2, 4.0)


class TestWongZakai:
    """x' = μx + σxw for one unit of time. Itô: median e^{μ−σ²/2}, mean e^μ; Stratonovich: e^μ and e^{μ+σ²/2}."""

    mu, sigma = 0.1, 0.8
    realizations = 4000
    median_error = 1.2533 * 0.8 / np.sqrt(realizations)
    """Standard error of the logarithm of the median: √(π/2) of the mean's."""

    def growth(self, spectrum: Any) -> gr.Model:
        class Growth(gr.Model):
            x = gr.Variable(start=1.0)
            w = gr.Disturbance(spectrum, scale=self.sigma)
            equations = [der(x) == self.mu * x + x * w]

        return Growth()

    def coloured(self, bandwidth: float) -> np.ndarray:
        """x at t = 1 under lowpass noise, eight points per time constant."""
        spectrum = gr.spectra.lowpass(bandwidth)
        grid = np.linspace(0, 1, int(8 * bandwidth) + 1)
        process = build_process(["w"], [spectrum], [self.sigma])
        w = sample_path(process, grid, seed=3, realizations=self.realizations) @ process.C.T
        step = formulate_step(structure_of(self.growth(spectrum)).system)
        nothing = np.zeros((self.realizations, grid.size - 1, 0))
        return simulate_sde(step, [1.0], grid, nothing, (), w)[:, -1, 0]

    def white(self, **reading: str) -> np.ndarray:
        x, _ = run(self.growth(W(**reading)), [1.0], np.linspace(0, 1, 9), self.realizations)
        return x[:, -1, 0]

    def test_white_noise_is_ito(self):
        x = self.white()
        assert_mean(x, np.exp(self.mu))
        assert np.log(np.median(x)) == pytest.approx(self.mu - 0.32, abs=DEVIATIONS * self.median_error)

    def test_white_noise_can_be_stratonovich(self):
        x = self.white(interpretation="stratonovich")
        assert_mean(x, np.exp(self.mu + 0.32))
        assert np.log(np.median(x)) == pytest.approx(self.mu, abs=DEVIATIONS * self.median_error)

    def test_growing_bandwidth_tends_to_stratonovich(self):
        """Under stationary lowpass noise log x has variance σ²(1 − (1 − e^{−b})/b), and the mean follows."""
        for bandwidth in (2.0, 10.0, 50.0):
            x = self.coloured(bandwidth)
            variance = self.sigma**2 * (1 - (1 - np.exp(-bandwidth)) / bandwidth)
            assert_mean(x, np.exp(self.mu + 0.5 * variance))
            assert np.log(np.median(x)) == pytest.approx(self.mu, abs=DEVIATIONS * self.median_error)
        # at the largest bandwidth the mean is the Stratonovich one to 1 % of bias, the Itô one is 27 % lower
        assert np.mean(x) == pytest.approx(np.exp(self.mu + 0.32), rel=0.07)
        assert np.mean(x) > 1.15 * np.exp(self.mu)

    def test_a_nonlinear_factor_tends_to_stratonovich_too(self):
        """x' = √(1 + x²) w: in the limit arsinh x is a Wiener process, under Itô it drifts to zero."""

        def model(spectrum: Any) -> gr.Model:
            class Bent(gr.Model):
                x = gr.Variable(start=1.0)
                w = gr.Disturbance(spectrum, scale=0.8)
                equations = [der(x) == gr.sqrt(1 + x**2) * w]

            return Bent()

        grid = np.linspace(0, 1, 321)
        spectrum = gr.spectra.lowpass(40.0)
        process = build_process(["w"], [spectrum], [0.8])
        w = sample_path(process, grid, seed=5, realizations=2000) @ process.C.T
        step = formulate_step(structure_of(model(spectrum)).system)
        coloured = simulate_sde(step, [1.0], grid, np.zeros((2000, 320, 0)), (), w)[:, -1, 0]
        assert_mean(np.arcsinh(coloured), np.arcsinh(1.0))
        for reading, wanted in (("stratonovich", np.arcsinh(1.0)), ("ito", None)):
            x, _ = run(model(W(interpretation=reading)), [1.0], np.linspace(0, 1, 65), 2000)
            if wanted is not None:
                assert_mean(np.arcsinh(x[:, -1, 0]), wanted)
            else:
                assert_mean(x[:, -1, 0], 1.0)  # a martingale
                assert np.arcsinh(x[:, -1, 0]).mean() < np.arcsinh(1.0) - 0.15
