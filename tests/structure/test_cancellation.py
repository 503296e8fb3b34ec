"""Rounding left of cancelled terms is no term; a symbol that stands in a relation only has not cancelled."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class OfInput(gr.Model):
    """Twice the first equation from the second: v = [u > 0.5], which jumps and would be differentiated."""

    x, y, v, u = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Input()
    equations = [der(x) + y == -x, 2 * der(x) + 2 * y == v - 2 * x - gr.where(u > 0.5, 1.0, 0.0), der(v) == -y - v]


class Nested(gr.Model):
    x, y, v, q = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Variable(0.0)
    hidden = gr.where(gr.floor(q) > 3.5, 1.0, 0.0)
    equations = [der(q) == 1, der(x) + y == -x, 2 * der(x) + 2 * y == v - 2 * x - hidden, der(v) == -y - v]


class OfState(gr.Model):
    x, y, v, q = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Variable(0.0)
    equations = [der(q) == 1, der(x) + y == -x, 2 * der(x) + 2 * y == v - 2 * x - gr.sign(q - 2), der(v) == -y - v]


@pytest.mark.parametrize("model", [OfInput, Nested, OfState])
def test_a_relation_in_a_hidden_equation_is_not_lost(model: type[gr.Model]) -> None:
    with pytest.raises(gr.StructureError, match="makes it jump"):
        gr.analyze(model())


def test_a_relation_that_cancels_is_no_obstacle() -> None:
    """It stands in both equations: the hidden one is v = sin t, and y = −v' − v."""

    class Cancelling(gr.Model):
        x, y, v, u = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Input()
        gust = 0.3 * gr.where(u > 0.5, 1.0, 0.0)
        equations = [
            der(x) + y == -x + gust,
            2 * der(x) + 2 * y == v - gr.sin(gr.time) - 2 * x + 2 * gust,
            der(v) == -y - v,
        ]

    t = np.linspace(0, 3, 4)
    got = gr.simulate(Cancelling(), t, inputs={"u": ([0.0, 1.5, 3.0], [0.0, 1.0, 1.0])})
    assert np.abs(got["v"].values - np.sin(t)).max() < 1e-12
    assert np.abs(got["y"].values + np.cos(t) + np.sin(t)).max() < 1e-10
