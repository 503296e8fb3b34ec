"""The implicit integrator: closed forms, measured order, published end points, constraints, sensitivities, failures.

Models are NumPy functions whose derivatives come from complex steps, which are exact to rounding; two of them are also
written by hand as C. Published end points: Test Set for IVP Solvers (CWI Amsterdam, University of Bari; Mazzia &
Magherini 2008).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest
from scipy.optimize import fsolve
from scipy.special import ellipj
from tasks import task_of

from grisaille.compilation.task import Status, Task
from grisaille.simulation.integrators import implicit

Function = Callable[..., Any]


class Model:
    """Kernel-like: ``F``, ``C``, ``O`` as given, their derivatives by complex steps."""

    def __init__(self, F: Function, nx: int, nz: int = 0, nu: int = 0, np_: int = 0, C: Function | None = None,
                 O: Function | None = None) -> None:  # fmt: skip  # noqa: E741
        self.nx, self.nz, self.nu, self.np = nx, nz, nu, np_
        C = C or (lambda t, x, z, u, p: [])
        O = O or (lambda t, x, z, u, p: [*x, *z])  # noqa: E741
        self.F, self.C, self.O = (_vector(f) for f in (F, C, O))
        point = (0.3, np.ones(nx), np.ones(nz), np.ones(nu), np.ones(np_))
        self.nc, self.ny, self.nm, self.sides = len(self.C(*point)), len(self.O(*point)), 0, 0
        self.J, self.OJ = (_derivative(f, ("x", "z")) for f in (self.F, self.O))
        self.CJ = _derivative(self.C, ("x",))
        self.FP, self.CP, self.OP = (_derivative(f, ("p",)) for f in (self.F, self.C, self.O))


def _vector(f: Function) -> Function:
    def call(t: Any, x: Any, z: Any, u: Any, p: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return np.array(f(t, x, z, u, p)) + 0.0

    return call


def _derivative(f: Function, wrt: tuple[str, ...]) -> Function:
    def call(t: float, x: Any, z: Any, u: Any, p: Any) -> Any:
        columns = []
        for name in wrt:
            for k in range(len({"x": x, "z": z, "p": p}[name])):
                v = {"x": x.astype(complex), "z": z.astype(complex), "p": p.astype(complex)}
                v[name][k] += 1e-30j
                columns.append(f(t, v["x"], v["z"], u, v["p"]).imag / 1e-30)
        rows = len(f(t, x, z, u, p))
        return np.array(columns).reshape(-1, rows).T if columns else np.zeros((rows, 0))

    return call


def solve(model: Any, t1: float, x: Any, z: Any = (), t0: float = 0.0, **options: Any) -> Task:
    task = task_of(model, t0, t1, x=x, z=z if len(z) else None, **options)
    while implicit.run(model, task) == Status.MORE:
        pass
    return task


def done(model: Any, *args: Any, **options: Any) -> Task:
    task = solve(model, *args, **options)
    assert task.status == Status.DONE, (Status(task.status).name, task.t, task.where)
    assert task.t == task.t1
    assert task.written == task.n_times
    return task


def digits(found: Any, reference: Any) -> float:
    return float(-np.log10(np.max(np.abs(np.asarray(found) / np.asarray(reference) - 1))))


# models

VAN_DER_POL = Model(lambda t, x, z, u, p: [x[1], p[0] * (1 - x[0] ** 2) * x[1] - x[0]], 2, np_=1)


def _robertson(x: Any, p: Any) -> tuple[Any, Any]:
    a, b, c = p[0] * x[0], p[2] * x[1] * x[2], p[1] * x[1] ** 2
    return -a + b, a - b - c


ROBERTSON = Model(lambda t, x, z, u, p: [*_robertson(x, p), p[1] * x[1] ** 2], 3, np_=3)
ROBERTSON_DAE = Model(
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


HIRES = Model(_hires, 8, np_=9)


def _pendulum(t: Any, x: Any, z: Any, u: Any, p: Any) -> list[Any]:
    g, force = p[0], (u[0] if len(u) else 0.0)
    turning = x[2] ** 2 + x[3] ** 2 - g * x[1] + x[0] * force - z[0] * (x[0] ** 2 + x[1] ** 2)
    return [x[2], x[3], -z[0] * x[0] + force, -z[0] * x[1] - g, turning]


def _circle(t: Any, x: Any, z: Any, u: Any, p: Any) -> list[Any]:
    return [(x[0] ** 2 + x[1] ** 2 - 1) / 2, x[0] * x[2] + x[1] * x[3]]


PENDULUM = Model(_pendulum, 4, 1, np_=1, C=_circle)
PUSHED_PENDULUM = Model(_pendulum, 4, 1, nu=1, np_=1, C=_circle)
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
    model = Model(lambda t, x, z, u, p: [-p[0] * (x[0] - np.cos(t)) - np.sin(t)], 1, np_=1)
    times = np.linspace(0, 10, 201)
    task = done(model, 10.0, [2.0], p=[1e5], times=times, rtol=1e-7, atol=1e-9)
    assert np.abs(task.y[:, 0] - np.cos(times) - np.exp(-1e5 * times)).max() < 3e-6
    assert task.steps < 600


def test_order_five_is_measured() -> None:
    model = Model(lambda t, x, z, u, p: [-2 * t * x[0] ** 2], 1)
    errors = [abs(done(model, 2.0, [1.0], fixed_step=h).x[0] - 0.2) for h in (0.25, 0.125, 0.0625)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 4.7)
    assert np.all(orders < 5.6)


def test_frozen_steps_end_on_rows_and_report_the_largest_error() -> None:
    model = Model(lambda t, x, z, u, p: [-x[0]], 1)
    task = done(model, 1.0, [1.0], times=[0.0, 0.25, 0.6, 1.0], fixed_step=0.2, rtol=1e-6, atol=1e-9)
    assert task.steps == 2 + 2 + 2
    assert np.abs(task.y[:, 0] - np.exp(-task.times)).max() < 1e-7
    finer = done(model, 1.0, [1.0], fixed_step=0.1, rtol=1e-6, atol=1e-9)
    assert 8 < task.error_estimate / finer.error_estimate < 24


def test_frozen_step_where_simplified_newton_fails_solves_the_stage_equations() -> None:
    model = Model(lambda t, x, z, u, p: [-30 * x[0] ** 3], 1)
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
    model = Model(lambda t, x, z, u, p: [-p[0] * x[0] + z[0], z[0] - 2 * u[0]], 1, 1, nu=1, np_=1)
    signal = {"breaks": [0.0, 1.0, 2.0], "coef": [[[1.0]], [[-3.0]]]}
    times = [0.0, 0.5, 1.0, 1.7, 2.0]
    task = done(model, 2.0, [0.0], [2.0], p=[4.0], times=times, rtol=1e-8, atol=1e-10, **signal)
    half = 0.5 * (1 - np.exp(-4.0))
    exact = [0.0, 0.5 * (1 - np.exp(-2.0)), half, -1.5 + (half + 1.5) * np.exp(-2.8), -1.5 + (half + 1.5) * np.exp(-4)]
    assert task.y[:, 0] == pytest.approx(exact, abs=1e-7)
    assert task.y[:, 1] == pytest.approx([2.0, 2.0, -6.0, -6.0, -6.0])


# sensitivities


def test_sensitivity_of_linear_decay_has_its_closed_form() -> None:
    model = Model(lambda t, x, z, u, p: [-p[0] * x[0] + p[1]], 1, np_=2)
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
    model = Model(lambda t, x, z, u, p: [1.0, np.sqrt(1 - t)], 2)
    task = solve(model, 2.0, [0.0, 0.0], times=[0.5, 1.5], rtol=1e-6)
    assert task.status == Status.NOT_FINITE
    assert task.where == 1
    assert task.t == pytest.approx(1.0, abs=1e-6)
    assert task.written == 1
    assert task.x[1] == pytest.approx(2 / 3, abs=1e-5)


def test_residual_that_does_not_depend_on_its_unknown() -> None:
    model = Model(lambda t, x, z, u, p: [-x[0], x[0] - 1 + 0 * z[0]], 1, 1)
    for options in ({}, {"fixed_step": 0.1}):
        task = solve(model, 1.0, [1.0], [0.0], **options)
        assert task.status == Status.SINGULAR
        assert task.where == 0


def test_residual_that_loses_its_solution() -> None:
    model = Model(lambda t, x, z, u, p: [1.0 + 0 * x[0], z[0] ** 2 - 1 + x[0]], 1, 1)
    task = solve(model, 2.0, [0.0], [1.0], rtol=1e-6)
    assert task.status == Status.BRANCH_ENDS
    assert task.t == pytest.approx(1.0, abs=1e-3)


def test_the_number_of_steps_is_limited() -> None:
    task = solve(VAN_DER_POL, 2000.0, [2.0, 0.0], p=[1000.0], max_steps=20)
    assert task.status == Status.TOO_MANY_STEPS
    assert 0 < task.t < 2000
    assert task.steps + task.rejected == 20


def test_solution_that_escapes_ends_with_a_small_step() -> None:
    task = solve(Model(lambda t, x, z, u, p: [x[0] ** 2], 1), 2.0, [1.0], rtol=1e-6)
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


# the compiled twin

C_HEAD = """
#include <math.h>
#define GR_SENSITIVE 1
#define ARGS double t, const double *x, const double *z, const double *u, const double *p, double *o
#define UNUSED (void)t; (void)x; (void)z; (void)u; (void)p; (void)o;
static void zero(double *o, long n) { for (long i = 0; i < n; i++) o[i] = 0.0; }
"""

C_PENDULUM = """
#define GR_NX 4
#define GR_NZ 1
#define GR_NU 1
#define GR_NP 1
#define GR_NC 2
#define GR_NY 5
static void gr_F(ARGS) { UNUSED
  o[0] = x[2]; o[1] = x[3]; o[2] = -z[0]*x[0] + u[0]; o[3] = -z[0]*x[1] - p[0];
  o[4] = x[2]*x[2] + x[3]*x[3] - p[0]*x[1] + x[0]*u[0] - z[0]*(x[0]*x[0] + x[1]*x[1]); }
