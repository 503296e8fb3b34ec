"""What rests at its switch stays there, whatever rounding leaves of zero, and leaves it when it moves."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from modelica.texts import model

import grisaille as gr

NOISE = "20.0 * (exp(3.0 * time) * exp(-3.0 * time) - 1.0)"
"""Zero, as rounding leaves it: some 1e-15 of changing sign."""
COUNTS = "Integer n(start = 0, fixed = true); Integer m(start = 0, fixed = true);"
W = "Real w(start = 0.0, fixed = true);"


def run(body: str, stop: float = 2.0, **options: object) -> xr.Dataset:
    return gr.simulate(gr.read_modelica(model(body)), np.linspace(0.0, stop, 9), rtol=1e-8, **options)


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_rounding_fires_nothing(method: str) -> None:
    body = f"""{W} {COUNTS} equation der(w) = {NOISE};
    when w > 0.0 then n = pre(n) + 1; end when; when w < 0.0 then m = pre(m) + 1; end when;"""
    result = run(body, method=method)
    assert np.ptp(result.w.values) > 0.0  # it does wander
    assert not result.n.values.any() and not result.m.values.any() and result.attrs["events"] == 0


def test_rounding_chooses_no_side() -> None:
    body = f"{W} Real x(start = 0.0, fixed = true); equation der(w) = {NOISE}; der(x) = 1.0 - x - 0.5 * sign(w);"
    result = run(body)
    np.testing.assert_allclose(result.x, 1.0 - np.exp(-result.time.values), atol=1e-8)


@pytest.mark.parametrize("power", [1, 2])
def test_what_begins_to_move_is_seen(power: int) -> None:
    body = f"""{W} {COUNTS} Real T(start = 0.0, fixed = true);
    equation der(w) = {NOISE} + max(0.0, time - 1.0) ^ {power};
    when w > 0.0 then n = pre(n) + 1; T = time; end when; when w < 0.0 then m = pre(m) + 1; end when;"""
    result = run(body)
    assert result.n.values[-1] == 1 and not result.m.values.any()
    late = float(result["T"][-1]) - 1.0  # w is a rounding then
    assert 0.0 <= late and late ** (power + 1) / (power + 1) < 1e-11
    assert float(result.w[-1]) == pytest.approx(1.0 / (power + 1), rel=1e-6)


def test_several_leave_their_switches_from_rest_at_once() -> None:
    body = f"""Real x(start = 0.0, fixed = true); Real v(start = 0.0, fixed = true); {COUNTS}
    Real y(start = 0.0, fixed = true); {W}
    equation der(x) = v; der(v) = 1.0; der(y) = w; der(w) = 2.0;
    when x > 0.0 then n = pre(n) + 1; end when; when y > 0.0 then m = pre(m) + 1; end when;"""
    result = run(body)
    assert result.n.values[-1] == 1 and result.m.values[-1] == 1


def test_a_step_that_is_taken_anew_forgets_nothing() -> None:
    body = f"""Real a(start = 1e-32, fixed = true); Real b(start = -1e-32, fixed = true); {COUNTS}
    Real s(start = 0.1, fixed = true); Integer k(start = 0, fixed = true);
    equation der(a) = -1.0; der(b) = 1.0; der(s) = 0.3;
    when a < 0.0 then n = pre(n) + 1; end when; when b > 0.0 then m = pre(m) + 1; end when;
    when s * 11.0 - 1.1 > 0.0 then k = pre(k) + 1; end when;"""
    result = run(body)
    np.testing.assert_allclose(result.a, -result.time.values, atol=1e-12)
    assert max(result[name].values[-1] for name in "nmk") <= 1
