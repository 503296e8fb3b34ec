"""Initial equations that say what a sticking friction says already: the open load is not put on the friction."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr

JOINT = """
model Joint "A load that a motor and a sticking friction hold"
  parameter Real load = 1.0;
  parameter Real k = 2.0;
  parameter Real tau0 = 0.5;
  Real w, phi, sa, tau, a;
  Real i(start = 0.0) "Current of the motor";
  Real x(start = 0.0) "Integral of a controller";
  Boolean forward(start = false, fixed = true), backward(start = false, fixed = true), locked(start = false);
  Integer mode(start = 3, fixed = true);
initial equation
  w = 0.0;
  phi = 0.0;
  der(w) = 0.0;
  der(i) = 0.0;
equation
  der(phi) = w;
  der(w) = a;
  0.1 * a = k * i - load - tau;
  0.05 * der(i) = x - i;
  der(x) = 5.0 * ((if time < 0.5 then 0.0 else time - 0.5) - phi);
  forward = pre(mode) == 0 and (sa > tau0 or pre(forward) and sa > tau0) or initial() and w > 0.0;
  backward = pre(mode) == 0 and (sa < -tau0 or pre(backward) and sa < -tau0) or initial() and w < 0.0;
  locked = not (pre(mode) == 1 or forward or pre(mode) == -1 or backward);
  tau = if locked then sa else if forward or pre(mode) == 1 then tau0 else -tau0;
  a = if locked then 0.0 else if forward or pre(mode) == 1 then sa - tau0 else sa + tau0;
  mode = if (pre(mode) == 1 or forward) and w > 0.0 then 1
         else if (pre(mode) == -1 or backward) and w < 0.0 then -1 else 0;
end Joint;
"""


@pytest.fixture(scope="module")
def joint() -> gr.Model:
    return gr.read_modelica(JOINT)


def test_a_friction_that_sticks_is_not_loaded_until_it_slips_at_once(joint: gr.Model) -> None:
    run = gr.simulate(joint, np.linspace(0.0, 1.0, 9))
    # the motor holds the load, i = load/k; x = i + 5/2 (t - 1/2)² until k i - load = tau0
    assert float(run["i"][0]) == pytest.approx(0.5, abs=1e-9)
    assert run["mode"].values[:5].tolist() == [0.0] * 5
    assert np.abs(run["w"].values[:5]).max() < 1e-9
    assert run["mode"].values[-1] == 1.0
    assert "leave sa open: zero was taken" in run.attrs["status"]


def test_the_open_unknown_can_be_given(joint: gr.Model) -> None:
    run = gr.simulate(joint, np.linspace(0.0, 0.4, 3), start={"sa": 0.2})
    assert float(run["i"][-1]) == pytest.approx(0.6, abs=1e-9)
    assert "leave sa open" not in run.attrs["status"]


def test_derivatives_follow_the_start_that_was_taken(joint: gr.Model) -> None:
    run = gr.simulate(joint, np.linspace(0.0, 0.4, 3), sensitivities=["load", "k"])
    assert run["d(i)"].values == pytest.approx(np.tile([0.5, -0.25], (3, 1)), abs=1e-9)
    assert run["d(sa)"].values == pytest.approx(np.zeros((3, 2)), abs=1e-9)


def test_starts_count_where_initial_equations_are_too_few() -> None:
    model = gr.read_modelica(JOINT.replace("  der(i) = 0.0;\n", ""))
    run = gr.simulate(model, np.linspace(0.0, 0.1, 2), start={"i": 0.4})
    assert float(run["i"][0]) == pytest.approx(0.4)
    assert "open" not in run.attrs["status"]
