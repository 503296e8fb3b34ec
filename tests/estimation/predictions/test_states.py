"""States and predictions of likelihood fits: against dense algebra, between filters, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Decay(gr.Model):
    """A relaxation with a coloured disturbance and an algebraic variable."""

    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(start=1.0)
    flow = gr.Variable()
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.8), scale=0.4)
    v = gr.Disturbance(gr.spectra.white(), scale=0.1)
    force = gr.Variable()
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == flow + force, flow == -k * x + u + w, force == v]


TIMES = 0.25 * np.arange(60)
INPUT = np.sign(np.sin(0.7 * TIMES))


@pytest.fixture(scope="module")
def data():
    run = gr.simulate(Decay(), TIMES, {"u": INPUT}, realizations=1, seed=4, noise=True)
    y = run["y"].values.ravel()
    y[7:11] = np.nan
    return gr.Experiment(TIMES, {"u": INPUT}, {"y": y})


def fitted(data, **options):
    return gr.fit(Decay(), data, estimate=["k"], method=gr.KalmanML(**options))


def test_predictions_are_filters_that_see_less(data):
    fit = fitted(data)
    ahead = fit.predict(horizon=3)
    one = fit.predict(horizon=1)
    seen = fit.residuals()
    assert np.allclose(one["y"].sel(statistic="mean", time=seen["time"].to_numpy()), seen["predicted"], atol=1e-10)
    for j in (2, 9, 30, 59):
        y = data.outputs["y"].values.copy()
        y[j - 2 :] = np.nan if j >= 3 else y[j - 2 :]
        y[: 0 if j >= 3 else None] = np.nan
        y[-1] = 0.0  # a record must end somewhere
        blind = fit.predict(data.replace(outputs={"y": (TIMES, y)}), horizon=1)
        for statistic in ("mean", "std"):
            ours, theirs = (d["y"].sel(statistic=statistic).values[j] for d in (ahead, blind))
            assert ours == pytest.approx(theirs, abs=1e-10)


def test_an_infinite_horizon_is_a_simulation_with_bands(data):
    fit = fitted(data)
    far, run = fit.predict(horizon=np.inf), fit.predict()
    assert np.allclose(far["x"].sel(statistic="mean"), run["x"], atol=1e-5)
    std = far["x"].sel(statistic="std").values
    assert (np.diff(std[:20]) > 0).all()
    noisy, plain = far["y"].sel(statistic="std").values, std
    assert np.allclose(noisy**2, plain**2 + 0.05**2, rtol=1e-10)


@pytest.mark.parametrize("filter", ["extended", "unscented"])
def test_all_filters_agree_on_a_linear_model(data, filter):
    exact, other = fitted(data), fitted(data, filter=filter)
    assert float(other["k"]) == pytest.approx(float(exact["k"]), abs=1e-7)
    values = exact.estimate.theta
    other.estimate.theta[:] = values
    for names in (["x", "flow"], {"power": 2 * Decay().x * Decay().k}):
        a, b = exact.states(names=names), other.states(names=names)
        for name in a:
            assert np.allclose(a[name], b[name], atol=1e-7), name
    a, b = exact.predict(horizon=4), other.predict(horizon=4)
    assert np.allclose(a["y"], b["y"], atol=1e-7)


def test_a_diffuse_start_is_the_limit_of_large_variances(data):
    diffuse = fitted(data, initial_covariance="diffuse").states(names=["x", "flow"])
    large = fitted(data, initial_covariance={"x": 1e6}).states(names=["x", "flow"])
    for name in ("x", "flow"):
        assert np.allclose(diffuse[name].isel(time=slice(1, None)), large[name].isel(time=slice(1, None)), atol=2e-5)
        assert np.isfinite(diffuse[name].sel(given="smoothed")).all()


def test_before_the_data_determine_them_states_have_no_variance(data):
    y = data.outputs["y"].values.copy()
    y[:3] = np.nan
    late = data.replace(outputs={"y": (TIMES, y)}, t0=0.0)
    states = fitted(late, initial_covariance="diffuse").states(names=["x"])["x"]
    std = states.sel(given="filtered", statistic="std").values
    assert np.isinf(std[:1]).all()
    assert np.isfinite(std[4:]).all()
    assert np.isfinite(states.sel(given="smoothed")).all()


@pytest.mark.parametrize(
    ("method", "horizons"),
    [(gr.KalmanML(), [None, 2]), (gr.KalmanML(filter="extended"), [None, 2]), (gr.Collocation(), [None])],
    ids=["linear", "extended", "collocation"],
)
def test_an_experiment_without_a_name_is_the_fits_own(data, method, horizons):
    """Which named it: the start that was estimated for it holds."""
    fit = gr.fit(Decay(), data, ["k", "start(x)"], method, bounds={"start(x)": (-5.0, 5.0)})
    assert fit.states(data).equals(fit.states()) and fit.states(data).attrs["experiment"] == "experiment 1"
    asks = [fit.states, *(lambda which, h=h: fit.predict(which, horizon=h) for h in horizons)]
    for ask in asks:
        assert ask(data).equals(ask("experiment 1"))
        with pytest.raises(gr.GrisailleError, match=r"experiment is 5; give a gr\.Experiment or a text"):
            ask(5)
        with pytest.raises(EstimationError, match="No experiment of this fit is called 'B'; there are experiment 1"):
            ask("B")


def test_other_experiments_and_refusals(data):
    fit = fitted(data)
    other = gr.Experiment(TIMES[:20], {"u": INPUT[:20]}, {"y": np.ones(20)}, name="other")
    assert fit.states(other)["x"].sizes["time"] == 20
    assert fit.predict(other, horizon=2)["y"].sizes["time"] == 20
    with pytest.raises(EstimationError, match="'force' contains white noise"):
        fit.states(names=["force"])
    with pytest.raises(EstimationError, match="'force' contains white noise"):
        fit.states(names={"twice": 2 * Decay.force})
    with pytest.raises(EstimationError, match="no quantity 'z'"):
        fit.states(names=["z"])
    with pytest.raises(gr.GrisailleError, match="horizon is 0"):
        fit.predict(horizon=0)
    with pytest.raises(EstimationError, match="called 'B'"):
        fit.states("B")


@pytest.mark.parametrize("filter", ["linear", "extended"])
def test_the_criterion_of_a_horizon(data, filter):
    one = gr.evaluate(Decay(), data, method=gr.KalmanML(filter=filter), parameters={"k": 0.6})
    ahead = [
        gr.evaluate(Decay(), data, method=gr.KalmanML(filter=filter, horizon=3), parameters={"k": k})
        for k in (0.6 - 1e-5, 0.6, 0.6 + 1e-5)
    ]
    assert np.isnan(ahead[1].log_likelihood)  # predictions over several samples are no likelihood
    assert ahead[1].objective > one.objective
    slope = (ahead[2].objective - ahead[0].objective) / 2e-5
    assert ahead[1].gradient["k"] == pytest.approx(slope, rel=1e-6)


def test_fits_for_forecasting_say_that_they_are_no_likelihood(data):
    fit = fitted(data, horizon=4)
    assert fit.converged
    assert any(note.startswith("horizon:") for note in fit.notes)
    with pytest.raises(EstimationError, match="not one"):
        _ = fit.aic


class Implicit(gr.Model):
    """A flow that no formula gives, through a valve, with a coloured disturbance."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    x = gr.Variable(start=2.0, nominal=1.0)
    z = gr.Variable(start=0.8)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.2)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * z + 0.5 + w, z + 0.2 * z**5 == x]


