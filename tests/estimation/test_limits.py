"""Limits of intervals: levels on the log scale, one-sided ones at bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

import grisaille as gr
from grisaille import der
from grisaille.estimation import with_levels

T = np.linspace(0.0, 4.0, 41)
Y = np.exp(-T) + 0.3 * np.random.default_rng(0).standard_normal(41)


class Decay(gr.Model):
    """A decay that was not shaken."""

    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.3)
    equations = [der(x) == -a * x + w]


class Line(gr.Model):
    """y = s·u with s held at a bound: everything in closed form."""

    s = gr.Parameter(1.0, bounds=(1.0, 5.0))
    u = gr.Input()
    y = gr.Output(s * u, noise=0.1)
    equations: list[object] = []


def test_a_level_at_zero_has_the_limit_of_its_note() -> None:
    data = gr.Experiment(T, {}, {"y": Y})
    fit = gr.fit(Decay(), data, ["a", "scale(w)", "noise(y)"], gr.KalmanML())
    low, high = fit.intervals(method="wald").loc["scale(w)"]
    (note,) = [n for n in fit.notes if n.startswith("zero: scale(w)")]
    said = float(note.partition("limit about ")[2].split()[0])
    assert low == 0 and high == pytest.approx(said, rel=2e-3)
    # the likelihood there, the others held, has fallen by half of 1.645²
    held = fit.parameters["estimate"].to_dict()
    there = gr.evaluate(Decay(), data, gr.KalmanML(), {**held, "scale(w)": high})
    assert fit.log_likelihood - there.log_likelihood == pytest.approx(1.3528, rel=0.02)


def test_the_table_has_the_limit_with_the_others_following() -> None:
    data = gr.Experiment(T, {}, {"y": Y})
    fit = gr.fit(Decay(), data, ["a", "scale(w)", "noise(y)"], gr.KalmanML())
    low, high = fit.intervals().loc["scale(w)"]
    assert low == 0 and high > fit.intervals(method="wald").loc["scale(w)", "upper"]
    assert (fit.parameters.loc["scale(w)", ["lower", "upper"]].to_numpy(float) == [low, high]).all()
    assert f"[0, {high:.6g}]" in str(fit) and "one-sided: scale(w)" in str(fit)
    with_limit = with_levels(Decay(), {"w": float(high)}, {})
    other = gr.fit(with_limit, data, ["a", "noise(y)"], gr.KalmanML(), guess={"a": 1.0, "noise(y)": 0.3})
    assert fit.log_likelihood - other.log_likelihood == pytest.approx(0.5 * student.ppf(0.95, 38) ** 2, rel=2e-3)


def test_levels_are_symmetric_in_their_logarithm() -> None:
    fit = gr.fit(Decay(), gr.Experiment(T, {}, {"y": Y}), ["a", "noise(y)"], gr.KalmanML())
    low, high = fit.intervals().loc["noise(y)"]
    assert low * high == pytest.approx(float(fit["noise(y)"]) ** 2) and low > 0
    wide = fit.intervals(0.999999).loc["noise(y)"]
    assert 0 < wide.iloc[0] < low < high < wide.iloc[1]
    symmetric = fit.intervals().loc["a"]
    assert symmetric.sum() / 2 == pytest.approx(float(fit["a"]))


@pytest.mark.parametrize(("bounds", "start"), [((1.0, 5.0), 2.0), ((0.1, 0.9), 0.5)])
def test_an_ordinary_bound_has_a_one_sided_limit(bounds: tuple[float, float], start: float) -> None:
    u, y = np.linspace(0.5, 1.5, 20), np.empty(20)
    y[:] = 0.95 * u + 0.1 * np.random.default_rng(4).standard_normal(20)
    data = gr.Experiment(None, {"u": u}, {"y": y})
    fit = gr.fit(Line(), data, ["s"], bounds={"s": bounds}, guess={"s": start})
    low, high = fit.intervals(0.9).loc["s"]
    held = float(fit["s"])
    assert held in (pytest.approx(bounds[0]), pytest.approx(bounds[1])) and held in (low, high)
    other = high if held == low else low

    def cost(s: float) -> float:
        return 0.5 * float(np.sum((y - s * u) ** 2)) / 0.01

    assert cost(other) - cost(held) == pytest.approx(0.5 * 1.2815515655**2, rel=1e-6)  # exact: the model is linear
