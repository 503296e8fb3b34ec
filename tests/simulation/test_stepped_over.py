"""What lies between the stages of a step: bumps of tables, conditions that hold shortly, many relations at once.

References: integrals of the tables and instants of the switches in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der

METHODS = ("explicit", "implicit", "frozen")


class Road(gr.Model):
    """Bumps of unit area at s = 101 (linear), in a repeated table once, and by maximum, passed at 20 m/s."""

    height = gr.Parameter(1.0)
    s = gr.Variable(0.0)
    E, R, M, G = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [
        der(s) == 20.0,
        der(E) == 20 * gr.table(s, [0, 100, 101, 102, 200], [0, 0, height, 0, 0]),
        der(R) == 20 * gr.table(s, [0, 30, 30.5, 31, 100], [0, 0, 1, 0, 0], outside="repeat"),
        der(M) == 20 * gr.maximum(0, 1 - abs(s - 101)),
        der(G) == 20 * gr.table2(s, s / 2, [0, 100, 101, 102, 200], [0, 60, 100], np.outer([0, 0, 1, 0, 0], [1, 1, 1])),
    ]


class Short(gr.Model):
    """Conditions of time and of a state that hold for less than a step."""

    x, y = gr.Variable(0.0), gr.Variable(0.0)
    n, m, k = gr.Discrete(0), gr.Discrete(0), gr.Discrete(0)
    equations = [
        der(x) == 1,
        der(y) == gr.where(gr.sin(200 * gr.time) > 0.9999, 1.0, 0.0) + gr.where(abs(x - 1) < 1e-5, 1.0, 0.0),
        gr.when(gr.sin(50 * gr.time) > 0.99, n == gr.pre(n) + 1),
        gr.when(gr.sin(10 * x) > 0.99, m == gr.pre(m) + 1),
        gr.when(abs(gr.time - 1) < 1e-5, k == gr.pre(k) + 1),
    ]


class Felt(gr.Model):
    """Bumps of unit area, 0.02 wide, at s = c and s = 7.03, passed at the speed k: E = (1 + c/10)/k, T = 1.703/k."""

    c, k = gr.Parameter(5.03), gr.Parameter(1.0)
    s, E, T, a = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(s) == k,
        a + 0.1 * a**3 == 1.0 + 0.1 * s,
        der(E) == 100 * gr.maximum(0, 1 - 100 * abs(s - c)) * (a + 0.1 * a**3),
        der(T) == gr.table(s, [0, 7.02, 7.03, 7.04, 20], [0, 0, 100, 0, 0]) * (1 + 0.1 * s),
    ]


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_derivatives_across_bends_take_each_side_for_itself(method: str) -> None:
    run = gr.simulate(Felt(), np.linspace(0, 10, 21), method=method, sensitivities=["c", "k"]).isel(time=-1)
    found = [float(run[f"d({name})"].sel(parameter=p)) for name in "ET" for p in "ck"]
    assert found == pytest.approx([0.1, -1.503, 0.0, -1.703], abs=1e-4)


class Implied(gr.Model):
    """A bump of unit area over an algebraic unknown, whose sides cancel in the derivative by c: E = g'(c) + 0.3 w²/6,
    with s = g(z) = z + 0.1 z³."""

    c, w = gr.Parameter(5.03), 0.01
    s, E, z = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [der(s) == 1.0, z + 0.1 * z**3 == s, der(E) == gr.maximum(0, 1 - abs(z - c) / w) / w]


@pytest.mark.parametrize("method, rtol", [("explicit", 1e-11), ("implicit", 1e-11), ("frozen-explicit", 1e-6)])
def test_derivatives_of_a_bump_whose_sides_cancel(method: str, rtol: float) -> None:
    step = {"step": 0.05} if method.startswith("frozen") else {}
    run = gr.simulate(Implied(), [0.0, 10.0, 25.0], method=method, rtol=rtol, sensitivities=["c"], **step)
    assert float(run["d(E)"].isel(time=-1, parameter=0)) == pytest.approx(0.6 * 5.03, rel=1e-6)


class Bumps(gr.Model):
    """``Felt`` with a disturbance and without algebraic unknowns."""

    c, k = gr.Parameter(5.03), gr.Parameter(1.0)
    s, E, x = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2)
    equations = [
        der(s) == k,
        der(E) == 100 * gr.maximum(0, 1 - 100 * abs(s - c)) * (1 + 0.1 * s),
        der(x) == w - x,
    ]


class Crossed(gr.Model):
    """A disturbed state that crosses a threshold, at which the rate of another one jumps."""

    a = gr.Parameter(0.5)
    x, y = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2)
    equations = [der(x) == 1 - 0.2 * x + w, der(y) == gr.where(x > a, 2.0, 0.5)]


@pytest.mark.filterwarnings("ignore:.*steps per cell leave an error")
def test_derivatives_of_realizations_across_bends() -> None:
    paths = gr.simulate(Bumps(), np.linspace(0, 10, 21), realizations=2, seed=1, sensitivities=["c", "k"])
    assert paths["d(E)"].isel(time=-1).values == pytest.approx(np.array([[0.1, -1.503]] * 2), rel=1e-6)


def test_bumps_that_steps_under_white_noise_pass_are_said() -> None:
    class Noisy(gr.Model):
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.01)
        equations = [der(s) == 1.0, der(E) == 1e3 * gr.maximum(0, 1 - 1e3 * abs(s - 5.03)) + w]

    with pytest.warns(UserWarning, match="steps of 0.25 pass what changes with the states for 0.001 only"):
        run = gr.simulate(Noisy(), np.linspace(0, 10, 41), realizations=2)
    assert "near t = 5.0295" in run.attrs["status"]


def test_a_filter_finds_a_narrow_bump_behind_a_bend() -> None:
    class Hat(gr.Model):
        h = gr.Parameter(1.0)
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.01)
        y = gr.Output(E, noise=0.02)
        equations = [der(s) == 1.0, der(E) == h * 1e4 * gr.maximum(0, 1 - 1e4 * abs(s - 5.03)) + w]

    t = np.linspace(0, 10, 41)
    fit = gr.fit(
        Hat(), gr.Experiment(t, outputs={"y": 1.0 * (t > 5.03)}), ["h"], guess={"h": 0.7}, method=gr.KalmanML()
    )
    assert fit.parameters.estimate["h"] == pytest.approx(1.0, abs=1e-3)


def test_derivatives_of_realizations_across_jumps() -> None:
    """Differences, of runs that locate the jump, too."""

    def ends(a: float) -> xr.Dataset:
        names = ["a", "scale(w)"]
        return gr.simulate(
            Crossed(), [0.0, 3.0], parameters={"a": a}, realizations=3, seed=3, step=0.02, sensitivities=names
        ).isel(time=-1)

    differences = (ends(0.501).y - ends(0.499).y) / 0.002
    found = ends(0.5)["d(y)"].sel(parameter="a").values
    assert found == pytest.approx(differences.values, rel=1e-4)
    assert np.all(found < -0.5)


def test_derivatives_of_realizations_across_jumps_under_white_noise_are_refused() -> None:
    class White(Crossed):
        w = gr.Disturbance(gr.spectra.white(), scale=0.2)
        equations = [der(Crossed.x) == 1 + w, der(Crossed.y) == gr.where(Crossed.x > Crossed.a, 2.0, 0.5)]

    with pytest.raises(gr.errors.ModelError, match="derivative by 'a' of realizations that cross 'a<x'"):
        gr.simulate(White(), [0.0, 1.0], realizations=2, sensitivities=["a"])
    assert gr.simulate(White(), [0.0, 1.0], realizations=2, seed=0).y.shape == (2, 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_bump_between_knots_is_not_stepped_over(method: str) -> None:
    run = gr.simulate(Road(), np.array([0.0, 4.0, 8.0]), method=method)
    end = run.isel(time=-1)
    assert [float(end[name]) for name in "ERMG"] == pytest.approx([1.0, 1.0, 1.0, 1.0], rel=2e-4)


def test_the_height_of_a_bump_is_estimated() -> None:
    t = np.linspace(0, 8, 9)

    class Measured(Road):
        y = gr.Output(Road.E, noise=0.01)

    data = gr.Experiment(time=t, outputs={"y": 0.5 * (t > 5.05)})
    fit = gr.fit(Measured(), data, ["height"])
    assert fit.parameters.estimate["height"] == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("method", ("explicit", "implicit"))
def test_conditions_that_hold_shortly_are_found(method: str) -> None:
    run = gr.simulate(Short(), [0.0, 10.0], method=method)
    assert [int(run[name][-1]) for name in "nmk"] == [80, 16, 1]
    width = 2 * np.arccos(0.9999) / 200
    assert float(run.y[-1]) == pytest.approx(318 * width + width / 2 + 2e-5, abs=width)


def test_more_than_forty_relations_are_located() -> None:
    x, y = gr.Variable(0.0), gr.Variable(0.0)
    thresholds = np.linspace(0.1, 3, 60)
    jumps = sum(gr.where(x > float(a), 1.0, 0.0) for a in thresholds)
    Relays = type("Relays", (gr.Model,), {"x": x, "y": y, "equations": [der(x) == 1 - 0.1 * x, der(y) == jumps]})
    run = gr.simulate(Relays(), [0.0, 5.0])
    instants = -10 * np.log(1 - thresholds / 10)
    assert run.attrs["events"] == 60
    assert float(run.y[-1]) == pytest.approx(float(np.sum(5 - instants)), rel=1e-9)


class Top(gr.Model):
    """An oscillator that reaches a threshold, and the knots of a table, only where it turns."""

    s, v, z = gr.Variable(0.0), gr.Variable(1.0), gr.Variable(0.0)
    n = gr.Discrete(0)
    level = gr.Parameter(1 - 1e-5)
    equations = [
        der(s) == v,
        der(v) == -s,
        der(z) == gr.table(s, [-2.0, 1 - 1e-3, 1.0, 2.0], [0.0, 0.0, 1.0, 1.0]),
        gr.when(s > level, n == gr.pre(n) + 1),
    ]


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_what_is_reached_only_at_a_turn(method: str) -> None:
    t = np.linspace(0.0, 20.0, 200_001)
    run = gr.simulate(Top(), [0.0, 20.0], method=method)
    assert run.n.values[-1] == 3
    exact = np.trapezoid(np.clip((np.sin(t) - 1 + 1e-3) / 1e-3, 0.0, 1.0), t)
    assert float(run.z[-1]) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4])
def test_ramps_that_are_reached_only_at_turns(width: float) -> None:
    """A step may begin on the bend, go beyond it and come back."""

    class Swing(gr.Model):
        d = gr.Parameter(1e-3)
        x, v, E = gr.Variable(0.0), gr.Variable(1.0), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == -x, der(E) == gr.maximum(0, (x - 1 + d) / d)]

    run = gr.simulate(Swing(), [0.0, 10.0], parameters={"d": width}, method="explicit")
    half = np.arccos(1 - width)
    once = 2 * (np.sin(half) - (1 - width) * half) / width
    assert float(run.E[-1]) == pytest.approx(2 * once, rel=1e-2)


def test_short_conditions_that_are_felt_in_few_places_only() -> None:
    """Of 50 s / 2π times a second, those beneath a hat."""

    class Felt(gr.Model):
        s, E, M = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        short = gr.where(gr.sin(50 * s) > 0.999, 1.0, 0.0)
        equations = [
            der(s) == 1.0,
            der(E) == short * gr.table(s, [0, 3, 3.5, 4, 10], [0, 0, 1, 0, 0]),
            der(M) == short * gr.maximum(0, 1 - 2 * abs(s - 3.5)),
        ]

    run = gr.simulate(Felt(), [0.0, 8.0])
    middles = (np.pi / 2 + 2 * np.pi * np.arange(64)) / 50
    width = 2 * np.arccos(0.999) / 50
    integral = width * np.maximum(0, 1 - 2 * np.abs(middles - 3.5)).sum()
    assert [float(run.E[-1]), float(run.M[-1])] == pytest.approx([integral, integral], rel=1e-3)


def bump(s: object, at: float, width: float) -> object:
    return gr.maximum(0, 1 - abs(s - at) / width)


class Hidden(gr.Model):
    """A bump behind a bend; conditions that bend, for 1e-4 and 2e-5 each; short conditions of a state."""

    s = gr.Variable(0.0)
    B, C, T, S = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    equations = [
        der(s) == 1.0,
        der(B) == bump(s, 0.3, 1e-3),
        der(C) == gr.where(bump(s, 0.31, 1e-4) > 0.5, 1e4, 0),
        der(T) == gr.where(gr.table(s, [0, 0.52, 0.5201, 0.5202, 1], [0, 0, 1, 0, 0]) > 0.9, 1e5, 0),
        der(S) == gr.where(gr.sin(200 * s) > 0.9999, 1.0, 0.0),
    ]


@pytest.mark.parametrize("method", ("explicit", "implicit", "frozen-explicit", "frozen-implicit"))
def test_what_hides_behind_a_bend_is_found_in_one_stretch(method: str) -> None:
    run = gr.simulate(Hidden(), [0.0, 1.0], method=method, rtol=1e-5)
    width = 2 * np.arccos(0.9999) / 200
    assert run.attrs["events"] == 2 * (32 + 2)
    end = [float(run[name][-1]) for name in "BCTS"]
    assert end == pytest.approx([1e-3, 1.0, 2.0, 32 * width], rel=2e-4)


def test_equal_steps_that_would_be_too_many_are_refused() -> None:
    class Far(gr.Model):
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        equations = [der(s) == 1.0, der(E) == gr.table(s, [0, 0.3, 0.3001, 0.3002, 1], [0, 0, 1e4, 0, 0])]

    with pytest.raises(gr.SimulationError, match=r"equal steps of .* leave an error of .* more than 3000 shorter ones"):
        gr.simulate(Far(), [0.0, 9.0], method="frozen", max_steps=3000)
    assert "error is about" in gr.simulate(Far(), [0.0, 9.0], method="frozen", step=0.1).attrs["status"]


def disturbed(width: float) -> gr.Model:
    s, E, w = gr.Variable(0.0), gr.Variable(0.0), gr.Disturbance(gr.spectra.lowpass(1.0))
    knots, values = [0, 3.33, 3.33 + width, 3.33 + 2 * width, 10], [0, 0, 1 / width, 0, 0]
    rates = [der(s) == 1 + 0.02 * w, der(E) == gr.table(s, knots, values) * (1 + 0.02 * w)]
    return type("Disturbed", (gr.Model,), {"s": s, "E": E, "w": w, "equations": rates})()


def test_realizations_meet_a_bump_or_say_that_they_pass_it() -> None:
    times = np.linspace(0, 10, 11)
    with pytest.warns(UserWarning, match="steps per cell leave an error"):
        run = gr.simulate(disturbed(2e-2), times, realizations=5, seed=1, compiled=False)
    np.testing.assert_allclose(run["E"].isel(time=-1), 1.0, rtol=1e-3)
    with pytest.warns(UserWarning, match=r"steps of 0.05 pass what changes with the states for 1e-05 only, near t = 3"):
        run = gr.simulate(disturbed(1e-5), times, realizations=5, seed=1, compiled=False)
    assert run.attrs["status"].endswith("is zero: it is missed, or met by chance")
