"""Intervals by inverted tests: the records they draw, exact cases, and what they correct."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.study import Inversion, draw_records, quantile_error

U = np.linspace(0.1, 2.0, 12)


class Line(gr.Model):
    a = gr.Parameter(1.0)
    u = gr.Input()
    y = gr.Output(a * u)
    equations: list[object] = []


class Wandering(gr.Model):
    """A process about an unknown mean."""

    a, mu = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(0.0)
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == a * (mu - x) + w]


METHOD = gr.KalmanML(initial_covariance="stationary")


def wandering_fit(n: int = 41) -> gr.Fit:
    random, f, x = np.random.default_rng(1), np.exp(-0.2), np.zeros(n)
    for k in range(1, n):
        x[k] = f * x[k - 1] + 0.5 * np.sqrt((1 - f**2) / 2) * random.standard_normal()
    data = gr.Experiment(0.2 * np.arange(n), {}, {"y": x + 0.1 * random.standard_normal(n)})
    return gr.fit(Wandering(), data, ["a", "mu", "scale(w)"], METHOD)


def test_drawn_records_have_the_law_of_the_model():
    fit = wandering_fit()
    drawn = np.array([values[0] for values in draw_records(fit, np.array([2.0, 0.7, 0.8]), 4000, 3)])
    stationary = 0.8**2 / 4
    assert drawn.shape == (4000, 41)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.7 * (1 - np.exp(-2 * 0.2 * np.arange(41))), atol=0.04)
    np.testing.assert_allclose(drawn.var(axis=0), stationary + 0.01, rtol=0.12)
    next_one = [np.cov(drawn[:, k], drawn[:, k + 1])[0, 1] for k in range(40)]
    np.testing.assert_allclose(np.mean(next_one), stationary * np.exp(-0.4), rtol=0.03)
    again = np.array([values[0] for values in draw_records(fit, np.array([2.0, 0.7, 0.8]), 5, 3)])
    assert (again == drawn[:5]).all()


def test_a_linear_model_has_students_interval():
    y = 1.3 * U + 0.2 * np.random.default_rng(0).standard_normal(12)
    fit = gr.fit(Line(), gr.Experiment(None, {"u": U}, {"y": y}), ["a"])
    exact, found = fit.intervals(method="wald").loc["a"], fit.intervals(method="bootstrap", samples=160, seed=2)
    width = exact["upper"] - exact["lower"]
    np.testing.assert_allclose(found.loc["a"], exact, atol=0.12 * width)
    assert found.attrs["kinds"] == {"a": "bootstrap"} and "160 records" in found.attrs["said"]
    note = found.attrs["notes"][0]
    assert "bootstrap limits of a have a Monte Carlo error of up to" in note and "samples=640" in note
    claimed = float(note.split("up to ")[1].split()[0])
    assert 0.2 < claimed < 1.0 and np.abs(found.loc["a"] - exact).max() < 4.5 * claimed * fit["a"].std_error


def test_the_error_of_a_quantile_is_that_over_seeds():
    draws = np.random.default_rng(0).standard_t(10, size=(400, 300))
    spread = np.quantile(draws, 0.025, axis=1, method="weibull").std()
    assert np.median([quantile_error(row, 0.025) for row in draws[:50]]) == pytest.approx(spread, rel=0.3)


def test_the_law_of_the_root_is_not_normal_near_a_unit_root():
    """Over records with a T = 1.6 and an estimated mean, estimates are too fast: the signed root lies above zero."""
    roots = Inversion(wandering_fit(), 0.95, 80, 0).quantile(0, 0.2, 1, [40]).roots
    assert len(roots) == 40 and roots.mean() > 0.5


def test_mistakes_are_told():
    y = 1.3 * U + 0.2 * np.random.default_rng(0).standard_normal(12)
    data = gr.Experiment(None, {"u": U}, {"y": y})
    with pytest.raises(EstimationError, match="at least 80"):
        gr.fit(Line(), data, ["a"]).intervals(method="bootstrap", samples=3)
    with pytest.raises(EstimationError, match="loss='linear'"):
        gr.fit(Line(), data, ["a"], gr.OutputError(loss="huber")).intervals(method="bootstrap")
