"""Intervals by profiles against independent computations, and when the table takes them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import t as student

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

U = np.array([0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0])
V = 2.0 * U / (0.7 + U) + 0.08 * np.array([0.3, -1.1, 0.8, 1.2, -0.9, -0.4, 0.5])


class Uptake(gr.Model):
    """Michaelis and Menten: linear in v, not in K."""

    v, K = gr.Parameter(2.0), gr.Parameter(0.7, bounds=(0.01, 100.0))
    u = gr.Input()
    y = gr.Output(v * u / (K + u))
    equations: list[object] = []


class Line(gr.Model):
    a, b = gr.Parameter(1.0), gr.Parameter(0.0)
    u = gr.Input()
    y = gr.Output(a * u + b)
    equations: list[object] = []


class Wandering(gr.Model):
    """Ornstein and Uhlenbeck's process, seen with noise."""

    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + w]


def uptake_squares(K, scale=1.0):
    """Least sum of squares over v, and v."""
    g = U / (K + U)
    v = (V * scale) @ g / (g @ g)
    return float(np.sum((V * scale - v * g) ** 2)), v


def independent_limits(level=0.95):
    """Where the least squares over v have grown by t² s²."""
    best = minimize(lambda k: uptake_squares(k[0])[0], [0.7], method="Nelder-Mead", options={"xatol": 1e-10})
    K, rss = float(best.x[0]), float(best.fun)
    rise = rss * (1 + student.ppf(0.5 + level / 2, 5) ** 2 / 5)
    ends = (1e-3, K), (K, 50.0)
    return [brentq(lambda k: uptake_squares(k)[0] - rise, *e) for e in ends]


def test_a_linear_model_has_walds_for_two_evaluations_each(monkeypatch):
    from grisaille.assessment import Deviances

    counted, plain = [], Deviances.local
    monkeypatch.setattr(Deviances, "local", lambda self, theta: counted.append(theta) or plain(self, theta))
    y = 1.3 * U - 0.2 + 0.1 * np.cos(40 * U)
    fit = gr.fit(Line(), gr.Experiment(None, {"u": U}, {"y": y}), ["a", "b"])
    found = fit.intervals()
    assert set(found.attrs["kinds"].values()) == {"Wald"} and len(counted) <= 5
    np.testing.assert_allclose(found, fit.intervals(method="wald"))
    np.testing.assert_allclose(found, fit.intervals(method="profile"), rtol=1e-4)
    assert "Wald's, within a tenth" in str(fit)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_a_curved_model_has_profiles(scale):
    model = Uptake(v=2.0 * scale)
    fit = gr.fit(model, gr.Experiment(None, {"u": U}, {"y": V * scale}), ["v", "K"])
    found = fit.intervals()
    assert found.attrs["kinds"] == {"v": "Wald", "K": "profile"}  # v: 0.09 of the width
    np.testing.assert_allclose(found.loc["K"], independent_limits(), rtol=1e-3)
    followed = fit.intervals(method="profile").loc["v"]
    np.testing.assert_allclose(followed, fit.profile("v").interval, rtol=1e-3)
    assert np.abs(followed - found.loc["v"]).max() < 0.1 * (found.loc["v", "upper"] - found.loc["v", "lower"])
    assert "profile: K" in str(fit)
    assert (fit.parameters.loc["K", ["lower", "upper"]].to_numpy(float) == found.loc["K"].to_numpy()).all()


def test_a_bound_ends_a_profile():
    low, high = independent_limits()
    inside = {"K": (0.5 * (low + 0.6), 0.9 * high)}
    fit = gr.fit(Uptake(), gr.Experiment(None, {"u": U}, {"y": V}), ["v", "K"], bounds=inside)
    assert tuple(fit.intervals(method="profile").loc["K"]) == pytest.approx(inside["K"])


def test_a_prior_is_part_of_the_deviance():
    prior = gr.Normal(0.9, 0.05)
    fit = gr.fit(Uptake(), gr.Experiment(None, {"u": U}, {"y": V}), ["v", "K"],
                 priors={"K": prior})  # fmt: skip
    np.testing.assert_allclose(fit.intervals(method="profile").loc["K"], fit.profile("K").interval, rtol=1e-3)


