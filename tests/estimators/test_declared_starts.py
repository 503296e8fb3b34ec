"""Records that do not begin where they were declared to, and those that only seem so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

N, STEP = 120, 0.1
Q = 0.5 + 0.3 * np.repeat(np.random.default_rng(4).choice([-1, 1], N // 20), 20)


class Tank(gr.Model):
    """An inflow that nobody measures beside the one that is."""

    k = gr.Parameter(0.3, bounds=(0.05, 50.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(5.0), scale=0.1)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h + w]


class Bent(Tank):
    equations = [der(Tank.h) == Tank.q - Tank.k * Tank.h - 0.1 * Tank.h**2 + Tank.w]


class Spring(gr.Model):
    """A mass on a spring; its noise is not known."""

    k, c = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(0.3, bounds=(0.01, 5.0))
    x, v = gr.Variable(0.0), gr.Variable(0.0)
    F = gr.Input()
    y = gr.Output(x)
    equations = [der(x) == v, der(v) == F - k * x - c * v]


FORCE = np.where(STEP * np.arange(N) % 8 < 4, 0.5, -0.5)


def tank(start: float, seed: int = 1, bend: float = 0.0, shift: dict[int, float] | None = None) -> gr.Experiment:
    """k = 0.5; ``shift``: what is added to single samples."""
    random, h, seen = np.random.default_rng(seed), start, []
    w = 0.1 * random.normal()
    for q in Q:
        seen.append(h)
        for _ in range(5):
            h += STEP / 5 * (q - 0.5 * h - bend * h**2 + w)
            w += -w / 5 * STEP / 5 + 0.1 * np.sqrt(2 / 5 * STEP / 5) * random.normal()
    y = np.array(seen) + 0.02 * random.normal(size=N)
    for row, by in (shift or {}).items():
        y[row] += by
    return gr.Experiment(STEP * np.arange(N), {"q": Q}, {"y": y}, name="run")


def spring(x: float, v: float, seed: int = 1, name: str = "run", colour: float = 0.0, outlier: float = 0.0) -> Any:
    """k = 2, c = 0.4, by steps that are exact while the force is held."""
    random = np.random.default_rng(seed)
    A = np.array([[0.0, 1.0, 0.0], [-2.0, -0.4, 1.0], [0.0, 0.0, 0.0]])
    powers = [np.eye(3)]
    for j in range(1, 12):
        powers.append(powers[-1] @ A * STEP / j)
    step, state, seen = sum(powers), np.array([x, v, 0.0]), []
    for force in FORCE:
        seen.append(state[0])
        state = step @ np.array([*state[:2], force])
    e = 0.02 * random.normal(size=N)
    for k in range(1, N if colour else 0):
        e[k] += colour * e[k - 1]
    e[0] += outlier
    return gr.Experiment(STEP * np.arange(N), {"F": FORCE}, {"y": np.array(seen) + e}, name=name)


def said(fit: gr.Fit) -> list[str]:
    return [n for n in fit.notes if n.startswith("start:")]


@pytest.mark.parametrize("true", [1.3, 3.0])
def test_a_filter_that_a_wrong_start_drives_away(true: float) -> None:
    fit = gr.fit(Tank(), tank(true), ["k", "scale(w)"])
    note = fit.notes[0]
    assert note.startswith("start: the record does not begin where h was declared to: the samples after it say h = ")
    assert "1 was declared" in note and 'put "start(h)" into estimate=[…]' in note and " then, not " in note
    assert f"! {note}" in str(fit) and "std. error!" in str(fit)
    assert not any(n.startswith("at bound") or "robust" in n for n in fit.notes)
    found = float(note.split("say h = ")[1].split(" ±")[0])
    free = gr.fit(Tank(), tank(true), ["k", "scale(w)", "start(h)"])
    assert found == pytest.approx(float(free["start(h)"]), abs=0.03) and said(free) == []


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_nonlinear_filters(method: Any) -> None:
    fit = gr.fit(Bent(), tank(1.4, bend=0.1), ["k", "scale(w)"], gr.KalmanML(filter=method))
    assert "not begin where h was declared to" in fit.notes[0]


def test_collocation() -> None:
    fit = gr.fit(Tank(), tank(1.3), ["k"], gr.Collocation())
    assert "not begin where h was declared to: the samples after it say h = 1.3" in fit.notes[0]


@pytest.mark.parametrize("row", [0, 1])
def test_one_outlier_is_no_start(row: int) -> None:
    assert said(gr.fit(Tank(), tank(1.0, shift={row: 0.5}), ["k", "scale(w)"])) == []


@pytest.mark.parametrize(
    ("initial", "true"), [("first-sample", 1.0), ({"h": 1.0}, 1.3), ("diffuse", 3.0)], ids=["right", "wide", "diffuse"]
)
def test_starts_that_are_right_or_not_known(initial: Any, true: float) -> None:
    assert said(gr.fit(Tank(), tank(true), ["k", "scale(w)"], gr.KalmanML(initial_covariance=initial))) == []


class TestOutputError:
    """With the noise open."""

    @pytest.mark.parametrize(
        ("x", "v", "names"), [(0.2, 0.0, "x was"), (0.0, 0.3, "v was"), (0.2, -0.3, "v and x were")]
    )
    def test_which_start_is_wrong(self, x: float, v: float, names: str) -> None:
        fit = gr.fit(Spring(), spring(x, v), ["k", "c"])
        assert f"not begin where {names} declared to" in fit.notes[0]

    @pytest.mark.parametrize("changes", [{"outlier": 1.0}, {"colour": 0.9}, {}], ids=["outlier", "coloured", "right"])
    def test_what_is_no_wrong_start(self, changes: dict[str, float]) -> None:
        assert said(gr.fit(Spring(), spring(0.0, 0.0, **changes), ["k", "c"])) == []

    def test_the_record_is_named(self) -> None:
        runs = [spring(0.0, 0.0, 1, "a"), spring(0.0, 0.3, 2, "b"), spring(0.0, 0.0, 3, "c")]
        fit = gr.fit(Spring(), runs, ["k", "c"])
        assert (
            fit.notes[0].startswith("start: record 'b' does not begin where v was declared to") and len(said(fit)) == 1
        )
        assert said(gr.fit(Spring(), runs, ["k", "c", "start(v)@b"])) == []

    def test_states_of_a_pendulum_on_a_rod(self) -> None:
        """Index 3: positions and speeds depend on each other, and the freely chosen ones are tested."""

        class Pendulum(gr.Model):
            L = gr.Parameter(0.9, bounds=(0.3, 3.0))
            x, y, vx, vy = gr.Variable(0.6), gr.Variable(-0.8), gr.Variable(0.0), gr.Variable(0.0)
            tension = gr.Variable(0.0)
            seen = gr.Output(x, noise=0.01)
            equations = [
                der(x) == vx, der(y) == vy, der(vx) == -tension * x, der(vy) == -tension * y - 9.81,
                x**2 + y**2 == L**2,
            ]  # fmt: skip

        t = np.arange(0.0, 2.0, 0.05)
        swing = gr.simulate(Pendulum(L=1.0), t, start={"vx": 0.3})["seen"].values
        data = gr.Experiment(t, {}, {"seen": swing + 0.01 * np.random.default_rng(1).normal(size=t.size)})
        assert "not begin where vx was declared to" in gr.fit(Pendulum(), data, ["L"]).notes[0]


@pytest.mark.parametrize("records", [3, 6])
def test_starts_that_are_wrong_in_every_record_are_found(records):
    """What one start explains is compared with the squares of its own record, not of all."""

    class Decay(gr.Model):
        k = gr.Parameter(0.3, bounds=(0.01, 50.0))
        h = gr.Variable(1.0)
        y = gr.Output(h)
        equations = [der(h) == -k * h]

    t = 0.15 * np.arange(40)
    for start, found in ((1.4, True), (1.0, False)):
        data = [
            gr.Experiment(
                t,
                outputs={"y": start * np.exp(-0.5 * t) + 0.02 * np.random.default_rng(i).normal(size=40)},
                name=f"e{i}",
            )
            for i in range(records)
        ]
        fit = gr.fit(Decay(), data, ["k"], gr.OutputError())
        assert any(n.startswith("start:") for n in fit.notes) == found


class Pendulum(gr.Model):
    """Its declared starts do not lie on the circle: it begins at 0.7071, −0.7071."""

    g = gr.Parameter(9.81, bounds=(1.0, 20.0))
    x, z = gr.Variable(0.5), gr.Variable(-0.5)
    vx, vz, force = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    y = gr.Output(x, noise=0.001)
    equations = [der(x) == vx, der(z) == vz, der(vx) == -force * x, der(vz) == -force * z - g, x**2 + z**2 == 1.0]


def pendulum(begins: float) -> gr.Experiment:
    times = np.linspace(0.0, 3.0, 40)
    run = gr.simulate(Pendulum(), times, parameters={"g": 9.0}, start={"x": begins})
    noise = 0.001 * np.random.default_rng(5).normal(size=40)
    return gr.Experiment(times, {}, {"y": run["y"].to_numpy() + noise}, name="run")


def test_declared_starts_that_are_not_met_are_said() -> None:
    found = gr.fit(Pendulum(), pendulum(np.sqrt(0.5)), ["g"])
    said = [n for n in found.notes if n.startswith("starts: ")]
    assert len(said) == 1 and "x begins at 0.707107 instead of 0.5" in said[0] and "fixed=True" in said[0]
    freed = gr.fit(Pendulum(), pendulum(np.sqrt(0.5)), ["g", "start(x)"])
    assert not [n for n in freed.notes if n.startswith("starts: ")]


def test_a_wrong_start_is_named_by_what_was_declared() -> None:
    found = gr.fit(Pendulum(), pendulum(0.71), ["g"])
    assert found.notes[0].startswith("start: the record does not begin where x was declared to: ")
    assert "0.5 was declared and the equations make it 0.7071" in found.notes[0]
