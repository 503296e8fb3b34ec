"""Events of Modelica texts against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError


def run(body: str, times: list[float]) -> object:
    return gr.simulate(gr.read_modelica(model(body)), np.array(times), rtol=1e-8)


def test_a_ball_bounces() -> None:
    body = """
    parameter Real e = 0.5;
    Real h(start = 4.905, fixed = true);
    Real v(start = 0.0, fixed = true);
    Integer bounces(start = 0);
    equation
    der(h) = v;
    der(v) = -9.81;
    when h < 0.0 then
      reinit(v, -e * pre(v));
      bounces = pre(bounces) + 1;
    end when;
    """
    result = run(body, [0.0, 1.5, 2.25])
    np.testing.assert_allclose(result["h"], [4.905, 4.905 * 0.25, 0.25 * 4.905 / 4], atol=1e-5)
    np.testing.assert_array_equal(result["bounces"], [0, 1, 2])


def test_a_pulse_train_of_the_library() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Real y;
    Real T_start;
    Integer count;
    equation
    der(x) = y;
    y = if time < T_start + 0.05 then 10.0 else 0.0;
    when integer((time + 0.035) / 0.1) > pre(count) then
      count = pre(count) + 1;
      T_start = time;
    end when;
    initial algorithm
    count := integer((time + 0.035) / 0.1);
    T_start := count * 0.1 - 0.035;
    """
    result = run(body, [0.0, 0.05, 0.1, 0.5])
    np.testing.assert_allclose(result["x"], [0.0, 0.15, 0.5, 0.15 + 0.5 * 4 + 0.35], atol=1e-6)
    np.testing.assert_array_equal(result["count"], [0, 0, 1, 5])


def test_sampled_with_elsewhen_and_edges() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    discrete Real held(start = -1.0);
    Boolean tick;
    Boolean high;
    Integer n(start = 0);
    equation
    der(x) = 1.0;
    tick = sample(0.0, 0.25);
    high = x > 0.6;
    when tick then
      held = x;
    end when;
    when edge(high) then
      n = pre(n) + 10;
    elsewhen {x > 0.3, x > 0.8} then
      n = pre(n) + 1;
    end when;
    """
    result = run(body, [0.0, 0.2, 0.4, 0.7, 1.0])
    np.testing.assert_allclose(result["held"], [0.0, 0.0, 0.25, 0.5, 1.0], atol=1e-9)
    np.testing.assert_array_equal(result["n"], [0, 0, 1, 11, 12])


def test_a_relay_remembers() -> None:
    body = """
    Real T(start = 20.0, fixed = true);
    Boolean on(start = true, fixed = true);
    equation
    der(T) = (if on then 10.0 else -10.0);
    on = T < 19.0 or pre(on) and T < 21.0;
    """
    result = run(body, [0.0, 0.05, 0.15, 0.25, 0.35, 0.55])
    np.testing.assert_allclose(result["T"], [20.0, 20.5, 20.5, 19.5, 19.5, 20.5], atol=1e-6)
    np.testing.assert_array_equal(result["on"], [1, 1, 0, 0, 1, 0])


def test_an_algorithm_with_when_and_initial() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Integer state(start = 5);
    Real level;
    equation
    der(x) = level;
    level = if state == 2 then 2.0 else if state == 1 then 1.0 else 7.0;
    algorithm
    when initial() then
      state := 1;
    elsewhen x > 1.0 then
      TARGET := pre(state) + 1;
    end when;
    """
    with pytest.raises(ModelError, match="'y' gets a value at events but is not a variable"):
        gr.read_modelica(model(body.replace("TARGET", "y")))
    result = run(body.replace("TARGET", "state"), [0.0, 0.5, 2.0])
    np.testing.assert_allclose(result["x"], [0.0, 0.5, 3.0], atol=1e-6)


