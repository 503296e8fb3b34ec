"""Explicit methods, interpreted: an embedded Runge–Kutta pair under error control, or two, of low and high order.

The twin of gr_explicit.h, which explains the choices: the high order from rtol = 1e-6 down unless kinks are dense,
Gustafsson's PI rule for the step, x projected before the last evaluation of a step, sensitivities from the Jacobian at
the stages of accepted steps, rows from the continuous extension moved onto the equations, and ``Status.STIFF`` after 15
steps whose ``|h λ|`` lies outside the stability region; a further call goes on all the same. With
``task.fixed_step > 0`` the frozen method of ``rk4`` runs instead.

Reference: Hairer, Nørsett and Wanner, *Solving Ordinary Differential Equations I*, sections II.4, II.5 and II.10;
Hairer and Wanner, volume II, section IV.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.compilation.schemes import EXPLICIT, Tableau
from grisaille.compilation.task import Status, Task
from grisaille.simulation.integrators import rk4
from grisaille.simulation.integrators.changes import solve_changed
from grisaille.simulation.integrators.roots import Anchor, Newton
from grisaille.simulation.integrators.steps import (
    EPS,
    Equations,
    Floats,
    Projection,
    StepFailure,
    complete_sensitivity,
    emit,
    end_with,
    has_row_at,
    has_row_before,
    next_kink,
    project,
    project_sensitivity,
    signals,
    signals_jump,
    smallest_step,
    write_row,
)

HIGH_BELOW = 1.0000001e-6
INSIDE = 0.00839 / 40.0


def run(kernel: Equations, task: Task, tableaux: Sequence[Tableau] = EXPLICIT.tableaux) -> Status:
    """Goes on from ``task.t`` to ``task.t1`` or to the end of the slice; answers ``task.status``."""
    with np.errstate(all="ignore"):
        if task.fixed_step > 0:
            return rk4.run(kernel, task)
        try:
            if not task.resumed:
                task.resumed = 1
                task.memory = _Run(kernel, task, tableaux)
                task.memory.start()
            task.status = task.memory.loop()
        except StepFailure as failure:
            end_with(task, failure)
        task.memory.finish()
    return Status(task.status)


class _TooLarge(Exception):
    """Error control rejects the step; ``where`` is its worst entry."""

    def __init__(self, error: float, where: int) -> None:
        self.error, self.where = error, where


@dataclass
class _Step:
    """One step under way: where it ends and its stages, row by row."""

    t: float
    t_new: float
    h: float
    f: Floats
    x: Floats
    z: Floats
    ks: Floats
    factors: Projection | None = None
    s: Floats | None = None

    @property
    def inside(self) -> float:
        return self.t + 0.5 * self.h


class _Run:
    def __init__(self, kernel: Equations, task: Task, tableaux: Sequence[Tableau]) -> None:
        self.low, self.high = tableaux[0], tableaux[-1]
        self.kernel, self.task, self.newton = kernel, task, Newton(kernel, task)
        self.pair = self.high if task.rtol <= HIGH_BELOW else self.low
        self.h, self.h_high, self.err_old, self.after_rejection = 0.0, 0.0, 1e-4, False
        self.cell, self.kink = task.t, next_kink(task, task.t)
        self.wait, self.pause, self.stiff, self.calm = 0, 8, 0, 0
        self.f0 = np.zeros(kernel.nx)
        self.ks0: Floats | None = None

    def start(self) -> None:
        self.open(self.task.t)
        self.rows_here()
        if self.task.t < self.task.t1:
            self.h = self.task.h if self.task.h > 0 else self.first_step()

    def loop(self) -> Status:
        task, taken = self.task, 0
        while task.t < task.t1:
            if task.steps + task.rejected >= task.max_steps:
                raise StepFailure(Status.TOO_MANY_STEPS, -1, task.t)
            if 0 < task.slice <= taken:
                return Status.MORE
            taken += 1
            if self.step():
                return Status.STIFF
        return Status.DONE

    def finish(self) -> None:
        task = self.task
        task.h = self.h
        if task.ns > 0 and self.kernel.nz > 0 and task.status != Status.MORE:
            try:
                u = signals(task, task.t, task.t)
                task.sz[:] = complete_sensitivity(self.kernel, task, self.newton, task.t, task.x, task.z, u, task.sx)
            except StepFailure:
                self.newton.factors = None

    # one step

    def step(self) -> bool:
        """True when the problem looks stiff from here on."""
        task, written, rescues = self.task, self.task.written, self.task.rescues
        step = self.choose()
        try:
            err = self.attempt(step)
            self.follow(step)
            self.rows(step)
        except (StepFailure, _TooLarge) as failure:
            task.written = written
            self.reject(step, failure)
            return False
        stiff = self.looks_stiff(step)
        self.after_rejection |= task.rescues > rescues  # z is at the limit of what can be followed
        self.accepted_step_size(step, err)
        self.commit(step)
        task.error_estimate = err
        if task.t >= self.kink:
            self.cross(step, err)
        else:
            self.back_to_high()
        self.rows_here()
        return stiff

    def choose(self) -> _Step:
        """As long as error control wants it, or up to the kink, and no tiny rest before it."""
        task, kernel, rows = self.task, self.kernel, self.pair.rows
        left, h, t_new = self.kink - task.t, self.h, self.kink
        if task.hmax > 0:
            h = min(h, task.hmax)
        if 1.01 * h >= left:
            h = left
        else:
            h = 0.5 * left if 2.0 * h > left else h
            t_new = task.t + h
        f, x = np.zeros((rows, kernel.nx)), np.zeros((rows, kernel.nx))
        z, ks = np.zeros((rows, kernel.nz)), np.zeros((rows, task.ns, kernel.nx))
        f[0], x[0], z[0] = self.f0, task.x, task.z
        return _Step(task.t, t_new, h, f, x, z, ks)

    def attempt(self, step: _Step) -> float:
        """Stages, x_new on the constraints, error."""
        last, task = self.pair.last, self.task
        for i in range(1, last):
            self.stage(step, i)
        step.x[last] = self.argument(step, i=last)
        err = self.error(step) if self.pair.e3 is not None else 0.0
        u = signals(task, step.t_new, step.inside)
        step.x[last], step.factors = project(self.kernel, task, step.t_new, step.x[last], step.z[last - 1], u)
        self.evaluate(step, last, step.z[last - 1])
        if self.pair.e3 is None:
            return self.error(step)
        return self.extend(step, err)

    def extend(self, step: _Step, err: float) -> float:
        """The stages that only rows inside the step need; their error, estimated from the highest level, counts too."""
        pair = self.pair
        if not has_row_before(self.task, step.t_new):
            return err
        for i in range(pair.last + 1, pair.rows):
            self.stage(step, i)
        e = step.h * (pair.d[-1] @ step.f) / self.scale(step)
        err = max(err, INSIDE * float(np.sqrt(e @ e / max(self.kernel.nx, 1))))
        if not err < 1.0:
            raise _TooLarge(err, int(np.argmax(np.abs(e))))
        return err

    def argument(self, step: _Step, i: int) -> Floats:
        value: Floats = step.x[0] + step.h * (self.pair.a[i, :i] @ step.f[:i])
        return value

    def time(self, step: _Step, i: int) -> float:
        return step.t_new if self.pair.c[i] == 1.0 else step.t + self.pair.c[i] * step.h

    def stage(self, step: _Step, i: int) -> None:
        step.x[i] = self.argument(step, i)
        self.evaluate(step, i, self.line(step, *self.pair.near[i], float(self.pair.c[i])))

    def line(self, step: _Step, a: int, b: int, c: float) -> Floats:
        """``z`` at ``t + c h`` on the line through two stages."""
        apart = self.pair.c[b] - self.pair.c[a]
        part = (c - self.pair.c[a]) / apart if apart != 0 else 0.0
        z: Floats = step.z[a] + part * (step.z[b] - step.z[a])
        return z

    def known(self, step: _Step, i: int) -> Anchor:
        """Stage i as a root from which others continue."""
        return Anchor(self.time(step, i), step.x[i], step.z[i], step.inside)

    def evaluate(self, step: _Step, i: int, z: Floats) -> None:
        """F of stage i; its ``z``, predicted, continues that of the stage before."""
        t = self.time(step, i)
        u = signals(self.task, t, step.inside)
        step.z[i], f = self.newton.solve(t, step.x[i], z, u, self.known(step, i - 1))
        step.f[i] = f[: self.kernel.nx]

    def open(self, inside: float) -> None:
        """F and z at the current point, with the values that hold from here on; ``inside`` the step that ends here."""
        task = self.task
        before = Anchor(task.t, task.x, task.z, inside)
        z, f = solve_changed(self.newton, before, task.t, task.x, task.z, signals(task, task.t, task.t))
        task.z[:], self.f0, self.ks0 = z, f[: self.kernel.nx], None

    def commit(self, step: _Step) -> None:
        task, last = self.task, self.pair.last
        task.x[:], task.z[:], self.f0 = step.x[last], step.z[last], step.f[last]
        if step.s is not None:
            task.sx[:], self.ks0 = step.s, step.ks[last]
        task.t = step.t_new
        task.steps += 1

    # error and step size

    def scale(self, step: _Step) -> Floats:
        nx, task = self.kernel.nx, self.task
        scale: Floats = task.atol[:nx] + task.rtol * np.maximum(np.abs(step.x[0]), np.abs(step.x[self.pair.last]))
        return scale

    def error(self, step: _Step) -> float:
        """The scaled error, below one."""
        pair, n = self.pair, max(self.kernel.nx, 1)
        e = step.h * (pair.e @ step.f[: len(pair.e)]) / self.scale(step)
        square = float(e @ e)
        err = np.sqrt(square / n)
        if pair.e3 is not None and square > 0:
            e3 = step.h * (pair.e3 @ step.f[: len(pair.e3)]) / self.scale(step)
            err = square / np.sqrt((square + 0.01 * float(e3 @ e3)) * n)
        err = max(float(err), self.unresolved(step)) if err < 1.0 else err
        if not err < 1.0:
            raise _TooLarge(float(err), int(np.argmax(np.abs(e))))
        return float(err)

    def unresolved(self, step: _Step) -> float:
        """How badly the stages resolve z: the error of its quadrature against the spread of its values."""
        e, n, task = self.pair.e, self.kernel.nz - self.kernel.nm, self.task
        if n == 0:
            return 0.0
        z = step.z[: len(e), :n]
        low, high = z.min(axis=0), z.max(axis=0)
        nx = self.kernel.nx
        unit = task.atol[nx : nx + n] + task.rtol * np.maximum(np.abs(low), np.abs(high))
        return float(np.max(np.abs(e @ z) / (np.abs(e).sum() * (0.02 * (high - low) + 100.0 * unit))))

    def looks_stiff(self, step: _Step) -> bool:
        last, scale = self.pair.last, self.scale(step)
        dx = step.x[last] - step.x[last - 1]
        df = step.h * (step.f[last] - step.f[last - 1]) / scale
        dx = np.where(np.abs(dx) > 100.0 * EPS * np.abs(step.x[last]), dx, 0.0) / scale
        below = float(dx @ dx)
        if below > 0 and float(df @ df) > self.pair.stiff**2 * below:
            self.calm, self.stiff = 0, self.stiff + 1
        else:
            self.calm += 1
            self.stiff = 0 if self.calm >= 6 else self.stiff
        if self.stiff < 15 or self.task.t1 - self.task.t < 15.0 * step.h:
            return False
        self.stiff = self.calm = 0
        return True

    def accepted_step_size(self, step: _Step, err: float) -> None:
        pair = self.pair
        factor = 0.9 * max(err, 1e-16) ** (0.75 * pair.beta - 1.0 / pair.order) * self.err_old**pair.beta
        factor = min(max(factor, pair.shrink), pair.grow)
        if self.after_rejection:
            factor = min(factor, 1.0)
        if step.h < self.h and factor >= 1.0 and step.h * factor < self.h:
            factor = self.h / step.h  # a step cut short by a kink says little about how long the next may be
        self.h, self.err_old, self.after_rejection = step.h * factor, max(err, 1e-4), False

    def reject(self, step: _Step, failure: StepFailure | _TooLarge) -> None:
        factor, final = 0.25, failure
        if isinstance(failure, _TooLarge):
            final = StepFailure(Status.STEP_TOO_SMALL, failure.where, failure.error)
            if np.isfinite(failure.error):
                factor = max(self.pair.shrink, 0.9 * failure.error ** (-1.0 / self.pair.order))
        self.task.rejected += 1
        self.after_rejection, self.h = True, step.h * factor
        self.back_to_high()
        if not self.h > smallest_step(self.task, self.task.t):
            raise final

    def first_step(self) -> float:
        """Hairer, Nørsett, Wanner I, section II.4: from the sizes of x, F and a difference of F."""
        task, f0 = self.task, self.f0
        d0, d1 = self.size(task.x), self.size(f0)
        h = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h = min(h, self.kink - task.t)
        if task.hmax > 0:
            h = min(h, task.hmax)
        for _ in range(20):
            try:
                u = signals(task, task.t + h, task.t)
                start = Anchor(task.t, task.x, task.z, task.t)
                _, f = self.newton.solve(task.t + h, task.x + h * f0, task.z, u, start)
            except StepFailure:
                h *= 0.1
                continue
            d2 = max(self.size((f[: self.kernel.nx] - f0) / h), d1)
            return min(100.0 * h, max(1e-6, 1e-3 * h) if d2 <= 1e-15 else (0.01 / d2) ** (1.0 / self.pair.order))
        return h

    def size(self, v: Floats) -> float:
        task, nx = self.task, self.kernel.nx
        return float(np.sqrt(np.sum((v / (task.atol[:nx] + task.rtol * np.abs(task.x))) ** 2) / max(nx, 1)))

    # kinks and orders

    def cross(self, step: _Step, err: float) -> None:
        """At a kink: the right limits where a signal jumps, the next kink, and whether the low order may do here."""
        task, whole = self.task, step.t <= self.cell
        if signals_jump(task, task.t, step.inside):
            self.open(step.inside)
        self.cell, self.kink = task.t, next_kink(task, task.t)
        if self.wait > 0:
            self.wait -= 1
        elif self.pair is not self.low and whole and err < 1e-2 and task.t < task.t1:
            self.h_high = self.h
            self.use(self.low)

    def back_to_high(self) -> None:
        """The low order did not span the distance between kinks: back to the high one, and twice as long until the next
        attempt."""
        if self.pair is self.high or self.task.rtol > HIGH_BELOW:
            return
        self.wait, self.pause = self.pause, 2 * self.pause
        self.h = max(self.h, self.h_high)
        self.use(self.high)

    def use(self, pair: Tableau) -> None:
        self.pair, self.err_old = pair, 1e-4

    # sensitivities

    def follow(self, step: _Step) -> None:
        """The stages' sensitivities; ``step.s`` ends as S at the end of the step."""
        if self.task.ns == 0:
            return
        step.ks[0] = self.rate(step, 0, self.task.sx) if self.ks0 is None else self.ks0
        for i in range(1, self.pair.last + 1):
            step.s = self.follow_stage(step, i)
        for i in range(self.pair.last + 1, self.pair.rows if has_row_before(self.task, step.t_new) else 0):
            self.follow_stage(step, i)

    def follow_stage(self, step: _Step, i: int) -> Floats:
        task = self.task
        s: Floats = task.sx + step.h * np.tensordot(self.pair.a[i, :i], step.ks[:i], axes=1)
        if i == self.pair.last:
            t, u = step.t_new, signals(task, step.t_new, step.inside)
            s = project_sensitivity(self.kernel, task, step.factors, t, step.x[i], step.z[i], u, s)
            if not np.all(np.isfinite(s)):
                raise StepFailure(Status.NOT_FINITE, int(np.argmin(np.isfinite(s).all(axis=0))), np.nan)
        step.ks[i] = self.rate(step, i, s)
        return s

    def rate(self, step: _Step, i: int, s: Floats) -> Floats:
        t = self.time(step, i)
        return rk4.stage_rate(self.kernel, self.newton, t, step.x[i], step.z[i], signals(self.task, t, step.inside), s)

    # rows

    def rows(self, step: _Step) -> None:
        """Rows inside the step, from the continuous extension."""
        task, pair = self.task, self.pair
        while has_row_before(task, step.t_new):
            t = float(task.times[task.written])
            s = (t - step.t) / step.h
            w = pair.weights(s)
            x = step.x[0] + step.h * (w @ step.f)
            sx = task.sx + step.h * np.tensordot(w, step.ks, axes=1)
            near, z = self.between(step, s)
            emit(self.kernel, task, self.newton, near, t, step.inside, x, z, sx)

    def between(self, step: _Step, s: float) -> tuple[Anchor, Floats]:
        """The nearer of the stages beside ``t + s h``, and ``z`` on the line between them."""
        c, below, above = self.pair.c, 0, self.pair.last
        for i in range(1, self.pair.rows if self.pair.e3 is not None else self.pair.last + 1):
            below = i if c[below] < c[i] <= s else below
            above = i if s <= c[i] < c[above] else above
        near = below if s - c[below] < c[above] - s else above
        return self.known(step, near), self.line(step, below, above, s)

    def rows_here(self) -> None:
        """Rows asked for at the current point itself."""
        task = self.task
        while has_row_at(task, task.t):
            u = signals(task, task.t, task.t)
            task.sz[:] = write_row(self.kernel, task, self.newton, task.t, task.x, task.z, u, task.sx)
