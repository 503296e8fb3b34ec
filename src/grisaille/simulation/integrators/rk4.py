"""The frozen explicit method, interpreted: classical Runge–Kutta steps whose ends do not depend on the solution.

The twin of gr_rk4.h. Between two mandatory points (kinks, requested times, ``t1``) lie
``ceil(length / fixed_step)`` equal steps; nothing is rejected, ``z`` and the projection are iterated to rounding: the
trajectory is a smooth function of the parameters and the start, and ``S`` is its exact derivative.

The error estimate compares a step with two of half its length, where ``h |k3 - k2|`` or ``h |k1 - k2 - k3 + k4|``
exceeds its value at the last comparison by a tenth; it is of the order of the step's error, h⁵.
"""

from __future__ import annotations

import math

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.simulation.integrators.changes import solve_changed
from grisaille.simulation.integrators.roots import Anchor, Newton
from grisaille.simulation.integrators.steps import (
    Equations,
    Floats,
    StepFailure,
    complete_sensitivity,
    end_with,
    frozen_length,
    has_row_at,
    next_kink,
    next_mandatory,
    project,
    project_sensitivity,
    signals,
    write_row,
)


def run(kernel: Equations, task: Task) -> Status:
    """Goes on from ``task.t`` to ``task.t1`` or to the end of the slice; answers ``task.status``."""
    with np.errstate(all="ignore"):
        if not task.resumed:
            task.memory = _Run(kernel, task)
        task.resumed = 1
        try:
            task.status = task.memory.loop()
        except StepFailure as failure:
            end_with(task, failure)
    return Status(task.status)


def stage_rate(kernel: Equations, newton: Newton, t: float, x: Floats, z: Floats, u: Floats, s: Floats) -> Floats:
    """``dF/dx s + dF/dz sz + dF/dp dp`` at a stage, one row per direction."""
    nx, task = kernel.nx, newton.task
    fp = kernel.FP(t, x, z, u, task.p)
    newton.linearise(t, x, z, u)
    assert newton.jac is not None
    rate: Floats = np.hstack([s, newton.sensitivity(fp, s)]) @ newton.jac[:nx].T + task.dp @ fp[:nx].T
    return rate


