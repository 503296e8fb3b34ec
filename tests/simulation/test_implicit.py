"""The implicit integrator: closed forms, measured order, published end points, constraints, sensitivities, failures.

Published end points: Test Set for IVP Solvers (CWI Amsterdam, University of Bari; Mazzia &
Magherini 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import fsolve
from scipy.special import ellipj
from simulation.reduced import kernel_of, run
from tasks import task_of

from grisaille.compilation import Kernel, Status, Task
from grisaille.compilation.schemes import IMPLICIT

Function = Callable[..., Any]


def model_of(F: Function, nx: int, nz: int = 0, nu: int = 0, np_: int = 0, C: Function | None = None) -> Kernel:
    """``x' = F[:nx]``, ``0 = F[nx:]``, ``0 = C``, of t and lists of x, z, u, p."""
    t = ca.SX.sym("t")
    x, z, u, p = (ca.SX.sym(name, size) for name, size in zip("xzup", (nx, nz, nu, np_), strict=True))
    point = (t, *([v[k] for k in range(v.numel())] for v in (x, z, u, p)))
    rates, constraints = F(*point), C(*point) if C else []
    rhs, residual, kept = (ca.vertcat(ca.SX(0, 1), *rows) for rows in (rates[:nx], rates[nx:], constraints))
    return kernel_of(rhs, x, t=t, z=z, residual=residual, u=u, p=p, constraints=kept)


def solve(model: Any, t1: float, x: Any, z: Any = (), t0: float = 0.0, **options: Any) -> Task:
    task = task_of(model, t0, t1, x=x, z=z if len(z) else None, **options)
    return run(model, task, IMPLICIT)


def done(model: Any, *args: Any, **options: Any) -> Task:
    task = solve(model, *args, **options)
    assert task.status == Status.DONE, (Status(task.status).name, task.t, task.where)
    assert task.t == task.t1
    assert task.written == task.n_times
    return task


def digits(found: Any, reference: Any) -> float:
    return float(-np.log10(np.max(np.abs(np.asarray(found) / np.asarray(reference) - 1))))


# models

VAN_DER_POL = model_of(lambda t, x, z, u, p: [x[1], p[0] * (1 - x[0] ** 2) * x[1] - x[0]], 2, np_=1)


def _robertson(x: Any, p: Any) -> tuple[Any, Any]:
    a, b, c = p[0] * x[0], p[2] * x[1] * x[2], p[1] * x[1] ** 2
    return -a + b, a - b - c


ROBERTSON = model_of(lambda t, x, z, u, p: [*_robertson(x, p), p[1] * x[1] ** 2], 3, np_=3)
ROBERTSON_DAE = model_of(
    lambda t, x, z, u, p: [*_robertson([*x, *z], p), x[0] + x[1] + z[0] - 1], 2, 1, np_=3
)  # fmt: skip
ROBERTSON_P = [0.04, 3e7, 1e4]
ROBERTSON_END = [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050]

HIRES_P = [1.71, 0.43, 8.32, 0.69, 0.035, 8.32, 280.0, 0.69, 0.69]
HIRES_START = [1.0, 0, 0, 0, 0, 0, 0, 0.0057]
HIRES_END = [
    0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
    0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
]  # fmt: skip


def _hires(t: Any, x: Any, z: Any, u: Any, p: Any) -> list[Any]:
    a, b, c, d, e, f, g, h = x
    k1, k2, k3, k4, k5, k6, k7, k8, k9 = p
    q = k7 * f * h
    bound = q - (k2 + k8 + k9) * g
    return [
        -k1 * a + k2 * b + k6 * c + 0.0007,
        k1 * a - (k2 + k3) * b,
        -(k6 + k1) * c + k2 * d + k5 * e,
        k3 * b + k1 * c - (k4 + k2) * d,
        -(k5 + k1) * e + k2 * (f + g),
        -q + k8 * d + k1 * e - k2 * f + k8 * g,
        bound,
        -bound,
    ]


