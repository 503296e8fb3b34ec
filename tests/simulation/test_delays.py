"""Delayed inputs in simulations: values and derivatives by the dead time against closed forms and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import grisaille as gr
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.simulation import Runner

T = np.arange(0.0, 20.0)
U = np.random.default_rng(0).normal(size=T.size).round(2)
K, TC = 2.0, 3.0


class Lag(gr.Model):
    k = gr.Parameter(K)
    T = gr.Parameter(TC)
    tau = gr.Parameter(2.3, bounds=(0.1, 8))
    u = gr.Input()
    x = gr.Variable(start=0.5)
    equations = [gr.der(x) == (k * gr.delay(u, tau) - x) / T]
    y = gr.Output(x, noise=0.05)


def between(hold: str) -> Callable[[np.ndarray], np.ndarray]:
    """u(t), with its first value before."""
    if hold == "zoh":
        return lambda t: U[np.clip(np.searchsorted(T, t, side="right") - 1, 0, len(T) - 1)]
    if hold == "foh":
        return lambda t: np.interp(t, T, U)
    spline = CubicSpline(T, U)
    return lambda t: spline(np.maximum(t, 0.0))


def convolved(hold: str, tau: float) -> np.ndarray:
    """x at all rows by Gauss's rule on every piece of u(t − tau)."""
    u, x, found = between(hold), 0.5, [0.5]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    ends = np.unique(np.concatenate([T, T + tau]))
    for a, b in pairwise(ends.tolist()):
        if b > T[-1]:
            break
        t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        # the piece is that of the middle: rounding of a break does not matter
        inside = t - tau if hold != "zoh" else np.full(8, 0.5 * (a + b) - tau)
        x = x * np.exp((a - b) / TC) + 0.5 * (b - a) * weights @ (np.exp((t - b) / TC) * K / TC * u(inside))
        if b in T:
            found.append(x)
    return np.array(found)


def slopes(hold: str, tau: float, h: float = 1e-4) -> np.ndarray:
    """∂x/∂tau by differences: central, or from the right where breaks fall on rows."""
    at = [convolved(hold, tau + s * h) for s in ((-1, 1) if tau % 1 else (0, 1, 2))]
    return (at[1] - at[0]) / (2 * h) if tau % 1 else (-3 * at[0] + 4 * at[1] - at[2]) / (2 * h)


@pytest.mark.parametrize("hold", ["zoh", "foh", "spline"])
@pytest.mark.parametrize("tau", [2.3, 3.0])
@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_values_and_derivatives_are_those_of_the_convolution(hold: str, tau: float, method: str) -> None:
    run = gr.simulate(
        Lag(), T, inputs={"u": U}, hold=hold, parameters={"tau": tau}, sensitivities=["tau"], method=method, rtol=1e-9
    )
    assert run["x"].values == pytest.approx(convolved(hold, tau), abs=3e-8)
    assert run["d(x)"].values[:, 0] == pytest.approx(slopes(hold, tau), abs=1e-6)


def test_frozen_runs_are_smooth_in_the_dead_time() -> None:
    """The derivative is that of what is computed, also with few steps."""
    trial = BoundExperiment(Lag(), T, inputs={"u": U}, hold="zoh", moves=EstimatedQuantities.named(["tau"]))
    runner = Runner(trial, ["y"], rtol=1e-3)
    steps = runner.discretise(np.array([2.3]))
    h = 1e-4
    for tau in (2.3, 2.71):
        found = runner.predict(np.array([tau]), steps, sensitive=True)
        ends = [runner.predict(np.array([tau + s * h]), steps, sensitive=False).y for s in (-1, 1)]
        assert found.sy[:, 0, 0] == pytest.approx(((ends[1] - ends[0]) / (2 * h))[:, 0], abs=1e-8)


def test_values_are_continuous_where_breaks_pass_rows() -> None:
    runs = [
        gr.simulate(Lag(), T, inputs={"u": U}, parameters={"tau": tau}, sensitivities=["tau"], rtol=1e-10)["x"].values
        for tau in (3.0 - 1e-9, 3.0, 3.0 + 1e-9)
    ]
    assert runs[0] == pytest.approx(runs[1], abs=1e-8)
    assert runs[2] == pytest.approx(runs[1], abs=1e-8)


