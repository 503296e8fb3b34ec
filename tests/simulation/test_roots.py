"""Algebraic unknowns stay on their branch: through jumps of inputs, in long steps, between steps, in any unit."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import grisaille as gr
import grisaille.components.electrical as el
from grisaille import der
from grisaille.compilation.schemes import AUTO, FROZEN_EXPLICIT, schemes_of
from grisaille.simulation import IntegratorOptions, SimulationRuns, SimulationSetup, fixed_steps, run

METHODS = ("explicit", "implicit", "frozen-explicit", "frozen-implicit")
times = np.linspace(0.0, 6.0, 13)
square = np.where(times % 2 < 1, -1.0, 1.0)


def algebraic(left: Callable[[Any], Any], nominal: float = 1.0) -> gr.Model:
    class Algebraic(gr.Model):
        x, u = gr.Variable(0.0), gr.Input()
        z = gr.Variable(start=0.0, nominal=nominal)
        equations = [der(x) == z / nominal - x, left(z) == u]

    return Algebraic()


# jumps of an input, one root

UNIQUE: dict[str, tuple[Any, Any, float]] = {
    "cubic": (lambda z: z + z**3, lambda z: z + z**3, 300.0),
    "diode, 0.7 V": (
        lambda z: z + 1e-9 * (gr.exp(z / 0.025) - 1),
        lambda z: z + 1e-9 * np.expm1(min(z / 0.025, 700)),
        0.7,
    ),
    "diode, 5 V": (
        lambda z: z + 1e-9 * (gr.exp(z / 0.025) - 1),
        lambda z: z + 1e-9 * np.expm1(min(z / 0.025, 700)),
        5.0,
    ),
    "diode, 230 V": (
        lambda z: z + 1e-9 * (gr.exp(z / 0.025) - 1),
        lambda z: z + 1e-9 * np.expm1(min(z / 0.025, 700)),
        230.0,
    ),
    "hydraulic": (lambda z: z * abs(z) + 0.01 * z, lambda z: z * abs(z) + 0.01 * z, 10.0),
    "softplus": (lambda z: gr.log(1 + gr.exp(z)) + 1e-3 * z - 1, lambda z: np.logaddexp(0, z) + 1e-3 * z - 1, 1.5),
    "saturation": (lambda z: 3 * gr.atan(z) + 0.01 * z, lambda z: 3 * np.arctan(z) + 0.01 * z, 4.9),
    "bend": (lambda z: z + 9 * gr.maximum(z, 0.0), lambda z: z + 9 * max(z, 0.0), 20.0),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", UNIQUE)
def test_a_jumping_input_finds_the_one_root(name: str, method: str) -> None:
    left, formula, level = UNIQUE[name]
    step = {"step": 0.25} if method.startswith("frozen") else {}
    got = gr.simulate(algebraic(left), times, inputs={"u": level * square}, method=method, **step)
    want = {u: brentq(lambda z, u: formula(z) - u, -2000, 2000, args=(u,), xtol=1e-13) for u in {level, -level}}
    assert np.abs(got["z"].values - [want[u] for u in level * square]).max() < 1e-7 * (1 + abs(want[-level]))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit: float) -> None:
    model = algebraic(lambda z: z + unit * (z / unit) ** 3, unit)
    got = gr.simulate(model, times, inputs={"u": 300.0 * unit * square})
    root = brentq(lambda z: z + z**3 - 300.0, 0, 10, xtol=1e-14)
    assert np.abs(got["z"].values / unit - root * square).max() < 1e-7


class Rectifier(gr.Model):
    src = el.VoltageSource()
    r, d, c, g = el.Resistor(R=1e3), el.Diode(), el.Capacitor(C=1e-6), el.Ground()
    load = el.Resistor(R=1e4)
    equations = [
        gr.connect(src.p, r.p), gr.connect(r.n, d.p), gr.connect(d.n, c.p, load.p), gr.connect(c.n, load.n, src.n, g.p),
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_the_rectifier_of_the_library_on_a_square_wave(method: str) -> None:
    t = np.linspace(0, 4e-3, 41)
    drive = np.where(t % 2e-3 < 1e-3 - 1e-9, 5.0, -5.0)
    got = gr.simulate(Rectifier(), t, inputs={"src.u": drive}, start={"c.v": 0.0}, method=method)

    def rate(s: float, v: np.ndarray) -> list[float]:
        u = 5.0 if s % 2e-3 < 1e-3 else -5.0

        def law(w: float) -> float:
            return 1e-14 * np.expm1(min(w / 0.025852, 40.0)) + 1e-12 * w - (u - v[0] - w) / 1e3

        w = brentq(law, -20, 1, xtol=1e-15)
        return [((u - v[0] - w) / 1e3 - v[0] / 1e4) / 1e-6]

    v = [0.0]
    for a, b in pairwise(t):
        run = solve_ivp(rate, (a, b - 1e-12), v[-1:], rtol=1e-9, atol=1e-11)
        v.append(float(run.y[0, -1]))
    assert np.abs(got["c.v"].values - v).max() < 2e-5


# jumps of an input, many roots


class Arcs(gr.Model):
    x, z, u = gr.Variable(0.0), gr.Variable(start=0.0), gr.Input()
    equations = [der(x) == z - x, gr.sin(z) == u]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("levels", [(0.1, 0.995), (0.995, -0.5), (-0.999, 0.999)])
def test_a_jump_leads_to_the_root_on_its_way(levels: tuple[float, float], method: str) -> None:
    u = np.where(square > 0, *levels)
    got = gr.simulate(Arcs(), times, inputs={"u": u}, method=method)
    assert np.abs(got["z"].values - np.arcsin(u)).max() < 1e-7


def test_a_static_model_follows_its_root_from_row_to_row() -> None:
    class Static(gr.Model):
        z, u = gr.Variable(start=0.0), gr.Input()
        equations = [gr.sin(z) == u]

    u = np.where(square > 0, 0.995, -0.5)
    assert np.abs(gr.simulate(Static(), times, inputs={"u": u})["z"].values - np.arcsin(u)).max() < 1e-12
    with pytest.raises(gr.SimulationError, match=r"z could not be followed at t = 0.5.*71.4 % of the jump"):
        gr.simulate(Static(), times, inputs={"u": np.where(times < 0.5, 0.5, 1.2)})


@pytest.mark.parametrize("method", METHODS)
def test_a_branch_that_ends_in_a_jump_is_refused_by_name(method: str) -> None:
    with pytest.raises(
        gr.SimulationError, match=r"z could not be followed at t = 1:.*71.4 % of the jump.*tau\*der\(z\)"
    ):
        gr.simulate(Arcs(), times, inputs={"u": np.where(times < 1, 0.5, 1.2)}, method=method)


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_a_branch_that_ends_in_time_is_refused_where_it_ends(method: str) -> None:
    with pytest.raises(gr.SimulationError) as caught:
        gr.simulate(Arcs(), times, inputs={"u": lambda t: 0.5 + 0.2 * t}, method=method)
    assert re.search(r"z could not be followed at t = 2\.(5|4999).*tau\*der\(z\)", str(caught.value))
    assert caught.value.partial["z"].values[-1] < np.pi / 2


def test_a_snap_to_the_only_root_left_is_taken() -> None:
    model = algebraic(lambda z: z**3 - z)
    u = np.where(times < 3, 0.0, 2.0)
    want = brentq(lambda z: z**3 - z - 2.0, 1, 2)
    got = gr.simulate(model, times, inputs={"u": u}, start={"z": -1.0})["z"].values
    assert np.abs(got - np.where(times < 3, -1.0, want)).max() < 1e-8


# long steps and rows between them


class Crank(gr.Model):
    """A slider at the end of a rod of length l on a crank of length 1; nothing feeds it back."""

    l, w = gr.Parameter(1.05), gr.Parameter(3.0)  # noqa: E741
    th, s = gr.Variable(0.0), gr.Variable(start=2.0)
    equations = [der(th) == w, (s - gr.cos(th)) ** 2 + gr.sin(th) ** 2 == l**2]


class Winding(gr.Model):
    """An angle that turns with th, fast on one side; every turn more is a root too."""

    e, w = gr.Parameter(0.9), gr.Parameter(3.0)
    th, z = gr.Variable(0.0), gr.Variable(start=0.0)
    equations = [der(th) == w, gr.sin(z - th) == e * gr.sin(z)]


class Swinging(gr.Model):
    a, w = gr.Parameter(0.99), gr.Parameter(3.0)
    th, z = gr.Variable(0.0), gr.Variable(start=0.0)
    equations = [der(th) == w, gr.sin(z) == a * gr.sin(th)]


def crank(th: np.ndarray) -> np.ndarray:
    return np.asarray(np.cos(th) + np.sqrt(1.05**2 - np.sin(th) ** 2))


def winding(th: np.ndarray) -> np.ndarray:
    fine = np.linspace(0, th[-1], 400 * (len(th) - 1) + 1)
    return np.unwrap(np.arctan2(np.sin(fine), np.cos(fine) - 0.9))[::400]


def swinging(th: np.ndarray) -> np.ndarray:
    return np.asarray(np.arcsin(0.99 * np.sin(th)))


TURNING: dict[str, tuple[type[gr.Model], str, Any]] = {
    "crank": (Crank, "s", crank), "winding": (Winding, "z", winding), "swinging": (Swinging, "z", swinging),
}  # fmt: skip


@pytest.mark.parametrize("rows", [8, 201])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TURNING)
def test_rows_stay_on_their_branch_however_long_the_steps_are(name: str, method: str, rows: int) -> None:
    model, z, truth = TURNING[name]
    t = np.linspace(0, 20, rows)
    longest = {} if method.startswith("frozen") else {"max_step": 20.0}
    for w in (3.0, 17.0):
        got = gr.simulate(model(), t, parameters={"w": w}, start={"th": 0.0}, method=method, **longest)
        assert np.abs(got[z].values - truth(w * t)).max() < 1e-4


def test_a_frozen_step_that_is_too_long_is_refused() -> None:
    with pytest.raises(gr.SimulationError, match="shorter step="):
        gr.simulate(Crank(), [0.0, 1.0, 2.0], method="frozen-implicit", step=0.5, parameters={"w": 30.0})


def test_a_failure_that_no_step_avoids_ends_the_search_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    monkeypatch.setattr(fixed_steps, "run", lambda plan, *a: runs.append(plan.among) or run(plan, *a))
    with pytest.raises(gr.SimulationError, match="could not be followed"):
        gr.simulate(Arcs(), times, inputs={"u": np.where(times < 1, 0.5, 1.2)}, method="frozen")
    assert runs == [(FROZEN_EXPLICIT,), AUTO]


@pytest.mark.parametrize("method", METHODS)
def test_runs_over_jumps_are_rescued(method: str) -> None:
    setting = SimulationSetup(Arcs(), times, {"u": np.where(square > 0, 0.995, -0.5)}, hold=None)
    plan, step = (
        SimulationRuns(setting, IntegratorOptions()).prepare(None, None).plan,
        0.25 if method.startswith("frozen") else 0.0,
    )
    assert run(plan.replace(fixed_step=step, among=schemes_of(method))).task.rescues > 0


# rows of static fits


class Diode(gr.Model):
    a, F, v = gr.Parameter(1.0, bounds=(0.1, 10)), gr.Input(), gr.Variable()
    y = gr.Output(v, noise=0.01)
    equations = [a * v + 1e-9 * (gr.exp(v / 0.025) - 1) == F]


def test_a_static_fit_of_a_diode() -> None:
    force = np.concatenate([np.linspace(-5, 0, 30), np.linspace(1, 50, 30)])
    truth = np.array([brentq(lambda v, f: 2 * v + 1e-9 * np.expm1(v / 0.025) - f, -5, 1, args=(f,)) for f in force])
    y = truth + 0.01 * np.random.default_rng(1).standard_normal(force.size)
    fit = gr.fit(Diode(), gr.Experiment(inputs={"F": force}, outputs={"y": y}))
    assert fit.converged and abs(fit["a"] - 2.0) < 3 * fit["a"].std_error


def test_a_row_without_a_solution_is_named() -> None:
    class Bounded(gr.Model):
        a, F, v = gr.Parameter(1.0, bounds=(0.1, 10)), gr.Input(), gr.Variable(start=0.1)
        y = gr.Output(a * v, noise=0.01)
        equations = [gr.sin(v) == F]

    force = np.array([0.1, 0.5, 1.3])
    with pytest.raises(gr.GrisailleError, match=r"row 2 \(F = 1.3\)"):
        gr.fit(Bounded(), gr.Experiment(inputs={"F": force}, outputs={"y": force}))


# rounding


def test_terms_that_cancel_leave_rounding_in_a_root_that_passes_zero() -> None:
    """A star point: currents of 100 cancel, and the rest flows through 1e-6; rounding leaves some 1e-8 of v open."""

    class Star(gr.Model):
        g = gr.Parameter(1e-6)
        x, v = gr.Variable(0.0), gr.Variable()
        a = 0.3 + 0.01 * x
        first, second, third = 100 * gr.sin(a), 100 * gr.sin(a + 2 * np.pi / 3), 100 * gr.sin(a + 4 * np.pi / 3)
        equations = [der(x) == 1.0, ((first + g * (v + v**3)) + second) + third == g * (0.5 - x)]

    t = np.linspace(0.0, 1.0, 11)
    v = gr.simulate(Star(), t, rtol=1e-6)["v"].values
    np.testing.assert_allclose(v + v**3, 0.5 - t, atol=2e-7)