def record(seed=1, n=41):
    random, f = np.random.default_rng(seed), np.exp(-0.5)
    x = np.zeros(n)
    for k in range(1, n):
        x[k] = f * x[k - 1] + 0.5 * np.sqrt((1 - f**2) / 2) * random.standard_normal()
    return gr.Experiment(0.5 * np.arange(n), {}, {"y": x + 0.1 * random.standard_normal(n)})


def deviance(a, s, y):
    """−2 log L by a filter of one state, from a stationary start."""
    f, m, P, total = np.exp(-0.5 * a), 0.0, s**2 / (2 * a), 0.0
    for value in y:
        S = P + 0.01
        total += (value - m) ** 2 / S + np.log(S)
        m, P = m + P / S * (value - m), P - P**2 / S
        m, P = f * m, f**2 * P + s**2 * (1 - f**2) / (2 * a)
    return total


def test_kalman_fits_have_the_profiles_of_an_independent_likelihood():
    data = record()
    fit = gr.fit(Wandering(), data, ["a", "scale(w)"], gr.KalmanML(initial_covariance="stationary"))
    y = data.outputs["y"].values
    found = fit.intervals()
    assert found.attrs["kinds"]["a"] == "profile"
    best = deviance(*fit.estimate.theta, y)
    for end in found.loc["a"]:
        least = minimize(lambda s, a=end: deviance(a, np.exp(s[0]), y), [np.log(0.5)], method="Nelder-Mead").fun
        assert least - best == pytest.approx(student.ppf(0.975, 39) ** 2, rel=2e-3)


def test_what_was_asked_for_is_saved(tmp_path, monkeypatch):
    fit = gr.fit(Wandering(), record(), ["a", "scale(w)"], gr.KalmanML(initial_covariance="stationary"))
    asked = fit.intervals()
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    monkeypatch.setattr("grisaille.assessment.profile_intervals.deviances_of", None)
    assert loaded.intervals().equals(asked) and loaded.intervals().attrs == asked.attrs
    assert "profile: a" in str(loaded)


def test_a_loaded_fit_computes_what_was_not_asked_for(tmp_path):
    fit = gr.fit(Wandering(), record(), ["a", "scale(w)"], gr.KalmanML(initial_covariance="stationary"))
    fit.save(tmp_path / "fit.nc")
    np.testing.assert_allclose(gr.load(tmp_path / "fit.nc").intervals(), fit.intervals(), rtol=1e-6)


def test_criteria_without_a_likelihood_say_that_they_have_walds():
    fit = gr.fit(Uptake(), gr.Experiment(None, {"u": U}, {"y": V}), ["v", "K"], gr.OutputError(loss="soft_l1"))
    assert "not a likelihood" in fit.intervals().attrs["said"] and "Wald's, the criterion" in str(fit)
    with pytest.raises(EstimationError, match="loss='linear'"):
        fit.intervals(method="profile")


def test_mistakes_are_told():
    fit = gr.fit(Uptake(), gr.Experiment(None, {"u": U}, {"y": V}), ["v", "K"])
    with pytest.raises(EstimationError, match=r"'auto', .*'profile', 'wald'"):
        fit.intervals(method="exact")
    with pytest.raises(EstimationError, match="samples= goes with method='bootstrap'"):
        fit.intervals(samples=10)
    with pytest.raises(EstimationError, match="between 0 and 1"):
        fit.intervals(95)


def test_levels_that_are_zero_move_with_a_profile():
    """scale(w) takes over what noise(y), zero at the estimate, explains further down: both ways find that."""
    data = record(1)
    fit = gr.fit(Wandering(), data, ["a", "scale(w)", "noise(y)"], gr.KalmanML(initial_covariance="stationary"))
    assert float(fit["noise(y)"]) == 0
    found, walked = fit.intervals(method="profile").loc["scale(w)"], fit.profile("scale(w)", points=3)
    np.testing.assert_allclose(found, walked.interval, rtol=5e-3)
    assert walked.table["noise(y)"].max() > 0.05
