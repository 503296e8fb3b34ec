"""Derivatives where several switches are reached at one instant: closed forms, and differences of the same steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der

METHODS = ("explicit", "implicit", "frozen-explicit", "frozen-implicit")
T = np.array([0.0, 0.23, 0.61, 0.93, 1.4])


class Relays(gr.Model):
    """Two that know nothing of each other, one on both, and two relations of one gap."""

    a, b = gr.Parameter(0.5), gr.Parameter(0.5)
    x, z, w, v = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [
        der(x) == gr.where(x > a, 3, 1),
        der(z) == gr.where(z > b, 5, 1),
        der(w) == gr.where(x > a, 2, 0) + gr.where(z > b, 1, 0),
        der(v) == gr.where(2 * x >= 2 * a, 4, 1) + gr.where(x < a, 1, 0),
    ]


class Curved(gr.Model):
    """Three relays whose coarse steps have errors."""

    a, b, c, k = gr.Parameter(0.5), gr.Parameter(0.5), gr.Parameter(0.5), gr.Parameter(1.0)
    x, z, w = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [
        der(x) == gr.where(x > a, 3, 1) * (1 - 0.7 * x * x) * k,
        der(z) == gr.where(z > b, 5, 1) * (1 - 0.7 * z * z) * k,
        der(w) == gr.where(w > c, 2, 1) * (1 - 0.7 * w * w) * k,
    ]


class Whens(gr.Model):
    """Resets, discrete variables, a relation in equation and condition, an event that causes another, a clock."""

    a, b, s = gr.Parameter(0.5), gr.Parameter(0.5), gr.Parameter(0.5)
    x, z, w = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    n, m, q = gr.Discrete(0.0), gr.Discrete(0.0), gr.Discrete(0.0)
    equations = [
        der(x) == gr.where(x > a, 2, 1) + n,
        der(z) == 1 + 0.3 * z - m,
        der(w) == 1 - q * w,
        gr.when(x > a, n == x**2),
        gr.when(n > 0.1, gr.reinit(x, gr.pre(x) - 2)),
        gr.when(z > b, gr.reinit(z, 0.1 * a), m == gr.pre(m) + z),
        gr.when(gr.clock(5.0, start=s), q == w),
    ]


class Pendulums(gr.Model):
    """Two of index 3 that meet walls at one instant."""

    at, there = gr.Parameter(0.0), gr.Parameter(0.0)
    x, y, vx, vy, F = gr.Variable(0.6), gr.Variable(-0.8), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    a, b, va, vb, G = gr.Variable(0.6), gr.Variable(-0.8), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -F * x,
        der(vy) == -F * y - 9.81,
        x**2 + y**2 == 1,
        der(a) == va,
        der(b) == vb,
        der(va) == -G * a,
        der(vb) == -G * b - 9.81,
        a**2 + b**2 == 1,
        gr.when(x < at, gr.reinit(vx, -0.7 * gr.pre(vx))),
        gr.when(a < there, gr.reinit(va, -0.7 * gr.pre(va))),
    ]


class Driven(gr.Model):
    """A relay beside what a held input drives; with c it drives the relay too."""

    a, c, k = gr.Parameter(0.5), gr.Parameter(0.0), gr.Parameter(1.0)
    u = gr.Input()
    x, z = gr.Variable(0.0), gr.Variable(0.0)
    equations = [der(x) == gr.where(x > a, 3, 1) + c * u, der(z) == k * u - 0.2 * z * z]


class Product(gr.Model):
    """What the first switch changes depends on the second; a tick reads what a switch bends."""

    a, b, s = gr.Parameter(0.5), gr.Parameter(0.5), gr.Parameter(2.0)
    x, z, w = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    n = gr.Discrete(0.0)
    equations = [
        der(x) == 1,
        der(z) == 1,
        der(w) == gr.where(x > a, 3, 1) * gr.where(z > b, 5, 1),
        gr.when(gr.clock(5.0, start=s), n == w),
    ]


STEP = np.array([0.0, 0.5, 2.0]), np.array([0.0, 1.0, 1.0])


def options(method: str, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Of a run, with coarse steps where they are frozen."""
    own: dict[str, Any] = {"step": 0.13} if method.startswith("frozen") else {"rtol": 1e-10}
    return {**own, "method": method, "inputs": inputs}


