"""Rates of first-order noise into states: finite, as ``well_posedness`` says, or refused in words that agree."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError

NOISE = gr.spectra.lowpass(bandwidth=1.5)
TIMES = np.linspace(0, 3, 4)
GIVEN = {"realizations": 8, "step": 0.1, "rtol": 1e-4}


class Rough(gr.Model):
    a = gr.Parameter(0.8)
    x = gr.Variable(0.0)
    w = gr.Disturbance(NOISE)
    y = gr.Output(x)
    equations = [der(x) == -x + a * der(w)]


class Rewritten(gr.Model):
    a = gr.Parameter(0.8)
    x, q = gr.Variable(0.0, fixed=True), gr.Variable()
    w = gr.Disturbance(NOISE)
    y = gr.Output(x)
    equations = [q == x - a * w, der(q) == -x]


class Twice(gr.Model):
    """The second derivative of second-order noise."""

    x, v = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.5, order=2))
    equations = [der(x) == v, der(v) == -x - v + der(w, 2)]


class TwiceRewritten(gr.Model):
    x, q = gr.Variable(0.0), gr.Variable()
    v = gr.Variable(0.0, fixed=True)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.5, order=2))
    equations = [der(x) == v, q == v - der(w), der(q) == -x - v]


@pytest.mark.parametrize(("rough", "plain"), [(Rough, Rewritten), (Twice, TwiceRewritten)])
def test_paths_are_those_of_the_rewritten_model(rough, plain):
    assert gr.well_posedness(rough())
    one, two = (gr.simulate(m(), TIMES, **GIVEN) for m in (rough, plain))
    np.testing.assert_allclose(one.x, two.x, atol=1e-9)
    assert float(one.x[:, 0].std()) < 1e-9 < float(one.x[:, -1].std())


def test_derivatives_follow_the_change_of_coordinates():
    given = GIVEN | {"realizations": 3}
    found = gr.simulate(Rough(), TIMES, sensitivities=["a", "scale(w)"], **given)
    for k, name in enumerate(("a", "scale(w)")):
        value = {"a": 0.8, "scale(w)": 1.0}[name]
        ends = [gr.simulate(Rough(), TIMES, parameters={name: value + e}, **given) for e in (1e-5, -1e-5)]
        np.testing.assert_allclose(found["d(x)"][..., k], (ends[0].x - ends[1].x) / 2e-5, atol=1e-7)


def test_other_forms_are_refused_without_a_wrong_verdict():
    class Scaled(gr.Model):
        x = gr.Variable(0.0)
        w = gr.Disturbance(NOISE)
        equations = [der(x) == -x + (1 + x**2) * der(w)]

    with pytest.raises(ModelError, match=r"drives x by der\(w\), which has no value at an instant.*q == x - w"):
        gr.simulate(Scaled(), TIMES, **GIVEN)


@pytest.mark.parametrize(("spectrum", "loss"), [(NOISE, (1 - np.exp(-0.15)) / 3), (gr.spectra.matern32(1.0), None)])
def test_what_lines_lose_is_told(spectrum, loss):
    class Plain(gr.Model):
        x = gr.Variable(0.0)
        w = gr.Disturbance(spectrum)
        equations = [der(x) == -x + w]

    run = gr.simulate(Plain(), TIMES, **GIVEN)
    expected = (1 - (1 + np.sqrt(3) * 0.1) * np.exp(-np.sqrt(3) * 0.1)) / 3 if loss is None else loss
    assert run.attrs["linear_loss"] == pytest.approx(expected, rel=1e-6)
    assert gr.simulate(Plain(), TIMES, between="exact", **GIVEN).attrs["linear_loss"] == 0