class Nested(gr.Model):
    a = gr.Parameter(1.0)
    b = gr.Parameter(0.7)
    u = gr.Input()
    x = gr.Variable(start=0.0)
    equations = [gr.der(x) == gr.delay(gr.delay(u * gr.time, a, before=2.0), b, before=3.0)]


def test_delays_inside_delays_add_up() -> None:
    """x' = 3 up to b, 2 up to a + b, then (1 + s) s with s = t − a − b; inputs that are functions are exact."""
    t = np.linspace(0.0, 6.0, 13)
    run = gr.simulate(Nested(), t, inputs={"u": lambda s: 1 + s}, sensitivities=["a", "b"], rtol=1e-9)
    s = np.maximum(t - 1.7, 0.0)
    expected = 3 * np.minimum(t, 0.7) + 2 * np.clip(t - 0.7, 0.0, 1.0) + s**2 / 2 + s**3 / 3
    assert run["x"].values == pytest.approx(expected, abs=1e-8)
    late = t > 1.7
    by_a = np.where(late, 2 - (s + s**2), 0.0)
    assert run["d(x)"].values[late] == pytest.approx(np.stack([by_a, by_a + 1], axis=1)[late], abs=1e-7)


class Formula(gr.Model):
    length = gr.Parameter(4.0)
    speed = gr.Parameter(2.0)
    u = gr.Input()
    x = gr.Variable(start=0.0)
    v = gr.delay(gr.where(gr.time > 1, u, 0.0), length / speed)
    equations = [gr.der(x) == v]


def test_dead_time_as_a_formula_of_parameters_and_delayed_switch() -> None:
    """∂x/∂length = −v/speed, ∂x/∂speed = v length/speed²; a switch of time is delayed with what it chooses."""
    t = np.linspace(0.0, 8.0, 17)
    run = gr.simulate(Formula(), t, inputs={"u": np.exp}, sensitivities=["length", "speed"], rtol=1e-10)
    late = t > 3.0
    expected = np.where(late, np.exp(t - 2) - np.exp(1.0), 0.0)
    assert run["x"].values == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert run["d(x)"].values[late][:, 0] == pytest.approx(-np.exp(t - 2)[late] / 2, rel=1e-7)
    assert run["d(x)"].values[late][:, 1] == pytest.approx(np.exp(t - 2)[late], rel=1e-7)


def test_samples_from_before_the_start_are_used() -> None:
    early = np.arange(-4.0, 20.0)
    run = gr.simulate(Lag(), T, inputs={"u": (early, early)}, parameters={"tau": 2.0, "T": 1.0, "k": 1.0}, rtol=1e-9)
    assert run["x"].values[1] == pytest.approx(0.5 * np.exp(-1) - 2 * (1 - np.exp(-1)), abs=1e-8)


class Held(gr.Model):
    tau = gr.Parameter(1.0, bounds=(0.1, 3))
    m = gr.Parameter(1.0)
    u = gr.Input()
    x = gr.Variable(start=0.0)
    v = gr.Variable(start=0.0)
    F = gr.Variable()
    equations = [gr.der(x) == v, m * gr.der(v) == F, x == gr.delay(u, tau)]
    y = gr.Output(F, noise=0.1)


def test_index_reduction_differentiates_a_delayed_signal() -> None:
    t = np.linspace(0.0, 4.0, 9)
    run = gr.simulate(Held(), t, inputs={"u": lambda s: s**3}, rtol=1e-9)
    assert run["F"].values == pytest.approx(np.where(t >= 1, 6 * (t - 1), 0.0), abs=1e-6)
    with pytest.raises(gr.DataError, match="held constant between samples"):
        gr.simulate(Held(), t, inputs={"u": t})
    with pytest.raises(gr.DataError, match="corner at t = 1"):
        gr.simulate(Held(), t, inputs={"u": np.sin})


def test_dead_times_that_are_not_above_zero() -> None:
    with pytest.raises(gr.DataError, match=r"delay\(u, tau\): the dead time tau is -1"):
        gr.simulate(Lag(), T, inputs={"u": U}, parameters={"tau": -1.0})
