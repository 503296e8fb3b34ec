"""Schemes as data: published pairs that are added from outside run compiled, with their order and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.compilation.schemes import (
    EXPLICIT,
    FROZEN_IMPLICIT,
    IMPLICIT,
    Scheme,
    Tableau,
    add,
    all_schemes,
    embedded_pair,
    explicit_scheme,
    find_scheme,
    methods,
    remove,
)
from grisaille.demo import Pendulum
from grisaille.errors import CompilationError

FIVE = EXPLICIT.tableaux[0]
ROWS, WEIGHTS = [FIVE.a[i, :i] for i in range(1, 6)], FIVE.a[6, :6]
MISPRINTED = [[0.5], [0, 0.7], [2 / 9, 1 / 3, 4 / 9]]


def bogacki_shampine() -> Tableau:
    """Order 3(2): P. Bogacki and L. F. Shampine, Appl. Math. Lett. 2 (1989) 321. Its last stage is the solution."""
    a = [[1 / 2], [0, 3 / 4], [2 / 9, 1 / 3, 4 / 9]]
    return embedded_pair(3, a, [2 / 9, 1 / 3, 4 / 9, 0], [7 / 24, 1 / 4, 1 / 3, 1 / 8])


def fehlberg() -> Tableau:
    """Order 4(5): E. Fehlberg, NASA TR R-315 (1969), formula 2. None of its stages is the solution."""
    a = [
        [1 / 4],
        [3 / 32, 9 / 32],
        [1932 / 2197, -7200 / 2197, 7296 / 2197],
        [439 / 216, -8, 3680 / 513, -845 / 4104],
        [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40],
    ]
    b = [25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0]
    return embedded_pair(4, a, b, [16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])


def dormand_prince() -> Tableau:
    """Ours again, from what is published: the matrix, both weights and those of the middle of a step."""
    a = [FIVE.a[i, :i].tolist() for i in range(1, 7)]
    b = np.append(FIVE.a[6, :6], 0.0)
    return embedded_pair(5, a, b.tolist(), (b - FIVE.e).tolist(), FIVE.weights(0.5).tolist())


PAIRS = {"bogacki-shampine": bogacki_shampine, "fehlberg": fehlberg, "published-five": dormand_prince}


@pytest.fixture(params=PAIRS)
def added(request: pytest.FixtureRequest) -> Iterator[Scheme]:
    yield add(explicit_scheme(request.param, PAIRS[request.param]()))
    remove(request.param)


class Swinging(gr.Model):
    k = gr.Parameter(1.3)
    x = gr.Variable(0.4)
    v = gr.Variable(0.0)
    equations = [der(x) == v, der(v) == -k * gr.sin(x) - 0.1 * v]


class Pushed(gr.Model):
    """The same, pushed, with a spring whose force is solved for by iteration in every stage."""

    k = gr.Parameter(1.3)
    x = gr.Variable(0.4)
    v = gr.Variable(0.0)
    force = gr.Variable()
    u = gr.Input()
    equations = [der(x) == v, force + 0.1 * force**3 == k * gr.sin(x), der(v) == u - force - 0.1 * v]


def run(method: str, **options: object) -> object:
    times = np.linspace(0.0, 4.0, 9)
    return gr.simulate(Pushed(), times, inputs={"u": lambda t: 0.3 * np.cos(t)}, method=method, **options)


def test_a_pair_that_is_added_converges_with_its_order(added: Scheme) -> None:
    """Steps of a length that ``max_step`` gives, under a tolerance that asks for none; between steps, too."""
    times, order, errors = np.linspace(0.0, 4.0, 9), added.tableaux[0].order, []
    exact = gr.simulate(Swinging(), times, rtol=1e-13, atol=1e-14)
    for h in (0.25, 0.125):
        found = gr.simulate(Swinging(), times, method=added.name, rtol=0.9, atol=10.0, max_step=h)
        assert found.attrs["solver"] == added.name and f"by the {added.name} method" in found.attrs["status"]
        errors.append(max(float(abs(found[n] - exact[n]).max()) for n in ("x", "v")))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.45)


@pytest.mark.parametrize("added", ["fehlberg"], indirect=True)
def test_a_pair_that_is_added_keeps_tolerances_constraints_and_derivatives(added: Scheme) -> None:
    ours, theirs = (run(m, rtol=1e-6, sensitivities=["k", "start(x)"]) for m in ("explicit", added.name))
    assert all(float(abs(ours[n] - theirs[n]).max()) < 2e-5 for n in ours.data_vars)
    assert theirs.attrs["steps"] < 2000
    swung = gr.simulate(Pendulum(), [0.0, 1.0, 2.0], inputs={"u": 0.4}, method=added.name, rtol=1e-5)
    assert float(abs(np.hypot(swung.x, swung.y) - 6.25).max()) < 1e-9


def test_the_numbers_of_a_published_pair_are_found_from_what_is_published() -> None:
    again = dormand_prince()
    assert again.last == FIVE.last and again.rows == FIVE.rows
    assert np.array_equal(again.a, FIVE.a) and again.d == pytest.approx(FIVE.d, abs=1e-13)
    assert again.c == pytest.approx(FIVE.c, abs=1e-15) and again.e == pytest.approx(FIVE.e, abs=1e-16)
    assert again.stiff == pytest.approx(FIVE.stiff, abs=0.1)
    assert bogacki_shampine().stiff == pytest.approx(2.51, abs=0.06) and bogacki_shampine().rows == 4
    assert fehlberg().rows == 7  # the solution is a stage of its own


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: embedded_pair(3, MISPRINTED, [2 / 9, 1 / 3, 4 / 9, 0], 4 * [0.25]), "not of order 3"),
        (lambda: embedded_pair(2, [[1.0]], [0.5, 0.5], [0.5, 0.5]), "nothing to estimate the error by"),
        (lambda: embedded_pair(2, [[1.0, 0.0]], [0.5, 0.5], [1.0, 0.0]), "Row 1 of a tableau has 2 entries"),
        (lambda: embedded_pair(2, [[1.0]], [0.5, 0.5], [1.0]), "2 weights, and 1 that they"),
        (lambda: embedded_pair(5, ROWS, WEIGHTS, 6 * [1 / 6]), "needs the weights of the middle"),
        (lambda: embedded_pair(5, ROWS, WEIGHTS, 6 * [1 / 6], 7 * [1 / 14]), "middle of a step is not of order 4"),
        (lambda: embedded_pair(5, ROWS, WEIGHTS, 6 * [1 / 6], 6 * [1 / 12]), "6 weights; it must have 7"),
        (lambda: explicit_scheme("none"), "give one, or two"),
        (lambda: explicit_scheme("both", FIVE, FIVE), "give one, or two"),
        (lambda: add(EXPLICIT), "There is a method 'explicit' already"),
        (lambda: remove("explicit"), "stays"),
        (lambda: find_scheme("auto"), "is a choice among schemes: explicit, implicit"),
        (lambda: find_scheme("rk45"), "There is no scheme 'rk45'"),
    ],
)  # fmt: skip
def test_what_is_no_scheme_is_refused_in_words(make: object, said: str) -> None:
    with pytest.raises(CompilationError, match=said):
        make()


def test_methods_name_what_was_added_and_what_has_no_fixed_steps_says_so(added: Scheme) -> None:
    assert methods()[-1] == added.name and added in all_schemes()
    with pytest.raises(gr.DataError, match=f"'frozen-implicit', '{added.name}'"):
        run("rk45")
    with pytest.raises(CompilationError, match="none of fixed length"):
        added.taking(0.1)
    with pytest.raises(gr.DataError, match="fixes the steps"):
        run(added.name, step=0.1)
    with pytest.raises(gr.DataError, match="realizations are made with fixed steps"):
        run(added.name, realizations=2, seed=1)


def test_an_implicit_scheme_is_a_header_and_a_line() -> None:
    """The header of ours under another name."""
    new = add(Scheme("radau", "gr_implicit", is_implicit=True, is_adaptive=True, frozen=FROZEN_IMPLICIT))
    try:
        assert np.array_equal(run("radau")["x"], run("implicit")["x"])
        assert new.program == IMPLICIT.program and new.taking(0.1) is FROZEN_IMPLICIT
    finally:
        remove("radau")
