"""Plants with events against closed forms: thermostat, backlash, tank that overflows, clutch, stick–slip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der

METHODS = ("explicit", "implicit", "frozen-explicit")


def run(model: gr.Model, times: Any, method: str = "explicit", **given: Any) -> xr.Dataset:
    options = {"step": 0.02} if method.startswith("frozen") else {}
    return gr.simulate(model, times, method=method, rtol=1e-10, **options, **given)


class Thermostat(gr.Model):
    """A heater with a dead band."""

    low, high, outside, tau, power = (gr.Parameter(v) for v in (19.0, 21.0, 10.0, 3.0, 8.0))
    T = gr.Variable(18.0)
    on = gr.Discrete(1)
    equations = [
        der(T) == (outside - T) / tau + power * on,
        gr.when(T > high, on == 0).otherwise(T < low, on == 1),
    ]


def period(low: float, high: float, outside: float, tau: float, power: float) -> float:
    hot = outside + tau * power
    return tau * (np.log((hot - low) / (hot - high)) + np.log((high - outside) / (low - outside)))


@pytest.mark.parametrize("method", METHODS)
def test_period_of_a_thermostat(method: str) -> None:
    usual = {"low": 19.0, "high": 21.0, "outside": 10.0, "tau": 3.0, "power": 8.0}
    got = run(Thermostat(), np.linspace(0, 6, 61), method, sensitivities=list(usual))
    on = [float(line.split(":")[0][4:]) for line in got.attrs["event_list"].split("\n") if "gr.when(T < low)" in line]
    assert len(on) >= 3 and np.abs(np.diff(on) - period(**usual)).max() < 1e-8
    # with the phase frozen at the third switch, later values move as the instants do
    hot = 10.0 + 3.0 * 8.0
    first = 3.0 * np.log((hot - 18.0) / (hot - 21.0))

    def temperature(t: float, low: float, high: float, outside: float, tau: float, power: float) -> float:
        hot = outside + tau * power
        first = tau * np.log((hot - 18.0) / (hot - high))
        if t < first:
            return hot - (hot - 18.0) * np.exp(-t / tau)
        s = (t - first) % period(low, high, outside, tau, power)
        cool = tau * np.log((high - outside) / (low - outside))
        if s < cool:
            return outside + (high - outside) * np.exp(-s / tau)
        return hot - (hot - low) * np.exp(-(s - cool) / tau)

    assert first < 1.5
    t = got.time.values
    assert np.abs(got["T"].values - [temperature(s, **usual) for s in t]).max() < 1e-8
    for k, name in enumerate(usual):
        h = 1e-5 * usual[name]
        ends = [np.array([temperature(s, **{**usual, name: usual[name] + d}) for s in t]) for d in (h, -h)]
        assert np.abs(got["d(T)"].values[:, k] - (ends[0] - ends[1]) / (2 * h)).max() < 1e-5


class Backlash(gr.Model):
    """Play between a driving and a driven part, which moves only where it is pushed."""

    b, A = gr.Parameter(0.3), gr.Parameter(1.0)
    x, y = gr.Variable(0.0), gr.Variable(0.0)
    side = gr.Discrete(0)
    v = A * gr.cos(gr.time)
    equations = [
        der(x) == v,
        der(y) == gr.where(abs(side) > 0.5, v, 0),
        gr.when(x - y > b, side == 1)
        .otherwise(x - y < -b, side == -1)
        .otherwise((side > 0.5) & (v < 0), side == 0)
        .otherwise((side < -0.5) & (v > 0), side == 0),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_backlash(method: str) -> None:
    t = np.linspace(0, 12, 97)
    b = 0.3
    got = run(Backlash(), t, method, sensitivities=["b"])
    fine = np.linspace(0, 12, 96_001)
    y, course = 0.0, []
    for position in np.sin(fine):  # the play operator
        y = min(max(y, position - b), position + b)
        course.append(y)
    wanted = np.interp(t, fine, course)
    assert np.abs(got.y.values - wanted).max() < 1e-7
    # while it is pushed, the driven part is b behind; at rest it stands where it was left
    pushed = np.sign(got.side.values)
    rests = np.where(got.y.values > 0.1, -1.0, np.where(got.y.values < -0.1, 1.0, 0.0))
    slopes = np.where(pushed != 0, -pushed, rests)
    sure = (np.abs(got.y.values) > 0.1) | (pushed != 0)
    assert np.abs(got["d(y)"].values[:, 0] - slopes)[sure].max() < 1e-7


class Tank(gr.Model):
    """Filled until it runs over, drained at its bottom."""

    k, top = gr.Parameter(0.5), gr.Parameter(2.0)
    q = gr.Input()
    h = gr.Variable(1.0)
    full = gr.Discrete(0)
    spilled = gr.Variable(0.0)
    over = gr.where(full > 0.5, q - k * top, 0)
    equations = [
        der(h) == gr.where(full > 0.5, 0, q - k * h),
        der(spilled) == over,
        gr.when(h > top, full == 1, gr.reinit(h, top)).otherwise((full > 0.5) & (q < k * top), full == 0),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_tank_that_overflows(method: str) -> None:
    """q rises to 3 and falls back; h' = q - h/2, over while it is full and q > 1."""
    k, top, t = 0.5, 2.0, np.linspace(0, 8, 65)
    got = run(Tank(), t, method, inputs={"q": ([0.0, 2.0, 6.0, 8.0], [1.0, 3.0, 0.0, 0.0])}, hold="foh")

    def rising(s: np.ndarray | float) -> Any:  # h with q = 1 + s, h(0) = 1
        return 2 * s - 2 + 3 * np.exp(-s / 2)

    low, high = 0.0, 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) < top else (low, middle)
    filled, left = low, 2.0 + 2.0 / 0.75  # q = 3 - 0.75 (t - 2) is 1 there

    def falling(s: np.ndarray) -> np.ndarray:  # q = 1 - 0.75 s, h(0) = 2
        return 2 - 1.5 * s + 3 - 3 * np.exp(-s / 2)

    empty = 6.0
    at_end = float(falling(np.array(empty - left)))
    wanted = np.select(
        [t < filled, t < left, t < empty],
        [rising(t), 0 * t + top, falling(t - left)],
        at_end * np.exp(-(t - empty) / 2),
    )
    assert np.abs(got.h.values - wanted).max() < 1e-8
    spilled = (2.0 - filled) * ((1 + filled) + 3) / 2 + (left - 2.0) * 2.0 - (left - filled) * 1.0
    assert abs(float(got.spilled[-1]) - spilled) < 1e-8
    assert k * top == 1.0


