"""Branches between two relations that switch at one instant, which divide by the parameter that is zero then."""

from __future__ import annotations

import numpy as np
import pytest
from modelica import texts

import grisaille as gr
from grisaille.errors import SimulationError
from grisaille.model import Call, Condition, Name, same
from grisaille.modelica import Unreachable

BODY = """
parameter Real rising = 0, falling = 0, width = 0.5, low = 0.75;
Real x(start = 0, fixed = true), y, s(start = 0, fixed = true), down, d(start = 0, fixed = true), by_function;
discrete Real T(start = 0, fixed = true);
Integer count(start = 0, fixed = true);
equation
der(x) = 1;
when integer(time) > pre(count) then
  count = pre(count) + 1;
  T = time;
end when;
y = if time < T + rising then (time - T)/rising
    else if time < T + rising + width then 1
    else if time < T + rising + width + falling then (T + rising + width + falling - time)/falling
    else 0;
der(s) = y;
down = if x > low then (if x > low + falling then 2 else (x - low)/falling) else 1;
der(d) = down + by_function;
by_function = 'f'(x, falling);
"""
FUNCTION = """
function 'f' input Real x; input Real w; output Real y;
algorithm
  if x < 1.2 then y := 0; return; end if;
  if x < 1.2 + w then y := (x - 1.2)/w; else y := 1; end if;
end 'f';
"""


def test_a_ramp_of_no_width_is_a_jump() -> None:
    model, t = gr.read_modelica(texts.model(BODY, FUNCTION)), np.array([0.0, 0.4, 0.6, 1.1, 1.7])
    result = gr.simulate(model, t, rtol=1e-9)
    assert result["y"].values == pytest.approx([1, 1, 0, 1, 0])
    assert result["s"].values == pytest.approx([0, 0.4, 0.5, 0.6, 1.0], abs=1e-7)
    assert result["d"].values == pytest.approx(t + np.maximum(t - 0.75, 0) + np.maximum(t - 1.2, 0), abs=1e-7)
    wide = gr.simulate(model.replace({"falling": 0.2}), t, rtol=1e-9)
    assert wide["y"].values == pytest.approx([1, 1, 0.5, 1, 0], abs=1e-7)
    assert float(wide["s"][-1]) == pytest.approx(1.2, abs=1e-7)


def test_a_division_by_zero_that_is_chosen_is_told() -> None:
    text = "parameter Real r = 0; Real x(start = 0, fixed = true); equation der(x) = if x > 0.5 then 1/r else 1;"
    with pytest.raises(SimulationError, match="division by zero"):
        gr.simulate(gr.read_modelica(texts.model(text)), [0.0, 1.0])


def test_what_formulas_share_is_rewritten_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty choices between formulas of the one before: a number of ways that doubles with each of them."""
    several, one = Name("x"), Name("x")
    for k in range(60):
        apart, alike = (Condition("lt", (Name(name), Name(f"p{k}"))) for name in (f"x{k}", "x"))
        several = Call("where", (apart, Call("div", (several, Name("p"))), several))
        one = Call("where", (alike, Call("div", (one, Name("p"))), one))
    monkeypatch.setattr("grisaille.modelica.unreachable.MAX_REWRITINGS", 300)
    rewritten = Unreachable(lambda name: name.startswith("p"))
    assert same(rewritten(several), several)  # no two conditions compare one quantity
    assert rewritten(one) is one  # too many facts of one quantity: as it is written
