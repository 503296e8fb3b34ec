"""Newton's method of static models: closed forms, failures with names, factors that serve again."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from simulation.reduced import kernel_of, loop
from tasks import task_of

from grisaille.compilation import Status
from grisaille.simulation.roots import Newton, StepFailure, lu, lu_solve


def test_newton_solves_the_loop_and_keeps_its_factors():
    kernel = loop()
    task = task_of(kernel, 0.0, 1.0, p=[2.0], x=[1.5], z=[0.0], rtol=1e-8, fixed_step=1.0)
    newton = Newton(kernel, task)
    z, f = newton.solve(0.0, task.x, task.z, np.zeros(1))
    assert z + z**3 / 10 == pytest.approx([3.0], rel=1e-14)
    assert f[0] == -z[0]
    made = task.factorizations
    newton.solve(0.0, task.x * 1.0001, z, np.zeros(1))
    assert task.factorizations == made


def test_newton_without_a_solution_names_the_residual():
    x, z = ca.SX.sym("x"), ca.SX.sym("z")
    kernel = kernel_of(-x, x, z=z, residual=z**2 + 1 + x**2)
    task = task_of(kernel, 0.0, 1.0, x=[1.0], z=[0.3], fixed_step=1.0)
    with np.errstate(all="ignore"), pytest.raises(StepFailure) as failure:
        Newton(kernel, task).solve(0.0, task.x, task.z, np.zeros(0))
    assert failure.value.status in (Status.NEWTON, Status.SINGULAR)
    assert failure.value.status != Status.NEWTON or failure.value.where == 1


def test_a_singular_loop_names_its_column():
    x, z = ca.SX.sym("x"), ca.SX.sym("z", 2)
    kernel = kernel_of(-x, x, z=z, residual=ca.vertcat(z[0] + z[1] - x, 3 * z[0] + 3 * z[1] - x))
    task = task_of(kernel, 0.0, 1.0, x=[1.0], fixed_step=1.0)
    with pytest.raises(StepFailure) as failure:
        Newton(kernel, task).solve(0.0, task.x, task.z, np.zeros(0))
    assert (failure.value.status, failure.value.where) == (Status.SINGULAR, 1)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_lu_solves_badly_scaled_rows(n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-8, 8, size=(n, 1))
    b = rng.normal(size=(n, 3))
    x = lu_solve(lu(a), b)
    assert x == pytest.approx(np.linalg.solve(a, b), rel=1e-9)
