"""The sides of switches agree with the derivatives that CasADi takes on them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from grisaille.structure import jumps_of, sides_of

x, y, p = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("p")


@pytest.mark.parametrize(
    "formula",
    [
        ca.if_else(x > 0, 10 * x, 1e-3 * x),
        ca.if_else(x >= 0, 10 * x, 1e-3 * x),
        ca.if_else(x < 0, 10 * x, 1e-3 * x),
        x * (3 + ca.copysign(1, x)),
        ca.fmin(2 * x, 0),
        ca.fmax(0, 3 * x),
        ca.fmin(x, 3 * x),
    ],
)
def test_a_side_is_that_of_the_slope_also_on_the_switch(formula: ca.SX) -> None:
    gap = sides_of(formula, x)
    assert gap.numel() == 1
    f = ca.Function("f", [x], [gap < 0, ca.jacobian(formula, x)])
    below, on, above = ([float(v) for v in f(at)] for at in (-1e-9, 0.0, 1e-9))
    assert below[0] != above[0] and below[1] != above[1]
    if formula.op() not in (ca.OP_FMIN, ca.OP_FMAX):  # their derivative is the mean of both sides there
        assert (on[0] == below[0]) == (on[1] == below[1])


def test_each_switch_counts_once_and_only_those_of_the_symbols() -> None:
    bend = ca.fabs(x - y) + 2 * ca.fabs(x - y) + ca.if_else(p > 1, x, y) + ca.sin(x)
    assert sides_of(ca.vertcat(bend, ca.fabs(x - y)), ca.vertcat(x, y)).numel() == 1
    assert sides_of(bend, p).numel() == 1
    assert sides_of(ca.sin(x) * y, ca.vertcat(x, y)).numel() == 0


def test_floor_changes_sides_at_every_integer() -> None:
    f = ca.Function("f", [x], [sides_of(ca.floor(x), x) < 0])
    assert [float(f(v)) for v in (-1.5, -0.5, 0.5, 1.5, 2.5)] == [0, 1, 0, 1, 0]


def test_a_bend_whose_gap_is_homogeneous_is_no_jump() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        a, b = random.uniform(0.1, 4, 2)
        v = a * x - b * y
        assert not jumps_of(a * ca.if_else(v > 0, v, 0.17 * v) + b * ca.if_else(v > 0, 3 * v, v), ca.vertcat(x, y))
        assert jumps_of(ca.if_else(v > 0, v + 1e-3, 0.17 * v), ca.vertcat(x, y))
