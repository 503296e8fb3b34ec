"""How states are moved onto hidden constraints: steps of a system at rest do nothing else."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from simulation.reduced import finished, kernel_of, run
from tasks import task_of

from grisaille.compilation import Kernel, Status, Task
from grisaille.compilation.schemes import FROZEN_EXPLICIT

OFF = [3.0001, -4.0002, 0.8, 0.61]
SEEDS = {"dp": [[1.0], [0.0], [0.0]], "sx": [[0.3, 0.1, 0.2, -0.4], [0.0, 0.0, 0.5, 0.1], [1.0, 2.0, 3.0, 4.0]]}


def resting(x: ca.SX, constraints: ca.SX, **more: ca.SX) -> Kernel:
    return kernel_of(ca.SX.zeros(x.numel()), x, constraints=constraints, **more)


@pytest.fixture(scope="module")
def circle() -> Kernel:
    """A point and its velocity on a circle of radius p."""
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p")
    return resting(x, ca.vertcat(ca.dot(x[:2], x[:2]) - p**2, ca.dot(x[:2], x[2:])), p=p)


def moved(kernel: Kernel, x: list[float], **given: object) -> Task:
    return run(kernel, task_of(kernel, 0.0, 1.0, x=x, fixed_step=1.0, **given), FROZEN_EXPLICIT)


def test_constraints_are_met_by_the_shortest_way(circle: Kernel) -> None:
    task = finished(moved(circle, OFF, p=[5.0]))
    point = (0.0, task.x, np.zeros(0), np.zeros(0), task.p)
    assert np.abs(circle.C(*point)).max() < 1e-14
    way, gradients = task.x - OFF, circle.CJ(*point)
    sideways = way - gradients.T @ np.linalg.lstsq(gradients.T, way, rcond=None)[0]
    # the nearest point has none; the gradients were taken where x came from, so some of second order is left
    assert np.linalg.norm(sideways) < np.linalg.norm(way) ** 2


def test_the_way_is_measured_in_nominal_units(circle: Kernel) -> None:
    task = finished(moved(circle, OFF, p=[5.0], nominal=[1e-4, 1.0, 1.0, 1.0]))
    assert abs(task.x[0] - OFF[0]) < 1e-6 < abs(task.x[1] - OFF[1])


def test_sensitivities_follow_the_projection_exactly(circle: Kernel) -> None:
    task = finished(moved(circle, OFF, p=[5.0], **SEEDS))
    point = (0.0, task.x, np.zeros(0), np.zeros(0), task.p)
    assert np.abs(circle.CJ(*point) @ task.sx.T + circle.CP(*point) @ np.array(SEEDS["dp"]).T).max() < 1e-13
    for sx, dx, dp in zip(task.sx, np.array(SEEDS["sx"]), np.array(SEEDS["dp"]), strict=True):
        ends = [finished(moved(circle, OFF + e * dx, p=5.0 + e * dp)).x for e in (1e-4, -1e-4, 5e-5, -5e-5)]
        coarse, fine = (ends[0] - ends[1]) / 2e-4, (ends[2] - ends[3]) / 1e-4
        assert sx == pytest.approx((4 * fine - coarse) / 3, abs=2e-10)


def test_redundant_constraints_do_not_disturb_the_projection() -> None:
    x = ca.SX.sym("x", 2)
    once = x[0] ** 2 + x[1] ** 2 - 1
    found = [finished(moved(resting(x, c), [0.7, 0.72])) for c in (once, ca.vertcat(once, 7 * once, once))]
    assert all(task.worst_constraint < 1e-14 for task in found)
    assert found[0].x == pytest.approx(found[1].x, abs=1e-15)


def test_contradicting_constraints_are_reported_with_their_residual() -> None:
    x = ca.SX.sym("x", 2)
    task = moved(resting(x, ca.vertcat(x[0] - 1, x[0] - 2)), [1.0, 0.0])
    assert (task.status, task.where, task.amount) == (Status.PROJECTION, 1, -1.0)
