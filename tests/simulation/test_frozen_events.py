"""Frozen steps scale with the stretches between events: their derivatives are those of what is computed, also where
steps are coarse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Drag(gr.Model):
    """A ball in air."""

    e, g, d = gr.Parameter(0.8), gr.Parameter(9.81), gr.Parameter(0.3)
    x, y = gr.Variable(1.0), gr.Variable(0.0)
    equations = [der(x) == y, der(y) == -g - d * y * abs(y), gr.when(x < 0, gr.reinit(y, -e * gr.pre(y)))]


class Thermostat(gr.Model):
    """Beside it something that feels time and what the room is like."""

    low, high, tau = gr.Parameter(19.0), gr.Parameter(21.0), gr.Parameter(3.0)
    x, y = gr.Variable(18.0), gr.Variable(0.0)
    on = gr.Discrete(1)
    equations = [
        der(x) == (10 - x) / tau + 8 * on,
        der(y) == gr.sin(2 * gr.time) * x - y,
        gr.when(x > high, on == 0).otherwise(x < low, on == 1),
    ]


class Wall(gr.Model):
    """A pendulum of index 3 that meets a wall."""

    L, e, at = gr.Parameter(1.0), gr.Parameter(0.8), gr.Parameter(0.3)
    x, y, vx, vy, F = gr.Variable(0.8), gr.Variable(-0.6), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -F * x,
        der(vy) == -F * y - 9.81,
        x**2 + y**2 == L**2,
        gr.when(x < -at, gr.reinit(vx, -e * gr.pre(vx))),
    ]


class Track(gr.Model):
    """A mass on a track of index 2; what its reaction passes and where it is switch a spring."""

    k, at = gr.Parameter(3.0), gr.Parameter(15.3)
    x, y, vx, vy, F = gr.Variable(0.8), gr.Variable(-0.6), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    n = gr.Discrete(1.0)
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -F * x - k * n * x,
        der(vy) == -F * y - 9.81,
        x * vx + y * vy == 0,
        gr.when(F > at, n == 3).otherwise(x < -0.3, n == 1),
    ]


class Implicit(gr.Model):
    """A gap of an unknown that is solved for, and slow time far from zero."""

    at = gr.Parameter(0.5)
    x, y, z = gr.Variable(0.1), gr.Variable(0.0), gr.Variable(0.1)
    n = gr.Discrete(1.0)
    equations = [
        der(x) == n * (1 + 0.3 * gr.cos(gr.time)) - 0.3 * x * z,
        der(y) == z - y,
        z + 0.3 * z**3 == x,
        gr.when(z > at, n == -2).otherwise(z < -at, n == 1),
    ]


class Ticking(gr.Model):
    """Ticks that move, one of them at the start, between events of a state."""

    T, s, at = gr.Parameter(0.37), gr.Parameter(0.11), gr.Parameter(0.35)
    x, y = gr.Variable(0.2), gr.Variable(0.1)
    u, n = gr.Discrete(0.0), gr.Discrete(1.0)
    equations = [
        der(x) == -1.3 * x**2 + 3 * u * n,
        der(y) == gr.sin(3 * gr.time) * x - y,
        gr.when(gr.clock(T, s), u == 1 - x + 0.3 * y, gr.reinit(y, 0.9 * gr.pre(y) + 0.05 * x)),
        gr.when(x > at, n == -0.5).otherwise(x < 0.3 * at, n == 1),
    ]


class Sticking(gr.Model):
    """Friction that sticks and lets go between ticks that move; the end of sticking sets something."""

    T, c = gr.Parameter(0.43), gr.Parameter(0.8)
    x, y, v = gr.Variable(0.2), gr.Variable(0.0), gr.Variable(0.3)
    u, n = gr.Discrete(0.0), gr.Discrete(0.0)
    equations = [
        der(x) == v,
        der(v) == -2 * x + 2 * gr.sin(1.7 * gr.time) - c * gr.sign(v) + u,
        der(y) == x * v * gr.cos(gr.time) - y + n,
        gr.when(gr.clock(T), u == 0.3 * gr.sin(5 * gr.time)),
        gr.when(gr.sign(v) < -0.999999, n == x),
    ]


@pytest.mark.parametrize(
    "model, names, times, step",
    [
        (Drag, ("g", "d"), np.linspace(0, 1.6, 9), 0.1),
        (Thermostat, ("tau", "high"), np.linspace(0, 4, 9), 0.25),
        (Wall, ("L", "at"), np.linspace(0, 1.7, 8), 0.1),
        (Track, ("k", "at"), np.linspace(0, 2, 6), 0.1),
        (Implicit, ("at",), np.linspace(1000, 1004, 9), 0.25),
        (Ticking, ("T", "s", "at"), np.linspace(0, 2, 6), 0.17),
        (Sticking, ("T", "c"), np.linspace(0, 5, 6), 0.2),
    ],
)
@pytest.mark.parametrize("method", ["frozen-explicit", "frozen-implicit"])
def test_derivatives_are_those_of_coarse_steps(
    model: type[gr.Model], names: tuple[str, ...], times: np.ndarray, step: float, method: str
) -> None:
    given: dict[str, Any] = {"method": method, "step": step}
    exact = gr.simulate(model(), times, sensitivities=list(names), **given)
    assert exact.attrs["events"] >= 2
    for name in names:
        value, h = float(model().parameters[name].value), 1e-4

        def run(at: float, name: str = name) -> np.ndarray:
            found = gr.simulate(model(), times, parameters={name: at}, **given)
            return np.column_stack([found.x.values, found.y.values])

        near, far = run(value + h) - run(value - h), run(value + 2 * h) - run(value - 2 * h)
        slope = (8 * near - far) / (12 * h)
        found = np.column_stack([exact[f"d({n})"].sel(parameter=name).values for n in "xy"])
        np.testing.assert_allclose(found, slope, rtol=0, atol=3e-8 * np.abs(slope).max())


@pytest.mark.parametrize("method, given", [("frozen-explicit", {"step": 0.15}), ("implicit", {"rtol": 1e-10})])
def test_a_tick_at_the_start_moves_to_later_times(method: str, given: dict[str, Any]) -> None:
    times, h = np.array([0.0, 0.2, 0.5, 1.0, 1.3]), 1e-4

    def run(at: float, **more: Any) -> Any:
        return gr.simulate(Ticking(), times, parameters={"s": at}, method=method, **given, **more)

    exact, runs = run(0.0, sensitivities=["s"]), [run(k * h) for k in range(4)]
    for name in "xy":
        one_sided = sum(w * r[name].values for w, r in zip((-11 / 6, 3, -1.5, 1 / 3), runs, strict=True)) / h
        found = exact[f"d({name})"].sel(parameter="s").values
        np.testing.assert_allclose(found[1:], one_sided[1:], rtol=0, atol=1e-6)
