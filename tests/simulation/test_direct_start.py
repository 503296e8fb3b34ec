"""Starts that are read off equal those that are solved for, with their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der
from grisaille.simulation.direct_start import DirectStart
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.prepared import structure_of


class Chain(gr.Model):
    """Starts that are formulas of parameters and of another start; an algebraic quantity with a start of its own."""

    k, c = gr.Parameter(2.0), gr.Parameter(3.0)
    x, y, z = gr.Variable(k**2, fixed=True), gr.Variable(c * k), gr.Variable()
    w = gr.Variable(1.0)
    v = gr.Variable(2 * y)
    equations = [der(x) == -x, der(y) == -k * y, der(v) == y - v, z == x + y, der(w) == z]


@pytest.mark.parametrize("demands", [{}, {"y": 0.3}, {"w": -1.0, "x": 5.0}])
def test_read_off_equals_solved(demands: dict[str, float]) -> None:
    structure = structure_of(Chain())
    initializer = Initializer(structure)
    p = evaluate_parameters(structure.model).values
    directions = np.vstack([np.eye(2), np.zeros((len(demands), 2))])
    moved = {n: np.eye(len(directions))[2 + k] for k, n in enumerate(demands)}
    direct = DirectStart.of(initializer, frozenset(demands))
    assert direct is not None
    read = direct.solve(p, demands, directions, moved)
    assert read is not None
    solved = initializer.solve(0.0, np.zeros(0), p, demands)
    slopes = initializer.sensitivity(0.0, np.zeros(0), p, solved, directions, demands, moved)
    assert np.allclose(read[0].x, solved.x, rtol=1e-12, atol=1e-12)
    assert np.allclose(read[1].sx, slopes.sx, rtol=1e-9, atol=1e-9)


class Undeclared(gr.Model):
    x, y = gr.Variable(1.0), gr.Variable()
    equations = [der(x) == -x, der(y) == x]


class Rate(gr.Model):
    """v is the rate of x under another name: two starts for one state must be weighed."""

    x, v, u = gr.Variable(1.0), gr.Variable(0.5), gr.Variable(2.0)
    equations = [der(x) == v, der(v) == -x, u == v]


@pytest.mark.parametrize("model", [Pendulum(), Undeclared(), Rate()])
def test_other_starts_are_solved_for(model: gr.Model) -> None:
    assert DirectStart.of(Initializer(structure_of(model)), frozenset()) is None


def test_demands_beside_the_states_are_solved_for() -> None:
    assert DirectStart.of(Initializer(structure_of(Chain())), frozenset({"z"})) is None
