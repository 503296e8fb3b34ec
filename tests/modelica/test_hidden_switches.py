"""Relations of time that stand behind others are switched at, not stepped across."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr


def test_a_pulse_behind_a_start_time() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Real y;
    discrete Real begun(start = 0.0, fixed = true);
    equation
    when sample(0.0, 0.1) then
      begun = time;
    end when;
    y = if time < 0.0 then 1.0 elseif time < begun + 0.03 then 5.0 else 0.0;
    der(x) = y - x;
    """
    run = gr.simulate(gr.read_modelica(model(body)), np.array([0.0, 0.5, 1.0]), rtol=1e-5)
    exact = 0.0
    for _ in range(10):
        exact = (5.0 + (exact - 5.0) * np.exp(-0.03)) * np.exp(-0.07)
    assert float(run.x[-1]) == pytest.approx(exact, abs=1e-6)
    assert run.attrs["event_list"].count("becomes false") == 10
