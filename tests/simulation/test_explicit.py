"""The explicit methods: closed forms, orders, constraints, kinks, sensitivities, failures."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation.reduced import (
    GRAVITY,
    decay,
    finished,
    held,
    kernel_of,
    linear,
    loop,
    oscillator,
    pendulum,
    pendulum_start,
    run,
)
from tasks import task_of

from grisaille.compilation import Kernel, Status, Task
from grisaille.compilation.schemes import EXPLICIT

FIVE, EIGHT = EXPLICIT.tableaux


# closed forms and orders


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-9, 1e-12])
def test_linear_equation_has_its_closed_form(rtol):
    times = np.linspace(0.0, 4.0, 23)
    task = task_of(decay(), 0.0, 4.0, p=[0.7], x=[2.0], times=times, rtol=rtol, atol=1e-3 * rtol)
    finished(run(decay(), task))
    assert task.y[:, 0] == pytest.approx(2.0 * np.exp(-0.7 * times), rel=20 * rtol)


@pytest.mark.parametrize("pair", [FIVE, EIGHT], ids=["5", "8"])
def test_tableaux_meet_the_conditions_of_quadrature(pair):
    weights = pair.a[pair.last]
    for q in range(pair.order):
        assert weights @ pair.c**q == pytest.approx(1 / (q + 1), abs=1e-14)
    assert pair.a.sum(axis=1) == pytest.approx(pair.c, abs=3e-15)
    for s in (0.1, 0.45, 0.8, 1.0):
        for q in range(pair.order - 1):
            assert pair.weights(s) @ pair.c**q == pytest.approx(s ** (q + 1) / (q + 1), abs=1e-13)


def step_error(pair, h: float, inside: float) -> float:
    """Error of one step on x'' = -x, or of its extension."""
    f = np.array([[0.0, 1.0], [-1.0, 0.0]])
    x0, k = np.array([1.0, 0.5]), []
    for i in range(pair.rows):
        k.append(f @ (x0 + h * sum((pair.a[i, j] * k[j] for j in range(i)), np.zeros(2))))
    s = inside * h
    exact = np.array([x0[0] * np.cos(s) + x0[1] * np.sin(s), -x0[0] * np.sin(s) + x0[1] * np.cos(s)])
    return float(np.abs(x0 + h * pair.weights(inside) @ np.array(k) - exact).max())


@pytest.mark.parametrize(("pair", "h"), [(FIVE, 0.2), (EIGHT, 1.0)], ids=["5", "8"])
@pytest.mark.parametrize(("inside", "less"), [(1.0, 0), (0.37, 1)], ids=["end", "extension"])
def test_order_of_one_step_is_measured(pair, h, inside, less):
    measured = np.log2(step_error(pair, h, inside) / step_error(pair, h / 2, inside))
    assert measured == pytest.approx(pair.order + 1 - less, abs=0.35)


def test_frozen_steps_are_of_fourth_order():
    errors = []
    for h in (0.1, 0.05):
        task = run(oscillator(), task_of(oscillator(), 0.0, 2.0, x=[1.0, 0.0], fixed_step=h, times=[2.0]))
        errors.append(np.abs(finished(task).y[0] - [np.cos(2.0), -np.sin(2.0)]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.15)


def test_frozen_error_estimate_is_that_of_its_worst_step():
    estimates = []
    for h in (0.2, 0.1):
        task = task_of(oscillator(), 0.0, 6.0, x=[1.0, 0.0], fixed_step=h, rtol=1e-6, atol=1.0)
        estimates.append(finished(run(oscillator(), task)).error_estimate)
        assert task.evaluations < 4.5 * task.steps
        assert task.error_estimate == pytest.approx(h**5 / 120 / np.sqrt(2), rel=0.3)
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(5.0, abs=0.2)


def test_the_cheaper_order_is_used():
    loose, tight = (task_of(oscillator(), 0.0, 50.0, x=[1.0, 0.0], rtol=r, atol=r) for r in (1e-4, 1e-10))
    run(oscillator(), loose)
    run(oscillator(), tight)
    assert loose.evaluations < 6.5 * (loose.steps + loose.rejected)
    assert 11 * tight.steps < tight.evaluations < 2600
    assert np.abs(tight.x - [np.cos(50.0), -np.sin(50.0)]).max() < 1e-8


# constraints


def test_projected_pendulum_follows_the_angle_form_without_drift():
    length, angle, times = 2.0, 1.2, np.linspace(0.0, 60.0, 121)
    task = task_of(
        pendulum(), 0.0, 60.0, p=[length, 0.0], x=pendulum_start(angle, length), times=times, rtol=1e-11, atol=1e-12
    )
    finished(run(pendulum(), task))
    form = solve_ivp(
        lambda t, y: [y[1], -GRAVITY / length * np.sin(y[0])],
        (0.0, 60.0),
        [angle, 0.0],
        "DOP853",
        times,
        rtol=1e-13,
        atol=1e-14,
    )
    assert np.arctan2(task.y[:, 0], -task.y[:, 1]) == pytest.approx(form.y[0], abs=1e-9)
    assert np.abs(np.hypot(task.y[:, 0], task.y[:, 1]) - length).max() < 1e-12
    assert np.abs(task.y[:, 0] * task.y[:, 2] + task.y[:, 1] * task.y[:, 3]).max() < 1e-11
    assert task.worst_constraint < 1e-11


# kinks


def stairs(levels: list[float], times: np.ndarray, a: float) -> np.ndarray:
    """x' = -a x + u with u held for one second each, x(0) = 1."""
    starts = [1.0]
    for u in levels:
        starts.append(u / a + (starts[-1] - u / a) * np.exp(-a))
    cell = np.minimum(times.astype(int), len(levels) - 1)
    level, start = np.array(levels)[cell], np.array(starts)[cell]
    return level / a + (start - level / a) * np.exp(-a * (times - cell))