static void gr_J(ARGS) { UNUSED zero(o, 25);
  o[2] = -z[0]; o[4] = u[0] - 2*z[0]*x[0];
  o[5 + 3] = -z[0]; o[5 + 4] = -p[0] - 2*z[0]*x[1];
  o[10] = 1; o[10 + 4] = 2*x[2];
  o[15 + 1] = 1; o[15 + 4] = 2*x[3];
  o[20 + 2] = -x[0]; o[20 + 3] = -x[1]; o[20 + 4] = -(x[0]*x[0] + x[1]*x[1]); }
static void gr_C(ARGS) { UNUSED o[0] = (x[0]*x[0] + x[1]*x[1] - 1)/2; o[1] = x[0]*x[2] + x[1]*x[3]; }
static void gr_CJ(ARGS) { UNUSED zero(o, 8);
  o[0] = x[0]; o[1] = x[2]; o[2] = x[1]; o[3] = x[3]; o[5] = x[0]; o[7] = x[1]; }
static void gr_O(ARGS) { UNUSED for (long i = 0; i < 4; i++) o[i] = x[i]; o[4] = z[0]; }
static void gr_FP(ARGS) { UNUSED zero(o, 5); o[3] = -1; o[4] = -x[1]; }
static void gr_CP(ARGS) { UNUSED zero(o, 2); }
static void gr_OJ(ARGS) { UNUSED zero(o, 25); for (long i = 0; i < 5; i++) o[6*i] = 1; }
static void gr_OP(ARGS) { UNUSED zero(o, 5); }
"""

C_VAN_DER_POL = """
#define GR_NX 2
#define GR_NZ 0
#define GR_NU 0
#define GR_NP 1
#define GR_NC 0
#define GR_NY 2
static void gr_F(ARGS) { UNUSED o[0] = x[1]; o[1] = p[0]*(1 - x[0]*x[0])*x[1] - x[0]; }
static void gr_J(ARGS) { UNUSED o[0] = 0; o[1] = -2*p[0]*x[0]*x[1] - 1; o[2] = 1; o[3] = p[0]*(1 - x[0]*x[0]); }
static void gr_C(ARGS) { UNUSED }
static void gr_CJ(ARGS) { UNUSED }
static void gr_O(ARGS) { UNUSED o[0] = x[0]; o[1] = x[1]; }
static void gr_FP(ARGS) { UNUSED o[0] = 0; o[1] = (1 - x[0]*x[0])*x[1]; }
static void gr_CP(ARGS) { UNUSED }
static void gr_OJ(ARGS) { UNUSED o[0] = 1; o[1] = 0; o[2] = 0; o[3] = 1; }
static void gr_OP(ARGS) { UNUSED zero(o, 2); }
"""


class Compiled:
    """The sizes of a model and its C integrator."""

    def __init__(self, model: Model, text: str, folder: Any) -> None:
        self.nx, self.nz, self.nu, self.np, self.ny = model.nx, model.nz, model.nu, model.np, model.ny
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        assert compiler is not None
        (folder / "model.c").write_text(C_HEAD + text + '#include "gr_task.h"\n#include "gr_implicit.h"\n')
        headers = str(resources.files("grisaille.compilation") / "kernels")
        strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
        flags = ["-O2", *strict, "-shared", "-fPIC", f"-I{headers}"]
        subprocess.run([compiler, *flags, "model.c", "-o", "model.so", "-lm"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "model.so"))
        self.library.gr_implicit_work.argtypes = [ctypes.c_long]
        self.library.gr_implicit_work.restype = self.library.gr_implicit.restype = ctypes.c_long

    def solve(self, t1: float, x: Any, z: Any = (), **options: Any) -> Task:
        task = task_of(self, 0.0, t1, x=x, z=z if len(z) else None, **options)
        task.work = np.full(self.library.gr_implicit_work(task.ns), np.nan)
        while True:
            packed = task.pack()
            status = self.library.gr_implicit(ctypes.byref(packed))
            task.unpack(packed)
            assert status == task.status
            if status != Status.MORE:
                return task


@pytest.fixture(scope="module")
def compiled_pendulum(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(PUSHED_PENDULUM, C_PENDULUM, tmp_path_factory.mktemp("pendulum"))


@pytest.fixture(scope="module")
def compiled_van_der_pol(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(VAN_DER_POL, C_VAN_DER_POL, tmp_path_factory.mktemp("vanderpol"))


DECISIONS = ("status", "steps", "rejected", "written", "where")
EFFORT = ("evaluations", "jacobians", "factorizations", "newton_iterations")


def assert_twins(a: Task, b: Task) -> None:
    """Iterations to rounding may end one sooner or later, so their number is compared in adaptive runs only."""
    for name in DECISIONS if a.fixed_step > 0 else DECISIONS + EFFORT:
        assert getattr(a, name) == getattr(b, name), name
    for name in ("x", "z", "sx", "sz", "y", "sy"):
        size = np.abs(getattr(b, name)).max(initial=1e-300)
        assert np.abs(getattr(a, name) - getattr(b, name)).max(initial=0.0) <= 1e-9 * size, name


@pytest.mark.compiled
@pytest.mark.parametrize("fixed_step", [0.0, 0.07])
@pytest.mark.parametrize("directions", [0, 1])
def test_compiled_pendulum_is_the_twin(compiled_pendulum: Compiled, fixed_step: float, directions: int) -> None:
    options: dict[str, Any] = {"p": [9.81], "times": np.linspace(0, 3, 31), "fixed_step": fixed_step, **PUSH}
    options |= {"dp": np.ones((directions, 1))} if directions else {}
    start = (3.0, [1.0, 0, 0, 0], [0.0])
    compiled = compiled_pendulum.solve(*start, **options)
    assert_twins(compiled, done(PUSHED_PENDULUM, *start, **options))
    sliced = compiled_pendulum.solve(*start, slice=2, **options)
    for name in (*DECISIONS, *EFFORT, "x", "z", "sx", "sz", "y", "sy", "h"):
        assert np.array_equal(getattr(compiled, name), getattr(sliced, name)), name


@pytest.mark.compiled
def test_compiled_van_der_pol_is_the_twin(compiled_van_der_pol: Compiled) -> None:
    options: dict[str, Any] = {"p": [100.0], "dp": [[1.0]], "times": np.linspace(0, 200, 21), "rtol": 1e-5}
    compiled = compiled_van_der_pol.solve(200.0, [2.0, 0.0], **options)
    assert_twins(compiled, done(VAN_DER_POL, 200.0, [2.0, 0.0], **options))


@pytest.mark.compiled
def test_compiled_failures_are_the_twin(compiled_van_der_pol: Compiled) -> None:
    options: dict[str, Any] = {"p": [1000.0], "max_steps": 30}
    compiled = compiled_van_der_pol.solve(2000.0, [2.0, 0.0], **options)
    assert compiled.status == Status.TOO_MANY_STEPS
    assert_twins(compiled, solve(VAN_DER_POL, 2000.0, [2.0, 0.0], **options))
    bad = compiled_van_der_pol.solve(1.0, [2.0, np.nan], p=[1.0])
    assert bad.status == Status.NOT_FINITE
    assert bad.where == 0


@pytest.mark.compiled
@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_rows_between_steps_are_as_good_as_steps(compiled_van_der_pol: Compiled, rtol: float) -> None:
    """Against runs that end at every requested time."""
    times = np.linspace(0, 2000, 201)
    task = compiled_van_der_pol.solve(2000.0, [2.0, 0.0], p=[1000.0], times=times, rtol=rtol, atol=1e-3 * rtol)
    fine = compiled_van_der_pol.solve(2000.0, [2.0, 0.0], p=[1000.0], times=times, rtol=1e-12, atol=1e-15, hmax=10.0)
    assert task.status == fine.status == Status.DONE
    assert np.max(np.abs(task.y - fine.y) / (rtol * (1e-3 + np.abs(fine.y)))) < 30
    assert task.steps < fine.steps / 2
