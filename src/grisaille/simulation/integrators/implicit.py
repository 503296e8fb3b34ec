"""Stiff and differential-algebraic systems, interpreted: the twin of gr_implicit.h and gr_radau_control.h.

::

    x' = F_x(t, x, z, u, p),   0 = F_z(t, x, z, u, p),   0 = C(t, x, u, p) kept by projection after every step

Radau IIA of order 5 with error control, or with frozen steps. The embedded error has order 3; it is compared with
0.1 rtol^(2/3) in place of rtol (``atol`` in proportion). The headers explain the choices; here are the same formulas,
the same constants and the same decisions, so compiled and interpreted runs agree to rounding.

Reference: Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.8 and VI.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.numerics.sides import have_changed, reach
from grisaille.simulation.integrators import steps
from grisaille.simulation.integrators.changes import solve_changed
from grisaille.simulation.integrators.radau import Outcome, Polynomial, Step, collocation_weights, refuse_not_finite
from grisaille.simulation.integrators.radau_dense import Previous, doubt, mix, quintic_weights, third_derivative
from grisaille.simulation.integrators.radau_tangent import stage_sensitivities
from grisaille.simulation.integrators.rescue import STRIDES, Way, branch_end, follow
from grisaille.simulation.integrators.roots import Anchor, Newton
from grisaille.simulation.integrators.steps import EPS, Equations, Floats, StepFailure

MOST_ITERATIONS = 7
KEEP_JACOBIAN = 1e-3
KEEP_STEP = 1.2
SAFETY = 0.9
GROW = 8.0
SHRINK = 0.2
SINGULAR_TRIES = 6
CLOSER = 1e-2
"""Of the way to a switch that a step leaves."""
SLIDES = 100.0
"""Switches passed within so many lengths of the step over the last one are those of a run that slides."""
NEAREST = 1e3
"""Steps towards a switch are not shorter than this, in smallest ones."""


def run(kernel: Equations, task: Task) -> Status:
    """Integrates ``task`` from ``task.t`` to ``task.t1``; answers and stores its status.

    With ``task.slice`` it may answer ``Status.MORE``: call it again with the same task to go on.
    """
    try:
        with np.errstate(all="ignore"):
            status = _advance_until_done(kernel, task)
        task.where = -1
    except StepFailure as failure:
        status = steps.end_with(task, failure)
    task.status, task.h = status, task.memory.h
    return status


def _advance_until_done(kernel: Equations, task: Task) -> Status:
    if not task.resumed:
        task.memory = _Run(kernel, task)
        task.memory.start()
    run, done = task.memory, 0
    while task.t < task.t1:
        if 0 < task.slice <= done:
            return Status.MORE
        run.frozen_step() if task.fixed_step > 0 else run.adaptive_step()
        done += 1
    return Status.DONE


@dataclass
class _Attempt:
    """A converged step, before it is accepted."""

    h: float
    error: float
    proposal: float


class _Run:
    """What is remembered from step to step."""

    def __init__(self, kernel: Equations, task: Task) -> None:
        self.kernel, self.task = kernel, task
        self.h = task.h
        self.newton = Newton(kernel, task)
        self.polynomial: Polynomial | None = None
        self.previous: Previous | None = None
        self.h_accepted = self.error_accepted = self.roughness = 0.0
        self.first, self.rejected, self.jacobian_here = True, False, False
        self.gaps: Floats | None = None
        self.switch_at, self.switched_at, self.h_switched = math.inf, -math.inf, 0.0
        self.stretch = (task.t, task.t)
        self.part = self.parts = 0

    def start(self) -> None:
        task, kernel = self.task, self.kernel
        task.resumed = 1
        self.kink = steps.next_kink(task, task.t)
        self.step = Step(kernel, task)
        self._settle(None)
        self.V = np.zeros((task.ns, 3, self.S.shape[1]))
        self.SF = self.slope_S = np.zeros_like(self.S)
        self._slope_sensitivities()
        self._rows_here()
        self.h = task.h if task.h > 0 else self._first_step()

    def _first_step(self) -> float:
        """One hundredth of the time in which x would change by its own size."""
        task, nx = self.task, self.kernel.nx
        most = 1e-3 * (task.t1 - task.t)
        if nx == 0:
            return most
        x, f = self.step.y[:nx], self.step.f[:nx]
        unit = task.atol[:nx] + task.rtol * np.abs(x)
        size, speed = math.sqrt(float(np.mean((x / unit) ** 2))), math.sqrt(float(np.mean((f / unit) ** 2)))
        h = 0.01 * max(size, 100.0) / speed if speed > 0 else most
        return max(h, 100.0 * steps.smallest_step(task, task.t)) if h < most else most

    # the point at the start of a step

    def _linearise(self) -> None:
        step, task = self.step, self.task
        step.jac = self.kernel.J(task.t, *step.split(step.y), step.u, task.p)
        task.jacobians += 1
        self._new_jacobian(step.jac)

    def _new_jacobian(self, jac: Floats) -> None:
        step, kernel = self.step, self.kernel
        step.jac, step.h_factored, self.jacobian_here = jac, 0.0, True
        if kernel.sides > 0:
            self.gaps = kernel.S(self.task.t, *step.split(step.y), step.u, self.task.p)

    def _slope_sensitivities(self) -> None:
        """Derivative of F at the start of a step."""
        step, task = self.step, self.task
        if task.ns == 0:
            return
        if not self.jacobian_here:
            self._linearise()
        fp = self.kernel.FP(task.t, *step.split(step.y), step.u, task.p)
        self.SF = self.S @ step.jac.T + task.dp @ fp.T

    def _settle(self, before: Anchor | None) -> None:
        """x onto the constraints, z onto its equations with signals from the right, sensitivities likewise.

        ``before`` is the point with signals from the left.
        """
        kernel, task, t = self.kernel, self.task, self.task.t
        self.step.u = u = steps.signals(task, t, t)
        x, factors = steps.project(kernel, task, t, task.x, task.z, u)
        if before is None:
            z, self.step.f = self.newton.solve(t, x, task.z, u)
        else:
            z, self.step.f = solve_changed(self.newton, before, t, x, task.z, u)
        task.x[:], task.z[:] = x, z
        if task.ns > 0:
            task.sx[:] = steps.project_sensitivity(kernel, task, factors, t, x, z, u, task.sx)
            task.sz[:] = steps.complete_sensitivity(kernel, task, self.newton, t, x, z, u, task.sx)
        self.step.y, self.S = np.append(x, z), np.hstack([task.sx, task.sz])
        if task.ns > 0 and kernel.nz > 0:
            assert self.newton.jac is not None
            self._new_jacobian(self.newton.jac)

    # rows

    def _rows_here(self) -> None:
        task = self.task
        while steps.has_row_at(task, task.t):
            here = Anchor(task.t, task.x, task.z, task.t)
            steps.emit(self.kernel, task, self.newton, here, task.t, task.t, task.x, task.z, task.sx)

    def _interpolate(self, h: float, s: float) -> Floats:
        """x at t + s h."""
        step, previous, nx = self.step, self.previous, self.kernel.nx
        weights = quintic_weights(s, previous.h / h if previous else 0.0)
        before = (previous.y, previous.f) if previous else (None, None)
        return mix(weights, h, step.y, step.f, self.end, self.slope, *before)[:nx]

    def _row_inside(self, h: float, s: float) -> bool:
        task, step, previous, nx = self.task, self.step, self.previous, self.kernel.nx
        weights = quintic_weights(s, previous.h / h if previous else 0.0)
        before = (previous.S, previous.SF) if previous else (None, None)
        sx = mix(weights, h, self.S, self.SF, self.S + self.V[:, 2], self.slope_S, *before)[:, :nx]
        z = (step.y + collocation_weights(s) @ step.Z)[nx:]
        t, inside = float(task.times[task.written]), task.t + 0.5 * h
        near = (task.t, step.y) if s < 0.5 else (task.t + h, self.end)
        start = Anchor(near[0], *step.split(near[1]), inside)
        try:
            steps.emit(self.kernel, task, self.newton, start, t, inside, self._interpolate(h, s), z, sx)
        except StepFailure:
            return False
        return True

    def _rows_inside(self, h: float) -> bool:
        """Rows inside an acceptable step; false when the next one has to be the end of a shorter step."""
        task = self.task
        if task.written >= task.n_times:
            return True
        self.roughness = self._doubt(h, 0.5) / np.float64(h) ** 4
        while steps.has_row_before(task, task.t + h):
            s = (float(task.times[task.written]) - task.t) / h
            size = self._doubt(h, s)
            if not size <= 1.0 or not self._row_inside(h, s):
                self.roughness = (size if size > 2.0 else 2.0) / np.float64(h) ** 4
                return False
        return True

    def _doubt(self, h: float, s: float) -> float:
        step = self.step
        q = self._interpolate(h, s)
        return _leeway(self.task) * doubt(q, step.y, step.Z, self.third, h, s, self.previous, step.scale)

    # from a converged iteration to the next start

    def _remember_polynomial(self, h: float) -> None:
        self.polynomial = Polynomial(self.task.t, h, self.step.y, self.step.Z, self.S, self.V)

    def _prediction(self, h: float) -> Polynomial | None:
        """A polynomial must not be continued too far: a very short step says nothing about a long one."""
        return self.polynomial if self.polynomial is not None and h <= 10.0 * self.polynomial.h else None

    def _complete(self, h: float, tolerance: float, expected: int) -> None:
        """F and sensitivities at the end of an acceptable step."""
        step, task = self.step, self.task
        self.end = step.y + step.Z[2]
        self.slope = self.kernel.F(task.t + h, *step.split(self.end), step.stage_u[2], task.p)
        task.evaluations += 1
        refuse_not_finite(self.slope)
        self.third = third_derivative(step.Z)
        if task.ns > 0:
            polynomial = self._prediction(h)
            self.V, self.slope_S = stage_sensitivities(step, self.S, polynomial, task.t, h, tolerance, expected)

    def _advance(self, t: float, h: float) -> None:
        """The end of the step becomes the start of the next one; no smooth continuation across a kink."""
        step, task, nx = self.step, self.task, self.kernel.nx
        kink = t >= self.kink
        self._remember_polynomial(h)
        self.previous = Previous(h, step.y, step.f, self.third, self.S, self.SF)
        step.y, step.f, step.u = self.end, self.slope, step.stage_u[2]
        self.S, self.SF = self.S + self.V[:, 2], self.slope_S
        self.first, self.rejected, self.jacobian_here = kink, False, False
        task.t = t
        if task.ns > 0 and (step.theta > KEEP_JACOBIAN or task.fixed_step > 0):
            self._new_jacobian(step.stage_jacobians[2])
        task.steps += 1
        task.x[:], task.z[:] = step.split(step.y)
        task.sx[:], task.sz[:] = self.S[:, :nx], self.S[:, nx:]
        if kink:
            self.kink, self.polynomial, self.previous = steps.next_kink(task, t), None, None
        if kink or self.kernel.nc > 0:
            self.jacobian_here = False
            self._settle(Anchor(t, *step.split(step.y), t - 0.5 * h))
            if t < task.t1:
                self._slope_sensitivities()
        self._rows_here()

    # steps with error control

    def adaptive_step(self) -> None:
        """One accepted step."""
        task, wish, wanted = self.task, self.h, self.h
        land, singular, failure = False, 0, StepFailure(Status.STEP_TOO_SMALL)
        while True:
            if task.steps + task.rejected >= task.max_steps:
                raise StepFailure(Status.TOO_MANY_STEPS)
            if not wanted > steps.smallest_step(task, task.t):
                raise self._named(failure)
            h = self._cut(wanted, land)
            if not self.jacobian_here and self.step.theta > KEEP_JACOBIAN:
                self._linearise()
            try:
                attempt = self._attempt(h)
                self._finish(h)
                passes = self._passes_a_switch(h, attempt.error)
            except _Crossed as crossed:
                failure = StepFailure(Status.STEP_TOO_SMALL)
                wanted, land, task.rejected = crossed.h, False, task.rejected + 1
                continue
            except _Rejected as rejected:
                failure = rejected.failure
                wanted = wish = self._retreat(h, rejected.factor, failure.status)
                singular += failure.status == Status.SINGULAR
                land = False
                if singular >= SINGULAR_TRIES:
                    raise failure from None
                continue
            if not self._rows_inside(h):
                self._remember_polynomial(h)
                land = True
                continue
            self._next_wish(wish, attempt)
            task.error_estimate = attempt.error
            self._advance(self._end_of(task.t + h), h)
            if passes:
                self._leave_switch(h)
            return

    def _named(self, failure: StepFailure) -> StepFailure:
        """A step that cannot be solved at any length, named as the end of a branch where z cannot be followed on."""
        task, step, h = self.task, self.step, self.h
        ended = failure.status in (Status.NEWTON, Status.SINGULAR, Status.STEP_TOO_SMALL)
        if not ended or self.kernel.nz == 0 or self.kernel.nm > 0:
            return failure
        x, z = step.split(step.y)
        inside = task.t + 0.5 * h
        u = steps.signals(task, task.t + h, inside)
        goal = Way(self.newton, Anchor(task.t, x, z, inside), task.t + h, x + h * step.f[: self.kernel.nx], u)
        self.newton.factors = None
        return branch_end(goal) or failure

    def _cut(self, h: float, land: bool) -> float:
        """The wish, cut so that the step ends where it must: at a kink, or at a row that cannot be interpolated."""
        task = self.task
        h = min(h, task.hmax) if task.hmax > 0 else h
        ahead = 2.0 * (self.switch_at - task.t)
        h = ahead if NEAREST * steps.smallest_step(task, task.t) < ahead < h else h
        left = self.kink - task.t
        h = left if h >= left else 0.5 * left if 2.0 * h > left else h
        if not steps.has_row_before(task, task.t + h):
            return h
        return float(task.times[task.written]) - task.t if land or self.roughness * h**4 > 1.0 else h

    def _attempt(self, h: float) -> _Attempt:
        """Newton's iteration for a step of length h and its error."""
        step, task = self.step, self.task
        kappa = min(math.sqrt(task.rtol), 0.03) * (0.01 if task.ns > 0 else 1.0)
        limit, before = MOST_ITERATIONS + 3 * (task.ns > 0), task.newton_iterations
        try:
            step.factor(h)
        except StepFailure as failure:
            raise _Rejected(failure, 0.25) from None
        step.read_signals(task.t, h)
        self._scale(step.y)
        step.predict(self._prediction(h), task.t, h)
        kappa = max(kappa, 10.0 * EPS / task.rtol)
        try:
            outcome, factor = step.iterate(task.t, h, kappa, limit)
        except StepFailure as failure:
            self.polynomial = None
            raise _Rejected(failure, 0.25) from None
        if not self._is_of_one_piece(h, outcome):
            if outcome is not Outcome.CONVERGED:
                step.Z = np.zeros_like(step.Z)
            outcome = Outcome.CONVERGED if step.iterate_across(task.t, h, kappa) else Outcome.DIVERGED
        if outcome is not Outcome.CONVERGED:
            worst = int(np.argmax(np.abs(step.update))) % len(step.y)
            raise _Rejected(StepFailure(Status.NEWTON, worst, step.update[0, worst]), factor)
        self._scale(step.y + step.Z[2])
        error, where = step.error(task.t, h, self.first or self.rejected)
        proposal = self._propose(h, error, task.newton_iterations - before)
        if not error < 1.0:
            too_large = StepFailure(Status.STEP_TOO_SMALL, int(np.argmax(np.abs(where))), error)
            raise _Rejected(too_large, 0.1 if self.first else proposal / h)
        return _Attempt(h, error, proposal)

    def _is_of_one_piece(self, h: float, outcome: Outcome) -> bool:
        """Whether Newton's Jacobian is that of all stages: beyond a bend corrections with it say nothing.

        Where it failed with the Jacobian of the start, a bend is likely, on whichever side the last iterate is.
        """
        kernel, task, step = self.kernel, self.task, self.step
        if kernel.sides == 0 or kernel.nz == 0:
            return True
        if outcome is not Outcome.CONVERGED:
            return not self.jacobian_here
        return self.gaps is not None and not have_changed(np.tile(self.gaps, 3), step.stage_gaps(task.t, h))

    def _passes_a_switch(self, h: float, error: float) -> bool:
        """Whether a switch has changed at the end of a step; raises ``_Crossed`` where the step should end before it.

        The leeway is for smooth solutions: a step over a jump or a bend is taken only where its error is within the
        tolerance itself. Where a step passed one just before, the run may slide along it, and steps are judged as all
        others.
        """
        task, step, kernel = self.task, self.step, self.kernel
        if kernel.sides == 0 or (error * _leeway(task) < 1.0 and self.switch_at == math.inf):
            return False

        def gaps(share: float) -> Floats:
            t = task.t + share * h
            y = step.y + collocation_weights(share) @ step.Z
            return kernel.S(t, *step.split(y), steps.signals(task, t, task.t + 0.5 * h), task.p)

        here = gaps(0.0)
        if not have_changed(here, gaps(1.0)):
            return False
        if error * _leeway(task) < 1.0:
            return True
        share = reach(gaps, here)
        if task.t + share * h < self.switched_at + SLIDES * self.h_switched:
            return True
        self.switch_at = task.t + share * h
        shorter = min((1.0 - CLOSER) * share, 0.5 if share > 0.99 else 1.0) * h
        if not shorter > NEAREST * steps.smallest_step(task, task.t):
            shorter = 0.5 * h
        raise _Crossed(shorter)

    def _leave_switch(self, h: float) -> None:
        """Beyond a switch nothing continues smoothly."""
        self.switch_at, self.switched_at, self.h_switched = math.inf, self.task.t, h
        self.polynomial, self.previous, self.first, self.step.theta = None, None, True, 1.0

    def _finish(self, h: float) -> None:
        try:
            self._complete(h, 1e-3 * self.task.rtol, 4)
        except StepFailure as failure:
            raise _Rejected(failure, 0.25) from None

    def _scale(self, other: Floats) -> None:
        task, y = self.task, self.step.y
        unit = task.atol + task.rtol * np.maximum(np.abs(y), np.abs(other))
        self.step.scale = _leeway(task) * np.maximum(unit, 1e-300)

    def _retreat(self, h: float, factor: float, status: Status) -> float:
        """A shorter step, or a fresh Jacobian where Newton's iteration had an old one."""
        self.rejected = True
        self.task.rejected += 1
        if not self.jacobian_here and status == Status.NEWTON:
            self._linearise()
            return h
        return factor * h

    def _propose(self, h: float, error: float, iterations: int) -> float:
        safety = min(SAFETY, SAFETY * (1 + 2 * MOST_ITERATIONS) / (iterations + 2 * MOST_ITERATIONS))
        quotient = _between(1.0 / GROW, error**0.25 / safety, 1.0 / SHRINK)
        if error < 1.0 and not self.first and self.h_accepted > 0:
            predicted = self.h_accepted / h * (error * error / self.error_accepted) ** 0.25 / SAFETY
            quotient = max(quotient, _between(1.0 / GROW, predicted, 1.0 / SHRINK))
        return h / quotient

    def _next_wish(self, wish: float, attempt: _Attempt) -> None:
        """A step cut short does not shrink the wish unless its own error says so."""
        h, proposal = attempt.h, attempt.proposal
        if self.rejected:
            proposal = min(proposal, h)
        self.h_accepted, self.error_accepted = h, max(attempt.error, 1e-2)
        if h < 0.999 * wish and 0.999 * GROW * h <= proposal < wish:
            proposal = wish
        keep = 1.0 <= proposal / h <= KEEP_STEP and self.step.theta <= KEEP_JACOBIAN
        self.h = h if keep else proposal

    def _end_of(self, end: float) -> float:
        """A step that was cut ends exactly where it was meant to."""
        task = self.task
        if end >= self.kink - steps.smallest_step(task, self.kink):
            return self.kink
        return float(task.times[task.written]) if steps.has_row_at(task, end) else end

    # frozen steps

    def frozen_step(self) -> None:
        step, task = self.step, self.task
        if task.steps >= task.max_steps:
            raise StepFailure(Status.TOO_MANY_STEPS)
        if self.part == self.parts:
            self._next_stretch()
        h = (self.stretch[1] - self.stretch[0]) / self.parts
        if not self.jacobian_here:
            self._linearise()
        step.factor(h)
        step.read_signals(task.t, h)
        size = np.abs(step.y) + task.atol / task.rtol
        step.scale = np.where(size > 0, size, 1.0)
        step.predict(self._prediction(h), task.t, h)
        if step.iterate_exact(task.t, h, self._prediction(h)) and self.kernel.nz > 0 and self.kernel.nm == 0:
            self._verify(h)
        self._complete(h, 1e-15, 8)
        self._scale(self.end)
        error, _ = step.error(task.t, h, again=False)
        task.error_estimate = max(task.error_estimate, error)
        self.part += 1
        last = self.part == self.parts
        self._advance(self.stretch[1] if last else self.stretch[0] + self.part * h, h)

    def _verify(self, h: float) -> None:
        """Refuses a step at whose end z is not the root that continues the one at its start."""
        step, task, nx = self.step, self.task, self.kernel.nx
        x, found = step.split(step.y + step.Z[2])
        start = Anchor(task.t, *step.split(step.y), task.t + 0.5 * h)
        self.newton.factors = None
        z, share = follow(Way(self.newton, start, task.t + h, x, step.stage_u[2]), STRIDES)
        try:
            z, _ = self.newton.iterate(task.t + h, x, z, step.stage_u[2])
        except StepFailure:
            return
        finally:
            self.newton.factors = None
        limit = 1e-3 * np.abs(z) + 10.0 * (task.atol[nx:] + task.rtol * np.abs(z))
        other = np.flatnonzero(~(np.abs(z - found) <= limit))
        if share >= 1.0 and other.size:
            raise StepFailure(Status.NEWTON, nx + int(other[0]), float((z - found)[other[0]]))

    def _next_stretch(self) -> None:
        task = self.task
        self.stretch = (task.t, steps.next_mandatory(task, task.t, self.kink))
        length = steps.frozen_length(task, *self.stretch)
        self.parts = max(1, math.ceil(length / task.fixed_step * (1.0 - 1e-12)))
        self.part = 0


class _Crossed(Exception):
    """A step that passes a switch with too large an error; one of length ``h`` ends before it."""

    def __init__(self, h: float) -> None:
        super().__init__()
        self.h = h


class _Rejected(Exception):
    """An attempt that a step shorter by ``factor`` may avoid, and the status if none does."""

    def __init__(self, failure: StepFailure, factor: float) -> None:
        super().__init__(failure.status.name)
        self.failure, self.factor = failure, factor


def _leeway(task: Task) -> float:
    """How much looser than rtol the embedded error is judged."""
    return 0.1 / math.cbrt(task.rtol)


def _between(low: float, value: float, high: float) -> float:
    return low if not value > low else min(value, high)