@pytest.mark.parametrize("rtol", [1e-5, 1e-12])
def test_jumps_of_the_input_are_hit_exactly(rtol):
    levels, times = [1.0, -3.0, 0.0, 10.0, 2.0], np.linspace(0.0, 5.0, 41)
    task = task_of(decay(), 0.0, 5.0, p=[1.3], x=[1.0], times=times, rtol=rtol, atol=rtol, **held(decay(), levels))
    finished(run(decay(), task))
    assert task.y[:, 0] == pytest.approx(stairs(levels, times, 1.3), abs=max(1e-10, 5 * rtol))


def test_rows_at_a_kink_show_the_value_that_holds_from_there_on():
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    kernel = kernel_of(u, x, u=u, observed=ca.vertcat(x, u))
    for fixed_step in (0.0, 0.3):
        task = task_of(
            kernel,
            0.0,
            2.0,
            x=[0.0],
            times=[0.0, 0.5, 1.0, 2.0],
            fixed_step=fixed_step,
            **held(kernel, [1.0, 5.0, 7.0]),
        )
        finished(run(kernel, task))
        assert task.y == pytest.approx(np.array([[0, 1], [0.5, 1], [1, 5], [6, 7]]), abs=1e-12)


def test_dense_kinks_are_crossed_with_one_short_step_each():
    values = np.random.default_rng(3).normal(size=201)
    task = task_of(decay(), 0.0, 2.0, p=[1.0], x=[1.0], rtol=1e-8, atol=1e-10, **linear(list(values), 0.01))
    finished(run(decay(), task))
    assert task.steps <= 205
    assert task.evaluations < 6.4 * task.steps, "order 5, and F is not evaluated twice where u is continuous"


# algebraic loop


def loop_reference(times: np.ndarray, p: float, rtol: float = 1e-12) -> np.ndarray:
    def z_of(x: float) -> float:
        return float(next(r.real for r in np.roots([0.1, 0.0, 1.0, -p * x]) if abs(r.imag) < 1e-9))

    answer = solve_ivp(lambda t, x: [-z_of(x[0])], (0.0, times[-1]), [2.0], "DOP853", times, rtol=rtol, atol=1e-13)
    return np.array([[x, z_of(x)] for x in answer.y[0]])


@pytest.mark.parametrize("options", [{"rtol": 1e-9}, {"rtol": 1e-4}, {"fixed_step": 0.01}], ids=str)
def test_algebraic_loop_is_solved_inside_the_stages(options):
    times = np.linspace(0.0, 3.0, 7)
    task = task_of(loop(), 0.0, 3.0, p=[1.5], x=[2.0], z=[1.0], times=times, **options)
    finished(run(loop(), task))
    assert task.y == pytest.approx(loop_reference(times, 1.5), rel=10 * options.get("rtol", 1e-9))
    assert task.factorizations < task.evaluations / 5


# sensitivities


