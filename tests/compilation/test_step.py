"""The fused step: order, projection, derivative."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compilation.systems import PENDULUM, constrained, implicit_decay, pendulum

from grisaille.compilation import correction_plan, formulate_step, solve_gram
from grisaille.errors import CompilationError


def test_positions_then_velocities():
    assert correction_plan(pendulum()) == [([0], [0, 1]), ([1], [2, 3])]


def test_a_level_without_variables_of_its_own_is_corrected_with_the_lower_ones():
    x = ca.SX.sym("x", 3)
    system = constrained(x, ca.vertcat(x[0] + x[1] - 1, x[0] * x[1]), levels=(0, 1))
    assert correction_plan(system) == [([0], [0, 1]), ([0, 1], [0, 1])]


def after(system, x, h, nominal, p=(), u=()):
    step = formulate_step(system)
    function = ca.Function("step", step.arguments, [step.after])
    return np.array(function(0.0, h, x, u, u, u, p, nominal)).ravel()


def test_one_correction_squares_the_violation_and_moves_least_in_the_metric():
    x = ca.SX.sym("x", 2)
    circle = constrained(x, ca.sumsqr(x) - 1)
    start = np.array([0.6, 0.8]) * (1 + 1e-4)
    moved = after(circle, start, 0.0, [1.0, 1.0])
    assert abs(moved @ moved - 1) < 2e-8
    np.testing.assert_allclose(moved, [0.6, 0.8], atol=1e-8)
    # a variable with a hundredfold nominal value takes up the correction
    uneven = after(circle, start, 0.0, [100.0, 1.0]) - start
    np.testing.assert_allclose(uneven[0] / uneven[1], 1e4 * 0.6 / 0.8, rtol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_gram_systems_are_solved(n):
    rng = np.random.default_rng(n)
    C, W, c = rng.normal(size=(n, 7)), rng.uniform(0.5, 2, 7), rng.normal(size=n)
    symbols = [ca.SX.sym("C", n, 7), ca.SX.sym("W", 7), ca.SX.sym("c", n)]
    solve = ca.Function("solve", symbols, [solve_gram(*symbols)])
    expected = np.linalg.solve(C * W @ C.T, c)
    np.testing.assert_allclose(np.array(solve(C, W, c)).ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_constraints_may_repeat_one_another(copies):
    x = ca.SX.sym("x", 3)
    circle = ca.sumsqr(x[:2]) - 1
    repeated = constrained(x, ca.vertcat(*(circle * (1 + i) for i in range(copies)), x[2]))
    moved = after(repeated, [0.6 + 1e-6, 0.8, 1e-5], 0.0, [1.0, 1.0, 1.0])
    assert abs(moved[:2] @ moved[:2] - 1) < 1e-11 and abs(moved[2]) < 1e-15


def test_fourth_order():
    t, x, u, p = ca.SX.sym("t"), ca.SX.sym("x", 1), ca.SX.sym("u", 0), ca.SX.sym("p", 0)
    system = constrained(x, ca.SX(0, 1), rhs=-x * ca.cos(t), t=t, u=u, p=p)
    step = formulate_step(system)
    function = ca.Function("step", step.arguments, [step.after])

    def end(n: int) -> float:
        value = 1.0
        for k in range(n):
            value = float(function(2.0 * k / n, 2.0 / n, value, [], [], [], [], 1.0))
        return value

    errors = [abs(end(n) - np.exp(-np.sin(2.0))) for n in (20, 40, 80)]
    np.testing.assert_allclose(np.log2([errors[0] / errors[1], errors[1] / errors[2]]), 4.0, atol=0.15)


def test_a_velocity_projection_does_not_undo_the_position_projection():
    start = [0.3, -6.24, 0.1, 0.004]
    moved = after(pendulum(), start, 1e-3, np.ones(4), PENDULUM, [0.2, 0.1])
    assert abs(moved[:2] @ moved[:2] - 6.25**2) < 1e-4
    assert abs(moved[:2] @ moved[2:]) < 1e-15


def test_implicit_systems_are_refused_by_name():
    with pytest.raises(CompilationError, match="z remain implicit"):
        formulate_step(implicit_decay())