def test_algebraic_variables_of_nonlinear_models(tmp_path):
    times = 0.2 * np.arange(24)
    run = gr.simulate(Implicit(), times, realizations=1, seed=2, noise=True)
    record = gr.Experiment(times, {}, {"y": run["y"].values.ravel()}, name="A")
    fit = gr.fit(Implicit(), record, estimate=["k"], method=gr.KalmanML(substeps=1))
    assert fit.converged, fit.status
    states = fit.states(names=["x", "z", "w"])
    x, z = (states[n].sel(given="smoothed", statistic="mean").values for n in ("x", "z"))
    assert np.allclose(z + 0.2 * z**5, x, atol=1e-8)
    slope = 1 / (1 + z**4)
    assert np.allclose(states["z"].sel(given="smoothed", statistic="std"),
                       slope * states["x"].sel(given="smoothed", statistic="std"), rtol=1e-6)  # fmt: skip
    inside = abs(run["z"].values.ravel() - z) < 3 * states["z"].sel(given="smoothed", statistic="std").values
    assert inside.mean() > 0.9
    ahead = fit.predict(horizon=5)
    assert np.isfinite(ahead["z"]).all()
    fit.save(tmp_path / "fit.nc")
    back = gr.load(tmp_path / "fit.nc")
    assert back.states(names=["z"])["z"].equals(fit.states(names=["z"])["z"])
    assert back.predict(horizon=5)["z"].equals(ahead["z"])
