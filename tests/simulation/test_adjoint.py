"""Gradients through the adjoint of frozen steps: those of forward sensitivities, for every kind of model and step."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.compilation import adjoint_kernel as compiled
from grisaille.simulation import adjoint_gradient

TIMES = np.linspace(0.0, 2.0, 11)
HELD = np.sign(np.sin(4 * TIMES))


class Tank(gr.Model):
    """One state, a held input, a quantity that is not linear."""

    k = gr.Parameter(0.5)
    q = gr.Parameter(0.8)
    u = gr.Input(default=0.0)
    h = gr.Variable(start=1.0 + q)
    y = gr.Output(k * h**2)
    equations = [der(h) == q + 0.1 * u - k * h**1.5]


class Solved(gr.Model):
    """With an unknown that is solved for, and seen."""

    a = gr.Parameter(1.0)
    b = gr.Parameter(0.3)
    x = gr.Variable(start=a)
    z = gr.Variable()
    y = gr.Output(x + b * z)
    equations = [der(x) == -b * z - 0.1 * x, z + b * z**3 == a * x]


class Pendulum(gr.Model):
    """Of index three, so that steps are projected."""

    L = gr.Parameter(1.2)
    m = gr.Parameter(0.7)
    d = gr.Parameter(0.1)
    x = gr.Variable(start=0.8)
    y = gr.Variable(start=-0.9)
    v = gr.Variable(start=0.0)
    w = gr.Variable()
    F = gr.Variable()
    equations = [
        der(x) == v, der(y) == w, m * der(v) == -F * x - d * v, m * der(w) == -F * y - m * 9.81 - d * w,
        x**2 + y**2 == L**2,
    ]  # fmt: skip


CASES = {
    "Tank": (Tank(), {"u": HELD}, ["k", "q", "start(h)"]),
    "Solved": (Solved(), {}, ["a", "b", "start(x)"]),
    "Pendulum": (Pendulum(), {}, ["L", "m", "d"]),
}


def forwards(name: str, method: str, weights: dict[str, np.ndarray]) -> np.ndarray:
    model, inputs, names = CASES[name]
    found = gr.Simulator(model, TIMES, inputs, method=method, step=0.05, sensitivities=names).values()
    return np.sum([weights[n] @ found[f"d({n})"] for n in weights], axis=0)


@pytest.mark.parametrize(
    ("name", "method", "is_sparse"),
    [
        ("Tank", "frozen-explicit", False), ("Tank", "frozen-implicit", False), ("Solved", "frozen-explicit", False),
        ("Solved", "frozen-implicit", True), ("Pendulum", "frozen-explicit", False),
        ("Pendulum", "frozen-implicit", True),
    ],
)  # fmt: skip
def test_the_adjoint_is_the_transpose_of_forward_sensitivities(
    name: str, method: str, is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled.sparse_source, "is_worth_it", lambda system: is_sparse)
    model, inputs, names = CASES[name]
    random = np.random.default_rng(3)
    simulator = gr.Simulator(model, TIMES, inputs, method=method, step=0.05)
    weights = {n: random.standard_normal(len(TIMES)) for n in simulator.values()}
    expected = forwards(name, method, weights)
    found = simulator.gradient(weights, by=names)
    assert list(found) == names
    assert list(found.values()) == pytest.approx(expected, rel=1e-10)
    # with room for a few steps the record is cut into stretches
    monkeypatch.setattr(adjoint_gradient.gradient, "__defaults__", (100,))
    assert list(simulator.gradient(weights, by=names).values()) == pytest.approx(expected, rel=1e-10)


def test_weights_may_be_made_of_the_values() -> None:
    measured = 1.5 + 0.1 * np.cos(TIMES)
    simulator = gr.Simulator(Tank(), TIMES, {"u": HELD}, method="frozen")

    def half_squares(k: float) -> float:
        return 0.5 * float(np.sum((simulator.values({"k": k})["y"] - measured) ** 2))

    found = simulator.gradient(lambda v: {"y": v["y"] - measured}, {"k": 0.4}, by=["k"])["k"]
    assert found == pytest.approx((half_squares(0.4 + 1e-5) - half_squares(0.4 - 1e-5)) / 2e-5, rel=1e-6)


def test_eighty_unknowns_of_a_curve() -> None:
    class Falling(gr.Model):
        drag = gr.Parameter(np.linspace(0.0, 2.0, 80), size=80)
        v = gr.Variable(0.0)
        equations = [der(v) == 1.0 - gr.table(v, np.linspace(0.0, 1.0, 80), drag)]

    simulator = gr.Simulator(Falling(), TIMES, method="frozen-explicit", step=0.02)
    found = np.array(list(simulator.gradient({"v": 1.0}, by=["drag"]).values()))
    assert found.shape == (80,)
    # of all knots at once: the derivative by a shift of the whole curve
    shifted = [float(np.sum(simulator.values({"drag": np.linspace(0.0, 2.0, 80) + e})["v"])) for e in (1e-6, -1e-6)]
    assert found.sum() == pytest.approx((shifted[0] - shifted[1]) / 2e-6, rel=1e-4)
    assert np.all(found[np.linspace(0.0, 1.0, 80) > 0.6] == 0.0)


class Relay(gr.Model):
    """Jumps with its state."""

    k = gr.Parameter(1.0)
    x = gr.Variable(1.0)
    equations = [der(x) == -k * gr.sign(x - 0.5)]


class Ball(gr.Model):
    """Is thrown back by an event, between which nothing jumps."""

    e = gr.Parameter(0.8)
    h = gr.Variable(1.0)
    v = gr.Variable(0.0)
    equations = [der(h) == v, der(v) == -9.81, gr.when(h < 0, gr.reinit(v, -e * gr.pre(v)))]


class Late(gr.Model):
    """Hears its own past."""

    k = gr.Parameter(1.0)
    x = gr.Variable(1.0)
    equations = [der(x) == -k * gr.delay(x, 0.5)]


class Static(gr.Model):
    """Has no states."""

    k = gr.Parameter(1.0)
    y = gr.Variable()
    equations = [y == k * gr.time]


def frozen(model: gr.Model) -> gr.Simulator:
    return gr.Simulator(model, TIMES, method="frozen", step=0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gr.Simulator(Tank(), TIMES).gradient({"y": 1.0}, by=["k"]), "method='frozen'"),
        (lambda: frozen(Relay()).gradient({"x": 1.0}, by=["k"]), "Relay jumps with a relation of its states"),
        (lambda: frozen(Ball()).gradient({"h": 1.0}, by=["e"]), "Ball has events"),
        (lambda: frozen(Late()).gradient({"x": 1.0}, by=["k"]), "contains the past of its unknowns"),
        (lambda: frozen(Static()).gradient({"y": 1.0}, by=["k"]), "has no states"),
        (lambda: frozen(Tank()).gradient({"yy": 1.0}, by=["k"]), "weights names 'yy', which Tank does not have"),
        (lambda: frozen(Tank()).gradient({"y": [1.0, 2.0]}, by=["k"]), "must be 11 finite numbers"),
        (lambda: frozen(Tank()).gradient([1.0], by=["k"]), "weights is \\[1.0\\]; give"),
        (lambda: frozen(Tank()).gradient({"y": 1.0}, by=["c"]), "no parameter or start called 'c'"),
        (lambda: frozen(Tank()).gradient({"y": 1.0}, by=3), "by is 3; give"),
    ],
)
def test_what_has_no_gradient_is_refused(call: object, words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        call()  # type: ignore[operator]


class Bump(gr.Model):
    """A narrow hat of a state, between two steps."""

    v = gr.Parameter(1.0)
    c = gr.Parameter(0.5)
    k = gr.Parameter(1.0)
    s = gr.Variable(start=0.0, fixed=True)
    E = gr.Variable(start=0.0, fixed=True)
    equations = [der(s) == v * (1 - 0.3 * s), der(E) == k * gr.maximum(0, 1 - abs(s - c) / 0.01)]


def test_gradients_across_bends_inside_a_step() -> None:
    """The step was differentiated by the side at each stage: 35 % off in c, 6 % in v."""
    times, (c, w) = np.linspace(0.0, 1.5, 61), (0.5, 0.01)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    sides = [(-1.0, c + w * (nodes - 1) / 2), (1.0, c + w * (nodes + 1) / 2)]
    E = sum(w / 2 * weights @ ((1 - abs(s - c) / w) / (1 - 0.3 * s)) for _, s in sides)
    by_c = sum(w / 2 * weights @ (side / w / (1 - 0.3 * s)) for side, s in sides)
    simulator = gr.Simulator(Bump(), times, method="frozen")
    found = simulator.gradient({"E": [0.0] * 60 + [1.0]}, by=["v", "c", "k"])
    np.testing.assert_allclose([found["v"], found["c"], found["k"]], [-E, by_c, E], rtol=1e-5)
