"""A trajectory that slides along a switch that is not held is refused by the state that switches, not as one that is
merely long."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.structure import held_events


class Thermostat(gr.Model):
    T = gr.Variable(15.03)
    equations = [der(T) == -0.2 * (T - 10) + gr.where(T < 20.0, 3.0, 0.0)]


class Friction(gr.Model):
    v, u = gr.Variable(1.003), gr.Input()
    equations = [der(v) == u - gr.sign(v)]


@pytest.mark.parametrize("model, inputs, name", [(Thermostat(), {}, "T"), (Friction(), {"u": 0.3}, "v")])
def test_sliding_is_named(
    model: gr.Model, inputs: dict[str, float], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_events, "MAX_RELATIONS_HELD", 0)
    with (
        pytest.warns(UserWarning, match="at most 0 are located"),
        pytest.raises(gr.SimulationError, match=f"slides along the switch of a relation of {name}: both sides"),
    ):
        gr.simulate(model, np.linspace(0, 20, 21), inputs=inputs, method="explicit", max_steps=3000)


def test_a_long_run_is_not_called_sliding() -> None:
    class Turning(gr.Model):
        x, v = gr.Variable(1.0), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == -x + gr.where(x > 5.0, 1.0, 0.0)]

    with pytest.raises(gr.SimulationError, match=r"steps were used up at t = [^,]*\. Give a larger max_steps="):
        gr.simulate(Turning(), [0.0, 1e3], max_steps=50)
