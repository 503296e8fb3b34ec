"""Signals at kinks, the implicit solve, projection and its derivative: closed forms and identities."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from simulation.reduced import decay, held, kernel_of, linear, loop, pendulum
from tasks import task_of

from grisaille.compilation.task import Status, Task
from grisaille.simulation.integrators import roots, steps


def test_signals_at_a_kink_take_the_side_of_the_step():
    task = task_of(decay(), 0.0, 3.0, p=[1.0], x=[0.0], **held(decay(), [1.0, 2.0, 5.0]))
    assert steps.signals(task, 1.0, 0.5) == [1.0]
    assert steps.signals(task, 1.0, 1.5) == [2.0]
    assert steps.signals(task, 1.0, 1.0) == [2.0]
    assert steps.signals(task, np.nextafter(1.0, 2.0), 0.5) == [1.0], "rounding of t must not cross the kink"
    assert steps.signals(task, -1.0, -1.0) == [1.0]
    assert steps.signals(task, 9.0, 9.0) == [5.0]


def test_signals_cross_breaks_that_are_no_kinks():
    smooth = {"breaks": [0.0, 1.0, 2.0], "coef": [[[0.0, 0.0, 1.0]], [[1.0, 2.0, 1.0]]], "kink": [1, 0, 1]}
    task = task_of(decay(), 0.0, 2.0, p=[1.0], x=[0.0], **smooth)
    for t in (0.0, 0.4, 1.0, 1.7, 2.0):
        assert steps.signals(task, t, 0.9)[0] == pytest.approx(t**2, abs=1e-15)
    assert steps.next_kink(task, 0.0) == 2.0


def test_only_signals_whose_value_changes_jump():
    values = np.random.default_rng(1).normal(size=400)
    ramps = task_of(decay(), 0.0, 3.99, p=[1.0], x=[0.0], **linear(list(values), 0.01))
    assert not any(steps.signals_jump(ramps, t, t - 0.005) for t in ramps.breaks[1:-1])
    stairs = task_of(decay(), 0.0, 3.0, p=[1.0], x=[0.0], **held(decay(), [1.0, 2.0, 2.0]))
    assert steps.signals_jump(stairs, 1.0, 0.5) and not steps.signals_jump(stairs, 2.0, 1.5)


def test_kinks_and_requested_times_are_mandatory_points():
    task = task_of(decay(), 0.0, 2.5, p=[1.0], x=[0.0], times=[0.0, 0.7, 1.0, 2.5], **held(decay(), [1.0] * 4))
    points, t = [], 0.0
    while t < task.t1:
        t = steps.next_mandatory(task, t, steps.next_kink(task, t))
        points.append(t)
    assert points == [0.7, 1.0, 2.0, 2.5]


def test_newton_solves_the_loop_and_keeps_its_factors():
    kernel = loop()
    task = task_of(kernel, 0.0, 1.0, p=[2.0], x=[1.5], z=[0.0], rtol=1e-8, fixed_step=1.0)
    newton = roots.Newton(kernel, task)
    z, f = newton.solve(0.0, task.x, task.z, np.zeros(1))
    assert z + z**3 / 10 == pytest.approx([3.0], rel=1e-14)
    assert f[0] == -z[0]
    made = task.factorizations
    newton.solve(0.0, task.x * 1.0001, z, np.zeros(1))
    assert task.factorizations == made


def test_newton_without_a_solution_names_the_residual():
    x, z = ca.SX.sym("x"), ca.SX.sym("z")
    kernel = kernel_of(-x, x, z=z, residual=z**2 + 1 + x**2)
    task = task_of(kernel, 0.0, 1.0, x=[1.0], z=[0.3])
    with np.errstate(all="ignore"), pytest.raises(steps.StepFailure) as failure:
        roots.Newton(kernel, task).solve(0.0, task.x, task.z, np.zeros(0))
    assert failure.value.status in (Status.NEWTON, Status.SINGULAR)
    assert failure.value.status != Status.NEWTON or failure.value.where == 1


def test_a_singular_loop_names_its_column():
    x, z = ca.SX.sym("x"), ca.SX.sym("z", 2)
    kernel = kernel_of(-x, x, z=z, residual=ca.vertcat(z[0] + z[1] - x, 3 * z[0] + 3 * z[1] - x))
    task = task_of(kernel, 0.0, 1.0, x=[1.0])
    with pytest.raises(steps.StepFailure) as failure:
        roots.Newton(kernel, task).solve(0.0, task.x, task.z, np.zeros(0))
    assert (failure.value.status, failure.value.where) == (Status.SINGULAR, 1)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_lu_solves_badly_scaled_rows(n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-8, 8, size=(n, 1))
    b = rng.normal(size=(n, 3))
    x = steps.lu_solve(steps.lu(a), b)
    assert x == pytest.approx(np.linalg.solve(a, b), rel=1e-9)


def off_the_circle(fixed_step: float = 0.0, nominal: float | list[float] = 1.0) -> Task:
    x = [3.0001, -4.0002, 0.8, 0.61]
    return task_of(
        pendulum(), 0.0, 1.0, p=[5.0, 0.1], x=x, dp=[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], rtol=1e-6,
        sx=[[0.3, 0.1, 0.2, -0.4], [0.0, 0.0, 0.5, 0.1], [1.0, 2.0, 3.0, 4.0]], fixed_step=fixed_step, nominal=nominal,
    )  # fmt: skip


def test_projection_meets_the_constraints_by_the_shortest_way():
    task, u, z = off_the_circle(fixed_step=1.0), np.zeros(1), np.zeros(0)
    x, _ = steps.project(pendulum(), task, 0.0, task.x, z, u)
    assert np.abs(pendulum().C(0.0, x, z, u, task.p)).max() < 1e-14
    way = x - task.x
    gradients = pendulum().CJ(0.0, x, z, u, task.p)
    sideways = way - gradients.T @ np.linalg.lstsq(gradients.T, way, rcond=None)[0]
    # the nearest point has none; the gradients were taken where x came from, so some of second order is left
    assert np.linalg.norm(sideways) < np.linalg.norm(way) ** 2


def test_projection_is_measured_in_nominal_units():
    heavy = off_the_circle(fixed_step=1.0, nominal=[1e-4, 1.0, 1.0, 1.0])
    x, _ = steps.project(pendulum(), heavy, 0.0, heavy.x, np.zeros(0), np.zeros(1))
    assert abs(x[0] - heavy.x[0]) < 1e-6 < abs(x[1] - heavy.x[1])


def test_sensitivities_follow_the_projection_exactly():
    task, u, z = off_the_circle(fixed_step=1.0), np.zeros(1), np.zeros(0)
    kernel, p = pendulum(), task.p.copy()
    x, factors = steps.project(kernel, task, 0.0, task.x, z, u)
    s = steps.project_sensitivity(kernel, task, factors, 0.0, x, z, u, task.sx)
    identity = kernel.CJ(0.0, x, z, u, p) @ s.T + kernel.CP(0.0, x, z, u, p) @ task.dp.T
    assert np.abs(identity).max() < 1e-13
    for direction in range(3):
        ends, e = [], 1e-4
        for sign in (1, -1, 0.5, -0.5):
            task.p[:] = p + sign * e * task.dp[direction]
            ends.append(steps.project(kernel, task, 0.0, task.x + sign * e * task.sx[direction], z, u)[0])
        coarse, fine = (ends[0] - ends[1]) / (2 * e), (ends[2] - ends[3]) / e
        assert s[direction] == pytest.approx((4 * fine - coarse) / 3, abs=2e-10)


def test_redundant_constraints_do_not_disturb_the_projection():
    x = ca.SX.sym("x", 2)
    circle = x[0] ** 2 + x[1] ** 2 - 1
    once = kernel_of(x, x, constraints=circle)
    thrice = kernel_of(x, x, constraints=ca.vertcat(circle, 7 * circle, circle))
    found = []
    for kernel in (once, thrice):
        task = task_of(kernel, 0.0, 1.0, x=[0.7, 0.72], fixed_step=1.0)
        found.append(steps.project(kernel, task, 0.0, task.x, np.zeros(0), np.zeros(0))[0])
        assert task.worst_constraint < 1e-14
    assert found[0] == pytest.approx(found[1], abs=1e-15)


def test_contradicting_constraints_are_reported_with_their_residual():
    x = ca.SX.sym("x", 2)
    kernel = kernel_of(x, x, constraints=ca.vertcat(x[0] - 1, x[0] - 2))
    task = task_of(kernel, 0.0, 1.0, x=[1.0, 0.0])
    with pytest.raises(steps.StepFailure) as failure:
        steps.project(kernel, task, 0.0, task.x, np.zeros(0), np.zeros(0))
    assert (failure.value.status, failure.value.where, failure.value.amount) == (Status.PROJECTION, 1, -1.0)


def test_rows_obey_the_equations_and_their_derivative():
    task, u, z = off_the_circle(), np.zeros(1), np.zeros(0)
    task.times, task.n_times, task.y, task.sy = np.array([0.5]), 1, np.zeros((1, 4)), np.zeros((1, 3, 4))
    here = roots.Anchor(0.5, task.x, z, 0.5)
    steps.emit(pendulum(), task, roots.Newton(pendulum(), task), here, 0.5, 0.5, task.x, z, task.sx)
    row, rows = task.y[0], task.sy[0]
    assert np.abs(pendulum().C(0.5, row, z, u, task.p)).max() < 2e-8
    identity = pendulum().CJ(0.5, row, z, u, task.p) @ rows.T + pendulum().CP(0.5, row, z, u, task.p) @ task.dp.T
    assert np.abs(identity).max() < 1e-12
    assert task.written == 1
