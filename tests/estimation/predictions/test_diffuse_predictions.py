"""Predictions, states and bands under a flat prior: the limit of large variances, and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

LARGE = 1e6  # larger ones lose digits in the smoother


class Level(gr.Model):
    """A random walk seen with noise."""

    x = gr.Variable(start=3.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.2)
    equations = [der(x) == w]


class Trend(gr.Model):
    """A level with a slope, and a state beside them that begins at a known value."""

    x, v, u = gr.Variable(start=0.0), gr.Variable(start=0.0), gr.Variable(start=2.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.2)
    z = gr.Output(u, noise=0.1)
    equations = [der(x) == v + w, der(v) == 0.0, der(u) == -u]


T = np.array([0.0, 0.3, 1.0, 1.2, 2.0, 3.5, 4.0, 5.0, 6.0, 7.5])
RNG = np.random.default_rng(0)
Y = 5 + 2 * T + 0.3 * RNG.standard_normal(10)


def followed(model: gr.Model, data: Any, start: Any) -> gr.Fit:
    return gr.fit(model, data, ["scale(w)"], gr.KalmanML(initial_covariance=start))


def same(a: np.ndarray, b: np.ndarray, from_: int) -> None:
    """Equal from a sample on, and before it nothing."""
    assert a[:, from_:] == pytest.approx(b[:, from_:], rel=1e-4, abs=1e-5)
    mean, std, lower, upper = a[:, :from_]
    assert np.isnan(mean).all() and np.isinf(std).all() and (lower == -np.inf).all() and (upper == np.inf).all()


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-9])
def test_a_local_level_is_that_of_the_textbook(unit: float) -> None:
    class Scaled(gr.Model):
        x = gr.Variable(start=0.0, nominal=unit)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3 * unit)
        y = gr.Output(x, noise=0.2 * unit)
        equations = [der(x) == w]

    model = Scaled()
    data = gr.Experiment(T, {}, {"y": unit * Y})
    fit = gr.fit(model, data, ["scale(w)"], gr.KalmanML(initial_covariance="diffuse"))
    q = float(fit["scale(w)"]) ** 2
    P, x = (0.2 * unit) ** 2, unit * Y[0]  # after the first sample nothing but its noise
    ahead = fit.predict(horizon=1)["y"].values
    for k in range(1, len(T)):
        P = P + q * (T[k] - T[k - 1])
        S = P + (0.2 * unit) ** 2
        assert ahead[:2, k] == pytest.approx([x, np.sqrt(S)], rel=1e-7)
        x, P = x + P / S * (unit * Y[k] - x), P - P**2 / S
    assert fit.states()["x"].values[0, :2, -1] == pytest.approx([x, np.sqrt(P)], rel=1e-7)
    assert np.isnan(ahead[0, 0]) and np.isinf(ahead[1, 0])


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_a_trend_is_the_limit_of_large_variances(horizon: int) -> None:
    """Irregular samples, one of them missing; known is what has two samples before its origin."""
    values = Y.copy()
    values[3] = np.nan
    data = gr.Experiment(T, {}, {"y": values, "z": 2 * np.exp(-T)})
    flat, wide = (followed(Trend(), data, {"x": v, "v": v}) for v in (np.inf, LARGE))
    assert float(flat["scale(w)"]) == pytest.approx(float(wide["scale(w)"]), rel=1e-4)
    same(*(f.predict(horizon=horizon)["y"].values for f in (flat, wide)), 1 + horizon)
    assert flat.predict(horizon=horizon)["z"].values == pytest.approx(wide.predict(horizon=horizon)["z"].values)
    states = [f.states() for f in (flat, wide)]
    same(*(s["v"].values[0] for s in states), 1)
    for name in ("x", "v", "u"):
        assert states[0][name].values[1] == pytest.approx(states[1][name].values[1], rel=3e-3, abs=1e-3)


def test_what_no_sample_tells_stays_open_and_the_rest_is_known() -> None:
    class Pair(gr.Model):
        x, v = gr.Variable(start=0.0), gr.Variable(start=0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y, z = gr.Output(x, noise=0.2), gr.Output(v, noise=0.2)
        equations = [der(x) == w, der(v) == -0.1 * v]

    both = {"y": Y, "z": np.full(10, 1.0)}
    fit = gr.fit(
        Pair(), [gr.Experiment(T, {}, both, name="both"), gr.Experiment(T, {}, both, name="again")], ["scale(w)"],
        gr.KalmanML(initial_covariance="diffuse"),
    )  # fmt: skip
    alone = gr.Experiment(T + 100, {}, {"y": Y}, name="alone")
    found, ahead = fit.states(alone), fit.predict(alone, horizon=1)
    assert np.isfinite(found["x"].values).all() and np.isinf(found["v"].sel(statistic="std").values).all()
    assert np.isfinite(ahead["y"].values[:, 1:]).all() and np.isnan(ahead["z"].values[0]).all()


def test_from_the_start_nothing_is_known() -> None:
    fit = followed(Level(), gr.Experiment(T, {}, {"y": Y}), "diffuse")
    assert np.isnan(fit.predict(horizon=np.inf)["y"].values[0]).all()
    assert np.isfinite(fit.predict()["y"].values).all()


def test_the_rest_of_what_a_fit_can_do(tmp_path: Any) -> None:
    fit = followed(Level(), gr.Experiment(T, {}, {"y": Y}, name="level"), {"x": np.inf})
    other = gr.Experiment(T + 50, {}, {"y": Y + 1}, name="other")
    checked = fit.validate(other)
    assert np.isfinite(checked.residuals()["residual"]).all()
    fit.plot()
    fit.save(tmp_path / "fit.nc")
    assert gr.load(tmp_path / "fit.nc").predict(horizon=1)["y"].values == pytest.approx(
        fit.predict(horizon=1)["y"].values, nan_ok=True
    )
    assert fit.report(tmp_path / "fit.html").is_file()


def test_nonlinear_filters_and_strange_variances_are_refused() -> None:
    class Bent(gr.Model):
        x = gr.Variable(start=1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(x, noise=0.2)
        equations = [der(x) == -(x**3) + w]

    with pytest.raises(gr.EstimationError, match="not linear: give finite variances"):
        followed(Bent(), gr.Experiment(T, {}, {"y": Y}), {"x": np.inf})
    with pytest.raises(gr.EstimationError, match=r"np\.inf where nothing is known"):
        gr.KalmanML(initial_covariance={"x": -1.0})
    with pytest.raises(gr.EstimationError, match="robust=None"):
        gr.KalmanML(initial_covariance={"x": np.inf}, robust=3.0)


def test_bands_with_parameters_stay_open_where_nothing_is_known() -> None:
    fit = followed(Level(), gr.Experiment(T, {}, {"y": Y}), "diffuse")
    found = fit.predict(horizon=1, bands="all")["y"].values
    assert np.isinf(found[1, 0]) and np.isfinite(found[:, 1:]).all()
    assert (found[1, 1:] >= fit.predict(horizon=1)["y"].values[1, 1:]).all()