def test_thresholds_that_held_inputs_pass_have_no_derivative() -> None:
    with pytest.raises(gr.ModelError, match=r"by 'top' would be wrong: it moves the threshold of .*hold='foh'"):
        run(Tank(), np.linspace(0, 8, 5), inputs={"q": ([0.0, 2.0, 6.0], [1.0, 3.0, 0.0])}, sensitivities=["top"])


class Clutch(gr.Model):
    """Slips with a constant torque until both sides are equally fast, holds until the load is too much for it."""

    J1, J2, grip, load = (gr.Parameter(v) for v in (1.0, 2.0, 3.0, 0.5))
    w1, w2 = gr.Variable(10.0), gr.Variable(0.0)
    drive = gr.Input()
    locked = gr.Discrete(0)
    together = (drive - load) / (J1 + J2)
    torque = gr.where(locked > 0.5, J2 * together + load, grip)
    equations = [
        J1 * der(w1) == drive - torque,
        J2 * der(w2) == torque - load,
        gr.when(w1 - w2 < 0, locked == 1, gr.reinit(w1, w2)).otherwise((locked > 0.5) & (torque > grip), locked == 0),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_clutch(method: str) -> None:
    """Drive 1 until 6, then 1 + 2 (t - 6): slips again from (2 D + 0.5)/3 = 3, D = 4.25."""
    t = np.linspace(0, 10, 81)
    got = run(Clutch(), t, method, inputs={"drive": ([0.0, 6.0, 10.0], [1.0, 1.0, 9.0])}, hold="foh",
              sensitivities=["grip"])  # fmt: skip
    meet, slips = 10.0 / 3.25, 6.0 + 1.625
    common = 1.25 * meet

    def held(s: np.ndarray) -> np.ndarray:  # from the meeting on
        late = np.maximum(s - 6.0, 0.0)
        return common + (0.5 * (s - meet) + late**2) / 3

    end = float(held(np.array(slips)))
    s = t - slips
    w1 = np.select([t < meet, t < slips], [10 - 2 * t, held(t)], end + (4.25 - 3) * s + s**2)
    w2 = np.select([t < meet, t < slips], [1.25 * t, held(t)], end + 1.25 * s)
    assert np.abs(got.w1.values - w1).max() < 1e-8 and np.abs(got.w2.values - w2).max() < 1e-8
    # stronger grip: they meet sooner, and it holds longer; the momentum of both together does not feel it
    momentum = got["d(w1)"].values[:, 0] + 2 * got["d(w2)"].values[:, 0]
    assert np.abs(momentum).max() < 1e-8
    slope = np.select([t < meet, t < slips], [0.5 * t, 0 * t], 0.5 * s)
    assert np.abs(got["d(w2)"].values[:, 0] - slope).max() < 1e-7


class StickSlip(gr.Model):
    """A block on a belt, held by a spring, with static friction above the sliding one."""

    v, static, sliding = gr.Parameter(0.2), gr.Parameter(1.0), gr.Parameter(0.6)
    x, w = gr.Variable(0.0), gr.Variable(0.2)
    sticks = gr.Discrete(1)
    equations = [
        der(x) == w,
        der(w) == gr.where(sticks > 0.5, 0, sliding - x),
        gr.when((sticks > 0.5) & (x > static), sticks == 0).otherwise(
            (sticks < 0.5) & (w > v) & (x < sliding), sticks == 1, gr.reinit(w, v)
        ),
    ]


def test_stick_and_slip() -> None:
    """It sticks from x = 2 sliding - static to x = static, for 4/v (static - sliding)/2, and slips on a circle."""
    got = run(StickSlip(), np.linspace(0, 30, 7))
    lines = [line for line in got.attrs["event_list"].split("\n") if "gr.when" in line]
    slip = [float(line.split(":")[0][4:]) for line in lines if "static" in line]
    stick = [float(line.split(":")[0][4:]) for line in lines if "sliding" in line]
    sticking = 2 * (1.0 - 0.6) / 0.2
    slipping = 2 * (np.pi - np.arctan2(0.4, 0.2))
    assert abs(slip[0] - 5.0) < 1e-9
    assert np.abs(np.array(slip[1:]) - stick[: len(slip) - 1] - sticking).max() < 1e-7
    assert np.abs(np.array(stick) - slip[: len(stick)] - slipping).max() < 1e-7


class Shaken(gr.Model):
    x, n = gr.Variable(0.0), gr.Discrete(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    equations = [der(x) == w - x, gr.when(gr.clock(0.73, 0.2), n == gr.pre(n) + 1)]


def test_realizations_keep_ticks_that_only_rounding_keeps_from_rows() -> None:
    t = np.linspace(0.0, 6.0, 601)
    run = gr.simulate(Shaken(), t, realizations=2, seed=1)
    np.testing.assert_array_equal(run.n.values, np.tile(np.floor((t - 0.2) / 0.73 + 1 + 1e-9), (2, 1)))


class Regulated(gr.Model):
    T = gr.Parameter(0.7313)
    x, u = gr.Variable(0.5), gr.Discrete(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.5)
    equations = [der(x) == w - x + u, gr.when(gr.clock(T, 0.2), u == 1 - x)]


def test_realizations_stay_while_the_period_of_a_clock_moves() -> None:
    t, h = np.arange(0.03, 6.0, 0.25), 1e-5

    def run(at: float, **more: Any) -> xr.Dataset:
        return gr.simulate(Regulated(), t, parameters={"T": at}, realizations=2, seed=1, **more)

    slope = (run(0.7313 + h).x.values - run(0.7313 - h).x.values) / (2 * h)
    exact = run(0.7313, sensitivities=["T"])["d(x)"].sel(parameter="T").values
    np.testing.assert_allclose(exact, slope, rtol=0, atol=1e-6 * np.abs(slope).max())
