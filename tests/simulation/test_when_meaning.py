"""What a quantity in an action means: states before the event, discrete variables after it, however equations are
solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.structure import hold_events

TIMES = np.array([0.0, 0.5, 1.5, 2.0])
AT_EVENT = 0.5 * np.exp(-0.1)
"""x at t = 1."""


class Decay(gr.Model):
    x, a = gr.Variable(0.5), gr.Variable(1.0)
    n, m, k = gr.Discrete(1.0), gr.Discrete(0.0), gr.Discrete(0.0)

    def equations(self) -> Any:
        yield der(self.x) == -0.1 * self.x


class Written(Decay):
    b = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.b == 2 * self.n * self.x
        yield self.a == self.b + 1
        yield gr.when(
            gr.time > 1, self.n == 3, self.m == self.a, self.k == gr.pre(self.a) + self.m, gr.reinit(self.x, self.a)
        )


class Linear(Decay):
    b = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.a + self.x * self.b == 2 * self.n
        yield self.x * self.a - self.b == 0
        yield gr.when(
            gr.time > 1, self.n == 3, self.m == self.a, self.k == gr.pre(self.a) + self.m, gr.reinit(self.x, self.a)
        )


def written(n: float) -> float:
    return 2 * n * AT_EVENT + 1


def linear(n: float) -> float:
    return 2 * n / (1 + AT_EVENT**2)


@pytest.mark.parametrize("model, a", [(Written, written), (Linear, linear)])
@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_equations_hold_with_new_discrete_variables_and_states_as_they_were(
    model: type[gr.Model], a: Any, method: str
) -> None:
    run = gr.simulate(model(), TIMES, method=method, rtol=1e-10)
    np.testing.assert_allclose(run.m.values, [0, 0, a(3), a(3)], rtol=1e-8)
    np.testing.assert_allclose(run.k.values[-1], a(1) + a(3), rtol=1e-8)
    np.testing.assert_allclose(run.x.values[-1], a(3) * np.exp(-0.1), rtol=1e-8)


class Solved(Decay):
    """a is solved for by Newton's iteration."""

    b = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.a + 0.01 * gr.exp(self.a) == 2 * self.n + 0 * self.x
        yield self.b == self.a + 1


def root(n: float) -> float:
    a = 2 * n
    for _ in range(60):
        a -= (a + 0.01 * np.exp(a) - 2 * n) / (1 + 0.01 * np.exp(a))
    return float(a)


class Assigned(Solved):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time > 1, self.n == 3, self.m == self.b, self.k == 1)


class Reset(Solved):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time > 1, self.n == 3, gr.reinit(self.x, self.b), self.m == 1, self.k == 1)


class Circle(Solved):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time > 1, self.n == self.a, self.m == 1, self.k == 1)


class Tied(gr.Model):
    """Both positions jump where n does, and nothing says by how much before it has."""

    x, y, w, f = gr.Variable(0.5), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    n, m = gr.Discrete(0.5), gr.Discrete(0.0)
    equations = [
        der(x) == w,
        der(w) == -x + f,
        der(y) == -y + f,
        x + 0.1 * x**3 - y - 0.1 * gr.sin(y) == n,
        gr.when(gr.time > 1, n == 1.2, m == x),
    ]


@pytest.mark.parametrize("model, name", [(Assigned, "a"), (Reset, "a"), (Circle, "a"), (Tied, "x")])
def test_unknowns_that_are_solved_for_after_the_action_are_refused(model: type[gr.Model], name: str) -> None:
    with pytest.raises(gr.StructureError, match=rf"needs {name} with the new value of 'n'.*gr.pre"):
        gr.simulate(model(), TIMES)


class Before(Solved):
    """What is meant is said, and another unknown does not depend on n."""

    c = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.c + gr.exp(self.c) == 1 + self.x
        yield gr.when(gr.time > 1, self.n == 3, self.m == gr.pre(self.b), self.k == self.c)


def test_unknowns_before_the_event_and_those_that_do_not_change() -> None:
    run = gr.simulate(Before(), TIMES, rtol=1e-10)
    k = run.k.values[-1]
    np.testing.assert_allclose(run.m.values[-1], root(1.0) + 1, rtol=1e-12)
    np.testing.assert_allclose(k + np.exp(k), 1 + AT_EVENT, rtol=1e-9)


class Apart(Solved):
    at = gr.Parameter(1.0)

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time > 1, self.n == 3, self.k == 1)
        yield gr.when(gr.time > self.at, self.m == self.a)


@pytest.mark.parametrize("at, n", [(0.9, 1.0), (1.0, 3.0), (1.2, 3.0)])
def test_a_clause_that_needs_what_another_one_moves_is_decided_after_it(at: float, n: float) -> None:
    np.testing.assert_allclose(gr.simulate(Apart(at=at), TIMES).m.values[-1], root(n), rtol=1e-12)


class Crossed(Solved):
    """Each needs an unknown that changes with what the other one sets."""

    c = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.c + 0.01 * gr.exp(self.c) == 1 + self.m
        yield gr.when(gr.time > 1, self.n == self.c)
        yield gr.when(gr.time >= 1, self.m == self.a, self.k == 1)


def test_clauses_that_need_each_other_must_not_fire_at_once() -> None:
    message = r"when\(time > 1\) and gr.when\(time >= 1\) fire at once at t = 1: the first needs c .* gives 'm'"
    with pytest.raises(gr.SimulationError, match=message):
        gr.simulate(Crossed(), TIMES)


class Dropped(gr.Model):
    wind = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.2), scale=0.3)
    height, v = gr.Variable(1.0), gr.Variable(0.0)
    equations = [
        der(height) == v,
        der(v) == -9.81 + wind,
        gr.when(height < 0, gr.reinit(v, -0.3 * gr.pre(v))),
    ]


def test_ensembles_tell_why_and_in_the_names_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []

    def spy(*given: Any) -> Any:
        events = hold_events(*given)
        texts.extend(m.text for m in events.system.modes)
        return events

    monkeypatch.setattr("grisaille.simulation.ensembles.task_engine.hold_events", spy)
    with pytest.raises(gr.SimulationError, match=r"2 of 2 realizations failed: .*when\(height < 0\) fires faster"):
        gr.simulate(Dropped(), np.linspace(0, 2, 5), realizations=2, seed=1)
    assert texts == ["height<0"]


class Late(gr.Model):
    u = gr.Input()
    x = gr.Variable(0.0)
    n, m = gr.Discrete(0.0), gr.Discrete(0.0)
    equations = [
        der(x) == n,
        gr.when(gr.delay(u, 0.5) > 1, n == 1 + gr.delay(u, 0.25)),
        gr.when(gr.clock(2.0, 2.0), m == gr.delay(u, 0.5)),
    ]


def test_delayed_inputs_in_conditions_and_actions_are_delayed() -> None:
    run = gr.simulate(Late(), [0.0, 1.4, 1.6, 2.5], inputs={"u": ([0.0, 3.0], [0.0, 3.0])}, hold="foh")
    np.testing.assert_allclose(run.n, [0, 0, 2.25, 2.25], atol=1e-9)
    np.testing.assert_allclose(run.m, [0, 0, 0, 1.5], atol=1e-9)
    np.testing.assert_allclose(run.x, [0, 0, 0.225, 2.25], atol=1e-9)
