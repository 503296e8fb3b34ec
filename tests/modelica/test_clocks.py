"""Clocks as events: what is written inside ``when Clock(…)``."""

from __future__ import annotations

import math

import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.modelica.discrete_time import without_clocks


def test_a_sampled_controller() -> None:
    body = """
    Real x(start = 1, fixed = true); Real u(start = 0); Real xd; parameter Real T = 0.1; Clock c = Clock(T);
  equation
    der(x) = -x + hold(u);
    when c then xd = sample(x); u = 0.1 * previous(u) - 2 * xd; end when;"""
    result = gr.simulate(gr.read_modelica(model(body)), [0.0, 0.05, 0.1, 0.15], rtol=1e-9)
    second = (1 + 2) * math.exp(-0.1) - 2  # u is -2 until then
    assert result["x"].values[2] == pytest.approx(second, abs=1e-7)
    assert result["u"].values == pytest.approx([-2, -2, -0.2 - 2 * second, -0.2 - 2 * second], abs=1e-7)


CLOCKS = {
    "Clock(3, 10)": 2.4,
    "shiftSample(Clock(3, 10), 3)": 2.4,
    "shiftSample(Clock(3, 10), 2, 3)": 2.3,
    "backSample(shiftSample(Clock(0.3), 2, 3), 1, 3)": 2.5,
    "subSample(Clock(Clock(0.3)), 3)": 1.8,
    "superSample(Clock(0.3), 3)": 2.5,
    'Clock(time > 1.25, solverMethod = "Explicit")': 1.25,
    "Clock(time > 1 + hold(x8))": 2.0,
}
"""With the last tick before 2.55."""


def test_the_last_tick_of_each_clock() -> None:
    declared = " ".join(f"Clock c{k} = {clock}; Real x{k}(start = 0);" for k, clock in enumerate(CLOCKS, 1))
    whens = " ".join(f"when c{k} then x{k} = sample(time); end when;" for k in range(1, len(CLOCKS) + 1))
    result = gr.simulate(gr.read_modelica(model(f"{declared} equation {whens}")), [0.0, 2.55])
    found = [float(result[f"x{k}"].values[-1]) for k in range(1, len(CLOCKS) + 1)]
    assert found == pytest.approx(list(CLOCKS.values()), abs=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "Real x; equation x = sample(time, Clock(0.1));",
        "Clock c = shiftSample(Clock(time > 1), 2); Real x; equation when c then x = time; end when;",
        "Clock c = Clock(1); Real x; equation when c then x = superSample(time, 2); end when;",
    ],
)
def test_clocks_that_would_be_inferred_are_left_and_refused(body: str) -> None:
    text = model(body)
    assert without_clocks(text) == text
    with pytest.raises(gr.ModelError, match="Clock"):
        gr.read_modelica(text)


def test_an_output_that_events_set() -> None:
    body = "output Real y; Real x; equation when Clock(1) then y = 2 * time; end when; x = y;"
    assert gr.simulate(gr.read_modelica(model(body)), [0.0, 1.5])["y"].values[-1] == 2.0
