"""Formulas of time that jump or bend: steps end there and see one side of the jump."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, floor, maximum, minimum, time, where
from grisaille.errors import DataError, ModelError

TIMES = np.linspace(0.0, 10.0, 11)


class Pulse(gr.Model):
    """A pulse much shorter than the output interval."""

    width = gr.Parameter(0.2)
    x = gr.Variable(0.0)
    equations = [der(x) == where((time > 5) & (time < 5 + width), 1.0, 0.0)]


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_short_pulse_is_not_stepped_over(method: str) -> None:
    run = gr.simulate(Pulse(), TIMES, method=method)
    assert float(run.x[-1]) == pytest.approx(0.2, abs=1e-12)


def test_instants_follow_parameters() -> None:
    run = gr.simulate(Pulse(), TIMES, parameters={"width": 0.05})
    assert float(run.x[-1]) == pytest.approx(0.05, abs=1e-12)


def test_periodic_sawtooth_by_floor() -> None:
    class Saw(gr.Model):
        x = gr.Variable(0.0)
        equations = [der(x) == time / 0.7 - floor(time / 0.7)]

    run = gr.simulate(Saw(), TIMES, rtol=1e-9)
    whole, part = np.divmod(TIMES, 0.7)
    assert np.abs(run.x - (0.35 * whole + part**2 / 1.4)).max() < 1e-9


def test_bends_are_step_ends() -> None:
    """A ramp that begins at t = 3.3 is integrated exactly by every method of order two and above."""

    class Ramp(gr.Model):
        x = gr.Variable(0.0)
        equations = [der(x) == maximum(time - 3.3, 0)]

    run = gr.simulate(Ramp(), TIMES)
    assert np.abs(run.x - np.maximum(TIMES - 3.3, 0) ** 2 / 2).max() < 1e-12


PERIOD = 0.7


class Train(gr.Model):
    """A train of pulses: conditions on a phase that itself jumps."""

    x = gr.Variable(0.0)
    phase = time / PERIOD - floor(time / PERIOD)
    equations = [der(x) == where((phase > 0.2) & (phase < 0.3), 1.0, 0.0)]


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_switches_within_switches(method: str) -> None:
    run = gr.simulate(Train(), TIMES, method=method)
    whole, part = np.divmod(TIMES / PERIOD, 1)
    assert np.abs(run.x - PERIOD * (0.1 * whole + np.clip(part - 0.2, 0, 0.1))).max() < 1e-12
    assert run.attrs["rejected_steps"] < 5


class Clipped(Train):
    """A periodic trapezoid by minimum and maximum, and its slope."""

    v, slope = gr.Variable(), gr.Variable()

    def voltage(self):
        return maximum(0, minimum(1, minimum(10 * self.phase, 10 * (0.5 - self.phase))))

    def equations(self):
        yield self.v == self.voltage()
        yield self.slope == der(self.v)
        yield der(self.x) == self.v


class Cases(Clipped):
    """The same by conditions: each jumps, the trapezoid does not."""

    def voltage(self):
        phase = self.phase
        return where(phase < 0.1, 10 * phase, where(phase < 0.4, 1.0, where(phase < 0.5, 10 * (0.5 - phase), 0.0)))


@pytest.mark.parametrize("model", [Clipped(), Cases()], ids=["clipped", "cases"])
def test_periodic_trapezoid(model: gr.Model) -> None:
    run = gr.simulate(model, TIMES)
    whole, part = np.divmod(TIMES / PERIOD, 1)
    falling = np.clip(part - 0.4, 0, 0.1)
    area = 5 * np.minimum(part, 0.1) ** 2 + np.clip(part - 0.1, 0, 0.3) + falling - 5 * falling**2
    assert np.abs(run.x - PERIOD * (0.4 * whole + area)).max() < 1e-12
    slope = 10 / PERIOD * (1.0 * (part < 0.1) - 1.0 * ((part >= 0.4) & (part < 0.5)))
    between = (part > 1e-9) & (part < 1 - 1e-9)
    assert run.slope.values[between] == pytest.approx(slope[between])
    assert run.attrs["rejected_steps"] < 5


def test_table_over_time() -> None:
    class Tabled(gr.Model):
        x = gr.Variable(0.0)
        equations = [der(x) == gr.table(time, [0.0, 2.5, 4.1, 10.0], [0.0, 1.0, -1.0, 0.5])]

    run = gr.simulate(Tabled(), [0.0, 10.0], rtol=1e-6)
    exact = np.trapezoid([0.0, 1.0, -1.0, 0.5], [0.0, 2.5, 4.1, 10.0])
    assert float(run.x[-1]) == pytest.approx(exact, abs=1e-12)


def test_jump_that_must_be_differentiated_is_refused() -> None:
    class Prescribed(gr.Model):
        x, v = gr.Variable(), gr.Variable()
        equations = [x == where(time > 1, 1.0, 0.0), der(x) == v]

    with pytest.raises(DataError, match="'time > 1' makes it jump by"):
        gr.simulate(Prescribed(), TIMES)


def test_continuous_switch_may_be_differentiated() -> None:
    class Prescribed(gr.Model):
        x, v = gr.Variable(), gr.Variable()
        equations = [x == where(time > 1, (time - 1) ** 2, 0.0), der(x) == v]

    run = gr.simulate(Prescribed(), TIMES)
    assert np.abs(run.v - 2 * np.maximum(TIMES - 1, 0)).max() < 1e-12


def test_derivative_by_what_moves_a_jump_is_refused() -> None:
    with pytest.raises(ModelError, match="The derivative by 'width' would be wrong"):
        gr.simulate(Pulse(), TIMES, sensitivities=["width"])


def test_derivative_by_what_moves_a_bend_is_right() -> None:
    """x' = (t − t₁)² from t₁ on: dx/dt₁ = −(t − t₁)²."""

    class Late(gr.Model):
        t1 = gr.Parameter(3.0)
        x = gr.Variable(0.0)
        equations = [der(x) == where(time > t1, (time - t1) ** 2, 0.0)]

    run = gr.simulate(Late(), TIMES, sensitivities=["t1"], rtol=1e-9)
    assert np.abs(run["d(x)"][:, 0] + np.maximum(TIMES - 3, 0) ** 2).max() < 1e-8


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit"])
def test_derivative_by_what_moves_the_corners_of_a_ramp(method: str) -> None:
    """x' = clip(10 (t_off − t), 0, 1): x ends at t_off − 0.05, so dx/dt_off = 1."""

    class Clipped(gr.Model):
        off = gr.Parameter(4.3)
        x = gr.Variable(0.0)
        equations = [der(x) == gr.minimum(maximum(10 * (off - time), 0), 1)]

    run = gr.simulate(Clipped(), TIMES, sensitivities=["off"], rtol=1e-8, method=method)
    assert float(run.x[-1]) == pytest.approx(4.25, abs=1e-10)
    assert float(run["d(x)"][-1, 0]) == pytest.approx(1.0, abs=1e-9)


# the implicit method at switches of states
@pytest.mark.parametrize("rtol", [1e-5, 1e-8])
@pytest.mark.parametrize(
    ("rate", "crossings"),
    [
        (lambda x: gr.where(x < 1.0, 2.0, 1e-2), "jump"),
        (lambda x: 1.5 - 0.5 * gr.sign(x - 1.0), "sign"),
        (lambda x: 2.0 - gr.floor(3 * x) / 4, "floor"),
        (lambda x: 2.0 - 5 * gr.maximum(x - 1.0, 0.0), "bend"),
    ],
)
def test_an_implicit_run_over_a_switch_keeps_the_tolerance(rate: Any, crossings: str, rtol: float) -> None:
    class Switched(gr.Model):
        x, y = gr.Variable(0.2), gr.Variable(0.0)
        equations = [der(x) == rate(x), der(y) == x - 3 * y]

    times = np.linspace(0, 2, 9)
    got = gr.simulate(Switched(), times, rtol=rtol, method="implicit")
    exact = gr.simulate(Switched(), times, rtol=1e-12, method="explicit")
    for name in "xy":
        size = np.abs(exact[name].values).max()
        assert np.abs(got[name].values - exact[name].values).max() < 2 * rtol * size, crossings
