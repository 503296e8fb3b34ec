"""Relations of states that switch: instants, sliding, and derivatives by parameters, against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille import der

METHODS = ("explicit", "implicit", "frozen-explicit", "frozen-implicit")


def run(model: gr.Model, times: Any, method: str, **given: Any) -> xr.Dataset:
    options = {"step": 0.02} if method.startswith("frozen") else {}
    return gr.simulate(model, times, method=method, rtol=1e-10, **options, **given)


class Block(gr.Model):
    """Pulled on rough ground; positions do not matter."""

    c = gr.Parameter(1.0)
    v, F = gr.Variable(0.0), gr.Input()
    friction = c * gr.sign(v)
    equations = [der(v) == F - friction]


PULL = {"F": ([0.0, 4.0, 12.0], [0.0, 2.0, -2.0])}
HALT = 6 + 2 * np.sqrt(2.0)
"""It sticks until 2, slips until this, sticks until 10."""


@pytest.mark.parametrize("method", METHODS)
def test_stick_and_slip(method: str) -> None:
    t = np.linspace(0, 12, 49)
    got = run(Block(), t, method, inputs=PULL, hold="foh", sensitivities=["c"])
    pieces = [t < 2, t < 4, t < HALT, t < 10, t < 13]
    s = t - 4
    v = np.select(pieces, [0 * t, (t - 2) ** 2 / 4, 1 + s - s**2 / 4, 0 * t, -((t - 10) ** 2) / 4])
    dv = np.select(pieces, [0 * t, 2 - t, -2 - s, 0 * t, t - 10])
    assert np.abs(got["v"].values - v).max() < 1e-9
    assert np.abs(got["d(v)"].values[:, 0] - dv).max() < 1e-8
    assert np.abs(got.attrs["event_times"] - [0.0, 2.0, HALT, 10.0]).max() < 1e-9
    rests = (v == 0) & (t > 0) & (t != 2) & (t != 10)
    pull = np.interp(t, *PULL["F"])
    assert np.abs(got["friction"].values - pull)[rests].max() < 1e-9
    assert got.attrs["events"] == 4
    lines = got.attrs["event_list"].split("\n")
    assert lines[0] == "t = 0: 'sign(v)' slides" and lines[1] == "t = 2: 'sign(v)' stops sliding and becomes 1"


class Thermostat(gr.Model):
    """A relay without hysteresis: it slides at the level."""

    level, power = gr.Parameter(20.0), gr.Parameter(3.0)
    T = gr.Variable(15.0)
    heat = gr.where(T < level, power, 0.0)
    equations = [der(T) == -0.2 * (T - 10) + heat]


@pytest.mark.parametrize("method", METHODS)
def test_a_relay_slides(method: str) -> None:
    t = np.linspace(0, 20, 41)
    got = run(Thermostat(), t, method, sensitivities=["level", "power"])
    reached = np.log(2.0) / 0.2
    slides = t > reached
    assert np.abs(got["T"].values - np.where(slides, 20.0, 25 - 10 * np.exp(-0.2 * t))).max() < 1e-9
    assert np.abs(got["heat"].values - np.where(slides, 2.0, 3.0)).max() < 1e-9
    assert np.abs(got["d(T)"].values - np.stack([slides, ~slides * (1 - np.exp(-0.2 * t)) / 0.2], 1)).max() < 1e-8
    assert abs(got.attrs["event_times"] - reached).max() < 1e-9
    assert got.attrs["steps"] < (1100 if method.startswith("frozen") else 120)


class Tanks(gr.Model):
    """One overflows, one runs dry (beyond, its outflow has no value), one counts what has run through."""

    h = gr.Variable(0.5)
    g = gr.Variable(1.0)
    n = gr.Variable(0.0)
    q = gr.Input()
    equations = [
        der(h) == gr.where(h < 1.0, q, gr.minimum(q, 0.0)),
        der(g) == gr.where(g > 0.0, -gr.sqrt(g) - 1.0, 0.0),
        der(n) == gr.floor(h + g + gr.ceil(gr.time)),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_tanks(method: str) -> None:
    t = np.array([0.0, 0.3, 0.7, 1.0, 2.0, 2.5, 3.0, 4.0])
    got = run(Tanks(), t, method, inputs={"q": ([0.0, 4.0], [1.0, -1.0])}, hold="foh")
    full = 2 - np.sqrt(2.0)
    filling = np.minimum(0.5 + t - t**2 / 4, 1.0)
    h = np.where(t < full, filling, np.where(t < 2, 1.0, 1 - (t - 2) ** 2 / 4))
    assert np.abs(got["h"].values - h).max() < 1e-9
    dry = 2 - 2 * np.log(2.0)
    assert np.abs(got["g"].values[t > dry]).max() < 1e-9
    assert abs(got.attrs["event_times"] - dry).min() < (1e-9 if not method.startswith("frozen") else 1e-5)
    r = np.sqrt(got["g"].values[:2])
    assert np.abs(2 * (1 - r) - 2 * np.log(2 / (1 + r)) - t[:2]).max() < (1e-8 if method in METHODS[:2] else 1e-4)


class Rings(gr.Model):
    """Two that ring down on their own, and come to rest while the other rests too."""

    x, v = gr.Variable(1.0), gr.Variable(0.0)
    y, w = gr.Variable(-0.8e-6, nominal=1e-6), gr.Variable(0.0, nominal=1e-6)
    equations = [
        der(x) == v, der(v) == -x - 0.15 * gr.sign(v), der(y) == w, der(w) == -4 * y - 4e-7 * gr.sign(w),
    ]  # fmt: skip


def ring_down(t: np.ndarray, x: float, omega: float, centre: float) -> np.ndarray:
    """Half turns about ±centre, until one ends within it."""
    out, begin, half = np.zeros_like(t), 0.0, np.pi / omega
    while abs(x) > centre:
        side = np.sign(x) * centre
        here = t >= begin
        out[here] = side + (x - side) * np.cos(omega * (t[here] - begin))
        x, begin = 2 * side - x, begin + half
    out[t >= begin] = x
    return out


@pytest.mark.parametrize("method", METHODS)
def test_two_surfaces_at_once(method: str) -> None:
    t = np.linspace(0, 16, 33)
    got = run(Rings(), t, method)
    margin = 1e-8 if method != "frozen-explicit" else 1e-7
    assert np.abs(got["x"].values - ring_down(t, 1.0, 1.0, 0.15)).max() < margin
    assert np.abs(got["y"].values - 1e-6 * ring_down(t, -0.8, 2.0, 0.1)).max() < 1e-6 * margin
    assert got.attrs["steps"] < 1000


class Pendulum(gr.Model):
    """In the plane, with dry friction at its pivot: index three."""

    c = gr.Parameter(0.3)
    x, y, vx, vy, pull = (gr.Variable(s) for s in (1.0, 0.0, 0.0, -0.1, 0.0))
    turns = gr.sign(x * vy - y * vx)
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -pull * x + c * turns * y,
        der(vy) == -pull * y - 1.0 - c * turns * x,
        x**2 + y**2 == 1.0,
    ]


def pendulum(c: float, t: np.ndarray) -> np.ndarray:
    """x, by the angle from the right, piece by piece, at rest at the end."""
    at, point, side, out = 0.0, np.array([0.0, -0.1]), -1.0, []

    def rate(_: float, s: np.ndarray) -> list[float]:
        return [s[1], -np.cos(s[0]) - c * side]

    def stops(_: float, s: np.ndarray) -> float:
        return float(s[1])

    stops.terminal = True  # type: ignore[attr-defined]
    while at < t[-1]:
        inside = t[t >= at]
        stops.direction = -side  # type: ignore[attr-defined]
        piece = solve_ivp(rate, (at, t[-1]), point, "DOP853", inside, events=stops, rtol=1e-12, atol=1e-13)
        out += list(np.cos(piece.y[0])) if len(piece.t) else []
        if not piece.t_events[0].size:
            break
        at, point = float(piece.t_events[0][0]), piece.y_events[0][0]
        if abs(np.cos(point[0])) <= c:
            out += [np.cos(point[0])] * (t.size - len(out))
            break
        side = -np.sign(np.cos(point[0]))
        point = np.array([point[0], 0.0])
    return np.array(out)


@pytest.mark.parametrize("method", ("explicit", "implicit"))
def test_a_pendulum_with_dry_friction(method: str) -> None:
    t = np.linspace(0, 10, 21)
    got = run(Pendulum(), t, method, sensitivities=["c"])
    assert np.abs(got["x"].values - pendulum(0.3, t)).max() < 2e-8
    slope = (pendulum(0.3 + 1e-4, t) - pendulum(0.3 - 1e-4, t)) / 2e-4
    assert np.abs(got["d(x)"].values[:, 0] - slope).max() < 2e-6


class Unknown(gr.Model):
    """The relation is one of an unknown that is solved for; an input passes a threshold that moves with a state."""

    b = gr.Parameter(1.0)
    x, z = gr.Variable(0.0), gr.Variable(0.0)
    y, u = gr.Variable(0.0), gr.Input()
    equations = [
        z + 0.1 * z**3 == x, der(x) == 1.0 - gr.where(z > b, 2.0, 0.0), der(y) == gr.where(u > 0.5, 1.0, 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_unknowns_and_inputs(method: str) -> None:
    t = np.linspace(0, 10, 6)
    got = run(Unknown(), t, method, inputs={"u": np.sin}, sensitivities=["b"])
    assert np.abs(got["z"].values[1:] - 1.0).max() < 1e-9
    assert np.abs(got["d(x)"].values[1:, 0] - 1.3).max() < 1e-7
    assert abs(got["y"].values[-1] - 4 * np.pi / 3) < 1e-9


class Spiral(gr.Model):
    """Crosses both switches in turns, ever faster, until it rests where they meet; later it is pushed off along one."""

    c = gr.Parameter(2.0)
    x, y, n = gr.Variable(1.0), gr.Variable(0.5), gr.Variable(0.0)
    q = gr.Input()
    equations = [
        der(x) == -gr.sign(x) - c * gr.sign(y), der(y) == c * gr.sign(x) - gr.sign(y) + q, der(n) == gr.sign(y),
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_switches_that_accumulate_where_both_slide(method: str) -> None:
    """While x = y = 0 the integrals of both signs follow, n (1 + c²) = c + 0.5 + ∫q; beyond q = 2.5 x' = 5 − 2 q."""
    t = np.array([0.0, 1.0, 5.0, 9.0, 10.0, 10.3])
    got = run(Spiral(), t, method, inputs={"q": ([0.0, 5.0, 15.0], [0.3, 0.3, 5.3])}, hold="foh", sensitivities=["c"])
    n = (2.5 + 0.3 * t + np.clip(t - 5, 0, None) ** 2 / 4)[1:4] / 5
    assert np.abs(got["x"].values[1:] + np.clip(t[1:] - 9.4, 0, None) ** 2 / 2).max() < 1e-9
    assert np.abs(got["y"].values[1:]).max() < 1e-9
    assert np.abs(got["n"].values[1:4] - n).max() < 1e-9
    assert np.abs(got["d(n)"].values[1:4, 0] - (1 - 4 * n) / 5).max() < 1e-8