def test_friction_sticks_and_slips() -> None:
    body = """
    constant Real limit = 1.0;
    Real v(start = 0.0, fixed = true);
    Real sa;
    Real a;
    Real f;
    Boolean forward;
    Boolean locked;
    Integer mode(start = 3, fixed = true);
    equation
    der(v) = a;
    a = 2.0 * time - f;
    forward = pre(mode) == 0 and (sa > limit or pre(forward) and sa > limit) or initial() and v > 0.0;
    locked = not (pre(mode) == 1 or forward);
    a = if locked then 0.0 else sa - limit;
    f = if locked then sa else limit;
    mode = if (pre(mode) == 1 or forward) and v > 0.0 then 1 else 0;
    """
    result = run(body, [0.0, 0.4, 0.6, 1.5])
    np.testing.assert_allclose(result["v"], [0.0, 0.0, 0.01, 1.0], atol=1e-5)
    np.testing.assert_allclose(result["f"], [0.0, 0.8, 1.0, 1.0], atol=1e-6)


def test_a_table_of_time_with_jumps() -> None:
    from modelica.test_tables import TABLE

    before = (
        TABLE.replace("CombiTable1D_init3", "CombiTimeTable_init3")
        .replace("CombiTable1D_getValue('id', 'column', 'u')", "CombiTimeTable_getValue('id', 'column', 'u', 'n', 'p')")
        .replace("input Real 'u';", "input Real 'u';\n  input Real 'n';\n  input Real 'p';")
        .replace("input Integer 'columns'[:];", "input Real 'start';\n    input Integer 'columns'[:];")
        .replace("size('table', 2), 'columns'", "size('table', 2), 'start', 'columns'")
    )
    body = """
    parameter 'Table' 'id' = 'Table'("NoName", "NoName", {{0.0, 1.0}, {1.0, 1.0}, {1.0, 3.0}, {2.0, 5.0}}, 0.0, {2},
      'Smoothness'.'LinearSegments', 'Extrapolation'.'HoldLastPoint');
    Real x(start = 0.0, fixed = true);
    Real next(start = 0.0);
    equation
    der(x) = 'value'('id', 1, time, next, pre(next));
    when initial() then
      next = 1.0;
    end when;
    """
    result = gr.simulate(gr.read_modelica(model(body, before)), np.array([0.0, 1.0, 2.0, 3.0]), rtol=1e-9)
    np.testing.assert_allclose(result["x"], [0.0, 1.0, 5.0, 10.0], atol=1e-7)


def test_a_delay_by_a_parameter_without_states() -> None:
    body = "parameter Real dead = 0.5; Real x, y; equation y = sin(time); x = delay(y + 1, 2*dead);"
    plant, t = gr.read_modelica(model(body)), np.array([0.0, 0.5, 1.5, 3.0])
    result = gr.simulate(plant.replace({"dead": 0.25}), t, rtol=1e-9)
    np.testing.assert_allclose(result["x"], 1 + np.sin(np.maximum(t - 0.5, 0)), atol=1e-8)


def test_a_delay_of_time() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Real y;
    equation
    der(x) = 2.0;
    y = delay(x, 0.5);
    """
    result = run(body, [0.0, 0.25, 1.0, 2.0])
    np.testing.assert_allclose(result["y"], [0.0, 0.0, 1.0, 3.0], atol=1e-7)


def test_a_clock_begins_where_an_initial_algorithm_says() -> None:
    text = """model M
  parameter Real period = 0.5, shift = 0.2;
  parameter Real t0(fixed = false), t1(fixed = false);
  Boolean y;
initial algorithm
  t0 := integer(time/period)*period + mod(shift, period);
  t1 := t0 + 0.5*period;
  if time + period < t1 then t0 := t0 - period; t1 := t1 - period; end if;
  y := time >= t0 and time < t1;
equation
  when sample(t0, period) then y = true; elsewhen sample(t1, period) then y = false; end when;
end M;"""
    times = np.linspace(0.01, 1.99, 34)
    on = ((times - 0.2) % 0.5 < 0.25) & (times >= 0.2)
    assert np.array_equal(gr.simulate(gr.read_modelica(text), [0.0, *times])["y"].values[1:], on)
