"""Consistent starts are solved again where something they depend on has moved, and only there."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.structure.starts import Initializer


class Pendulum(gr.Model):
    """Index 3: the start lies on a circle of radius L, whatever the friction k."""

    k, L, a = gr.Parameter(0.1), gr.Parameter(2.0), gr.Parameter(0.5)
    x, y = gr.Variable(L * gr.sin(a)), gr.Variable(-L)
    vx, vy, pull = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == pull * x - k * vx,
        der(vy) == pull * y - k * vy - 9.81,
        x**2 + y**2 == L**2,
    ]


class Valve(gr.Model):
    """An implicit equation with k inside."""

    k, tau = gr.Parameter(0.7), gr.Parameter(3.0)
    h, q = gr.Variable(1.5), gr.Variable(1.0)
    equations = [tau * der(h) == 1.0 - q, q + 0.3 * q**3 == k * h]


TIMES = np.linspace(0.0, 1.0, 5)
CASES = [
    (Pendulum, ["k", "L", "a", "start(x)"], [0.1, 2.0, 0.5, 0.8], {0}),
    (Pendulum, ["k", "a"], [0.1, 0.5], {0}),
    (Valve, ["k", "tau"], [0.7, 3.0], {1}),
    (Valve, ["tau", "start(h)"], [3.0, 1.2], {0}),
]


@pytest.mark.parametrize(("model", "names", "values", "idle"), CASES)
def test_a_start_is_solved_only_where_it_moves(model, names, values, idle, monkeypatch) -> None:
    solved: list[str] = []
    for name in ("solve", "sensitivity"):
        plain = getattr(Initializer, name)

        def counted(self, *given, _name=name, _plain=plain, **more):
            solved.append(_name)
            return _plain(self, *given, **more)

        monkeypatch.setattr(Initializer, name, counted)
    theta = np.array(values)
    trial = BoundExperiment(model(), TIMES, moves=EstimatedQuantities.named(names))
    first = trial.at(theta)
    assert first.start.x.size and first.dstart.sx.shape[0] == len(names)
    for k in range(len(names)):
        moved, before = theta.copy(), len(solved)
        moved[k] *= 1.01
        kept, fresh = trial.at(moved), BoundExperiment(model(), TIMES, moves=EstimatedQuantities.named(names)).at(moved)
        found = kept.start, kept.dstart
        assert (len(solved) == before) == (k in idle), names[k]
        assert np.array_equal(found[0].x, fresh.start.x) and np.array_equal(found[0].z, fresh.start.z)
        assert np.array_equal(found[1].sx, fresh.dstart.sx) and np.array_equal(found[1].sz, fresh.dstart.sz)
        again = trial.at(theta)
        assert np.array_equal(again.start.x, first.start.x) and np.array_equal(again.dstart.sx, first.dstart.sx)


def test_points_without_derivatives_share_the_start_but_not_its_slopes() -> None:
    trial = BoundExperiment(Valve(), TIMES, moves=EstimatedQuantities.named(["tau"]))
    moving = trial.at([3.0])
    assert moving.dstart.sx.shape == (1, 1) and moving.without_derivatives().dstart.sx.shape == (0, 1)
    assert trial.at([4.0]).without_derivatives().dstart.sx.shape == (0, 1) and trial.at([5.0]).dstart.sx.shape == (1, 1)