class Twisting(gr.Model):
    x, v = gr.Variable(0.5), gr.Variable(0.0)
    equations = [der(x) == v, der(v) == -2 * gr.sign(x) - gr.sign(v)]


def test_switches_that_accumulate_are_named() -> None:
    """Each half turn takes 1/√3 of the time of the one before: 4/3 / (1 − 1/√3)."""
    with pytest.raises(gr.SimulationError, match=r"at t = 3\.15.*(sign|gr\.smooth_sign)") as caught:
        gr.simulate(Twisting(), [0.0, 2.0, 5.0])
    assert "LuGre" in str(caught.value) and caught.value.partial.sizes["time"] == 2


class Touching(gr.Model):
    a = gr.Parameter(1.0)
    x, v, y = gr.Variable(0.0), gr.Variable(1.0 + 1e-11), gr.Variable(0.0)
    equations = [der(x) == v, der(v) == -x, der(y) == gr.where(x > a, 1.0, 0.0)]


def test_grazing_is_named() -> None:
    with pytest.raises(gr.SimulationError, match=r"grazes the switch of 'a<x' at t = 1\.57"):
        gr.simulate(Touching(), [0.0, 8.0], sensitivities=["a"], rtol=1e-13)
    got = gr.simulate(Touching(), [0.0, 3.0], parameters={"a": 0.5}, sensitivities=["a"], rtol=1e-11)
    assert abs(got["y"].values[-1] - 2 * np.pi / 3) < 1e-9
    assert abs(got["d(y)"].values[-1, 0] + 2 / np.sqrt(0.75)) < 1e-7


