"""Bands of predictions that contain the uncertainty of the estimates, against textbook formulas and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import grisaille as gr
from grisaille import der


class Line(gr.Model):
    """y = a + b u, by rows."""

    a = gr.Parameter(0.0, bounds=(-50.0, 50.0))
    b = gr.Parameter(1.0, bounds=(-50.0, 50.0))
    u = gr.Input()
    y = gr.Output(a + b * u)


class Drift(gr.Model):
    """x' = b, from an unknown start: y = x(0) + b t."""

    b = gr.Parameter(1.0, bounds=(-50.0, 50.0))
    x = gr.Variable(0.0)
    y = gr.Output(x)
    equations = [der(x) == b]


class Wander(gr.Model):
    """A level that is pushed about and returns."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x = gr.Variable(1.0)
    u = gr.Input(default=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == k * (u - x) + w]


PLAIN = gr.OutputError()


def textbook(u: np.ndarray, y: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and half width of the 95 % prediction interval of a straight line."""
    X, Z = np.column_stack([np.ones_like(u), u]), np.column_stack([np.ones_like(at), at])
    beta, *_ = np.linalg.lstsq(X, y, rcond=None)
    free = len(y) - 2
    s2 = np.sum((y - X @ beta) ** 2) / free
    spread = 1 + np.einsum("ij,jk,ik->i", Z, np.linalg.inv(X.T @ X), Z)
    return Z @ beta, stats.t.ppf(0.975, free) * np.sqrt(s2 * spread)


def test_a_line_has_the_textbook_band() -> None:
    t = np.linspace(0.0, 3.0, 9)
    y = 0.5 + 0.7 * t + 0.1 * np.random.default_rng(2).normal(size=9)
    fit = gr.fit(Drift(), gr.Experiment(t, {}, {"y": y}), ["b", "start(x)"], PLAIN)
    found = fit.predict(bands="all")
    mean, half = textbook(t, y, t)
    assert np.allclose(found["y"].sel(statistic="mean"), mean, atol=1e-6)
    assert np.allclose(found["y"].sel(statistic="upper") - mean, half, rtol=1e-6)
    # the state itself has no measurement noise
    assert np.all(found["x"].sel(statistic="std") < found["y"].sel(statistic="std"))


def test_bands_hold_what_they_promise_with_few_samples() -> None:
    """Seven rows, a new measurement at either end: held with 95 %, and clearly less by noise alone."""
    random, u, truth = np.random.default_rng(5), np.linspace(-1.0, 1.0, 7), stats.norm(0.0, 0.3)
    held, bare = [], []
    for _ in range(60):
        y = 1.0 + 2.0 * u + truth.rvs(7, random_state=random)
        fit = gr.fit(Line(), gr.Experiment(None, {"u": u}, {"y": y}, name="rows"), ["a", "b"], PLAIN)
        band = fit.predict(bands="all")["y"].values[:, [0, 6]] - (1.0 + 2.0 * u[[0, 6]])
        held += [*(truth.cdf(band[3]) - truth.cdf(band[2]))]
        half = 1.96 * float(fit["noise(y)"])
        bare += [*(truth.cdf(band[0] + half) - truth.cdf(band[0] - half))]
    assert np.mean(held) == pytest.approx(0.95, abs=3.5 * np.std(held) / np.sqrt(len(held) / 2))
    assert np.mean(bare) < 0.9


@pytest.fixture(scope="module")
def wandering() -> gr.Fit:
    t = np.linspace(0.0, 10.0, 21)
    y = 1.0 - 0.4 * np.exp(-0.4 * t) + 0.1 * np.cos(3 * t) + 0.02 * np.cos(17 * t)
    data = gr.Experiment(t, {"u": 1.5}, {"y": y}, name="a")
    return gr.fit(Wander(), data, ["k", "scale(w)"], gr.KalmanML())


