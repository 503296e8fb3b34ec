"""Equations that jump with their own unknowns: solved in pieces, or refused where no piece has a solution."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

METHODS = ("auto", "implicit", "frozen", "frozen-implicit")
times = np.linspace(0.0, 10.0, 11)


class Charging(gr.Model):
    """A diode with a constant drop charges a capacitor from 5 V."""

    i, v = gr.Variable(), gr.Variable(start=0.0)
    equations = [5.0 == i + gr.where(i > 0, 0.7, 0.0) + v, der(v) == i]


@pytest.mark.parametrize("method", METHODS)
def test_a_diode_with_a_constant_drop(method: str) -> None:
    got = gr.simulate(Charging(), times, method=method)
    assert np.abs(got["v"].values - 4.3 * (1 - np.exp(-times))).max() < 1e-5
    assert np.abs(got["i"].values - 4.3 * np.exp(-times)).max() < 1e-5


def test_a_solution_that_tends_to_the_switch_stays_on_its_side() -> None:
    for method in ("explicit", "implicit"):
        got = gr.simulate(Charging(), [0.0, 50.0, 500.0], method=method)
        assert abs(got["v"].values[-1] - 4.3) < 1e-5


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_leeway_at_a_switch_has_no_unit(unit: float) -> None:
    class Scaled(gr.Model):
        i = gr.Variable(nominal=1e9 * unit)
        v = gr.Variable(start=0.0, nominal=unit)
        equations = [5.0 * unit == 1e-9 * i + gr.where(i > 0, 0.7 * unit, 0.0) + v, der(v) == 1e-9 * i]

    got = gr.simulate(Scaled(), [0.0, 1.0, 60.0])
    assert np.allclose(got["v"].values / unit, 4.3 * (1 - np.exp([-0.0, -1.0, -60.0])), atol=1e-5)


SOLVED: dict[str, tuple[Any, Any, Any]] = {
    "sign": (lambda z: z + 0.5 * gr.sign(z), lambda t: 2.0 + np.sin(t), lambda u: u - 0.5),
    "negative sign": (lambda z: z + 0.5 * gr.sign(z), lambda t: -2.0 + np.sin(t), lambda u: u + 0.5),
    "floor": (lambda z: 2 * z + gr.floor(z), lambda t: 4.5 + 0.4 * np.sin(t), lambda u: (u - 1.0) / 2),
    "ceil": (lambda z: 2 * z + gr.ceil(z), lambda t: 4.5 + 0.4 * np.sin(t), lambda u: (u - 2.0) / 2),
    "three pieces": (
        lambda z: z + gr.where(z > 1, 1.0, gr.where(z < -1, -1.0, 0.0)), lambda t: 3 + 0.5 * np.cos(t), lambda u: u - 1,
    ),
    "bend": (lambda z: gr.where(z > 0, 2 * z, z), lambda t: 3 * np.sin(t), lambda u: np.where(u > 0, u / 2, u)),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVED)
def test_algebraic_equations_in_pieces(name: str) -> None:
    left, signal, root = SOLVED[name]

    class Algebraic(gr.Model):
        x, z, u = gr.Variable(0.0), gr.Variable(), gr.Input()
        equations = [der(x) == z - x, left(z) == u]

    got = gr.simulate(Algebraic(), times, inputs={"u": signal})
    assert np.abs(got["z"].values - root(signal(times))).max() < 1e-8


def test_a_derivative_in_its_own_sign() -> None:
    class Mass(gr.Model):
        v, u = gr.Variable(0.0), gr.Input()
        equations = [der(v) + 0.5 * gr.sign(der(v)) == u]

    got = gr.simulate(Mass(), times, inputs={"u": 2.0})
    assert np.allclose(got["v"].values, 1.5 * times)
    assert "1 implicit" in str(gr.analyze(Mass()))


def test_two_coupled_relations() -> None:
    """Two diodes with drops in one mesh: i1 + i2 through a common resistor."""

    class Mesh(gr.Model):
        a, b, u = gr.Variable(), gr.Variable(), gr.Input()
        x = gr.Variable(0.0)
        equations = [
            u == 2 * a + b + gr.where(a > 0, 0.5, 0.0),
            u == a + 3 * b + gr.where(b > 0, 0.25, 0.0),
            der(x) == a + b,
        ]

    got = gr.simulate(Mesh(), times, inputs={"u": lambda t: 4.0 + np.sin(t)})
    u = 4.0 + np.sin(times)
    wanted = np.linalg.solve([[2, 1], [1, 3]], np.array([u - 0.5, u - 0.25]))
    assert np.allclose([got["a"].values, got["b"].values], wanted, atol=1e-8)


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_a_gap_is_refused_by_name(method: str) -> None:
    class Gap(gr.Model):
        x, z, u = gr.Variable(0.0), gr.Variable(start=2.0), gr.Input()
        equations = [der(x) == z - x, z + 0.5 * gr.sign(z) == u]

    with pytest.raises(gr.SimulationError, match=r"'z \+ 0.5\*sign\(z\) == u'.*it jumps with 'sign\(z\)'"):
        gr.simulate(Gap(), times, inputs={"u": lambda t: 2.0 - 0.4 * t}, method=method)


def test_a_static_fit_sees_both_sides_of_a_preload() -> None:
    class Preloaded(gr.Model):
        k = gr.Parameter(1.0, bounds=(0.1, 20))
        F0 = gr.Parameter(0.3, bounds=(0.01, 10))
        F, x = gr.Input(), gr.Variable()
        y = gr.Output(x, noise=0.01)
        equations = [k * x + F0 * gr.sign(x) == F]

    force = np.linspace(-5, 5, 41)
    force = force[np.abs(force) > 1.2]
    truth = (force - np.sign(force)) / 2.0
    y = truth + 0.01 * np.random.default_rng(0).standard_normal(force.size)
    fit = gr.fit(Preloaded(), gr.Experiment(inputs={"F": force}, outputs={"y": y}))
    assert fit.converged
    assert abs(fit["k"] - 2.0) < 3 * fit["k"].std_error and fit["k"].std_error < 0.01
    assert abs(fit["F0"] - 1.0) < 3 * fit["F0"].std_error


def _solutions(A: np.ndarray, D: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """Every z with A z + D [z > 0] = b, piece by piece."""
    found = []
    for pieces in itertools.product((0.0, 1.0), repeat=len(b)):
        z = np.linalg.solve(A, b - D @ np.array(pieces))
        if ((z > 0) == np.array(pieces, dtype=bool)).all():
            found.append(z)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_coupled_pieces_are_right_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 2 + seed % 2
    A, D = 2 * np.eye(n) + random.normal(size=(n, n)), np.diag(random.uniform(0.2, 1.5, n))

    class Coupled(gr.Model):
        z, b, x = gr.Variable(size=n), gr.Input(size=n), gr.Variable(0.0)

        def equations(self) -> Any:
            step = [gr.where(self.z[i] > 0, 1.0, 0.0) for i in range(n)]
            for i in range(n):
                yield sum(A[i, j] * self.z[j] + D[i, j] * step[j] for j in range(n)) == self.b[i]
            yield der(self.x) == self.z[0]

    refused = 0
    for b in 2 * random.normal(size=(6, n)):
        roots = _solutions(A, D, b)
        try:
            got = gr.simulate(Coupled(), [0.0, 0.1], inputs={f"b[{i}]": b[i] for i in range(n)})
        except gr.GrisailleError:
            refused += bool(roots)
            continue
        z = np.array([got[f"z[{i}]"].values[0] for i in range(n)])
        assert any(np.abs(z - root).max() < 1e-6 for root in roots)
    assert refused <= 1


@pytest.mark.parametrize("options", [{}, {"method": "implicit"}])
def test_pieces_that_go_in_circles_are_searched_for(options: dict[str, Any]) -> None:
    """All pieces that disagree, changed at once, alternate here between two wrong sets."""
    A, D = np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 0.9], [0.9, 0.0, 1.0]]), 1.5 * np.eye(3)

    class Ring(gr.Model):
        z, b, x = gr.Variable(size=3), gr.Input(size=3), gr.Variable(0.0)

        def equations(self) -> Any:
            for i in range(3):
                j = (i + 1) % 3
                yield self.z[i] + 0.9 * self.z[j] + 1.5 * gr.where(self.z[i] > 0, 1.0, 0.0) == self.b[i]
            yield der(self.x) == self.z[0]

    t = np.arange(9.0)
    b = np.random.default_rng(5).normal(size=(40, 3)) * 3
    solvable = [row for row in b if len(_solutions(A, D, row)) == 1][: t.size]
    got = gr.simulate(Ring(), t, inputs={f"b[{i}]": np.array(solvable)[:, i] for i in range(3)}, **options)
    z = np.array([got[f"z[{i}]"].values for i in range(3)]).T
    wanted = np.array([_solutions(A, D, row)[0] for row in solvable])
    assert np.abs(z - wanted).max() < 1e-6
