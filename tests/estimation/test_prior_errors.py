"""Standard errors under priors: a prior is a measurement with the error that it states, however errors are computed."""

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Line(gr.Model):
    """What is measured rises with a slope; the other parameter does not matter."""

    k = gr.Parameter(1.0, bounds=(-5.0, 5.0))
    dead = gr.Parameter(1.0, bounds=(0.0, 2.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.05)
    y = gr.Output(x, noise=0.5)
    equations = [der(x) == k + w + 0 * dead]


t = np.linspace(0.0, 1.0, 41)
data = gr.Experiment(t, outputs={"y": 0.9 * t + 0.5 * np.random.default_rng(1).standard_normal(41)})
METHODS = [  # every way to standard errors
    gr.OutputError(),
    gr.OutputError(covariance="sandwich"),
    gr.OutputError(errors="robust"),
    gr.OutputError(loss="huber"),
    gr.SimulatedPEM(realizations=100),
    gr.SimulatedPEM(realizations=100, match="mean-variance"),
    gr.KalmanML(),
    gr.KalmanML(robust=3.0),
    gr.Collocation(),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_sharp_prior_is_as_uncertain_as_it_says(method):
    # the data alone know k to 0.13 or so
    fit = gr.fit(Line(), data, ["k"], method, priors={"k": gr.Normal(1.0, 0.01)})
    assert fit["k"].std_error == pytest.approx(0.00997, rel=0.003)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_what_only_a_prior_knows_is_as_uncertain_as_it_says(method):
    fit = gr.fit(Line(), data, ["k", "dead"], method, priors={"dead": gr.Normal(1.2, 0.05)})
    assert fit["dead"] == pytest.approx(1.2) and fit["dead"].std_error == pytest.approx(0.05, rel=0.003)