HIRES = model_of(_hires, 8, np_=9)


def _pendulum(t: Any, x: Any, z: Any, u: Any, p: Any) -> list[Any]:
    g, force = p[0], (u[0] if len(u) else 0.0)
    turning = x[2] ** 2 + x[3] ** 2 - g * x[1] + x[0] * force - z[0] * (x[0] ** 2 + x[1] ** 2)
    return [x[2], x[3], -z[0] * x[0] + force, -z[0] * x[1] - g, turning]


def _circle(t: Any, x: Any, z: Any, u: Any, p: Any) -> list[Any]:
    return [(x[0] ** 2 + x[1] ** 2 - 1) / 2, x[0] * x[2] + x[1] * x[3]]


PENDULUM = model_of(_pendulum, 4, 1, np_=1, C=_circle)
PUSHED_PENDULUM = model_of(_pendulum, 4, 1, nu=1, np_=1, C=_circle)
PUSH = {"breaks": [0.0, 0.7, 1.5, 3.0], "coef": [[[0.0, 0.0]], [[4.0, -2.0]], [[-1.0, 0.5]]], "kink": [0, 1, 1, 0]}


def exact_pendulum(t: np.ndarray) -> np.ndarray:
    """Released from the horizontal: sin(θ/2) = cd(√g t | 1/2)/√2."""
    _, cn, dn, _ = ellipj(np.sqrt(9.81) * t, 0.5)
    half = np.arcsin(cn / dn / np.sqrt(2))
    return np.column_stack([np.sin(2 * half), -np.cos(2 * half)])


def richardson(f: Callable[[np.ndarray], np.ndarray], p: Any, k: int, step: float) -> np.ndarray:
    def central(h: float) -> np.ndarray:
        up, down = np.array(p, float), np.array(p, float)
        up[k] += h
        down[k] -= h
        return (f(up) - f(down)) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3


# closed forms and order


def test_stiff_linear_problem_follows_its_closed_form() -> None:
    model = model_of(lambda t, x, z, u, p: [-p[0] * (x[0] - ca.cos(t)) - ca.sin(t)], 1, np_=1)
    times = np.linspace(0, 10, 201)
    task = done(model, 10.0, [2.0], p=[1e5], times=times, rtol=1e-7, atol=1e-9)
    assert np.abs(task.y[:, 0] - np.cos(times) - np.exp(-1e5 * times)).max() < 3e-6
    assert task.steps < 600


def test_order_five_is_measured() -> None:
    model = model_of(lambda t, x, z, u, p: [-2 * t * x[0] ** 2], 1)
    errors = [abs(done(model, 2.0, [1.0], fixed_step=h).x[0] - 0.2) for h in (0.25, 0.125, 0.0625)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 4.7)
    assert np.all(orders < 5.6)


def test_frozen_steps_end_on_rows_and_report_the_largest_error() -> None:
    model = model_of(lambda t, x, z, u, p: [-x[0]], 1)
    task = done(model, 1.0, [1.0], times=[0.0, 0.25, 0.6, 1.0], fixed_step=0.2, rtol=1e-6, atol=1e-9)
    assert task.steps == 2 + 2 + 2
    assert np.abs(task.y[:, 0] - np.exp(-task.times)).max() < 1e-7
    finer = done(model, 1.0, [1.0], fixed_step=0.1, rtol=1e-6, atol=1e-9)
    assert 8 < task.error_estimate / finer.error_estimate < 24