def test_sensitivities_have_their_closed_form():
    times, a = np.linspace(0.0, 3.0, 10), 0.8
    task = task_of(
        decay(), 0.0, 3.0, p=[a], x=[2.0], dp=[[1.0], [0.0]], sx=[[0.0], [1.0]], times=times, rtol=1e-10, atol=1e-12
    )
    finished(run(decay(), task))
    assert task.sy[:, 0, 0] == pytest.approx(-2.0 * times * np.exp(-a * times), abs=1e-9)
    assert task.sy[:, 1, 0] == pytest.approx(np.exp(-a * times), abs=1e-9)
    assert task.sx[:, 0] == pytest.approx(task.sy[-1, :, 0], abs=1e-15)


def swing(kernel: Kernel, length: float = 2.0, drag: float = 0.3, sensitive: bool = False, **options) -> Task:
    """A forced pendulum released at rest, with directions L and drag."""
    start = pendulum_start(1.2, 1.0)
    directions = {"dp": np.eye(2), "sx": [start, [0.0] * 4]} if sensitive else {}
    inputs = linear([0.0, 1.0, -2.0, 3.0, 0.5, 0.0, 1.0], 0.5)
    return task_of(
        kernel, 0.0, 3.0, p=[length, drag], x=pendulum_start(1.2, length), times=np.linspace(0.0, 3.0, 8),
        **directions, **inputs, **options,
    )  # fmt: skip


def richardson(rows, e: float) -> np.ndarray:
    """The derivative of ``rows(step)`` at 0 by differences at e and e/2."""
    coarse, fine = (rows(e) - rows(-e)) / (2 * e), (rows(e / 2) - rows(-e / 2)) / e
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize(
    ("options", "agreement"),
    [({"fixed_step": 0.05}, 1e-10), ({"fixed_step": 0.24}, 1e-10), ({"rtol": 1e-11, "atol": 1e-12}, 1e-6)],
    ids=["frozen", "frozen, coarse", "adaptive"],
)
def test_pendulum_sensitivities_are_the_derivative_of_the_discrete_trajectory(options, agreement):
    kernel = pendulum()
    task = finished(run(kernel, swing(kernel, sensitive=True, **options)))
    by_length = richardson(lambda e: run(kernel, swing(kernel, length=2.0 + e, **options)).y, 1e-3)
    by_drag = richardson(lambda e: run(kernel, swing(kernel, drag=0.3 + e, **options)).y, 1e-3)
    for found, differences in ((task.sy[:, 0], by_length), (task.sy[:, 1], by_drag)):
        assert np.abs(found - differences).max() < agreement * np.abs(differences).max()


@pytest.mark.parametrize("options", [{"rtol": 1e-5}, {"rtol": 1e-8}, {"fixed_step": 0.1}], ids=str)
def test_sensitivities_obey_the_differentiated_constraints(options):
    kernel = pendulum()
    task = finished(run(kernel, swing(kernel, sensitive=True, **options)))
    for row, rows in zip(task.y, task.sy, strict=True):
        point = (0.0, row, np.zeros(0), np.zeros(1), task.p)
        assert np.abs(kernel.CJ(*point) @ rows.T + kernel.CP(*point) @ task.dp.T).max() < 1e-12


def test_loop_sensitivities_are_the_derivative_of_the_discrete_trajectory():
    def solved(p: float, sensitive: bool) -> Task:
        options = {"dp": [[1.0]]} if sensitive else {}
        times = [0.0, 0.4, 1.1, 2.0]
        task = task_of(loop(), 0.0, 2.0, p=[p], x=[2.0], z=[1.0], times=times, fixed_step=0.1, **options)
        return finished(run(loop(), task))

    task = solved(1.5, True)
    differences = richardson(lambda e: solved(1.5 + e, False).y, 1e-3)
    assert np.abs(task.sy[:, 0] - differences).max() < 1e-10
    x, z = task.y.T
    assert (1 + 0.3 * z**2) * task.sy[:, 0, 1] == pytest.approx(1.5 * task.sy[:, 0, 0] + x, abs=1e-13)


# failures


