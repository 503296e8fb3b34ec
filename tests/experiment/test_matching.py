"""An experiment that suits a model passes, with remarks where a look is due."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.experiment import Experiment

T = np.arange(3.0)


class Tank(gr.Model):
    """A tank."""

    k = gr.Parameter(0.5)
    h = gr.Variable(start=1.0, bounds=(0.0, 5.0))
    q, extra = gr.Input("m3/s"), gr.Input(default=0.0)
    level = gr.Output(h, unit="m")
    flow = gr.Output(k * h)
    equations = [der(h) == q + extra - k * h]


class Line(gr.Model):
    """A static model."""

    a = gr.Parameter(1.0)
    x = gr.Input()
    y = gr.Output(a * x)


def test_a_complete_experiment_passes():
    data = Experiment(T, {"q": T}, {"level": T, "flow": T}, start={"h": 2.0}, constants={"k": 0.4})
    assert data.check(Tank()) == ()


def test_remarks_on_units_and_unmeasured_outputs():
    data = Experiment(T, {"q": T}, {"level": T}, units={"q": "l/s", "level": "m"})
    assert data.check(Tank()) == (
        "Output flow of Tank is not in the data.",
        "q is in l/s in the data and in m3/s in Tank; nothing is converted.",
    )


def test_independent_rows_suit_a_static_model():
    assert Experiment(inputs={"x": T}, outputs={"y": T}).check(Line()) == ()
    assert Experiment(T, {"x": T}, {"y": T}).check(Line()) == ()


def test_unknown_starts_need_no_value_within_bounds():
    data = Experiment(T, {"q": T}, {"level": T, "flow": T}, start={"h": None})
    assert data.check(Tank()) == ()
    assert data.replace(start={"h": gr.Normal(9.0, 1.0)}).check(Tank()) == ()


def test_a_vector_as_a_whole_is_told_apart_from_its_entries():
    class Two(gr.Model):
        h = gr.Variable(1.0, size=2)
        y = gr.Output(h[0])
        equations = [der(h[0]) == -h[0], der(h[1]) == h[0] - h[1]]

    with pytest.raises(gr.DataError, match=r"It is a vector: name its entries, 'h\[0\]', 'h\[1\]'\."):
        Experiment(T, {}, {"y": T}, start={"h": None}).check(Two())
