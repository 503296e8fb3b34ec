"""Starts that are read off equal those that are solved for, with their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities, start_is_explicit
from grisaille.structure import structure_of
from grisaille.structure.starts import Initializer

TIMES = np.linspace(0.0, 1.0, 3)


class Chain(gr.Model):
    """Starts that are formulas of parameters and of another start; an algebraic quantity with a start of its own."""

    k, c = gr.Parameter(2.0), gr.Parameter(3.0)
    x, y, z = gr.Variable(k**2, fixed=True), gr.Variable(c * k), gr.Variable()
    w = gr.Variable(1.0)
    v = gr.Variable(2 * y)
    equations = [der(x) == -x, der(y) == -k * y, der(v) == y - v, z == x + y, der(w) == z]


class Undeclared(gr.Model):
    """A state without a start begins at zero."""

    k = gr.Parameter(2.0)
    x, y = gr.Variable(k), gr.Variable()
    equations = [der(x) == -x, der(y) == x]


@pytest.mark.parametrize(
    ("model", "moves", "values", "demands"),
    [
        (Chain(), ("k", "c"), (2.0, 3.0), {}),
        (Chain(), ("k", "start(y)", "c"), (2.0, 0.3, 3.0), {}),
        (Chain(), ("c", "start(w)"), (3.0, -1.0), {"x": 5.0}),
        (Chain(), ("k",), (2.5,), {"y": 0.3}),
        (Undeclared(), ("k",), (1.5,), {}),
        (Undeclared(), ("k", "start(y)"), (1.5, 4.0), {}),
    ],
)
def test_read_off_equals_solved(model, moves, values, demands) -> None:
    trial = BoundExperiment(model, TIMES, moves=EstimatedQuantities.named(moves), demands=demands)
    point = trial.at(values)
    initializer = point.initializer
    assert trial.encoding.reader(point.initializer) is not None
    solved = initializer.solve(0.0, point.u, point.p, point.demands)
    slopes = initializer.sensitivity(0.0, point.u, point.p, solved, point.dp, point.demands, point.ddemands)
    np.testing.assert_allclose(point.start.x, solved.x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(point.dstart.sx, slopes.sx, rtol=1e-9, atol=1e-9)


class Rate(gr.Model):
    """v is the rate of x under another name: two starts for one state must be weighed."""

    x, v, u = gr.Variable(1.0), gr.Variable(0.5), gr.Variable(2.0)
    equations = [der(x) == v, der(v) == -x, u == v]


@pytest.mark.parametrize("model", [Pendulum(), Rate()])
def test_other_starts_are_solved_for(model: gr.Model) -> None:
    assert not start_is_explicit(Initializer(structure_of(model)), frozenset())


def test_demands_beside_the_states_are_solved_for() -> None:
    assert not start_is_explicit(Initializer(structure_of(Chain())), frozenset({"z"}))
