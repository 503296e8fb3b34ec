"""Consistent starts: wishes, demands, steady states, failures that name the equation, and exact derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der, exp
from grisaille.errors import StructureError
from grisaille.structure import evaluate_parameters, structure_of
from grisaille.structure.starts import Initializer

STILL = np.zeros(2)


def start_of(model: gr.Model, demands=None, u=STILL, **options):
    structure = structure_of(model)
    p = evaluate_parameters(structure.model).values
    initializer = Initializer(structure)
    found = initializer.solve(0.0, u[: structure.system.nu], p, demands, **options)
    return initializer.observe(0.0, found, u[: structure.system.nu], p), found


def test_wishes_that_can_be_met_are_met() -> None:
    values, found = start_of(Pendulum())
    assert (values["x"], values["y"]) == (0.0, -6.25) and not found.guesses_missed


def test_wishes_are_met_as_nearly_as_possible() -> None:
    """The nearest point of the circle to (3, −4) lies on the same ray."""
    values, found = start_of(Pendulum(start={"x": 3.0, "y": -4.0}))
    assert values["x"] == pytest.approx(6.25 * 0.6, abs=1e-10)
    assert values["y"] == pytest.approx(-6.25 * 0.8, abs=1e-10)
    assert set(found.guesses_missed) == {"x", "y"}


def test_demands_win_over_wishes() -> None:
    values, _ = start_of(Pendulum(), {"x": 5.0})
    assert values["x"] == 5.0
    assert values["y"] == pytest.approx(-np.sqrt(6.25**2 - 25), abs=1e-10)


def test_demand_on_an_algebraic_variable_moves_the_states() -> None:
    values, _ = start_of(Pendulum(), {"tension": -1.0})
    speed = values["vx"] ** 2 + values["vy"] ** 2
    assert values["tension"] == pytest.approx(-1.0, abs=1e-9) and speed > 0


def test_nominal_weighs_wishes() -> None:
    class Sum(gr.Model):
        a, b = gr.Variable(1.0, nominal=1.0), gr.Variable(1.0, nominal=100.0)
        equations = [der(a) == -a, a + b**2 == 5]

    values, _ = start_of(Sum())
    assert abs(values["a"] - 1.0) < 0.01, "the variable with the large nominal gives way"


def test_algebraic_wishes_do_not_move_states() -> None:
    class Diode(gr.Model):
        v = gr.Variable(0.5)
        i = gr.Variable(3.0)
        equations = [der(v) == -i, i == 1e-3 * (exp(v / 0.05) - 1)]

    values, _ = start_of(Diode())
    assert values["v"] == 0.5


def test_steady_state_of_a_nonlinear_model() -> None:
    class Tank(gr.Model):
        h = gr.Variable(2.0)
        u = gr.Input()
        equations = [der(h) == u - 0.5 * gr.sqrt(h)]

    values, _ = start_of(Tank(), u=np.array([1.5]), steady=True)
    assert values["h"] == pytest.approx(9.0, abs=1e-8)


def test_homotopy_reaches_a_far_solution() -> None:
    class Steep(gr.Model):
        x = gr.Variable(0.0)
        z = gr.Variable(20.0)
        equations = [der(x) == -z, z**3 + gr.atan(30 * z) == 2 - x]

    values, found = start_of(Steep())
    assert found.residual < 1e-9
    assert values["z"] ** 3 + np.arctan(30 * values["z"]) == pytest.approx(2.0, abs=1e-9)


def test_algebraic_loop_without_solution_names_the_equation() -> None:
    class Impossible(gr.Model):
        x, z = gr.Variable(1.0), gr.Variable(1.0)
        equations = [der(x) == z, z**2 + x**2 + 1 == 0.5 * x]

    with pytest.raises(StructureError, match=r"z\*\*2 \+ x\*\*2 \+ 1 == 0\.5\*x.*residual"):
        gr.simulate(Impossible(), [0, 1], start={"x": 1.0})


def test_undefined_start_is_named() -> None:
    class Logarithm(gr.Model):
        x, z = gr.Variable(-1.0), gr.Variable(1.0)
        equations = [der(x) == -z, z + exp(z) == gr.log(x)]

    with pytest.raises(StructureError, match="no finite value at the start"):
        gr.simulate(Logarithm(), [0, 1], start={"x": -1.0})


@pytest.mark.parametrize("case", ["met", "missed", "demanded"])
def test_derivatives_of_the_start(case: str) -> None:
    model = Pendulum(start={"x": 3.0, "y": -4.0}) if case == "missed" else Pendulum()
    demands = {"x": 2.0} if case == "demanded" else {}
    structure = structure_of(model)
    initializer = Initializer(structure)
    p = evaluate_parameters(structure.model).values
    start = initializer.solve(0.0, STILL, p, demands)
    found = initializer.sensitivity(0.0, STILL, p, start, np.eye(len(p)), demands).sx
    for k in range(len(p)):
        shift = np.eye(len(p))[k] * 1e-5
        ends = [initializer.solve(0.0, STILL, p + s * shift, demands).x for s in (1, -1)]
        assert np.abs((ends[0] - ends[1]) / 2e-5 - found[k]).max() < 1e-8


def test_nominal_of_an_eliminated_variable_is_kept() -> None:
    """The acceleration b is merged with der(v), the current i with -j; what was said of their size still holds."""

    class Arm(gr.Model):
        x, y, u, v = gr.Variable(1.0), gr.Variable(0.0, nominal=1e-3), gr.Variable(0.0), gr.Variable(0.0, nominal=10.0)
        a, b, lam = gr.Variable(nominal=1e4), gr.Variable(nominal=1e5), gr.Variable()
        i, j = gr.Variable(nominal=1e-6), gr.Variable(0.0)
        equations = [
            der(x) == u, der(y) == v, der(u) == a, der(v) == b, a + a**3 == -lam * x, b + b**3 == -lam * y - 9.81,
            x**2 + y**2 == 1, i == -j, der(j) == -j,
        ]  # fmt: skip

    structure = structure_of(Arm())
    names = (*structure.system.state_names, *structure.system.implicit_names)
    scale = dict(zip(names, Initializer(structure).nominal, strict=True))
    expected = {"x": 1.0, "y": 1e-3, "u": 1.0, "v": 10.0, "j": 1e-6, "der(u)": 1e4, "der(v)": 1e5, "lam": 1.0}
    assert scale == {n: expected[n] for n in names}
    assert {"der(u)", "der(v)"} & set(names)
