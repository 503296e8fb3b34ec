"""White noise through ``simulate``: the scheme it takes, moments, and the limit of coloured noise (Wong, Zakai)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra
from grisaille.simulation.ensembles import Quantiles

DEVIATIONS = 4.0
"""Standard errors that a Monte Carlo mean may be off; the seeds are fixed."""


class Rate(gr.Model):
    """dx = κ(θ − x) dt + σ√x dω (Cox, Ingersoll, Ross)."""

    kappa, theta, sigma = gr.Parameter(2.0), gr.Parameter(1.0), gr.Parameter(0.6)
    x = gr.Variable(0.5)
    w = gr.Disturbance(spectra.white(), scale=sigma)
    equations = [der(x) == kappa * (theta - x) + gr.sqrt(gr.maximum(x, 0)) * w]


def test_square_root_noise_is_transformed_where_zero_is_not_reached():
    given = {"realizations": 4000, "step": 1 / 32, "reduce": ["mean", "variance"]}
    run = gr.simulate(Rate(), [0.0, 1.0], **given)
    assert "lamperti, strong order 1.5" in run.attrs["white_noise"]
    fade = np.exp(-2.0)
    mean, variance = 1 - 0.5 * fade, 0.36 / 2 * (0.5 * (fade - fade**2) + 0.5 * (1 - fade) ** 2)
    assert abs(float(run.x_mean[-1]) - mean) < DEVIATIONS * np.sqrt(variance / 4000)
    assert abs(float(run.x_variance[-1]) / variance - 1) < DEVIATIONS * np.sqrt(2.5 / 4000)


def test_feller_decides_at_the_given_values():
    """2κθ ≥ σ² holds for σ = 0.6 and not for σ = 2.5, where the sentence says why the transform was not taken."""
    run = gr.simulate(Rate(), [0.0, 0.1], parameters={"sigma": 2.5}, realizations=2, step=0.02)
    assert "milstein" in run.attrs["white_noise"] and "not known to hold" in run.attrs["white_noise"]
    scaled = gr.simulate(Rate(), [0.0, 0.1], parameters={"scale(w)": 2.5}, realizations=2, step=0.02)
    assert "milstein" in scaled.attrs["white_noise"]
    insisted = gr.simulate(Rate(), [0.0, 0.1], method="lamperti", realizations=2, step=0.02)
    assert "lamperti" in insisted.attrs["white_noise"]


def growth(spectrum: Any, sigma: float = 0.8) -> gr.Model:
    class Growth(gr.Model):
        x = gr.Variable(start=1.0)
        w = gr.Disturbance(spectrum, scale=sigma)
        equations = [der(x) == 0.1 * x + x * w]

    return Growth()


class TestWongZakai:
    """x' = μx + σxw for one unit of time. Itô: median e^{μ−σ²/2}, mean e^μ; Stratonovich: e^μ and e^{μ+σ²/2}."""

    count = 3000

    def statistics(self, spectrum: Any, step: float) -> tuple[float, float]:
        """Logarithms of mean and median at t = 1."""
        given = {"reduce": ["mean", Quantiles([0.5])], "realizations": self.count, "rtol": 1e-3}
        run = gr.simulate(growth(spectrum), [0.0, 1.0], step=step, seed=3, **given)
        return float(np.log(run.x_mean[-1])), float(np.log(run.x_quantile[0, -1]))

    def assert_lognormal(self, found: tuple[float, float], median: float, variance: float) -> None:
        """The logarithm is N(median, variance); deviation of the sample mean √(e^v − 1), of the median √(πv/2)."""
        error = DEVIATIONS / np.sqrt(self.count)
        assert found[0] == pytest.approx(median + variance / 2, abs=error * np.sqrt(np.expm1(variance)))
        assert found[1] == pytest.approx(median, abs=error * np.sqrt(np.pi * variance / 2))

    def test_white_noise_is_ito(self):
        self.assert_lognormal(self.statistics(spectra.white(), 0.25), 0.1 - 0.32, 0.64)

    def test_white_noise_can_be_stratonovich(self):
        self.assert_lognormal(self.statistics(spectra.white(interpretation="stratonovich"), 0.25), 0.1, 0.64)

    @pytest.mark.parametrize("bandwidth", [4.0, 40.0])
    def test_growing_bandwidth_tends_to_stratonovich(self, bandwidth):
        """Under stationary lowpass noise log x has variance σ²(1 − (1 − e^{−b})/b), and 0.64 in the limit."""
        variance = 0.64 * (1 - (1 - np.exp(-bandwidth)) / bandwidth)
        found = self.statistics(spectra.lowpass(bandwidth), 0.125 / bandwidth)
        self.assert_lognormal(found, 0.1, variance)
        if bandwidth == 40.0:
            assert found[0] > 0.1 + 0.2 and found[1] > 0.1 - 0.16, "nearer to Stratonovich than to Itô"


def test_a_reduction_that_used_the_chain_rule_asks():
    class Circle(gr.Model):
        a, b, f = gr.Variable(start=1.0), gr.Variable(start=0.0), gr.Variable()
        v, w = gr.Disturbance(spectra.white()), gr.Disturbance(spectra.white())
        equations = [der(a) == f * a + v, der(b) == f * b + w, a**2 + b**2 == 1]

    with pytest.raises(gr.GrisailleError, match="stratonovich"):
        gr.simulate(Circle(), [0.0, 1.0], realizations=2)