def slopes(run: xr.Dataset, of: str, by: str) -> np.ndarray:
    return np.asarray(run[f"d({of})"].sel(parameter=by).values)


@cache
def relays(method: str) -> xr.Dataset:
    return gr.simulate(Relays(), T, sensitivities=["a", "b", "start(x)"], **options(method))


@pytest.mark.parametrize("method", METHODS)
def test_each_relation_has_its_own_instant(method: str) -> None:
    run, late = relays(method), T > 0.5
    for of, by, jump in [
        ("x", "a", -2), ("x", "b", 0), ("z", "a", 0), ("z", "b", -4), ("w", "a", -2), ("w", "b", -1), ("v", "a", -2),
        ("v", "b", 0), ("z", "start(x)", 0), ("v", "start(x)", 2),
    ]:  # fmt: skip
        np.testing.assert_allclose(slopes(run, of, by), jump * late, atol=1e-9)


def assert_differences(
    model: type[gr.Model], values: Mapping[str, float], method: str, inputs: Mapping[str, Any] | None = None
) -> None:
    """The derivatives are central differences of the same run, with instants moved to both sides."""
    settings, h = options(method, inputs), 1e-6
    run = gr.simulate(model(**values), T, sensitivities=list(values), **settings)
    for name, value in values.items():
        up, down = (gr.simulate(model(**{**values, name: value + s}), T, **settings) for s in (h, -h))
        for of in (str(v)[2:-1] for v in run.data_vars if str(v).startswith("d(")):
            expected = (up[of].values - down[of].values) / (2 * h)
            np.testing.assert_allclose(slopes(run, of, name), expected, atol=3e-5, rtol=3e-5, err_msg=f"{of} by {name}")


@pytest.mark.parametrize("method", METHODS[1:])
def test_three_at_once_are_differences_also_of_coarse_steps(method: str) -> None:
    assert_differences(Curved, {"a": 0.5, "b": 0.5, "c": 0.5, "k": 1.0}, method)


@pytest.mark.parametrize("method", METHODS)
def test_resets_discrete_variables_and_ticks(method: str) -> None:
    assert_differences(Whens, {"a": 0.5, "b": 0.5, "s": 0.5}, method)


