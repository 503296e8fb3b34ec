"""States begin at their declared start, or at zero, wherever the equations allow it; algebraic unknowns give way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import grisaille as gr
import grisaille.components.electrical as el
from grisaille import der, exp
from grisaille.structure import evaluate_parameters, structure_of
from grisaille.structure.starts import Initializer, problem, start_search


def start_of(model: gr.Model, u=(), demands=None, **options):
    structure = structure_of(model)
    p = evaluate_parameters(structure.model).values
    initializer, signals = Initializer(structure), np.asarray(u, dtype=float)
    found = initializer.solve(0.0, signals, p, demands, **options)
    return initializer.observe(0.0, found, signals, p), found


def derivative_error(model: gr.Model, demands=None) -> float:
    """Largest difference between the start's derivatives by parameters and central differences."""
    structure = structure_of(model)
    p, initializer, u = evaluate_parameters(structure.model).values, Initializer(structure), np.zeros(0)
    start = initializer.solve(0.0, u, p, demands)
    found = initializer.sensitivity(0.0, u, p, start, np.eye(len(p)), demands)
    worst = 0.0
    for k in range(len(p)):
        shift = 1e-5 * np.eye(len(p))[k]
        plus, minus = (initializer.solve(0.0, u, p + s * shift, demands) for s in (1, -1))
        for a, b, s in ((plus.x, minus.x, found.sx), (plus.z, minus.z, found.sz)):
            worst = max(worst, np.abs((a - b) / 2e-5 - s[k]).max(initial=0.0))
    return worst


class Cubic(gr.Model):
    v, z, u = gr.Variable(), gr.Variable(), gr.Input()
    equations = [der(v) == z, z + 0.1 * z**3 == u - v]


class Rectifier(gr.Model):
    src, r1, d, r2 = el.VoltageSource(), el.Resistor(R=1e3), el.Diode(), el.Resistor(R=1e3)
    c, g = el.Capacitor(C=1e-6), el.Ground()
    equations = [
        gr.connect(src.p, r1.p), gr.connect(r1.n, d.p), gr.connect(d.n, r2.p), gr.connect(r2.n, c.p),
        gr.connect(c.n, src.n, g.p),
    ]  # fmt: skip