def test_frozen_step_where_simplified_newton_fails_solves_the_stage_equations() -> None:
    model = model_of(lambda t, x, z, u, p: [-30 * x[0] ** 3], 1)
    task = done(model, 0.8, [3.0], fixed_step=0.8)
    s = np.sqrt(6)
    A = np.array(
        [
            [(88 - 7 * s) / 360, (296 - 169 * s) / 1800, (-2 + 3 * s) / 225],
            [(296 + 169 * s) / 1800, (88 + 7 * s) / 360, (-2 - 3 * s) / 225],
            [(16 - s) / 36, (16 + s) / 36, 1 / 9],
        ]
    )

    stages = fsolve(lambda Y: Y - 3.0 + 0.8 * A @ (30 * Y**3), [0.8, -0.5, 0.2], xtol=1e-13)
    assert task.x[0] == pytest.approx(stages[2], rel=1e-9)
    assert task.factorizations > 2


# published end points; rtol = 1e-7


def test_robertson_to_1e11() -> None:
    task = done(ROBERTSON, 1e11, [1.0, 0, 0], p=ROBERTSON_P, rtol=1e-7, atol=[1e-13, 1e-20, 1e-13])
    assert digits(task.x, ROBERTSON_END) > 6


def test_robertson_with_its_conservation_law() -> None:
    atol = [1e-13, 1e-20, 1e-13]
    task = done(ROBERTSON_DAE, 1e11, [1.0, 0], [0.0], p=ROBERTSON_P, rtol=1e-7, atol=atol)
    assert digits([*task.x, *task.z], ROBERTSON_END) > 6
    assert abs(sum(task.x) + task.z[0] - 1) < 1e-12


def test_hires_and_its_rows_between_steps() -> None:
    end, times = 321.8122, np.linspace(0, 321.8122, 201)
    task = done(HIRES, end, HIRES_START, p=HIRES_P, times=times, rtol=1e-7, atol=1e-10)
    assert digits(task.x, HIRES_END) > 5
    fine = done(HIRES, end, HIRES_START, p=HIRES_P, times=times, rtol=1e-10, atol=1e-13)
    assert np.max(np.abs(task.y - fine.y) / (1e-10 + 1e-7 * np.abs(fine.y))) < 30


def test_van_der_pol() -> None:
    task = done(VAN_DER_POL, 2000.0, [2.0, 0.0], p=[1000.0], rtol=1e-7, atol=1e-10)
    assert digits(task.x, [0.1706167732170469e1, -0.8928097010248125e-3]) > 6


# constraints


def test_pendulum_stays_on_its_circle() -> None:
    times = np.linspace(0, 10, 41)
    task = done(PENDULUM, 10.0, [1.0, 0, 0, 0], [0.0], p=[9.81], times=times, rtol=1e-7, atol=1e-8)
    assert np.abs(task.y[:, :2] - exact_pendulum(times)).max() < 5e-6
    assert task.worst_constraint < 1e-9
    tension = task.y[:, 2] ** 2 + task.y[:, 3] ** 2 - 9.81 * task.y[:, 1]
    assert np.abs(task.y[:, 4] - tension).max() < 1e-8


def test_frozen_pendulum_meets_its_constraints_to_rounding() -> None:
    task = done(PENDULUM, 2.0, [1.0, 0, 0, 0], [0.0], p=[9.81], fixed_step=0.05)
    assert task.worst_constraint < 1e-14
    assert np.abs(task.x[:2] - exact_pendulum(np.array([2.0]))[0]).max() < 1e-5


# signals


def test_kinks_end_steps_and_rows_there_take_the_right_limit() -> None:
    model = model_of(lambda t, x, z, u, p: [-p[0] * x[0] + z[0], z[0] - 2 * u[0]], 1, 1, nu=1, np_=1)
    signal = {"breaks": [0.0, 1.0, 2.0], "coef": [[[1.0]], [[-3.0]]]}
    times = [0.0, 0.5, 1.0, 1.7, 2.0]
    task = done(model, 2.0, [0.0], [2.0], p=[4.0], times=times, rtol=1e-8, atol=1e-10, **signal)
    half = 0.5 * (1 - np.exp(-4.0))
    exact = [0.0, 0.5 * (1 - np.exp(-2.0)), half, -1.5 + (half + 1.5) * np.exp(-2.8), -1.5 + (half + 1.5) * np.exp(-4)]
    assert task.y[:, 0] == pytest.approx(exact, abs=1e-7)
    assert task.y[:, 1] == pytest.approx([2.0, 2.0, -6.0, -6.0, -6.0])


