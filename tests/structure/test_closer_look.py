"""Blocks that only look singular, and combinations whose terms cancel: diodes in a ring, exponentials far apart."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq
from zoo.further_test_set import ring_modulator

import grisaille as gr
from grisaille import der, exp
from grisaille.structure import structure_of
from grisaille.structure.singular import without_like_terms


@pytest.mark.parametrize(("bias", "carrier"), [(0.0, 2.0), (2.0, 2.0), (-1.0, 20.0), (5.0, 0.1)])
def test_currents_of_a_ring_of_diodes_hide_their_sum(bias: float, carrier: float) -> None:
    """The hidden equation has no exponential left, whatever the voltages are."""
    structure = structure_of(ring_modulator(0.0, bias, carrier)())
    assert (structure.index, structure.repairs, structure.system.nx) == (2, 1, 10)
    (hidden,) = [row.residual for row in structure.equations.rows if row.raised is not None]
    assert len(ca.symvar(hidden)) == 4 and not ca.depends_on(ca.jacobian(hidden, ca.vertcat(*ca.symvar(hidden))),
                                                             ca.vertcat(*ca.symvar(hidden)))  # fmt: skip


@pytest.mark.parametrize(("steepness", "offset"), [(40.0, 0.0), (40.0, 2.0), (5.0, -9.0), (300.0, 0.0)])
def test_slopes_that_swallow_each_other_are_regular(steepness: float, offset: float) -> None:
    """a e^(k u) + b e^(k v) and a e^(k u) + 2 b e^(k v): u and v are determined, at any steepness."""

    class Two(gr.Model):
        x = gr.Variable(1.0)
        u, v = gr.Variable(offset), gr.Variable(offset)

        def equations(self) -> Any:
            first, second = exp(steepness * (self.u - offset)), exp(-steepness * (self.v - offset))
            yield der(self.x) == -self.x
            yield first + second == 3 * self.x
            yield first + 2 * second == 4 * self.x

    run = gr.simulate(Two(), [0.0, 1.0])
    assert gr.analyze(Two()).index == 1
    exact = offset + (np.log(2.0) - run.time) / steepness
    assert run["u"].values == pytest.approx(exact.values, rel=1e-6)
    assert run["v"].values == pytest.approx((offset + run.time / steepness).values, rel=1e-6, abs=1e-8)


def test_what_is_singular_stays_singular() -> None:
    """Currents of diodes in a ring that nothing connects to a reference."""

    class Floating(gr.Model):
        x = gr.Variable(0.1)
        a, b, c = gr.Variable(), gr.Variable(), gr.Variable()

        def equations(self) -> Any:
            currents = [exp(18 * (p - q)) - 1 for p, q in ((self.a, self.b), (self.b, self.c), (self.c, self.a))]
            yield der(self.x) == -self.x
            yield currents[0] - currents[2] == self.x
            yield currents[1] - currents[0] == 0
            yield currents[2] - currents[1] == -self.x

    with pytest.raises(gr.StructureError, match="follow from each other"):
        gr.analyze(Floating())


def test_terms_cancel_by_their_form() -> None:
    """In any order, with numbers inside and outside, also where the numbers cancel up to rounding only."""
    x, y, z = (ca.SX.sym(name) for name in "xyz")
    first = x + 0.1 * ca.exp(3 * (x - y) + z) + 0.2 * ca.exp(z + 3 * x - 3 * y) - 4
    second = y - 0.3 * ca.exp(z - 3 * (y - x)) + 2 * (x * y) * z
    third = 4 - z * 2 * (y * x) / 1 + x**2
    left = without_like_terms([first, second, third])
    assert len(ca.symvar(sum(left))) == 2
    value = ca.Function("f", [x, y, z], [sum(left)])
    assert float(value(0.3, 0.7, 30.0)) == pytest.approx(0.3 + 0.7 + 0.09, rel=1e-14)


def test_parts_without_like_terms_stay_as_they_are() -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    parts = [x * y + ca.sin(x), 2 * ca.sin(x) - (x + y) * y, ca.SX(3)]
    assert all(a is b for a, b in zip(without_like_terms(parts), parts, strict=True))


@pytest.mark.parametrize("exponent", [20.0, 1.4])
def test_an_exponential_that_is_nothing_at_small_numbers(exponent: float) -> None:
    """exp(-5800/T) is zero, and so is its slope, unless T is some hundred."""

    class Vapour(gr.Model):
        T = gr.Variable(start=300.0)
        x = gr.Variable(start=1.0, fixed=True)

        def equations(self):
            yield der(self.x) == -self.x
            yield 1e3 * (1 + self.x) == exp(exponent - 5800.0 / self.T) * self.T

    exact = brentq(lambda T: np.exp(exponent - 5800.0 / T) * T - 2e3, 50.0, 5e4)
    assert gr.analyze(Vapour()).start["T"] == pytest.approx(exact)
