"""Disturbances without a linear effect at zero: collocation refuses them, as the filters that linearise do."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = 0.2 * np.arange(51)
PUSH = np.sign(np.sin(TIMES + 0.3))
SENTENCE = r"The disturbance w has no linear effect where it is zero.*no slope to start from.*gr\.SimulatedPEM\(\)"


def plant(enters):
    class Plant(gr.Model):
        a = gr.Parameter(0.8, bounds=(0.01, 20.0))
        u, x = gr.Input(), gr.Variable(start=0.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.3)
        y = gr.Output(x, noise=0.05)
        equations = [der(x) == -a * x + u + enters(w, x)]

    return Plant()


def record(model: gr.Model) -> gr.Experiment:
    run = gr.simulate(model, TIMES, inputs={"u": PUSH}, realizations=1, seed=3, noise=True)
    return gr.Experiment(TIMES, {"u": PUSH}, {"y": run["y"].values.ravel()})


@pytest.mark.parametrize("enters", [
    lambda w, x: w**2, lambda w, x: abs(w), lambda w, x: gr.cos(w), lambda w, x: 1e-15 * w**2 * x, lambda w, x: w**3,
], ids=["square", "size", "cosine", "tiny square", "cube"])  # fmt: skip
@pytest.mark.parametrize("method", [
    gr.Collocation(), gr.Collocation(criterion="amle"), gr.Collocation(criterion="amle", transcription="direct"),
], ids=["default", "amle", "direct"])  # fmt: skip
def test_no_slope_at_zero(enters, method: gr.Collocation) -> None:
    data = gr.Experiment(TIMES, {"u": PUSH}, {"y": np.zeros(len(TIMES))})
    with pytest.raises(EstimationError, match=SENTENCE):
        gr.fit(plant(enters), data, ["a"], method, progress=False)


@pytest.mark.parametrize("enters", [
    lambda w, x: w * x, lambda w, x: (w + 1) ** 2, lambda w, x: w + 0.2 * w**2, lambda w, x: 1e-15 * w,
], ids=["times a state that starts at zero", "beside one", "mixed", "tiny"])  # fmt: skip
def test_a_slope_where_the_path_is(enters) -> None:
    model = plant(enters)
    fit = gr.fit(model, record(model), ["a"], gr.Collocation(criterion="laplace"), progress=False)
    assert fit.converged
    assert abs(float(fit["a"]) - 0.8) < 3.5 * fit["a"].std_error


def test_auto_says_the_same() -> None:
    model = plant(lambda w, x: w**2)
    fit = gr.fit(model, record(model), ["a"], progress=False)
    assert fit.method == gr.SimulatedPEM()
    assert "no slope to start from" in fit.why["Collocation"]
    assert "unscented" not in fit.why["KalmanML"]
    tiny = plant(lambda w, x: 1e-15 * w)
    assert gr.fit(tiny, record(tiny), ["a"], progress=False).method == gr.KalmanML()