def test_a_signal_that_jumps_ends_sliding() -> None:
    """Held inputs: the block is torn loose at once, and caught again where the pull ends."""
    got = run(Block(), np.linspace(0, 6, 13), "auto", inputs={"F": ([0, 2, 3, 6], [0.5, 3.0, 0.0, 0.0])})
    t = got["time"].values
    assert np.abs(got["v"].values - np.clip(np.minimum(2 * (t - 2), 5 - t), 0, None)).max() < 1e-9
    assert np.allclose(got.attrs["event_times"], [0.0, 2.0, 5.0])


METHODS_OF_STEPS = ("explicit", "implicit", "frozen-explicit", "frozen-implicit")


@pytest.mark.parametrize("method", METHODS_OF_STEPS)
def test_a_floor_that_passes_many_integers_in_one_step(method: str) -> None:
    class Stairs(gr.Model):
        x = gr.Variable(0.0)
        up = gr.Variable(0.0)
        down = gr.Variable(0.0)
        late = gr.Variable(0.0)
        from_four = gr.Variable(0.0)
        equations = [
            der(x) == 1,
            der(up) == gr.floor(x / 0.1),
            der(down) == gr.ceil(-x / 0.1),
            der(late) == gr.where(gr.floor(x / 0.1) > 4, 1.0, 0.0),
            der(from_four) == gr.where(gr.floor(x / 0.1) >= 4, 1.0, 0.0),
        ]

    run = gr.simulate(Stairs(), np.array([0.0, 0.05, 0.95]), method=method, rtol=1e-8)
    end = {n: float(run[n][-1]) for n in ("up", "down", "late", "from_four")}
    stairs = 0.1 * sum(range(9)) + 9 * 0.05
    assert end == pytest.approx({"up": stairs, "down": -stairs, "late": 0.45, "from_four": 0.55}, abs=1e-8)