@pytest.mark.parametrize("u", [4.0, -4.0, 1e6, 1e-9])
def test_a_state_without_a_start_begins_at_zero_beside_an_implicit_equation(u: float) -> None:
    values, found = start_of(Cubic(), [u])
    root = brentq(lambda z: z + 0.1 * z**3 - u, -1e3, 1e3, xtol=1e-14)
    assert values["v"] == 0.0 and not found.undeclared
    assert values["z"] == pytest.approx(root, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("u", [4.0, -4.0, 0.3])
def test_the_capacitor_behind_a_diode_begins_empty(u: float) -> None:
    result = gr.simulate(Rectifier(), [0.0, 1e-9], {"src.u": u})
    assert float(result["c.v"][0]) == 0.0


def test_an_implicit_equation_without_slope_at_the_guess_does_not_pull_the_state() -> None:
    """At z = 0 the equation z² = 4 − v has a slope in v only."""

    class Square(gr.Model):
        v, z = gr.Variable(), gr.Variable()
        equations = [der(v) == z, z**2 == 4 - v]

    values, _ = start_of(Square())
    assert values["v"] == 0.0 and abs(values["z"]) == pytest.approx(2.0, rel=1e-12)


def test_a_declared_algebraic_start_does_not_move_an_undeclared_state() -> None:
    class Diode(gr.Model):
        v, i = gr.Variable(), gr.Variable(3.0)
        equations = [der(v) == -i, i + 0.1 * i**3 == 1e-3 * (exp(v / 0.05) - 1) + 1]

    values, _ = start_of(Diode())
    assert values["v"] == 0.0 and values["i"] + 0.1 * values["i"] ** 3 == pytest.approx(1.0, abs=1e-10)
    note = gr.analyze(Diode()).start_note
    assert "v begins at zero" in note and "i declared 3" in note and "all declared starts are met" not in note


def test_declared_states_win_over_undeclared_ones() -> None:
    """x is declared; y has to leave zero, although the constraint has no slope in y there."""

    class Circle(gr.Model):
        x, y, s = gr.Variable(0.6), gr.Variable(), gr.Variable()
        equations = [der(x) == s * x - y, der(y) == s * y + x, x**2 + y**2 == 1]

    values, found = start_of(Circle())
    assert values["x"] == pytest.approx(0.6, abs=1e-12) and abs(values["y"]) == pytest.approx(0.8, abs=1e-12)
    assert not found.guesses_missed and set(found.undeclared) == {"y"}
    assert "held off zero by the equations: y = " in gr.analyze(Circle()).start_note


@pytest.mark.parametrize("size", [1.0, 1e6, 1e-6])
def test_what_the_user_differentiates_wins_over_what_index_reduction_differentiates(size: float) -> None:
    """x and w stand under der, y does not: it is differentiated because the constraint that gives z contains it."""

    class Shared(gr.Model):
        x, w, z = gr.Variable(0.5), gr.Variable(), gr.Variable()
        y = gr.Variable(2.0 * size, nominal=size)
        equations = [der(x) == z - x, der(w) == -z, y == size * (x + w), 2 * y / size - x == gr.cos(gr.time)]

    values, found = start_of(Shared())
    assert (values["x"], values["w"]) == pytest.approx((0.5, 0.25), abs=1e-12)
    assert found.guesses_missed == {"y": pytest.approx((2.0 * size, 0.75 * size))}
    assert "y declared" in gr.analyze(Shared()).start_note


def test_what_index_reduction_differentiates_decides_where_the_user_declared_nothing_else() -> None:
    class Shared(gr.Model):
        a = gr.Parameter(0.4)
        x, w, z, y = gr.Variable(), gr.Variable(), gr.Variable(), gr.Variable(start=a)
        equations = [der(x) == z - x, der(w) == -z, y + 0.1 * y**3 == x + w, 2 * y - x == 1]

    values, found = start_of(Shared())
    assert values["y"] == pytest.approx(0.4, abs=1e-12) and values["x"] == pytest.approx(-0.2, abs=1e-12)
    assert not found.guesses_missed
    assert derivative_error(Shared()) < 1e-8


def test_derivatives_where_the_second_level_of_wishes_is_missed() -> None:
    class Shared(gr.Model):
        a, b = gr.Parameter(0.5), gr.Parameter(2.0)
        x, v, w, z = gr.Variable(start=a), gr.Variable(), gr.Variable(), gr.Variable()
        y, q = gr.Variable(start=b), gr.Variable(0.3)
        equations = [
            der(x) == z - x, der(v) == -v, der(w) == -z, y == x + w**3 + v, q == w + 2 * v, 2 * y + q - x == b,
        ]  # fmt: skip

    _, found = start_of(Shared())
    assert set(found.guesses_missed) == {"y", "q"}
    assert derivative_error(Shared()) < 1e-6


def test_undeclared_states_on_a_constraint_begin_as_near_to_zero_as_it_allows() -> None:
    class Ellipse(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(2.0)
        x, y, s = gr.Variable(), gr.Variable(), gr.Variable()
        equations = [der(x) == s * x - y, der(y) == s * y + x, a * (x - 1.5) ** 2 + b * (y - 2) ** 2 == 1]

    values, found = start_of(Ellipse())
    angle = np.linspace(np.pi, 1.5 * np.pi, 400_001)
    x, y = 1.5 + np.cos(angle), 2 + np.sin(angle) / np.sqrt(2)
    nearest = np.argmin(x**2 + y**2)
    assert (values["x"], values["y"]) == pytest.approx((x[nearest], y[nearest]), abs=1e-5)
    assert found.residual < 1e-12
    assert derivative_error(Ellipse()) < 1e-8


def test_derivatives_where_both_levels_of_wishes_are_missed() -> None:
    """The declared pair (x, y) cannot lie on its circle, nor can the undeclared pair on its ellipse."""

    class Two(gr.Model):
        a, b = gr.Parameter(1.3), gr.Parameter(2.0)
        x, y, s = gr.Variable(start=0.5 * a), gr.Variable(0.9), gr.Variable()
        v, w, r = gr.Variable(), gr.Variable(), gr.Variable()
        equations = [
            der(x) == s * x - y, der(y) == s * y + x, x**2 + 3 * y**2 == a,
            der(v) == r * v - w, der(w) == r * w + v, (v - x) ** 2 + b * (w - 2) ** 2 == 1,
        ]  # fmt: skip

    _, found = start_of(Two())
    assert set(found.guesses_missed) == {"x", "y"} and set(found.undeclared) == {"v", "w"}
    assert derivative_error(Two()) < 1e-8


def test_merged_and_defined_away_names_declare_their_state() -> None:
    """w is another name of x, v is der(x): what is declared of them is declared of the states."""

    class Named(gr.Model):
        x, v, w, z = gr.Variable(), gr.Variable(5.0), gr.Variable(-2.0), gr.Variable()
        equations = [der(x) == v, der(v) == z, w == -x, z + z**3 == -x - v]

    values, found = start_of(Named())
    assert (values["x"], values["v"], values["w"]) == (2.0, 5.0, -2.0)
    assert not found.guesses_missed and not found.undeclared
    assert gr.analyze(Named()).start_note == "all declared starts are met"


def test_a_demand_on_an_implicit_unknown_moves_the_state() -> None:
    values, _ = start_of(Cubic(), [4.0], {"z": 1.0})
    assert values["z"] == pytest.approx(1.0, abs=1e-12) and values["v"] == pytest.approx(2.9, abs=1e-12)


def test_a_steady_state_wins_over_zero() -> None:
    values, _ = start_of(Cubic(), [4.0], steady=True)
    assert values["v"] == pytest.approx(4.0, abs=1e-10) and values["z"] == pytest.approx(0.0, abs=1e-10)


def test_a_state_whose_zero_lies_outside_the_domain_moves_into_it() -> None:
    class Logarithm(gr.Model):
        x, z = gr.Variable(), gr.Variable()
        equations = [der(x) == -z, z + exp(z) == gr.log(x)]

    values, found = start_of(Logarithm())
    assert values["x"] > 1e-3 and set(found.undeclared) == {"x"}
    assert values["z"] + np.exp(values["z"]) == pytest.approx(np.log(values["x"]), abs=1e-10)


def test_a_pendulum_without_any_start_still_finds_its_circle() -> None:
    """At x = y = 0 the constraint has no slope at all."""

    class Bare(gr.Model):
        x, y, vx, vy, f = gr.Variable(), gr.Variable(), gr.Variable(), gr.Variable(), gr.Variable()
        equations = [der(x) == vx, der(y) == vy, der(vx) == f * x, der(vy) == f * y - 9.81, x**2 + y**2 == 4]

    values, found = start_of(Bare())
    assert np.hypot(values["x"], values["y"]) == pytest.approx(2.0, abs=1e-12)
    assert (values["vx"], values["vy"]) == pytest.approx((0.0, 0.0), abs=1e-15)
    assert set(found.undeclared) <= {"x", "y"}


@pytest.mark.parametrize("demands", [None, {"v": 0.5}, {"z": 0.7}])
def test_derivatives_of_starts_at_zero(demands: dict[str, float] | None) -> None:
    class Loop(gr.Model):
        a, b = gr.Parameter(0.3), gr.Parameter(1.2)
        v, z = gr.Variable(), gr.Variable()
        equations = [der(v) == z - a, z + a * z**3 == b - v]

    assert derivative_error(Loop(), demands) < 1e-8


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scales_of_the_implicit_part_do_not_matter(scale: float) -> None:
    class Scaled(gr.Model):
        k = gr.Parameter(1.0)
        v, z = gr.Variable(), gr.Variable()
        equations = [der(v) == z / k, z / k + 0.1 * (z / k) ** 3 == 4 - v]

    values, _ = start_of(Scaled(k=scale))
    assert values["v"] == 0.0
    assert values["z"] / scale == pytest.approx(brentq(lambda z: z + 0.1 * z**3 - 4, 0, 9), rel=1e-8)


def flows(n: int, bend: float, order: int = 1) -> gr.Model:
    """Cells in a row; the flows between them are implicit."""

    class Flows(gr.Model):
        T, q = gr.Variable(start=0.0, size=n), gr.Variable(size=n)

        def equations(self):
            ends = [1.0, *(self.T[k] for k in range(n))]
            for i in range(n):
                after = self.q[i + 1] if i + 1 < n else 0.0
                yield self.q[i] ** order + bend * self.q[i] ** 3 == n * (ends[i] - ends[i + 1]) + 0.1 * after
                yield der(self.T[i]) == self.q[i] - after

    return Flows()


@pytest.mark.parametrize(("order", "bend"), [(1, 0.4), (3, 0.0)])
def test_many_implicit_unknowns_are_solved_with_the_entries_of_their_equations(monkeypatch, order, bend) -> None:
    """The same root as with full matrices; with q³ slopes vanish at the root, which is left to those."""
    monkeypatch.setattr(problem, "MIN_LARGE_SIZE", 10)
    solved = []
    once = start_search.solve_sparse
    monkeypatch.setattr(start_search, "solve_sparse", lambda *a: solved.append(once(*a)) or solved[-1])
    _, sparse = start_of(flows(12, bend, order))
    assert len(sparse.z) == 12 and sparse.residual < 1e-12
    assert solved and all((step is None) == (order == 3) for step in solved)
    monkeypatch.setattr(problem, "MIN_LARGE_SIZE", 10**9)
    _, full = start_of(flows(12, bend, order))
    assert sparse.z == pytest.approx(full.z, rel=1e-9, abs=1e-9) and np.array_equal(sparse.x, full.x)
