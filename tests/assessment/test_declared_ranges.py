"""What ``gr.Variable(bounds=…)`` means to each estimator, and how fits say that it mattered."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = 0.25 * np.arange(41)


def walk(bounds: tuple[float | None, float | None] | None) -> gr.Model:
    class Walk(gr.Model):
        a = gr.Parameter(0.7, bounds=(0.05, 10.0))
        x = gr.Variable(1.0, bounds=bounds)
        w = gr.Disturbance(gr.spectra.white(), scale=0.6)
        y = gr.Output(x, noise=0.2)
        equations = [der(x) == -a * x + w]

    return Walk()


def swing(bounds: tuple[float | None, float | None]) -> gr.Model:
    """A decaying swing without disturbances."""

    class Swing(gr.Model):
        k = gr.Parameter(2.0, bounds=(0.05, 10.0))
        x, v = gr.Variable(1.0, bounds=bounds), gr.Variable(0.0)
        y = gr.Output(x, noise=0.05)
        equations = [der(x) == v, der(v) == -k * x - 0.4 * v]

    return Swing()


@pytest.fixture(scope="module")
def walked() -> gr.Experiment:
    rng, x, found = np.random.default_rng(5), 1.0, []
    f = np.exp(-0.7 * 0.25)
    for _ in T:
        found.append(x + 0.2 * rng.normal())
        x = f * x + 0.6 * np.sqrt((1 - f**2) / 1.4) * rng.normal()
    y = np.array(found)
    return gr.Experiment(T, outputs={"y": y - max(y.min() + 0.5, 0.0)})


@pytest.fixture(scope="module")
def held(walked: gr.Experiment) -> gr.Fit:
    return gr.fit(walk((0.0, 10.0)), walked, ["a"], gr.Collocation(), progress=False)


def test_collocation_at_active_bounds_has_no_likelihood(held: gr.Fit, walked: gr.Experiment) -> None:
    assert float(held.states()["x"].sel(statistic="mean").min()) >= -1e-12
    assert np.isnan(held.log_likelihood) and not held.estimate.is_likelihood
    text = str(held)
    assert "not a likelihood: no AIC, BIC" in text and "std. error*" in text
    assert "* bounds: declared bounds hold x" in text and "range: x is held at its declared bounds [0, 10] at" in text
    with pytest.raises(gr.EstimationError, match="AIC needs a likelihood"):
        _ = held.aic
    for ask in (lambda: held.profile("a"), lambda: held.test({"a": 0.7})):
        with pytest.raises(gr.EstimationError, match="declared bounds that hold states"):
            ask()
    assert np.isnan(gr.evaluate(walk((0.0, 10.0)), walked, gr.Collocation(), {"a": 0.7}).log_likelihood)


def test_compare_does_not_rank_what_bounds_hold(held: gr.Fit, walked: gr.Experiment) -> None:
    free = gr.fit(walk(None), walked, ["a"], gr.Collocation(), progress=False)
    compared = gr.compare({"held": held, "free": free})
    assert np.isnan(compared.table.loc["held", "delta_aic"]) and compared.best == "free"
    assert any(note.startswith("held: its criterion is not a likelihood") for note in compared.notes)


def test_bounds_that_hold_nothing_leave_the_likelihood(walked: gr.Experiment) -> None:
    wide, free = (gr.fit(walk(b), walked, ["a"], gr.Collocation(), progress=False) for b in ((-50.0, None), None))
    assert wide.log_likelihood == pytest.approx(free.log_likelihood, abs=1e-6)
    assert wide.ranges == () and not wide.estimate.caution


def test_filters_leave_ranges_aside_and_say_so(walked: gr.Experiment) -> None:
    method = gr.KalmanML(initial_covariance={"x": 0.0})
    fits = [gr.fit(walk(b), walked, ["a"], method, progress=False) for b in ((0.0, 10.0), (-0.2, None), None)]
    assert fits[0].log_likelihood == pytest.approx(fits[2].log_likelihood, abs=1e-9)
    mean = fits[0].states()["x"].sel(given="smoothed", statistic="mean").values
    outside = int((mean < -1e-6).sum())
    note = fits[0].ranges[0]
    assert f"leaves its declared bounds [0, 10] at {outside} of 41 samples, {mean.min():.3g} at" in note
    assert note in str(fits[0]) and "filters do not keep states inside" in note
    assert "[-0.2, inf]" in fits[1].ranges[0] and fits[2].ranges == ()


def test_simulations_leave_ranges_aside_and_say_so() -> None:
    t = 0.2 * np.arange(30)
    truth = gr.simulate(swing((None, None)), t)["x"].values
    data = gr.Experiment(t, outputs={"y": truth + 0.05 * np.random.default_rng(1).normal(size=30)})
    fit = gr.fit(swing((0.0, 2.0)), data, ["k"], gr.OutputError(), progress=False)
    assert "x leaves its declared bounds [0, 2]" in fit.ranges[0] and "simulations do not keep" in fit.ranges[0]
    assert fit.estimate.is_likelihood and fit.ranges[0] in fit.notes
    inside = gr.fit(swing((-2.0, 2.0)), data, ["k"], gr.OutputError(), progress=False)
    assert inside.ranges == () and float(inside["k"]) == float(fit["k"])


def test_ensembles_say_it_of_their_mean() -> None:
    class Sinking(gr.Model):
        a = gr.Parameter(0.5, bounds=(0.05, 10.0))
        x = gr.Variable(1.0, bounds=(0.0, None))
        w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.1)
        y = gr.Output(x, noise=0.05)
        equations = [der(x) == -a * (x + 1.0) + w]

    t = 0.5 * np.arange(12)
    data = gr.Experiment(t, outputs={"y": 2 * np.exp(-0.5 * t) - 1})
    fit = gr.fit(Sinking(), data, ["a"], gr.SimulatedPEM(realizations=20), progress=False)
    assert "x leaves its declared bounds [0, inf]" in fit.ranges[0] and "simulations do not keep" in fit.ranges[0]