@pytest.mark.parametrize("horizon", [1, 3])
def test_filters_add_what_the_estimates_move(wandering: gr.Fit, horizon: int) -> None:
    """J Σ Jᵀ by predictions of models at other parameters."""
    given = wandering.predict(horizon=horizon)["y"]
    whole = wandering.predict(horizon=horizon, bands="all")["y"]
    model, data, step = wandering.model, wandering.experiments[0], {"k": 1e-4, "scale(w)": 1e-4}
    slopes = []
    for name, h in step.items():
        ends = []
        for sign in (1, -1):
            at = {**{n: float(wandering[n]) for n in step}, name: float(wandering[name]) + sign * h}
            fixed = gr.fit(
                model,
                data,
                ["k", "scale(w)"],
                wandering.method,
                guess=at,
                bounds={n: (v * (1 - 1e-9), v * (1 + 1e-9)) for n, v in at.items()},
            )
            ends.append(fixed.predict(horizon=horizon)["y"].sel(statistic="mean").values)
        slopes.append((ends[0] - ends[1]) / (2 * h))
    J = np.stack(slopes, axis=1)
    added = np.einsum("ti,ij,tj->t", J, wandering.covariance.to_numpy(), J)
    found = whole.sel(statistic="std").values ** 2 - given.sel(statistic="std").values ** 2
    assert np.allclose(found, added, rtol=1e-3, atol=1e-3 * added.max())
    assert np.array_equal(whole.sel(statistic="mean"), given.sel(statistic="mean"))


def test_a_simulation_of_a_filter_has_bands_too(wandering: gr.Fit) -> None:
    given, whole = wandering.predict(horizon=np.inf)["y"], wandering.predict(bands="all")["y"]
    wider = whole.sel(statistic="std").values / given.sel(statistic="std").values
    assert np.all(wider[1:] > 1.0)
    assert whole.attrs == given.attrs


def test_declared_noise_that_is_a_formula_is_in_the_band() -> None:
    class Relative(gr.Model):
        """Noise that grows with what is measured."""

        b = gr.Parameter(1.0, bounds=(-50.0, 50.0))
        s = gr.Parameter(0.1)
        x = gr.Variable(1.0)
        y = gr.Output(x, noise=s * (1 + abs(x)))
        equations = [der(x) == b]

    t = np.linspace(0.0, 3.0, 9)
    fit = gr.fit(Relative(), gr.Experiment(t, {}, {"y": 1.0 + t + 0.1 * np.cos(9 * t)}), ["b"], PLAIN)
    found = fit.predict(bands="all")
    x, slope = 1.0 + float(fit["b"]) * t, float(fit["b"].std_error) * t
    assert np.allclose(found["y"].sel(statistic="std"), np.hypot(0.1 * (1 + x), slope), rtol=1e-5)
    assert np.allclose(found["x"].sel(statistic="std"), slope, rtol=1e-5)


def test_bands_are_none_unless_asked_for(wandering: gr.Fit) -> None:
    t = np.linspace(0.0, 3.0, 9)
    fit = gr.fit(Drift(), gr.Experiment(t, {}, {"y": 0.5 + t + 0.1 * np.cos(9 * t)}), ["b"], PLAIN)
    assert fit.predict()["y"].dims == ("time",)
    assert fit.predict(bands="all")["y"].dims == ("statistic", "time")
    with pytest.raises(gr.GrisailleError, match="bands is 'some'; give 'noise' or 'all' or None"):
        fit.predict(bands="some")  # type: ignore[arg-type]


def test_ensembles_refuse_in_words() -> None:
    t = np.linspace(0.0, 12.0, 25)
    data = gr.simulate(Wander(), t, {"u": np.sin(t)}, seed=4)
    record = gr.Experiment(t, {"u": np.sin(t)}, {"y": data["y"].values})
    fit = gr.fit(Wander(), record, ["k"], gr.SimulatedPEM(realizations=8))
    for options in ({"bands": "all"}, {"bands": "noise", "horizon": 2}):
        with pytest.raises(gr.EstimationError, match=r"not available for gr\.SimulatedPEM.*gr\.monte_carlo"):
            fit.predict(**options)
