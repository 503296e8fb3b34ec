"""A record that continues a fitted one: a filter goes on as if they had been one."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Linear(gr.Model):
    """A lag under a disturbance with a memory, which is a state, too."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x = gr.Variable(start=1.0)
    d = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.3), scale=0.5)
    u = gr.Input()
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x + u + d]


class Bent(Linear):
    """The same, not linear."""

    equations = [der(Linear.x) == -Linear.k * Linear.x * gr.sqrt(1 + Linear.x**2) + Linear.u + Linear.d]


def joined() -> gr.Experiment:
    rng, t = np.random.default_rng(3), np.linspace(0.0, 12.0, 61)
    t[1:-1] += 0.05 * rng.uniform(-1, 1, 59)
    x, w, seen = 1.0, 0.0, []
    for step in np.diff(t, append=12.2):
        seen.append(x)
        x, w = x + step * (-0.5 * x + np.sin(len(seen) / 5) + w), 0.94 * w + 0.2 * rng.standard_normal()
    values = np.array(seen) + 0.05 * rng.standard_normal(61)
    values[[20, 45]] = np.nan
    return gr.Experiment(t, {"u": np.sin(t)}, {"y": values}, name="run")


RUN = joined()
TRAIN = RUN.split(0.6)[0]
PARTS = {"later part": RUN.split(0.6)[1], "restarted": RUN.split(0.6, restart=True)[1]}
EXACT, CLOSE = 1e-12, 2e-4
FILTERS = {
    "first-sample": (Linear, gr.KalmanML(), EXACT),
    "stationary": (Linear, gr.KalmanML(initial_covariance="stationary"), EXACT),
    "diffuse": (Linear, gr.KalmanML(initial_covariance="diffuse"), EXACT),
    "extended": (Bent, gr.KalmanML(substeps=4), CLOSE),
    "unscented": (Bent, gr.KalmanML(filter="unscented", substeps=4), CLOSE),
}


@pytest.fixture(scope="module", params=FILTERS)
def fitted(request: pytest.FixtureRequest) -> tuple[gr.Fit, float]:
    model, method, tolerance = FILTERS[request.param]
    return gr.fit(model(), TRAIN, ["k"], method), tolerance


@pytest.mark.parametrize("part", PARTS)
def test_it_predicts_as_from_the_joined_record(fitted: tuple[gr.Fit, float], part: str) -> None:
    fit, tolerance = fitted
    rest = PARTS[part]
    for horizon in (1, 3):
        whole, found = (fit.predict(e, horizon=horizon)["y"] for e in (RUN, rest))
        known = found.time.values[horizon - 1 :]
        wanted = whole.sel(time=known).values
        assert found.sel(time=known).values == pytest.approx(wanted, abs=tolerance)
    assert "leads to" in fit.predict(rest, horizon=1).attrs["start"]
    states = [fit.states(e)["x"].sel(given="filtered", time=known).values for e in (RUN, rest)]
    assert states[1] == pytest.approx(states[0], abs=tolerance)


@pytest.mark.parametrize("part", PARTS)
def test_validation_scores_these_predictions(fitted: tuple[gr.Fit, float], part: str) -> None:
    fit, tolerance = fitted
    found = fit.validate(PARTS[part]).residuals()
    wanted = fit.predict(RUN, horizon=1)["y"].sel(statistic="mean", time=found["time"].to_numpy()).values
    assert found["predicted"].to_numpy() == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("fitted", ["first-sample", "extended"], indirect=True)
def test_a_start_that_is_given_counts_for_more(fitted: tuple[gr.Fit, float]) -> None:
    fit, _ = fitted
    given = fit.predict(PARTS["restarted"], horizon=1, start={"x": 5.0})
    assert float(given["x"].sel(statistic="mean")[0]) == pytest.approx(5.0)


def test_simulations_still_begin_where_the_run_did(fitted: tuple[gr.Fit, float]) -> None:
    fit, _ = fitted
    assert float(fit.predict(PARTS["later part"])["x"][0]) == pytest.approx(1.0)
