"""Events of a model's own: instants, resets, discrete variables and their derivatives, against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der
from grisaille.model import change, edge, initial, terminal

METHODS = ("explicit", "implicit", "frozen-explicit", "frozen-implicit")


def run(model: gr.Model, times: Any, method: str = "explicit", **given: Any) -> xr.Dataset:
    options = {"step": 0.013} if method.startswith("frozen") else {}
    return gr.simulate(model, times, method=method, rtol=1e-10, **options, **given)


def differences(model: gr.Model, times: Any, method: str, name: str, at: float, columns: list[str]) -> np.ndarray:
    """Central ones of the same discrete trajectory."""
    h = 1e-6 * max(abs(at), 1.0)
    how = (lambda v: {"start": {name[6:-1]: v}}) if name.startswith("start(") else (lambda v: {"parameters": {name: v}})
    ends = [run(model, times, method, **how(at + s * h)) for s in (1, -1)]
    return np.stack([(ends[0][c].values - ends[1][c].values) / (2 * h) for c in columns])


class Ball(gr.Model):
    """Dropped on a hard floor."""

    e, g = gr.Parameter(0.8), gr.Parameter(9.81)
    h, v = gr.Variable(1.0), gr.Variable(0.0)
    bounces = gr.Discrete(0)
    y = gr.Output(h, noise=0.01)
    equations = [
        der(h) == v,
        der(v) == -g,
        gr.when(h < 0, gr.reinit(v, -e * gr.pre(v)), bounces == gr.pre(bounces) + 1),
    ]


def bounce_times(count: int, e: float = 0.8, g: float = 9.81, h: float = 1.0) -> np.ndarray:
    first = np.sqrt(2 * h / g)
    return first * (1 + 2 * np.cumsum(np.r_[0.0, e ** np.arange(1, count)]))


def height(t: float, e: float, g: float, h: float) -> float:
    hits = bounce_times(40, e, g, h)
    n = int(np.searchsorted(hits, t))
    if n == 0:
        return h - g * t**2 / 2
    s = t - hits[n - 1]
    return float(np.sqrt(2 * h * g) * e**n * s - g * s**2 / 2)


@pytest.mark.parametrize("method", METHODS)
def test_ball_to_the_tenth_bounce(method: str) -> None:
    hits = bounce_times(10)
    t = np.linspace(0, hits[-1] + 0.01, 60)
    got = run(Ball(), t, method, sensitivities=["e", "g", "start(h)"])
    events = np.unique(got.attrs["event_times"].round(13))
    assert np.abs(events - hits).max() < 1e-9
    assert np.abs(got.h.values - [height(s, 0.8, 9.81, 1.0) for s in t]).max() < 1e-9
    assert np.array_equal(got.bounces.values, np.searchsorted(hits, t))
    for k, at in enumerate(({"e": 0.8}, {"g": 9.81}, {"h": 1.0})):
        (name, value), usual = next(iter(at.items())), {"e": 0.8, "g": 9.81, "h": 1.0}
        ends = [np.array([height(s, **{**usual, name: value + d}) for s in t]) for d in (1e-6, -1e-6)]
        assert np.abs(got["d(h)"].values[:, k] - (ends[0] - ends[1]) / 2e-6).max() < 1e-6
    assert "gr.when(h < 0) fires" in got.attrs["event_list"]


@pytest.mark.parametrize(("e", "method"), [(0.5, "explicit"), (0.9, "implicit"), (0.1, "frozen-explicit")])
def test_accumulating_bounces_are_told(e: float, method: str) -> None:
    end = bounce_times(400, e)[-1]
    with pytest.raises(gr.SimulationError, match=r"gr.when\(h < 0\) fires faster and faster") as told:
        run(Ball(e=e), np.linspace(0, end + 1, 20), method)
    assert f"accumulate at t = {end:.4g}"[:-1] in str(told.value)


def test_fit_of_a_ball() -> None:
    t = np.linspace(0, 3, 61)
    clean = np.array([height(s, 0.8, 9.81, 1.0) for s in t])
    noise = 0.01 * np.random.default_rng(5).standard_normal(t.size)
    fit = gr.fit(Ball(e=0.78, g=9.7), gr.Experiment(time=t, outputs={"y": clean + noise}), estimate=["e", "g"])
    table = fit.parameters
    assert fit.converged
    assert np.all(np.abs(table["estimate"] - [0.8, 9.81]) < 3 * table["std_error"])
    h = 1e-6
    slopes = np.stack(
        [
            [(height(s, 0.8 + h, 9.81, 1.0) - height(s, 0.8 - h, 9.81, 1.0)) / (2 * h) for s in t],
            [(height(s, 0.8, 9.81 + h, 1.0) - height(s, 0.8, 9.81 - h, 1.0)) / (2 * h) for s in t],
        ]
    )
    errors = 0.01 * np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
    assert np.allclose(table["std_error"], errors, rtol=0.02)


class Sampled(gr.Model):
    """A first-order plant under a PI controller that looks at it every T."""

    a, b, Kp, Ki, r, T = (gr.Parameter(v) for v in (1.3, 0.7, 1.1, 2.0, 1.0, 0.1))
    x = gr.Variable(0.2)
    error, integral, u = gr.Discrete(0.0), gr.Discrete(0.0), gr.Discrete(0.0)
    equations = [
        der(x) == -a * x + b * u,
        gr.when(gr.clock(T), error == r - x, integral == gr.pre(integral) + Ki * T * error, u == Kp * error + integral),
    ]


def sampled_solution(count: int) -> np.ndarray:
    a, b, Kp, Ki, r, T = 1.3, 0.7, 1.1, 2.0, 1.0, 0.1
    A = np.exp(-a * T)
    x, integral, rows = 0.2, 0.0, []
    for _ in range(count):
        integral += Ki * T * (r - x)
        rows.append((x, integral, u := Kp * (r - x) + integral))
        x = A * x + b / a * (1 - A) * u
    return np.array(rows)


@pytest.mark.parametrize("method", METHODS)
def test_sampled_controller(method: str) -> None:
    got = run(Sampled(), 0.1 * np.arange(21), method)
    for name, values in zip(("x", "integral", "u"), sampled_solution(21).T, strict=True):
        assert np.abs(got[name].values - values).max() < (1e-6 if method == "frozen-explicit" else 1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["a", "Ki", "T", "start(x)"])
def test_derivatives_of_a_sampled_controller(method: str, name: str) -> None:
    """The memory moves with parameters, ticks move with their period."""
    t, columns = np.linspace(0, 1.97, 20), ["x", "integral", "u"]
    at = {"a": 1.3, "Ki": 2.0, "T": 0.1, "start(x)": 0.2}[name]
    got = run(Sampled(), t, method, sensitivities=[name])
    slopes = np.stack([got[f"d({c})"].values[:, 0] for c in columns])
    apart = np.abs(slopes - differences(Sampled(), t, method, name, at, columns)).max()
    # adaptive steps are others at the two ends
    assert apart < (1e-6 if method == "implicit" else 1e-7)


class Pendulum(gr.Model):
    """Against a wall, in Cartesian coordinates: vy follows from what the wall does to vx."""

    L, g, e, wall = gr.Parameter(1.0), gr.Parameter(9.81), gr.Parameter(0.7), gr.Parameter(-0.3)
    x, y = gr.Variable(0.8), gr.Variable(-0.6)
    vx, vy, tension = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -tension * x,
        der(vy) == -tension * y - g,
        x**2 + y**2 == L**2,
        gr.when(x < wall, gr.reinit(vx, -e * gr.pre(vx))),
    ]


class Angle(gr.Model):
    """The same in one coordinate."""

    f, w = gr.Variable(float(np.arcsin(0.8))), gr.Variable(0.0)
    x = gr.sin(f)
    equations = [der(f) == w, der(w) == -9.81 * gr.sin(f), gr.when(gr.sin(f) < -0.3, gr.reinit(w, -0.7 * gr.pre(w)))]


def test_reset_of_high_index() -> None:
    t = np.linspace(0, 3, 31)
    wanted = run(Angle(), t).x.values
    for method in METHODS[:3]:
        got = gr.simulate(Pendulum(), t, method=method, rtol=1e-10)
        assert np.abs(got.x.values - wanted).max() < 1e-8
        assert got.attrs["worst_constraint"] < 1e-11
    for name, at in (("wall", -0.3), ("e", 0.7)):
        got = run(Pendulum(), t, sensitivities=[name])
        slopes = np.stack([got["d(x)"].values[:, 0], got["d(vy)"].values[:, 0]])
        assert np.abs(slopes - differences(Pendulum(), t, "explicit", name, at, ["x", "vy"])).max() < 1e-6


class Contradiction(Pendulum):
    def equations(self) -> Any:
        yield from list(super().equations())[:5]
        yield gr.when(self.x < self.wall, gr.reinit(self.vx, 1.0), gr.reinit(self.vy, 1.0))


def test_resets_that_contradict_constraints_are_refused() -> None:
    with pytest.raises(gr.SimulationError, match=r"gr.reinit of 'v[xy]' .* contradicts the algebraic equations"):
        run(Contradiction(), np.linspace(0, 3, 5))


class Twice(gr.Model):
    x, v = gr.Variable(0.0), gr.Variable(1.0)
    equations = [der(x) == v, der(v) == 0 * v, gr.when(x > 1, gr.reinit(v, 0.5)), gr.when(2 * x > 2, gr.reinit(v, 2.0))]


def test_two_resets_at_once_are_refused() -> None:
    with pytest.raises(gr.SimulationError, match=r"two gr.when set 'v' at t = 1, at once"):
        run(Twice(), np.array([0.0, 2.0]))


class Chain(gr.Model):
    """Events that make events at the same instant; edges, changes, the start."""

    x = gr.Variable(0.0)
    a, b, c, n, first, never, held = (gr.Discrete(0) for _ in range(7))
    s = gr.Variable(0.0)
    equations = [
        der(x) == 1,
        der(s) == gr.pre(held),
        gr.when(x > 0.5, a == 1).otherwise(x > 1.5, a == 2),
        gr.when(a > 0.5, b == a + 1),
        gr.when((b > 1.5) & (x < 1.2), c == gr.pre(c) + b),
        gr.when(change(a), n == gr.pre(n) + 1),
        gr.when(initial(), first == 1),
        gr.when(terminal(), never == 1),
        gr.when(edge(x > 0.25) | (x > 0.75), held == gr.pre(held) + 1),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_events_at_one_instant(method: str) -> None:
    got = run(Chain(), np.array([0.0, 0.4, 0.6, 1.0, 1.4, 2.0]), method)
    assert got.a.values.tolist() == [0, 0, 1, 1, 1, 2]
    assert got.b.values.tolist() == [0, 0, 2, 2, 2, 2]
    assert got.c.values.tolist() == [0, 0, 2, 2, 2, 2]
    assert got.n.values.tolist() == [0, 0, 1, 1, 1, 2]
    assert got["first"].values.tolist() == [1.0] * 6 and got.never.values.tolist() == [0.0] * 6
    assert got.held.values.tolist() == [0, 1, 1, 2, 2, 2]
    assert np.abs(got.s.values - [0.0, 0.15, 0.35, 1.0, 1.8, 3.0]).max() < 1e-12


class Restless(gr.Model):
    x, n, m = gr.Variable(0.0), gr.Discrete(0), gr.Discrete(0)
    equations = [der(x) == 1, gr.when((x > 0.5) & (n <= m), n == gr.pre(n) + 1), gr.when(n > m, m == gr.pre(m) + 1)]


def test_events_that_do_not_settle_are_told() -> None:
    with pytest.raises(gr.SimulationError, match="do not settle"):
        run(Restless(), np.array([0.0, 1.0]))


class Counter(gr.Model):
    """No state at all."""

    n, period = gr.Discrete(start=0), gr.Parameter(0.1)
    equations = [gr.when(gr.clock(period, start=0.2), n == gr.pre(n) + 1)]


def test_counter() -> None:
    t = 0.1 * np.arange(11)
    assert run(Counter(), t).n.values.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert run(Counter(), t, start={"n": 5}).n.values[-1] == 14
    assert Counter(start={"n": 3}).start["n"] == 3
    assert list(run(Counter(), t)) == ["n"]
    with pytest.raises(gr.ModelError, match="its period is -1"):
        run(Counter(), t, parameters={"period": -1.0})
    with pytest.raises(gr.ModelError, match=r"ticks .* times"):
        run(Counter(), t, parameters={"period": 1e-9})


def test_many_ticks_are_counted() -> None:
    """More of them than cells in which other formulas of time are looked for."""
    assert run(Counter(period=2e-5), np.array([0.0, 1.0])).n.values[-1] == 40_001


class Many(gr.Model):
    """A condition of one of a dozen unknowns that are solved for."""

    a = gr.Parameter(1.0)
    x, z = gr.Variable(1.0), gr.Variable(0.5, size=12)

    def equations(self) -> Any:
        yield der(self.x) == -self.a * self.x
        for i in range(12):
            yield self.z[i] + 0.3 * gr.exp(self.z[i]) + 0.1 * self.z[(i + 1) % 12] ** 3 == self.x
        yield gr.when(self.z[0] < 0.1, gr.reinit(self.x, 1.0))


def test_conditions_of_many_implicit_unknowns_have_derivatives() -> None:
    """All z are one number: it is 0.1 where x is 0.1 + 0.3 exp(0.1) + 0.1**4."""
    t = np.array([0.0, 0.5, 1.0, 2.5])
    got = run(Many(), t, sensitivities=["a"])
    period = -np.log(0.1 + 0.3 * np.exp(0.1) + 1e-4)
    since, count = t % period, t // period
    assert np.abs(got.x.values - np.exp(-since)).max() < 1e-8
    assert np.abs(got["d(x)"].values[:, 0] + t * np.exp(-since)).max() < 1e-7 and count[-1] == 2


class Pulses(gr.Model):
    """A train of ramps and steps whose beginning an event notes: relations of time and of a discrete variable."""

    x = gr.Variable(0.0)
    y = gr.Variable()
    n = gr.Discrete(0)
    begin = gr.Discrete(0.0)
    equations = [
        gr.der(x) == y,
        y == gr.where(gr.time < begin + 0.02, 500 * (gr.time - begin), gr.where(gr.time < begin + 0.05, 10.0, 0.0)),
        gr.when(gr.time >= (n + 1) * 0.1 - 0.035, n == gr.pre(n) + 1, begin == gr.time),
    ]


class Sawtooth(gr.Model):
    """The same with a bend and a table."""

    x = gr.Variable(0.0)
    begin = gr.Discrete(0.0)
    equations = [
        gr.der(x) == abs(gr.time - begin - 0.1) + gr.table(gr.time - begin, [0.0, 0.1, 0.2], [0.0, 1.0, 0.0]),
        gr.when(gr.clock(0.2), begin == gr.time),
    ]


def test_relations_of_time_and_of_a_discrete_variable_follow_it() -> None:
    result = gr.simulate(Pulses(), np.array([0.0, 0.2, 0.6, 1.0]), rtol=1e-8)
    np.testing.assert_allclose(result["x"], [0.0, 1.05, 2.65, 4.25], atol=1e-6)
    result = gr.simulate(Sawtooth(), np.array([0.0, 0.2, 0.6, 1.0]), rtol=1e-8)
    np.testing.assert_allclose(result["x"], [0.0, 0.11, 0.33, 0.55], atol=1e-6)


class CountsTime(gr.Model):
    """Compares time with what was counted before."""

    n = gr.Discrete(0)
    x = gr.Variable(0.0)
    equations = [der(x) == 1, gr.when(gr.time >= (gr.pre(n) + 1) * 0.1, n == gr.pre(n) + 1)]


class CountsWay(gr.Model):
    """The same of a state."""

    n = gr.Discrete(0)
    x = gr.Variable(0.0)
    equations = [der(x) == 1, gr.when(x >= (gr.pre(n) + 1) * 0.1, n == gr.pre(n) + 1)]


class CountsFloors(gr.Model):
    """Compares whole numbers, which rest at their switch."""

    n = gr.Discrete(0)
    x = gr.Variable(0.0)
    equations = [der(x) == 1, gr.when(gr.floor(x / 0.1) > n, n == gr.pre(n) + 1)]


class CountsFloorsOfTime(gr.Model):
    """The same of time."""

    n = gr.Discrete(0)
    x = gr.Variable(0.0)
    equations = [der(x) == 1, gr.when(gr.floor(gr.time / 0.1) > n, n == gr.pre(n) + 1)]


@pytest.mark.parametrize("model", [CountsTime, CountsWay, CountsFloors, CountsFloorsOfTime], ids=lambda m: m.__name__)
@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit"])
def test_conditions_of_what_was_before_and_of_whole_numbers_fire_each_time(model: type[gr.Model], method: str) -> None:
    run = gr.simulate(model(), np.array([0.0, 0.05, 0.15, 0.25, 0.45, 0.96]), method=method)
    assert run.n.values.tolist() == [0, 0, 1, 2, 4, 9]
    assert np.unique(np.round(run.attrs["event_times"], 9)) == pytest.approx(0.1 * np.arange(1, 10))


class TwoClocks(gr.Model):
    """3 · 0.1 is not 0.3 in binary numbers, and the same instant."""

    s = gr.Parameter(1.0)
    x = gr.Variable(0.0)
    u = gr.Input()
    a, b, c = gr.Discrete(0), gr.Discrete(0), gr.Discrete(0)
    equations = [
        der(x) == u,
        gr.when(gr.clock(0.1 * s), a == gr.pre(a) + 1),
        gr.when(gr.clock(0.3 * s), b == gr.pre(b) + a),
        gr.when(gr.clock(0.1 * s) & gr.clock(0.3 * s), c == gr.pre(c) + 1),
    ]


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
@pytest.mark.parametrize("s, hold", [(1.0, "zoh"), (1e9, "foh"), (1e-9, "zoh")])
def test_no_tick_is_lost_beside_another_instant(s: float, hold: str, method: str) -> None:
    times = s * np.array([round(0.1 * k, 1) for k in range(31)])
    run = gr.simulate(TwoClocks(s=s), times, {"u": np.sin(times / s)}, hold=hold, method=method)
    np.testing.assert_array_equal(run.a.values, np.arange(1, 32))
    np.testing.assert_array_equal(run.b.values[::3], np.cumsum(np.arange(1, 32, 3)))
    np.testing.assert_array_equal(run.c.values[::3], np.arange(1, 12))


@pytest.mark.parametrize(("period", "start"), [(0.001, 0.001), (0.1, 0.3), (1e-6, 7e-6), (1 / 3, 1 / 3)])
def test_clocks_that_tick_at_once_up_to_rounding(period: float, start: float) -> None:
    class Two(gr.Model):
        x = gr.Variable(0.0)
        a, b = gr.Discrete(0), gr.Discrete(0)
        equations = [
            gr.der(x) == 1.0,
            gr.when(gr.clock(period), a == gr.pre(a) + 1),
            gr.when(gr.clock(period, start), b == gr.pre(b) + 1, gr.reinit(x, 0.0)),
        ]

    times = period * np.arange(0.5, 100.0, 9.0)
    result = gr.simulate(Two(), times)
    before = round(start / period)
    np.testing.assert_array_equal(result.a, np.floor(times / period))
    np.testing.assert_array_equal(result.b, np.maximum(np.floor(times / period) - before + 1, 0))