def test_blow_up_stops_near_its_pole_and_keeps_what_was_computed():
    x = ca.SX.sym("x")
    kernel = kernel_of(x**2, x)
    task = run(kernel, task_of(kernel, 0.0, 2.0, x=[1.0], times=[*np.linspace(0.0, 0.9, 10), 1.5], rtol=1e-8))
    assert task.status == Status.STEP_TOO_SMALL
    assert task.where == 0 and task.amount > 1.0
    assert task.t == pytest.approx(1.0, abs=1e-6)
    assert task.written == 10
    assert task.y[:10, 0] == pytest.approx(1.0 / (1.0 - np.linspace(0.0, 0.9, 10)), rel=1e-6)


@pytest.mark.parametrize("fixed_step", [0.0, 0.01])
def test_a_root_of_a_negative_number_is_located(fixed_step):
    x = ca.SX.sym("x", 2)
    kernel = kernel_of(ca.vertcat(1.0, ca.sqrt(0.5 - x[0])), x)
    task = run(kernel, task_of(kernel, 0.0, 1.0, x=[0.0, 0.0], fixed_step=fixed_step, times=[0.0, 0.25, 1.0]))
    assert task.status == Status.NOT_FINITE
    assert task.where == 1 and np.isnan(task.amount)
    assert task.t == pytest.approx(0.5, abs=0.011)
    assert task.written == 2


def test_a_model_that_is_not_finite_at_its_start_says_so_at_once():
    x = ca.SX.sym("x")
    kernel = kernel_of(1.0 / x, x)
    task = run(kernel, task_of(kernel, 0.0, 1.0, x=[0.0]))
    assert (task.status, task.where, task.t, task.steps) == (Status.NOT_FINITE, 0, 0.0, 0)


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_stiffness_is_reported_with_a_state_to_go_on_from(rtol):
    t, x = ca.SX.sym("t"), ca.SX.sym("x")
    kernel = kernel_of(-1e5 * (x - ca.cos(t)), x, t=t)
    task = task_of(kernel, 0.0, 10.0, x=[1.0], rtol=rtol, atol=1e-8)
    assert run(kernel, task).status == Status.STIFF
    assert 15 <= task.steps < 200
    assert task.x[0] == pytest.approx(np.cos(task.t), abs=1e-4)
    assert 0.0 < task.h < 1e-3
    before = task.steps
    assert run(kernel, task).status == Status.STIFF
    assert task.steps > before, "a caller who insists may go on"


def test_an_oscillation_is_not_called_stiff():
    for rtol in (1e-3, 1e-6, 1e-9):
        finished(run(oscillator(), task_of(oscillator(), 0.0, 200.0, x=[1.0, 0.0], rtol=rtol, atol=rtol)))


@pytest.mark.parametrize("fixed_step", [0.0, 0.1])
def test_too_many_steps_keep_the_partial_trajectory(fixed_step):
    task = task_of(
        oscillator(), 0.0, 100.0, x=[1.0, 0.0], times=np.linspace(0.0, 100.0, 1001), max_steps=20, fixed_step=fixed_step
    )
    run(oscillator(), task)
    assert task.status == Status.TOO_MANY_STEPS
    assert task.steps + task.rejected == 20
    assert 0 < task.written < 1001
    assert task.y[: task.written, 0] == pytest.approx(np.cos(task.times[: task.written]), abs=1e-4)


@pytest.mark.parametrize("fixed_step", [0.0, 0.01])
def test_constraints_that_come_to_contradict_each_other_end_the_run_there(fixed_step):
    t, x = ca.SX.sym("t"), ca.SX.sym("x")
    kernel = kernel_of(ca.SX(1.0), x, t=t, constraints=ca.vertcat(x - t, x - t + ca.fmax(t - 0.5, 0.0)))
    task = run(kernel, task_of(kernel, 0.0, 1.0, x=[0.0], fixed_step=fixed_step))
    assert (task.status, task.where) == (Status.PROJECTION, 1)
    assert task.amount > 0.0
    assert task.t == pytest.approx(0.5, abs=1e-8)


# slices


@pytest.mark.parametrize("options", [{"rtol": 1e-5}, {"rtol": 1e-9}, {"fixed_step": 0.1}], ids=str)
def test_slices_change_no_bit(options):
    whole = finished(run(pendulum(), swing(pendulum(), sensitive=True, **options)))
    sliced = finished(run(pendulum(), swing(pendulum(), sensitive=True, slice=3, **options)))
    for name in ("x", "y", "sx", "sy"):
        assert np.array_equal(getattr(whole, name), getattr(sliced, name)), name
    assert (whole.steps, whole.evaluations, whole.h) == (sliced.steps, sliced.evaluations, sliced.h)