@pytest.mark.parametrize("method", METHODS)
def test_impacts_of_index_three(method: str) -> None:
    assert_differences(Pendulums, {"at": 0.0, "there": 0.0}, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_step_of_a_held_input(method: str) -> None:
    assert_differences(Driven, {"a": 0.5, "k": 1.0}, method, {"u": STEP})
    with pytest.raises(gr.SimulationError, match=r"'a<x' and a jump of an input .* come at the same instant, t = 0.5"):
        # x reaches its switch where the input steps, which the rate of its gap feels
        gr.simulate(Driven(c=1.0), T, sensitivities=["a", "k"], **options(method, {"u": STEP}))
    # where no instant moves there is nothing to part
    gr.simulate(Driven(c=1.0), T, sensitivities=["k"], **options(method, {"u": STEP}))


@pytest.mark.parametrize("method", METHODS)
def test_an_order_that_matters_is_refused_by_name(method: str) -> None:
    with pytest.raises(gr.SimulationError, match=r"'a<x' and the switch of 'b<z' are reached .* instant, t = 0\.5,"):
        gr.simulate(Product(), T, sensitivities=["a", "b"], **options(method))
    with pytest.raises(gr.SimulationError, match=r"'a<x' and a tick of clock\(5, s\) come .* instant, t = 0\.5,"):
        gr.simulate(Product(b=9.0, s=0.5), T, sensitivities=["a", "s"], **options(method))
    # to either side, and in the direction in which both move alike
    for b, expected in ((0.5 + 1e-6, (-2, -12)), (0.5 - 1e-6, (-10, -4))):
        run = gr.simulate(Product(b=b), T, sensitivities=["a", "b"], **options(method))
        np.testing.assert_allclose([slopes(run, "w", p)[-1] for p in "ab"], expected, atol=1e-6)
    gr.simulate(Product(), T, **options(method))


class Measured(gr.Model):
    """Relays that are measured, and what feels the order in which they switch."""

    a, b = gr.Parameter(0.5), gr.Parameter(0.5)
    x, z, w = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    first, second, both = gr.Output(x, noise=0.01), gr.Output(z, noise=0.01), gr.Output(w, noise=0.01)
    equations = [
        der(x) == gr.where(x > a, 3, 1),
        der(z) == gr.where(z > b, 3, 1),
        der(w) == gr.where(x > a, 1, 0) * gr.where(z > b, 1, 0) - w,
    ]


def test_a_fit_leaves_equal_guesses_and_says_so() -> None:
    t = np.linspace(0, 2, 41)
    truth = gr.simulate(Measured(a=0.43, b=0.61), t, noise=True, seed=2)
    data = gr.Experiment(t, outputs={n: truth[n].values for n in ("first", "second", "both")})
    fit = gr.fit(Measured(), data, ["a", "b"])
    assert fit.converged
    assert list(fit.parameters["estimate"]) == pytest.approx([0.43, 0.61], abs=5e-3)
    assert any("the guess was moved by up to 1e-06" in n and "'a<x' and the switch of 'b<z'" in n for n in fit.notes)
    with pytest.raises(gr.EstimationError, match="no derivatives here: the switch of 'a<x' and the switch of 'b<z'"):
        gr.sensitivity(Measured(), data, ["a", "b"])


class Together(gr.Model):
    """Felt only where all of three, four or one of three hold, with thresholds that are equal; far from one, too."""

    a, b, c = gr.Parameter(0.5), gr.Parameter(0.5), gr.Parameter(0.5)
    x, y, w, v = gr.Variable(0.0), gr.Variable(0.1), gr.Variable(0.2), gr.Variable(50.0)
    three, four, one, far = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [
        der(x) == 1,
        der(y) == 1,
        der(w) == 1,
        der(v) == 100,
        der(three) == gr.where((x > a) & (y > b) & (w > c), 1.0, 0.0),
        der(four) == gr.where((x > a) & (y > a) & (w > a) & (v > 20 * b), 3.0, 0.0),
        der(one) == gr.where((x > a) | (y > b) | (w > c), 1.0, 0.0),
        der(far) == gr.where((v > 120) & (x > 0.8 * a) & (y > -1000), 1.0, 0.0),
    ]


@pytest.mark.parametrize("method", METHODS)
def test_relations_that_are_felt_where_all_others_hold(method: str) -> None:
    settings = {"method": method} if method.startswith("frozen") else options(method)
    run = gr.simulate(Together(), [0.0, 2.0], sensitivities=["a", "b", "c"], **settings)
    end = {of: float(run[of][-1]) for of in ("three", "four", "one", "far")}
    assert end == pytest.approx({"three": 1.5, "four": 4.5, "one": 1.7, "far": 1.3}, rel=1e-8)
    for of, expected in {"three": (-1, 0, 0), "four": (-3, 0, 0), "one": (0, 0, -1), "far": (0, 0, 0)}.items():
        assert [slopes(run, of, by)[-1] for by in "abc"] == pytest.approx(expected, abs=1e-8)


def test_frozen_steps_name_the_instant() -> None:
    for method in METHODS[2:]:
        with pytest.raises(
            gr.SimulationError, match=r"'a<x' and the switch of 'b<z' are reached .* instant, t = 0\.5,"
        ):
            gr.simulate(Product(), T, sensitivities=["a", "b"], method=method)
