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


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_a_prior_is_no_outlier(loss):
    # data with an outlier say 0.9, the prior 3 ± 0.1: priors count with their squares
    y = 0.9 * t + 0.5 * np.random.default_rng(2).standard_normal(41)
    y[5] += 6.0
    rho = {
        "soft_l1": lambda z: 2 * np.sqrt(1 + z) - 2,
        "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(z) - 1),
        "cauchy": np.log1p,
        "arctan": np.arctan,
    }[loss]
    k = np.linspace(0.0, 4.0, 400001)
    values = 0.5 * sum(rho(((m - k * s) / 0.5) ** 2) for m, s in zip(y, t, strict=True)) + 0.5 * ((k - 3) / 0.1) ** 2
    record, method = gr.Experiment(t, outputs={"y": y}), gr.OutputError(loss=loss)
    model = Line(k=gr.Parameter(2.5, bounds=(-5.0, 5.0), prior=gr.Normal(3.0, 0.1)))
    fit = gr.fit(model, record, ["k"], method)
    assert fit["k"] == pytest.approx(k[np.argmin(values)], abs=3e-5)
    at = gr.evaluate(model, record, method, {"k": 2.0})
    near = [np.interp(2.0 + h, k, values) for h in (-1e-3, 0.0, 1e-3)]
    assert at.objective == pytest.approx(near[1], rel=1e-6)
    assert at.gradient["k"] == pytest.approx((near[2] - near[0]) / 2e-3, rel=1e-4)
