"""Fits by Kalman filtering: published likelihoods and estimates, levels at zero, states with bands, refusals."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Level(gr.Model):
    """A random walk seen through noise."""

    a = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=30.0)
    y = gr.Output(a)
    equations = [der(a) == w]


@pytest.fixture(scope="module")
def nile(reference_data):
    table = pd.read_csv(reference_data / "kalman_nile" / "nile.csv")
    return gr.Experiment(table["year"].to_numpy(float), {}, {"y": table["volume"].to_numpy(float)})


def test_nile(nile):
    values = {"scale(w)": np.sqrt(1469.1), "noise(y)": np.sqrt(15099.0)}
    for start, published in (
        ({"a": 1e7}, -641.5855784594),
        ({"a": 1e6}, -640.9897527013),
        ("diffuse", -632.5456251157),
    ):
        method = gr.KalmanML(initial_covariance=start)
        assert gr.evaluate(Level(), nile, method=method, parameters=values).log_likelihood == pytest.approx(
            published, abs=2e-10
        )
    fit = gr.fit(Level(), nile, estimate=["scale(w)"], method=gr.KalmanML(initial_covariance="diffuse"))
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(-632.5456251030, abs=2e-10)
    assert float(fit["noise(y)"]) ** 2 == pytest.approx(15098.51947, rel=1e-6)
    assert float(fit["scale(w)"]) ** 2 == pytest.approx(1469.17603, rel=1e-6)


def test_states_of_the_nile(nile):
    fit = gr.fit(Level(), nile, estimate=["scale(w)"], method=gr.KalmanML(initial_covariance={"a": 1e7}))
    states = fit.states()
    smoothed, filtered = states["a"].sel(given="smoothed"), states["a"].sel(given="filtered")
    assert (smoothed.sel(statistic="std") <= filtered.sel(statistic="std") + 1e-9).all()
    assert smoothed.isel(time=-1).equals(filtered.isel(time=-1).assign_coords(given="smoothed")) or np.allclose(
        smoothed.isel(time=-1), filtered.isel(time=-1), rtol=1e-12
    )
    # in the steady state the smoothed variance is that of the two-sided filter, P∞ R / (2 P∞ + …): between both bounds
    assert 0.5 < float(smoothed.sel(statistic="std", time=1920.0) / filtered.sel(statistic="std", time=1920.0)) < 0.95
    assert fit.diagnose()
    diffuse = gr.fit(Level(), nile, estimate=["scale(w)"], method=gr.KalmanML(initial_covariance="diffuse")).states()
    assert np.allclose(diffuse["a"].sel(given="smoothed"), smoothed, rtol=2e-3)


class Decay(gr.Model):
    """A relaxation with coloured and white disturbances."""

    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(start=1.0)
    u = gr.Input()
    force = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.8), scale=0.4)
    v = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x + u + force, force == w + v]


def simulated(seed, model=None, N=400):
    times = 0.25 * np.arange(N)
    u = np.sign(np.sin(0.2 * times))
    run = gr.simulate(model or Decay(), times, {"u": u}, realizations=1, seed=seed, noise=True)
    return gr.Experiment(times, {"u": u}, {"y": run["y"].values.ravel()}), run


def test_parameters_levels_and_starts_of_several_experiments():
    data = [simulated(seed)[0].replace(name=f"run {seed}") for seed in (1, 2)]
    fit = gr.fit(Decay(), data, estimate=["k", "scale(w)", "noise(y)", "start(x)"], method=gr.KalmanML())
    assert fit.converged, fit.status
    truth = {"k": 0.5, "scale(w)": 0.4, "noise(y)": 0.05, "start(x)@run 1": 1.0, "start(x)@run 2": 1.0}
    assert set(fit.names) == set(truth)
    for name, value in truth.items():
        assert abs(fit[name] - value) < 4 * fit.parameters.std_error[name], name
    assert fit.diagnose()
    assert "converged" in str(fit)


def test_smoothed_bands_cover_and_white_noise_has_none():
    data, run = simulated(3)
    fit = gr.fit(Decay(), data, estimate=["k"], method=gr.KalmanML())
    states = fit.states(names=["x"])["x"].sel(given="smoothed")
    truth = run["x"].values.ravel()
    inside = (truth > states.sel(statistic="lower").values) & (truth < states.sel(statistic="upper").values)
    assert 0.9 < inside.mean() < 0.99
    assert "force" not in fit.states()
    with pytest.raises(EstimationError, match="'force' contains white noise"):
        fit.states(names=["force"])


def test_a_level_that_is_zero_is_reported_as_zero():
    times = 0.1 * np.arange(80)
    random = np.random.default_rng(8)
    data = gr.Experiment(times, {"u": np.ones(80)}, {"y": 2 - np.exp(-0.5 * times) + 0.05 * random.normal(size=80)})
    model = Decay().replace({"k": 0.6})
    fit = gr.fit(model, data, estimate=["k", "scale(w)", "scale(v)", "noise(y)"], method=gr.KalmanML())
    assert fit.converged, fit.status
    assert fit.parameters.estimate["scale(w)"] == 0.0
    assert fit.parameters.estimate["scale(v)"] == 0.0
    assert fit.parameters.std_error["scale(w)"] == 0.0
    assert any(note.startswith("zero: scale(w)") for note in fit.notes)
    plain = gr.fit(model, data, estimate=["k"], method=gr.OutputError())
    assert float(fit["k"]) == pytest.approx(float(plain["k"]), rel=0.02)


def test_priors_and_multistart():
    data, _ = simulated(4, N=120)
    free = gr.fit(Decay(), data, estimate=["k"], method=gr.KalmanML())
    tight = gr.fit(Decay(), data, estimate=["k"], method=gr.KalmanML(), priors={"k": gr.Normal(1.0, 1e-4)})
    assert float(tight["k"]) == pytest.approx(1.0, abs=1e-3)
    assert float(tight.parameters.std_error["k"]) == pytest.approx(1e-4, rel=0.01)
    study = gr.multistart(
        Decay(), data, estimate=["k"], method=gr.KalmanML(), starts=3, executor="serial", progress=False
    )
    assert np.allclose(study.table["k"], float(free["k"]), rtol=1e-5)


def test_refusals():
    data, _ = simulated(5, N=30)
    with pytest.raises(EstimationError, match=r"gr\.OutputError does not estimate 'scale"):
        gr.fit(Decay(), data, estimate=["k", "scale(w)"], method=gr.OutputError())
    fit = gr.fit(Decay(), data, estimate=["k"], method=gr.OutputError())
    with pytest.raises(EstimationError, match=r"States given the data come with .*, not with OutputError"):
        fit.states()
    with pytest.raises(EstimationError, match="names 'z', which is not a state"):
        gr.evaluate(Decay(), data, method=gr.KalmanML(initial_covariance={"z": 1.0}), parameters={"k": 1.0})


@pytest.mark.parametrize(("options", "said"), [
    ({"filter": "best"}, "filter is 'best'; it must be 'auto', 'linear', 'extended', 'iterated' or 'unscented'"),
    ({"propagation": "euler"}, "propagation is 'euler'; it must be 'linearize', 'moments' or 'square-root'"),
    ({"substeps": 0}, "substeps is 0; give a whole number from 1, or 'auto'"),
    ({"substeps": True}, "substeps is True"),
    ({"initial_covariance": "none"}, "initial_covariance is 'none'"),
    ({"initial_covariance": {"x": -1.0}}, "variance of 'x' at the start is -1.0"),
    ({"initial_covariance": [[1.0, 2.0]]}, "square matrix"),
    ({"first_observation": "skip"}, "first_observation is 'skip'"),
    ({"robust": 0}, "robust is 0; give a threshold"),
    ({"robust": ("hard", 3)}, "robust is"),
    ({"horizon": 0}, "horizon is 0"),
    ({"bounds": "none"}, "bounds is 'none'; it must be 'optimizer' or 'transform'"),
    ({"penalty": -1}, "penalty is -1"),
    ({"initial_covariance": "diffuse", "robust": 3.0}, "goes with robust=None only"),
    ({"initial_covariance": "diffuse", "horizon": 2}, "goes with horizon=1 only"),
])  # fmt: skip
def test_options_are_checked(options, said):
    with pytest.raises(EstimationError, match=re.escape(said)):
        gr.KalmanML(**options)


def test_outputs_of_infinite_variance_are_refused_in_the_words_of_well_posedness() -> None:
    class TwoBodies(gr.Model):
        v1, v2, f = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
        w1 = gr.Disturbance(gr.spectra.white())
        w2 = gr.Disturbance(gr.spectra.white())
        a = gr.Parameter(1.0)
        force = gr.Output(f, noise=0.1)
        equations = [der(v1) == a * f - v1 + w1, der(v2) == -f + w2, v1 == v2]

    times = np.linspace(0.0, 1.0, 11)
    with pytest.raises(gr.EstimationError, match="infinite variance"):
        gr.fit(TwoBodies(), gr.Experiment(times, outputs={"force": np.zeros(11)}), ["a"], gr.KalmanML())
