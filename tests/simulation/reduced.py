"""Small reduced systems for the tests of integrators, written down by hand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from grisaille.compilation import Kernel, Status, Task, build_kernel
from grisaille.compilation.schemes import EXPLICIT, Scheme
from grisaille.structure import System

NOTHING = ca.SX(0, 1)
GRAVITY = 9.81


def kernel_of(rhs: ca.SX, x: ca.SX, *, sensitive: bool = True, **parts: ca.SX) -> Kernel:
    """A kernel from ``x' = rhs`` and whatever of t, z, residual, u, p, constraints, observed is given."""
    given = {name: parts.get(name, NOTHING) for name in ("z", "residual", "u", "p", "constraints")}
    system = System(
        t=parts.get("t", ca.SX.sym("t")),
        x=x,
        rhs=rhs,
        observed=parts.get("observed", ca.vertcat(x, given["z"])),
        pivots=NOTHING,
        **given,
        **dict.fromkeys(
            ("state_names", "implicit_names", "signals", "parameter_names", "observed_names", "constraint_texts",
             "constraint_levels", "residual_texts", "pivot_texts"), (),
        ),
    )  # fmt: skip
    return build_kernel(system, sensitive=sensitive)


@lru_cache(maxsize=4)
def decay() -> Kernel:
    """x' = -a x + u, p = (a,)"""
    x, p, u = ca.SX.sym("x"), ca.SX.sym("p"), ca.SX.sym("u")
    return kernel_of(-p * x + u, x, p=p, u=u)


@lru_cache(maxsize=4)
def oscillator() -> Kernel:
    """x'' = -x"""
    x = ca.SX.sym("x", 2)
    return kernel_of(ca.vertcat(x[1], -x[0]), x)


@lru_cache(maxsize=4)
def pendulum() -> Kernel:
    """x, y, vx, vy on a circle of radius L, p = (L, drag), u = (horizontal force,); both hidden constraints kept."""
    x, p, u = ca.SX.sym("x", 4), ca.SX.sym("p", 2), ca.SX.sym("u")
    r, v, length, drag = x[:2], x[2:], p[0], p[1]
    force = ca.vertcat(u, -GRAVITY) - drag * v
    pull = (ca.dot(v, v) + ca.dot(r, force)) / length**2
    constraints = ca.vertcat(ca.dot(r, r) - length**2, ca.dot(r, v))
    return kernel_of(ca.vertcat(v, force - pull * r), x, p=p, u=u, constraints=constraints)


@lru_cache(maxsize=4)
def loop() -> Kernel:
    """x' = -z, z + z^3 / 10 = p x + u: an algebraic loop that no formula opens"""
    x, z, p, u = ca.SX.sym("x"), ca.SX.sym("z"), ca.SX.sym("p"), ca.SX.sym("u")
    return kernel_of(-z, x, z=z, residual=z + z**3 / 10 - p * x - u, p=p, u=u)


def pendulum_start(angle: float, length: float) -> list[float]:
    return [length * np.sin(angle), -length * np.cos(angle), 0.0, 0.0]


def held(kernel: Kernel, values: list[float], width: float = 1.0) -> dict[str, Any]:
    """Signals that keep each value for ``width`` seconds; every break is a kink."""
    breaks = width * np.arange(len(values) + 1)
    return {"breaks": breaks, "coef": np.repeat(np.array(values)[:, None, None], kernel.nu, axis=1)}


def linear(values: list[float], width: float) -> dict[str, Any]:
    """One signal, linear between values ``width`` seconds apart."""
    v = np.array(values)
    return {"breaks": width * np.arange(len(v)), "coef": np.stack([v[:-1], np.diff(v) / width], axis=1)[:, None, :]}


def run(kernel: Kernel, task: Task, scheme: Scheme = EXPLICIT) -> Task:
    """The task, slice after slice."""
    kernel.call(scheme, task)
    while task.status == Status.MORE:
        kernel.call(scheme, task)
    return task


def finished(task: Task) -> Task:
    assert task.status == Status.DONE, (Status(task.status), task.t, task.where, task.amount)
    assert task.t == task.t1 and task.written == task.n_times
    return task
