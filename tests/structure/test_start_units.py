"""Starts in any units: demands that contradict each other are refused, constraints hold beside their terms, wishes that
the equations allow are met."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import StructureError, der
from grisaille.structure.singular import without_cancelled_terms
from grisaille.structure.starts import rounding_of

UNITS = (1.0, 1e-6, 1e-12, 1e-15, 1e12)


def pendulum(unit: float, fixed: bool, **starts: float) -> gr.Model:
    """Positions and velocities in this unit; starts in units of it."""
    given = {"x": 0.6, "y": -0.8, "vx": 0.8, "vy": 0.6, **starts}

    class Pendulum(gr.Model):
        x, y, vx, vy = (gr.Variable(start=unit * given[n], fixed=fixed) for n in ("x", "y", "vx", "vy"))
        tension = gr.Variable()

        def equations(self) -> Any:
            yield der(self.x) == self.vx
            yield der(self.y) == self.vy
            yield der(self.vx) == -self.x * self.tension
            yield der(self.vy) == -self.y * self.tension - 9.81 * unit
            yield self.x**2 + self.y**2 == unit**2

    return Pendulum()


def proportional(unit: float, off: float) -> gr.Model:
    """z = unit · a³, an algebraic unknown of another size than the state, with both starts demanded."""

    class Proportional(gr.Model):
        a = gr.Variable(start=1.0, fixed=True)
        z = gr.Variable(start=unit * (1 + off), fixed=True)

        def equations(self) -> Any:
            yield der(self.a) == -self.a
            yield self.z == unit * self.a**3

    return Proportional()


def first(model: gr.Model) -> Any:
    return gr.simulate(model, [0.0, 0.01], rtol=1e-8).isel(time=0)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("off", [1e-6, 1e-3, 1.0])
def test_demands_that_contradict_each_other_are_refused_in_any_unit(unit: float, off: float) -> None:
    for model in (
        pendulum(unit, True, x=0.6 * (1 + off)),
        pendulum(unit, True, vy=0.6 * (1 + off)),
        proportional(max(unit, 1e-12), off),
    ):
        with pytest.raises(StructureError, match="contradict"):
            first(model)


@pytest.mark.parametrize("unit", UNITS)
def test_demands_that_agree_are_met_in_any_unit(unit: float) -> None:
    got = first(pendulum(unit, True))
    assert [float(got[n]) / unit for n in ("x", "y", "vx", "vy")] == pytest.approx([0.6, -0.8, 0.8, 0.6], rel=1e-9)
    assert float(first(proportional(unit, 0.0))["z"]) == pytest.approx(unit, rel=1e-9)


def test_what_is_a_rounding_of_the_other_starts_contradicts_nothing() -> None:
    first(pendulum(1.0, True, x=float(np.sin(np.pi)), y=-1.0, vx=1.0, vy=0.0))


@pytest.mark.parametrize("unit", [*UNITS, 1e-13, 1e-9])
def test_constraints_hold_beside_their_terms(unit: float) -> None:
    """A length that the declared starts miss by a tenth."""
    with pytest.warns(UserWarning, match="not met"):
        got = first(pendulum(unit, False, y=-0.7, vx=0.0, vy=0.0))
    assert (float(got["x"]) / unit) ** 2 + (float(got["y"]) / unit) ** 2 == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("unit", [1e9, 1e12, 1e15])
def test_what_the_rounding_of_large_starts_moves_is_no_missed_start(unit: float) -> None:
    """Positions miss their length by 4 %: they are moved, and velocities of zero stay zero."""

    class Wide(gr.Model):
        x, y = gr.Variable(start=0.5123456 * unit), gr.Variable(start=-0.8123456 * unit)
        vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
        tension = gr.Variable()

        def equations(self) -> Any:
            yield der(self.x) == unit * self.vx
            yield der(self.y) == unit * self.vy
            yield der(self.vx) == -self.x / unit * self.tension
            yield der(self.vy) == -self.y / unit * self.tension - 9.81
            yield self.x**2 + self.y**2 == unit**2

    with pytest.warns(UserWarning, match="2 declared starts are not met: x begins .* y begins"):
        start = gr.simulate(Wide(), [0.0, 0.01], rtol=1e-8)
    assert abs(float(start["vx"][0])) < 1e-9 and abs(float(start["vy"][0])) < 1e-9
    assert "vx" not in start.attrs["adjusted_starts"]


def test_a_wish_beside_rows_of_other_sizes_is_met() -> None:
    """c = (k a + b)/1e-9 is held by its constraint; the start of a is free, and b follows, however small its part."""

    class Mixed(gr.Model):
        a, c = gr.Variable(start=2.85e-5), gr.Variable(start=0.3e9)
        b, f = gr.Variable(), gr.Variable()

        def equations(self) -> Any:
            yield der(self.a) == -self.a + 1e-9 * self.b
            yield 1e-9 * self.c == 2e4 * self.a + 0.1 * self.b
            yield der(self.c) == 1e9 * (self.f - 0.2)
            yield 1e-9 * self.c - 0.3 * gr.cos(gr.time) == 0

    got = first(Mixed())
    assert float(got["a"]) == pytest.approx(2.85e-5, rel=1e-9) and got.attrs["adjusted_starts"] == ""
    assert float(got["b"]) == pytest.approx((0.3 - 0.57) / 0.1, rel=1e-8)


def test_a_small_declared_start_decides_between_roots_beside_a_large_one() -> None:
    """s² = 0.0069 with s ≈ −0.0829 beside m = 67.6 with a start of 69.15: the miss of m says nothing about s."""

    class Roots(gr.Model):
        x = gr.Variable(start=0.0)
        s, m = gr.Variable(start=-0.0829), gr.Variable(start=69.15)

        def equations(self) -> Any:
            yield der(self.x) == -self.x + self.s
            yield 0 == 0.0069 - self.s**2 + 1e-9 * (self.m - 67.6)
            yield 0 == 67.6 + self.x - self.m - 1e-3 * gr.sin(self.m - 67.6)

    assert float(first(Roots())["s"]) == pytest.approx(-np.sqrt(0.0069), rel=1e-6)


def test_roundings_of_operations() -> None:
    """w + 1e6 − p is right to a few roundings of 1e6; a product to one of itself and one of the number p."""
    w, p = ca.SX.sym("w"), ca.SX.sym("p")
    found = rounding_of(ca.vertcat((w + 1e6) - p, w * p), [w, p], exact=0)(1e-9, 1e6).full().ravel()
    assert found == pytest.approx([2.0**-52 * 3e6, 2.0**-52 * 2e-3], rel=1e-6)


def test_terms_that_cancel_inside_a_formula_are_left_out() -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    bent = ca.if_else(y > 0.3, y, 2 * y)
    formula = 3 * (x + 0.1 * bent + 0.2 * bent - 0.3 * bent)
    assert ca.depends_on(formula, y) and not ca.depends_on(without_cancelled_terms(formula), y)
    kept = x + bent
    assert without_cancelled_terms(kept) is kept