class OneGap(gr.Model):
    """x falls by 1, below zero by 1/2; two relations say so, and one alone would send it back: by 1 upwards."""

    a, b = gr.Parameter(-2.0), gr.Parameter(1.5)
    x, w = gr.Variable([0.9, 0.8, 0.7, 0.6, 0.5], size=5), gr.Variable([0.0] * 5, size=5)
    root = gr.Variable(0.5)

    def equations(self) -> Any:
        x, more = self.x, 2 + gr.sin(gr.time)
        yield self.root + self.root**3 == x[3]
        pairs = [
            (gr.where(x[0] > 0, 1.0, 0.0), gr.where(x[0] * more > 0, 1.0, 0.0)),
            (0.5 + 0.5 * gr.sign(x[1]), gr.where(x[1] * more < 0, 0.0, 1.0)),
            (1.0 + gr.floor(x[2]), 0.5 + 0.5 * gr.sign(x[2] * more)),
            (gr.where(x[3] > 0, 1.0, 0.0), gr.where(self.root > 0, 1.0, 0.0)),
            (gr.where(x[4] > 0, 1.0, 0.0), 0.25 + gr.sign(x[4] * more) / 4 + gr.where(x[4] / more < 0, 0.0, 0.5)),
        ]
        for k, (one, other) in enumerate(pairs):
            yield der(x[k]) == -0.5 + self.a * one + self.b * other
            yield der(self.w[k]) == self.a * one - 3 * self.b * other


@pytest.mark.parametrize("method", METHODS)
def test_relations_of_one_gap_pass_their_switch_together(method: str) -> None:
    t, start = np.linspace(0.0, 1.5, 16) + 0.013, np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    got = run(OneGap(), np.r_[0.0, t], method, sensitivities=["a", "b"])
    for k, at in enumerate(start):
        late = t > at
        x, w = got[f"x[{k}]"].values[1:], got[f"w[{k}]"].values[1:]
        assert x == pytest.approx(np.where(late, 0.5, 1.0) * (at - t), abs=1e-8)
        assert w == pytest.approx(-6.5 * np.minimum(t, at), abs=1e-8)
        assert got[f"d(x[{k}])"].values[-1] == pytest.approx([at / 2, at / 2], abs=1e-7)
        assert got[f"d(w[{k}])"].values[-1] == pytest.approx([-5.5 * at, -9.5 * at], abs=1e-7)
    assert "slides" not in got.attrs["event_list"]


class Counted(gr.Model):
    """A relay that slides at 20, and for how long it was warmer, by another relation of the same gap."""

    T, off = gr.Variable(15.0), gr.Variable(0.0)
    equations = [der(T) == 2 - 0.2 * T + gr.where(T < 20.0, 3.0, 0.0), der(off) == gr.where(T > 20.0, 1.0, 0.0)]


class CountedByOne(gr.Model):
    """The same by one relation. The other is in the sum only, where the share of the first makes up for it."""

    T, off = gr.Variable(15.0), gr.Variable(0.0)
    below = gr.where(T < 20.0, 1.0, 0.0)
    equations = [der(T) == 2 - 0.2 * T + 3 * below - 0.1 * gr.where(T > 20.0, 1.0, 0.0), der(off) == 1]


@pytest.mark.parametrize("method", METHODS)
def test_what_rests_where_another_slides_is_refused_if_it_is_felt(method: str) -> None:
    with pytest.raises(gr.SimulationError, match="'20<T' and 'T<20' are relations of one quantity, which"):
        run(Counted(), [0.0, 5.0], method)
    assert run(CountedByOne(), [0.0, 5.0], method)["T"].values[-1] == pytest.approx(20.0, abs=1e-9)
