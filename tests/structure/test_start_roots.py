"""Of several roots at the start, the one nearest to the wishes is taken; where nothing decides, the start says so."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.structure import evaluate_parameters, structure_of
from grisaille.structure.starts import Initializer


class Battery(gr.Model):
    """V i = P has two roots: 13 V and 3 A, or 0.3 V and 130 A."""

    E, R, P = gr.Parameter(13.3), gr.Parameter(0.1), gr.Parameter(39.0)
    q, V, i = gr.Variable(), gr.Variable(), gr.Variable()
    equations = [der(q) == -i, V * i == P, V == E - R * i]


class Turned(gr.Model):
    E, R, P = gr.Parameter(13.3), gr.Parameter(0.1), gr.Parameter(39.0)
    i, V, q = gr.Variable(), gr.Variable(), gr.Variable()
    equations = [P == i * V, E == V + R * i, der(q) == -i]


class Square(gr.Model):
    v, z = gr.Variable(), gr.Variable()
    equations = [der(v) == z, z**2 == 4 - v]


@pytest.mark.parametrize("model", [Battery, Turned])
@pytest.mark.parametrize(
    ("start", "current"),
    [({}, 3.0), ({"i": 120.0}, 130.0), ({"V": 10.0}, 3.0), ({"V": 1.0}, 130.0), ({"i": 40.0, "V": 0.0}, 3.0)],
)
def test_the_nearest_branch_of_a_battery(model: type[gr.Model], start: dict[str, float], current: float) -> None:
    found = gr.analyze(model(start=start)).start
    assert found["i"] == pytest.approx(current, rel=1e-9)
    assert found["V"] * found["i"] == pytest.approx(39.0, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_nearest_branch_at_other_scales(scale: float) -> None:
    found = gr.analyze(Battery(E=13.3 * scale, P=39.0 * scale**2)).start
    assert found["i"] == pytest.approx(3.0 * scale, rel=1e-8)


def test_a_branch_that_holds_at_the_guess_is_compared_too() -> None:
    """Without load, V = 0 satisfies the torn equation as it stands, at 133 A."""
    found = gr.analyze(Battery(P=0.0)).start
    assert found["i"] == pytest.approx(0.0, abs=1e-9) and found["V"] == pytest.approx(13.3, rel=1e-12)


def test_nominal_values_weigh_distances() -> None:
    """In units of a kiloampere and a tenth of a volt, 130 A and 0.3 V are the nearer ones."""

    class Weighed(gr.Model):
        q, V, i = gr.Variable(), gr.Variable(nominal=0.1), gr.Variable(nominal=1e3)
        equations = [der(q) == -i, V * i == 39.0, V == 13.3 - 0.1 * i]

    assert gr.analyze(Weighed()).start["i"] == pytest.approx(130.0, rel=1e-9)


@pytest.mark.parametrize(("wish", "root"), [(20.0, 6 * np.pi + np.pi / 6), (0.0, np.pi / 6), (3.0, 5 * np.pi / 6)])
def test_the_nearest_of_infinitely_many_roots(wish: float, root: float) -> None:
    class Sine(gr.Model):
        v, z = gr.Variable(), gr.Variable()
        equations = [der(v) == z, gr.sin(z) == 0.5 - v]

    assert gr.analyze(Sine(start={"z": wish})).start["z"] == pytest.approx(root, rel=1e-12)


def test_two_unknowns_with_four_roots() -> None:
    """A circle of radius √5 and the hyperbola a b = 2 meet at ±(1, 2) and ±(2, 1)."""

    class Crossing(gr.Model):
        x, a, b = gr.Variable(), gr.Variable(-1.2), gr.Variable(-1.8)
        equations = [der(x) == -a, a**2 + b**2 == 5 + x, a * b == 2 + x]

    found = gr.analyze(Crossing()).start
    assert (found["a"], found["b"]) == pytest.approx((-1.0, -2.0), rel=1e-10)


def test_roots_between_which_nothing_decides_are_told() -> None:
    analysis = gr.analyze(Square())
    assert analysis.start["z"] == pytest.approx(2.0, rel=1e-12), "the larger one"
    assert "z = 2 and z = -2; the first is taken. A start of z decides" in analysis.start_note
    result = gr.simulate(Square(), [0.0, 0.1])
    assert "z = 2 and z = -2" in result.attrs["start_note"]
    decided = gr.analyze(Square(start={"z": -0.1}))
    assert decided.start["z"] == pytest.approx(-2.0, rel=1e-12) and "equally near" not in decided.start_note


def test_a_guess_is_continued_and_not_left_for_a_nearer_root() -> None:
    structure = structure_of(Battery())
    p, initializer = evaluate_parameters(structure.model).values, Initializer(structure)
    far = initializer.solve(0.0, np.zeros(0), p, guess=np.concatenate([[0.0], far_root(structure)]))
    assert initializer.observe(0.0, far, np.zeros(0), p)["i"] == pytest.approx(130.0, rel=1e-9)


def far_root(structure) -> np.ndarray:
    return np.array([{"V": 0.31, "i": 129.0}[n] for n in structure.system.implicit_names])


def test_a_search_that_finds_one_root_is_not_repeated() -> None:
    class Cubic(gr.Model):
        v, z = gr.Variable(), gr.Variable()
        equations = [der(v) == z, z + z**3 == 4 - v]

    structure = structure_of(Cubic())
    p, initializer = evaluate_parameters(structure.model).values, Initializer(structure)
    assert initializer.may_have_several_roots
    initializer.solve(0.0, np.zeros(0), p)
    assert not initializer.may_have_several_roots