class _Run:
    def __init__(self, kernel: Equations, task: Task) -> None:
        self.kernel, self.task, self.newton = kernel, task, Newton(kernel, task)
        self.kink = next_kink(task, task.t)
        self.start, self.goal, self.count, self.counts = task.t, task.t, 0, 0
        self.ready, self.seen, self.inside = False, 0.0, task.t
        self.k1 = np.zeros(kernel.nx)

    def loop(self) -> Status:
        task, taken = self.task, 0
        while True:
            done = task.t >= task.t1
            if not self.ready:
                if not done:
                    self.plan()
                self.arrive(done)
                if done:
                    return Status.DONE
                self.ready = True
            if task.steps >= task.max_steps:
                raise StepFailure(Status.TOO_MANY_STEPS, -1, task.t)
            if 0 < task.slice <= taken:
                return Status.MORE
            taken += 1
            self.step(self.time(self.count + 1))
            self.count, self.ready = self.count + 1, False

    def plan(self) -> None:
        """The next stretch of equal steps, when the last one is finished."""
        task = self.task
        if self.count < self.counts:
            return
        if task.t >= self.kink:
            self.kink = next_kink(task, task.t)
        self.start, self.goal, self.count = task.t, next_mandatory(task, task.t, self.kink), 0
        length = frozen_length(task, self.start, self.goal)
        self.counts = max(1, math.ceil(length / task.fixed_step - 1e-9))

    def time(self, count: int) -> float:
        return self.goal if count >= self.counts else self.start + count * ((self.goal - self.start) / self.counts)

    def arrive(self, done: bool) -> None:
        """F and z with the values that hold from here on, then the rows asked for here."""
        kernel, task = self.kernel, self.task
        before = Anchor(task.t, task.x, task.z, self.inside)
        self.inside = task.t if done else 0.5 * (task.t + self.time(self.count + 1))
        u = signals(task, task.t, self.inside)
        if not done or kernel.nz > 0:
            z, f = solve_changed(self.newton, before, task.t, task.x, task.z, u)
            task.z[:], self.k1 = z, f[: kernel.nx]
        while has_row_at(task, task.t):
            write_row(kernel, task, self.newton, task.t, task.x, task.z, u, task.sx)
        if done and task.ns > 0:
            task.sz[:] = complete_sensitivity(kernel, task, self.newton, task.t, task.x, task.z, u, task.sx)

    def step(self, end: float) -> None:
        """One step, from the evaluated start of it to a projected point."""
        kernel, task = self.kernel, self.task
        h, inside = end - task.t, 0.5 * (task.t + end)
        x, z, k, total = self.advance(task.t, end, inside, task.x, task.z, self.k1, task.ns > 0)
        self.watch(h, k, end, inside, x)
        u = signals(task, end, inside)
        x, factors = project(kernel, task, end, x, z, u)
        if task.ns > 0:
            s = project_sensitivity(kernel, task, factors, end, x, z, u, task.sx + h / 6.0 * total)
            if not np.all(np.isfinite(s)):
                raise StepFailure(Status.NOT_FINITE, int(np.argmin(np.isfinite(s).all(axis=0))), np.nan)
            task.sx[:] = s
        task.x[:], task.z[:], task.t = x, z, end
        task.steps += 1

    def advance(
        self, t: float, end: float, inside: float, x: Floats, z: Floats, k1: Floats, follow: bool
    ) -> tuple[Floats, Floats, list[Floats], Floats]:
        """``x`` at ``end``, ``z`` of the last stage, the stages' F and the weighted sum of their sensitivities."""
        kernel, task, h, start = self.kernel, self.task, end - t, Anchor(t, x, z, inside)
        k, total, rate = [k1], np.zeros((task.ns, kernel.nx)), np.zeros((task.ns, kernel.nx))
        if follow:
            rate = stage_rate(kernel, self.newton, t, x, z, signals(task, t, inside), task.sx)
            total = rate
        for step, time, weight in ((0.5 * h, t + 0.5 * h, 2.0), (0.5 * h, t + 0.5 * h, 2.0), (h, end, 1.0)):
            at, u = x + step * k[-1], signals(task, time, inside)
            z, f = self.newton.solve(time, at, z, u, start)
            k.append(f[: kernel.nx])
            if follow:
                rate = stage_rate(kernel, self.newton, time, at, z, u, task.sx + step * rate)
                total = total + weight * rate
        return x + h / 6.0 * (k[0] + 2.0 * (k[1] + k[2]) + k[3]), z, k, total

    def watch(self, h: float, k: list[Floats], end: float, inside: float, whole: Floats) -> None:
        """Compares with two half steps where the free indicator reaches a new height."""
        k1, k2, k3, k4 = k
        bend = h * np.maximum(np.abs(k3 - k2), np.abs(k1 - k2 - k3 + k4)) / self.scale(self.task.x)
        indicator = float(bend @ bend)
        if not indicator > 1.21 * self.seen:
            return
        self.seen = indicator
        estimate = self.compare(end, inside, whole)
        self.task.error_estimate = max(self.task.error_estimate, estimate)

    def compare(self, end: float, inside: float, whole: Floats) -> float:
        task, nx = self.task, self.kernel.nx
        middle = 0.5 * (task.t + end)
        try:
            half, z, _, _ = self.advance(task.t, middle, inside, task.x, task.z, self.k1, False)
            start = Anchor(task.t, task.x, task.z, inside)
            z, f = self.newton.solve(middle, half, z, signals(task, middle, inside), start)
            x, _, _, _ = self.advance(middle, end, inside, half, z, f[:nx], False)
        except StepFailure:
            return math.inf
        e = (x - whole) / self.scale(whole)
        return 16.0 / 15.0 * math.sqrt(float(e @ e) / max(nx, 1))

    def scale(self, x: Floats) -> Floats:
        task = self.task
        scale: Floats = task.atol[: self.kernel.nx] + task.rtol * np.abs(x)
        return scale