# sensitivities


def test_sensitivity_of_linear_decay_has_its_closed_form() -> None:
    model = model_of(lambda t, x, z, u, p: [-p[0] * x[0] + p[1]], 1, np_=2)
    times = np.linspace(0, 3, 31)
    seeds = {"dp": [[1.0, 0], [0, 1], [0, 0]], "sx": [[0.0], [0.0], [1.0]]}
    task = done(model, 3.0, [2.0], p=[1.5, 0.6], times=times, rtol=1e-8, atol=1e-10, **seeds)
    decay = np.exp(-1.5 * times)
    exact = np.column_stack(
        [-0.6 / 2.25 * (1 - decay) - times * decay * (2.0 - 0.4), (1 - decay) / 1.5, decay]
    )  # fmt: skip
    assert np.abs(task.sy[:, :, 0] - exact).max() < 1e-6


@pytest.mark.parametrize("directions", [1, 3])
def test_frozen_sensitivities_are_the_derivative_of_the_discrete_run(directions: int) -> None:
    """One direction iterates with Newton's matrices, three factor the whole system."""
    times = np.linspace(0, 5, 6)

    def rows(p: np.ndarray) -> np.ndarray:
        return done(HIRES, 5.0, HIRES_START, p=p, times=times, fixed_step=0.5).y

    task = done(HIRES, 5.0, HIRES_START, p=HIRES_P, times=times, fixed_step=0.5, dp=np.eye(9)[2 : 2 + directions])
    for d in range(directions):
        difference = richardson(rows, HIRES_P, 2 + d, 1e-3 * HIRES_P[2 + d])
        assert np.abs(task.sy[:, d] - difference).max() < 1e-9 * max(1.0, np.abs(difference).max())


def test_frozen_pendulum_sensitivities_obey_the_constraints() -> None:
    times = np.linspace(0, 2, 5)

    def rows(p: np.ndarray) -> np.ndarray:
        return done(PUSHED_PENDULUM, 2.0, [1.0, 0, 0, 0], [0.0], p=p, times=times, fixed_step=0.1, **PUSH).y

    task = done(PUSHED_PENDULUM, 2.0, [1.0, 0, 0, 0], [0.0], p=[9.81], times=times, fixed_step=0.1, dp=[[1.0]], **PUSH)
    difference = richardson(rows, [9.81], 0, 1e-3)
    assert np.abs(task.sy[:, 0] - difference).max() < 1e-9 * np.abs(difference).max()
    point = (2.0, task.x, task.z, np.array([-1.0 + 0.25]), task.p)
    assert np.abs(PUSHED_PENDULUM.CJ(*point) @ task.sx[0]).max() < 1e-12
    residual = PUSHED_PENDULUM.J(*point) @ np.append(task.sx[0], task.sz[0]) + PUSHED_PENDULUM.FP(*point)[:, 0]
    assert abs(residual[4]) < 1e-10


def test_adaptive_sensitivities_agree_with_differences() -> None:
    atol, times = [1e-12, 1e-17, 1e-12], np.array([1.0, 40.0, 1e3])

    def rows(p: np.ndarray) -> np.ndarray:
        return done(ROBERTSON_DAE, 1e3, [1.0, 0], [0.0], p=p, times=times, rtol=1e-10, atol=atol).y

    task = done(ROBERTSON_DAE, 1e3, [1.0, 0], [0.0], p=ROBERTSON_P, times=times, dp=[[1.0, 0, 0]], rtol=1e-7, atol=atol)
    difference = richardson(rows, ROBERTSON_P, 0, 2e-3)
    assert np.all(np.abs(task.sy[:, 0] - difference) < 1e-5 * np.abs(difference).max(axis=0))
    u = np.zeros(0)
    point = (1e3, task.x, task.z, u, task.p)
    residual = ROBERTSON_DAE.J(*point) @ np.append(task.sx[0], task.sz[0]) + ROBERTSON_DAE.FP(*point)[:, 0]
    assert abs(residual[2]) < 1e-8


