"""Matrices of models: the paper's, finite differences of residuals, and the pencil against structural analysis."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.model import flatten
from grisaille.structure import evaluate_parameters, lower_equations, structure_of
from grisaille.structure.descriptor import Linearizer, build_staircase, jet_values, locate, start_point


class TwoBodies(gr.Model):
    v1, v2, f = gr.Variable(), gr.Variable(), gr.Variable()
    w1, w2 = gr.Disturbance(gr.spectra.white()), gr.Disturbance(gr.spectra.white())
    equations = [der(v1) == f + w1, der(v2) == -f + w2, v1 - v2 == 0]


class Pendulum(gr.Model):
    m, g, L, k = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(6.25), gr.Parameter(5.0)
    x, y = gr.Variable(start=3.0), gr.Variable(start=-5.0)
    vx, vy = gr.Variable(start=0.4), gr.Variable()
    tension = gr.Variable()
    u = gr.Input("N")
    w = gr.Disturbance(gr.spectra.lowpass(3.0))
    phi = gr.Output(gr.atan2(x, -y))
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


class Implicit(gr.Model):
    """An algebraic unknown that only Newton can find, and a second derivative."""

    x, z = gr.Variable(start=0.5), gr.Variable(start=0.4)
    w = gr.Disturbance(gr.spectra.lowpass(3.0))
    equations = [der(x, 2) == -x + z, z + z**5 + 0.1 * gr.sin(z) == x + w]


def test_matrices_of_the_two_bodies_are_those_of_the_paper() -> None:
    equations = lower_equations(flatten(TwoBodies()))
    linear = Linearizer(equations, ("v1", "v2", "f")).at(np.zeros(0))
    assert linear.variables == ("v1", "v2", "f")
    sign = np.sign(linear.F[:, 2] + linear.F[:, 0])[:, None] * np.sign([[1.0], [-1.0], [1.0]])
    np.testing.assert_array_equal(np.abs(linear.E), np.diag([1.0, 1, 0]))
    np.testing.assert_array_equal(sign * linear.F, [[0, 0, 1], [0, 0, -1], [1, -1, 0]])
    np.testing.assert_array_equal(sign * linear.J, [[1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(linear.H, np.eye(3))
    assert linear.equations[2] == "v1 - v2 == 0"


def test_linear_models_know_it() -> None:
    assert Linearizer(lower_equations(flatten(TwoBodies())), ("f",)).is_linear
    assert not Linearizer(lower_equations(flatten(Pendulum())), ("phi",)).is_linear

    class InTime(gr.Model):
        x = gr.Variable()
        equations = [der(x) == -gr.sin(gr.time) * x]

    linearizer = Linearizer(lower_equations(flatten(InTime())), ("x",))
    assert linearizer.depends_on_time and not linearizer.is_linear
    assert linearizer.at(np.zeros(0), time=np.pi / 2).F[0, 0] == pytest.approx(-1.0)


def test_signals_in_outputs_and_their_derivatives_become_entries() -> None:
    class Signals(gr.Model):
        x = gr.Variable()
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.lowpass(1.0))
        y = gr.Output(x + 2 * w)
        equations = [der(x) == -x + der(u) + w]

    linear = Linearizer(lower_equations(flatten(Signals())), ("y",)).at(np.zeros(0))
    assert linear.variables == ("x", "u", "w")
    for s in (0.3 + 1j, 2.0 + 0j):
        z = np.linalg.solve(s * linear.E - linear.F, np.hstack([linear.G, linear.J]))
        expected = [[s / (s + 1), 1 / (s + 1)], [1, 0], [0, 1]]
        np.testing.assert_allclose(z, expected, atol=1e-14)
        np.testing.assert_allclose(linear.H @ z, [[s / (s + 1), 1 / (s + 1) + 2]], atol=1e-14)


def test_second_derivatives_make_a_first_order_form() -> None:
    class Oscillator(gr.Model):
        k = gr.Parameter(9.0)
        x = gr.Variable()
        equations = [der(x, 2) + 0.2 * der(x) + k * x == 0]

    linear = Linearizer(lower_equations(flatten(Oscillator())), ("x",)).at(np.array([9.0]))
    assert linear.variables == ("x", "der(x)")
    modes = np.linalg.eigvals(np.linalg.solve(linear.E, linear.F))
    np.testing.assert_allclose(modes**2 + 0.2 * modes + 9.0, 0.0, atol=1e-12)


@pytest.mark.parametrize("model", [Pendulum(), Implicit()], ids=["pendulum", "implicit"])
def test_jets_satisfy_the_equations_and_their_derivatives(model: gr.Model) -> None:
    """Values of all derivatives at the start make every row vanish, and so does the row differentiated in time."""
    structure = structure_of(model)
    p = evaluate_parameters(structure.model).values
    point = start_point(structure, p, disturbances={"w": 0.3})
    equations = structure.equations
    rows = ca.vertcat(*(row.residual for row in equations.rows))
    rows = ca.vertcat(rows, ca.vertcat(*(equations.jets.differentiate(row.residual) for row in equations.rows)))
    wanted = [(m.name, m.order) for m in equations.jets.within(rows)]
    derivatives = [jet for jet in wanted if jet[0] in structure.model.variables or jet[1] == 0]
    values = jet_values(structure.system, point, p, derivatives)
    symbols = [equations.jets.symbol(*jet) for jet in wanted]
    numbers = [values.get(jet, 0.0) for jet in wanted]
    function = ca.Function("rows", [ca.vertcat(*symbols), ca.vertcat(*equations.parameters.values())], [rows])
    residual = np.array(function(numbers, p).full()).ravel()
    assert np.abs(residual).max() < 1e-9
    assert any(order == 2 for _, order in derivatives)


def test_linearised_pendulum_agrees_with_the_angle_form() -> None:
    """Modes of the index-3 pencil at rest = modes of m L² φ'' = −m g L cos(φ₀) φ at φ₀ = 0."""
    model = Pendulum(start={"x": 0.0, "y": -6.25, "vx": 0.0})
    structure = structure_of(model)
    p = evaluate_parameters(structure.model).values
    linearizer = Linearizer(structure.equations, ("phi", "tension"))
    point = start_point(structure, p)
    linear = linearizer.at(p, jet_values(structure.system, point, p, linearizer.needed))
    staircase = build_staircase(linear.E, linear.F)
    assert (staircase.index, staircase.finite_modes) == (3, structure.degrees_of_freedom)
    w = 1.1
    z = np.linalg.solve(1j * w * linear.E - linear.F, linear.G)
    phi, tension = (linear.H @ z).ravel()
    assert phi == pytest.approx(1 / (0.3 * 6.25 * (9.81 / 6.25 - w**2)), rel=1e-9)
    assert abs(tension) < 1e-12  # horizontal forces do not change it to first order at rest


def test_a_row_of_a_trajectory_is_located() -> None:
    model = Pendulum()
    structure = structure_of(model)
    p = evaluate_parameters(structure.model).values
    point = start_point(structure, p, disturbances={"w": 0.2})
    names = structure.system.observed_names
    values = {jet[0]: v for jet, v in jet_values(structure.system, point, p, [(n, 0) for n in names]).items()}
    again = locate(structure, values, 0.0, p, "row")
    np.testing.assert_allclose(again.x, point.x, atol=1e-9)
    np.testing.assert_allclose(again.u, point.u)


def test_a_row_that_does_not_fit_is_refused() -> None:
    structure = structure_of(Pendulum())
    p = evaluate_parameters(structure.model).values
    with pytest.raises(gr.StructureError, match=r"row at t = 2 .* does not satisfy the equations of Pendulum"):
        locate(structure, {"x": 9.0, "y": 1.0, "vx": 0.0, "vy": 0.0, "tension": 0.0}, 2.0, p, "row")


@pytest.mark.parametrize(
    ("rate", "is_linear"),
    [
        (lambda x: -2 * x, True),
        (lambda x: -2 * x - gr.sign(x), False),
        (lambda x: gr.where(x > 1, 0.5, 0.0), False),
        (lambda x: -gr.floor(x), False),
        (lambda x: -abs(x), False),
    ],
)
def test_linear_is_affine_everywhere(rate, is_linear) -> None:
    class Plant(gr.Model):
        x = gr.Variable(start=1.0)
        equations = [der(x) == rate(x)]

    assert Linearizer(structure_of(Plant()).equations, ("x",)).is_linear is is_linear
