"""Fits whose disturbance vanished are gone on from: their searches begin where the model has its level."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr


class Cup(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(x, noise=0.05)
    equations = [gr.der(x) == -k * x * (1 + x**2) + w]


NAMES, METHOD = ["k", "scale(w)"], gr.KalmanML(filter="extended", substeps=4)


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    times = np.linspace(0.0, 6.0, 40)
    exact = 1 / np.sqrt(2 * np.exp(1.4 * times) - 1)  # x' = −k x (1 + x²) with k = 0.7, x(0) = 1
    data = gr.Experiment(times, {}, {"y": exact + 0.03 * np.random.default_rng(1).standard_normal(40)})
    return gr.fit(Cup(), data, NAMES, METHOD)


def test_the_disturbance_vanishes_and_the_fit_is_gone_on_from(fit: gr.Fit) -> None:
    assert float(fit["scale(w)"]) == 0.0
    again = gr.fit(Cup(), fit.experiments[0], NAMES, METHOD, guess=fit)
    assert float(again["k"]) == pytest.approx(float(fit["k"]), abs=1e-4 * fit["k"].std_error)
    assert gr.evaluate(Cup(), fit.experiments[0], METHOD, fit.estimates).objective == pytest.approx(fit.objective)


def test_its_density_and_its_bootstrap_begin_where_the_model_does(fit: gr.Fit) -> None:
    density = gr.log_density(Cup(), fit.experiments[0], NAMES, METHOD, guess=fit)
    assert dict(zip(density.names, density.start, strict=True)) == {"k": float(fit["k"]), "scale(w)": 0.02}
    assert np.isfinite(gr.bootstrap(fit, 2, executor="serial").estimates.to_numpy()).all()


def test_a_zero_that_is_asked_for_is_refused(fit: gr.Fit) -> None:
    with pytest.raises(gr.EstimationError, match=r"guess of 'scale\(w\)' is 0, but its logarithm is estimated"):
        gr.fit(Cup(), fit.experiments[0], NAMES, METHOD, guess={"scale(w)": 0.0})