# failures


def test_right_hand_side_that_stops_being_a_number() -> None:
    model = model_of(lambda t, x, z, u, p: [1.0, ca.sqrt(1 - t)], 2)
    task = solve(model, 2.0, [0.0, 0.0], times=[0.5, 1.5], rtol=1e-6)
    assert task.status == Status.NOT_FINITE
    assert task.where == 1
    assert task.t == pytest.approx(1.0, abs=1e-6)
    assert task.written == 1
    assert task.x[1] == pytest.approx(2 / 3, abs=1e-5)


def test_residual_that_does_not_depend_on_its_unknown() -> None:
    model = model_of(lambda t, x, z, u, p: [-x[0], x[0] - 1 + 0 * z[0]], 1, 1)
    for options in ({}, {"fixed_step": 0.1}):
        task = solve(model, 1.0, [1.0], [0.0], **options)
        assert task.status == Status.SINGULAR
        assert task.where == 0


def test_residual_that_loses_its_solution() -> None:
    model = model_of(lambda t, x, z, u, p: [1.0 + 0 * x[0], z[0] ** 2 - 1 + x[0]], 1, 1)
    task = solve(model, 2.0, [0.0], [1.0], rtol=1e-6)
    assert task.status == Status.BRANCH_ENDS
    assert task.t == pytest.approx(1.0, abs=1e-3)


def test_the_number_of_steps_is_limited() -> None:
    task = solve(VAN_DER_POL, 2000.0, [2.0, 0.0], p=[1000.0], max_steps=20)
    assert task.status == Status.TOO_MANY_STEPS
    assert 0 < task.t < 2000
    assert task.steps + task.rejected == 20


def test_solution_that_escapes_ends_with_a_small_step() -> None:
    task = solve(model_of(lambda t, x, z, u, p: [x[0] ** 2], 1), 2.0, [1.0], rtol=1e-6)
    assert task.status in (Status.STEP_TOO_SMALL, Status.NEWTON, Status.NOT_FINITE)
    assert task.t == pytest.approx(1.0, abs=1e-4)


# slices


@pytest.mark.parametrize("fixed_step", [0.0, 0.1])
def test_slices_change_nothing(fixed_step: float) -> None:
    options = {"p": [9.81], "times": np.linspace(0, 3, 8), "dp": [[1.0]], "fixed_step": fixed_step, **PUSH}
    whole = done(PUSHED_PENDULUM, 3.0, [1.0, 0, 0, 0], [0.0], **options)
    sliced = done(PUSHED_PENDULUM, 3.0, [1.0, 0, 0, 0], [0.0], slice=3, **options)
    for name in ("x", "z", "sx", "sz", "y", "sy", "steps", "evaluations", "factorizations", "worst_constraint", "h"):
        assert np.array_equal(getattr(whole, name), getattr(sliced, name)), name


# rows


@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_rows_between_steps_are_as_good_as_steps(rtol: float) -> None:
    """Against runs that end at every requested time."""
    times = np.linspace(0, 2000, 201)
    given: dict[str, Any] = {"p": [1000.0], "times": times}
    task = done(VAN_DER_POL, 2000.0, [2.0, 0.0], rtol=rtol, atol=1e-3 * rtol, **given)
    fine = done(VAN_DER_POL, 2000.0, [2.0, 0.0], rtol=1e-12, atol=1e-15, hmax=10.0, **given)
    assert np.max(np.abs(task.y - fine.y) / (rtol * (1e-3 + np.abs(fine.y)))) < 30
    assert task.steps < fine.steps / 2
