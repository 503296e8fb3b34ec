"""What every interpreted integrator needs around its steps; the twins of gr_signal.h, gr_project.h and gr_output.h.

Signals are read with the limit from inside a step; ``z`` solves its equations (``roots``); ``x`` is moved onto the
hidden constraints along the gradients at the point where it was found::

    x = x₀ + W Cx(x₀)ᵀ λ,   C(x) = 0,   W = diag(nominal²)

and sensitivities follow the derivative of exactly this map, so that ``Cx S + Cp dp = 0`` at the projected point and
differences of the same discrete trajectory agree with ``S`` to rounding. The headers explain the choices; here are the
same formulas and the same constants. Sensitivity arrays hold one row per direction: ``sx (ns, nx)``, ``sz (ns, nz)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.task import Status, Task

if TYPE_CHECKING:
    from grisaille.simulation.integrators.roots import Anchor, Newton

Floats = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
MOVING = 2
"""Flag of a kink that moves with a parameter."""
VERY_SHORT = 1e-6
"""Part of the distance between fixed points that one frozen step may always span."""
DEPENDENT = 1e-20
LU_NOISE = 4.0 * EPS


class Function(Protocol):
    def __call__(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats) -> Floats: ...


class Equations(Protocol):
    """The part of a ``Kernel`` that integrators use; ``FP``, ``CP``, ``OJ``, ``OP`` only when it is sensitive."""

    nx: int
    nz: int
    nu: int
    nc: int
    ny: int
    nm: int
    sides: int
    F: Function
    J: Function
    C: Function
    CJ: Function
    O: Function  # noqa: E741
    S: Function
    FP: Function
    CP: Function
    OJ: Function
    OP: Function


class StepFailure(Exception):
    """A step or a row that cannot be completed as asked; integrators try a smaller step or end with this status."""

    def __init__(self, status: Status, where: int = -1, amount: float = 0.0) -> None:
        super().__init__(status.name)
        self.status, self.where, self.amount = status, int(where), float(amount)


def end_with(task: Task, failure: StepFailure) -> Status:
    """Writes the failure into the task."""
    task.status, task.where, task.amount = failure.status, failure.where, failure.amount
    return failure.status


# signals and times


def smallest_step(task: Task, t: float) -> float:
    """Steps below this are rounding."""
    return 16.0 * EPS * abs(t) + 1e-24 * (task.t1 - task.t0)


def segment(task: Task, inside: float) -> int:
    """The largest ``s`` with ``breaks[s] <= inside``, kept inside the table."""
    found = int(np.searchsorted(task.breaks, inside, side="right")) - 1
    return min(max(found, 0), max(task.n_breaks - 2, 0))


def signals(task: Task, t: float, inside: float) -> Floats:
    """``u(t)`` for a step that contains ``inside`` and crosses no kink; ``inside == t`` takes the right limit."""
    if task.n_breaks < 2:
        return np.zeros(0)
    s, last, breaks, kink = segment(task, inside), task.n_breaks - 2, task.breaks, task.kink
    while s < last and t >= breaks[s + 1] and not kink[s + 1]:
        s += 1
    while s > 0 and t < breaks[s] and not kink[s]:
        s -= 1
    coefficients, d = task.coef[s], t - breaks[s]
    value: Floats = coefficients[:, -1].copy()
    for k in range(task.degree - 1, -1, -1):
        value = value * d + coefficients[:, k]
    return value


def signals_jump(task: Task, t: float, inside: float) -> bool:
    """Whether some signal jumps at the end ``t`` of a step by more than the rounding of its values and of ``t``."""
    if task.n_breaks < 2:
        return False
    before, after = signals(task, t, inside), signals(task, t, t)
    slope = np.abs(task.coef[segment(task, inside), :, 1]) if task.degree > 0 else 0.0
    noise = 16.0 * (np.abs(before) + np.abs(after)) + 4.0 * slope * abs(t)
    return bool(np.any(np.abs(after - before) > EPS * noise))


def next_kink(task: Task, t: float) -> float:
    """The first kink strictly after ``t``, or ``t1``."""
    if task.n_breaks < 2:
        return task.t1
    start = int(np.searchsorted(task.breaks, t + smallest_step(task, t), side="right"))
    kinks = task.kink[start:] != 0
    first = start + int(np.argmax(kinks)) if kinks.any() else task.n_breaks - 1
    inside = kinks.any() and task.breaks[first] < task.t1 - smallest_step(task, task.t1)
    return float(task.breaks[first]) if inside else task.t1


def next_mandatory(task: Task, t: float, kink: float) -> float:
    """Where a frozen discretisation must put the end of a step: the next kink or requested time, or ``t1``."""
    for time in task.times[task.written :]:
        if time > t + smallest_step(task, t):
            return float(time) if time < kink - smallest_step(task, kink) else kink
    return kink


def frozen_length(task: Task, start: float, goal: float) -> float:
    """By which the number of frozen steps is chosen: the stretch, or the fixed one around points that move."""
    if task.n_breaks < 2:
        return goal - start
    ends = np.flatnonzero(((task.breaks == start) | (task.breaks == goal)) & (task.kink == MOVING))
    if not ends.size:
        return goal - start
    fixed = np.concatenate([[task.t0, task.t1], task.breaks[task.kink == 1], task.times])
    whole = float(fixed[fixed >= goal].min()) - float(fixed[fixed <= start].max())
    return whole if goal - start > VERY_SHORT * whole else goal - start


def has_row_before(task: Task, end: float) -> bool:
    return task.written < task.n_times and bool(task.times[task.written] < end - smallest_step(task, end))


def has_row_at(task: Task, t: float) -> bool:
    return task.written < task.n_times and bool(task.times[task.written] <= t + smallest_step(task, t))


# linear equations


def lu(a: Floats) -> tuple[Floats, list[int]]:
    """``P A = L U`` with the row-scaled pivots of gr_linear.h; raises ``StepFailure`` on a singular matrix."""
    a = a.copy()
    n = len(a)
    rows = np.abs(a).max(axis=1, initial=0.0)
    weight = np.divide(1.0, rows, out=np.zeros(n), where=rows > 0)
    pivots = []
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k:, k]) * weight[k:]))
        size, noise = abs(a[p, k]), float(np.abs(a[p, :k] * a[:k, k]).sum())
        if not size > LU_NOISE * noise or not np.isfinite(size):
            raise StepFailure(Status.SINGULAR, k)
        pivots.append(p)
        a[[k, p]] = a[[p, k]]
        weight[p] = weight[k]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots


def lu_solve(factors: tuple[Floats, list[int]], b: Floats) -> Floats:
    """The solution of ``A x = b``; ``b`` may hold several columns."""
    a, pivots = factors
    x = np.array(b, dtype=float)
    for k, p in enumerate(pivots):
        x[[k, p]] = x[[p, k]]
    for k in range(len(pivots)):
        x[k] -= a[k, :k] @ x[:k]
    for k in range(len(pivots) - 1, -1, -1):
        x[k] = (x[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


# hidden constraints


@dataclass
class Projection:
    """Where a projection started and its factors ``W^½ Cx(x₀)ᵀ = V R``, kept for the sensitivities."""

    base: Floats
    lam: Floats
    V: Floats
    d: Floats
    R: Floats
    gradient: Floats
    cj: Floats

    def multipliers(self, residual: Floats) -> Floats:
        """``D⁻¹ R⁻ᵀ residual``, zero for constraints that depend on others."""
        y = np.array(residual, dtype=float)
        for j in range(len(y)):
            y[j] = y[j] - self.R[:j, j] @ y[:j] if self.d[j] > 0 else 0.0
        g: Floats = np.divide(y, self.d, out=np.zeros_like(y), where=self.d > 0)
        return g


def project(
    kernel: Equations, task: Task, t: float, x: Floats, z: Floats, u: Floats
) -> tuple[Floats, Projection | None]:
    """``x`` moved onto ``C = 0``, and what ``project_sensitivity`` needs to follow."""
    if kernel.nc == 0:
        return x, None
    frozen, x, before = task.fixed_step > 0, x.copy(), 0.0
    enough = 1e-15 if frozen else min(max(1e-3 * task.rtol, 1e-13), 1e-9)
    floor = 1e-9 if frozen else 10.0 * enough
    for _ in range(6):
        factors = _orthogonalise(task.nominal, kernel.CJ(t, x, z, u, task.p), x)
        for inner in range(8):
            residual = kernel.C(t, x, z, u, task.p)
            distance = _distance(factors, x, residual, enough)
            stalled = inner > 0 and distance > 0.25 * before
            if distance == 0.0 or (stalled and distance <= floor * floor):
                task.worst_constraint = max(task.worst_constraint, float(np.max(np.abs(residual))))
                return x, factors
            if not np.isfinite(distance):
                raise _unmet(residual)
            if stalled:
                break
            g = factors.multipliers(residual)
            x = x - task.nominal * (factors.V @ g)
            factors.lam = factors.lam - g
            before = distance
    raise _unmet(residual)


def project_sensitivity(
    kernel: Equations, task: Task, factors: Projection | None, t: float, x: Floats, z: Floats, u: Floats, sx: Floats
) -> Floats:
    """``sx`` after the projection that led to ``x``: ``Cx S + Cp dp = 0``."""
    if factors is None or task.ns == 0:
        return sx
    lam = np.zeros_like(factors.lam)
    for j in range(len(lam) - 1, -1, -1):
        lam[j] = factors.lam[j] - factors.R[j, j + 1 :] @ lam[j + 1 :] if factors.d[j] > 0 else 0.0
    cj, cp = kernel.CJ(t, x, z, u, task.p), kernel.CP(t, x, z, u, task.p)
    moved = bool(np.any(np.abs(x - factors.base) > 1e-13 * np.maximum(task.nominal, np.abs(x))))
    result = sx.copy()
    for s, dp in zip(result, task.dp, strict=True):
        if moved:
            s += task.nominal**2 * _turn(kernel, task, factors.base, lam, t, z, u, s, dp)
        for _ in range(8):
            size = np.max(np.abs(s) / task.nominal)
            ds = factors.V @ factors.multipliers(cj @ s + cp @ dp)
            s -= task.nominal * ds
            if not np.max(np.abs(ds)) > 1e-13 * size:
                break
    return result


def _orthogonalise(nominal: Floats, cj: Floats, x: Floats) -> Projection:
    """Gram and Schmidt, repeated where it cancels; constraints in the given order, dependent ones left out."""
    nc = len(cj)
    V, d, R, gradient = (cj * nominal).T.copy(), np.zeros(nc), np.eye(nc), np.zeros(nc)
    for j in range(nc):
        v = V[:, j]
        gradient[j] = left = float(v @ v)
        for _ in range(2):
            start = left
            for m in np.flatnonzero(d[:j]):
                along = (V[:, m] @ v) / d[m]
                R[m, j] += along
                v -= along * V[:, m]
            left = float(v @ v)
            if left > 0.25 * start:
                break
        d[j] = left if left > DEPENDENT * gradient[j] else 0.0
    return Projection(x.copy(), np.zeros(nc), V, d, R, gradient, cj)


def _distance(factors: Projection, x: Floats, residual: Floats, enough: float) -> float:
    """Worst squared distance in units of ``nominal`` among the constraints above rounding."""
    square = residual**2
    noise = np.abs(factors.cj) @ np.abs(x)
    met = (square <= enough**2 * factors.gradient) | (np.abs(residual) <= 4.0 * EPS * noise)
    relative = np.divide(square, factors.gradient, out=square * 1e300, where=factors.gradient > 0)
    return float(np.max(np.where(met, 0.0, relative)))


def _turn(
    kernel: Equations, task: Task, base: Floats, lam: Floats, t: float, z: Floats, u: Floats, s: Floats, dp: Floats
) -> Floats:
    """d(Cxᵀ)[s, dp] λ by a difference: λ is as small as a step's error, so the quotient is exact to rounding."""
    p = task.p
    rate = max(
        float(np.max(np.abs(s) / np.maximum(task.nominal, np.abs(base)))),
        float(np.max(np.abs(dp) / np.where(p != 0, np.abs(p), 1.0), initial=0.0)),
    )
    if not rate > 0:
        return np.zeros_like(s)
    e = 1e-5 / rate
    up = kernel.CJ(t, base + e * s, z, u, p + e * dp).T @ lam
    down = kernel.CJ(t, base - e * s, z, u, p - e * dp).T @ lam
    turned: Floats = (up - down) / (2 * e)
    return turned if np.all(np.isfinite(turned)) else np.zeros_like(s)


def _unmet(residual: Floats) -> StepFailure:
    size = np.where(np.isfinite(residual), np.abs(residual), np.inf)
    worst = int(np.argmax(size))
    return StepFailure(Status.PROJECTION, worst, residual[worst])


# rows


def write_row(
    kernel: Equations, task: Task, newton: Newton, t: float, x: Floats, z: Floats, u: Floats, sx: Floats
) -> Floats:
    """The row of a point that obeys the equations; answers ``sz`` there."""
    sz = np.zeros((task.ns, kernel.nz))
    task.y[task.written] = kernel.O(t, x, z, u, task.p)
    if task.ns > 0:
        sz = complete_sensitivity(kernel, task, newton, t, x, z, u, sx)
        oj, op = kernel.OJ(t, x, z, u, task.p), kernel.OP(t, x, z, u, task.p)
        task.sy[task.written] = np.hstack([sx, sz]) @ oj.T + task.dp @ op.T
    task.written += 1
    return sz


def emit(
    kernel: Equations,
    task: Task,
    newton: Newton,
    start: Anchor,
    t: float,
    inside: float,
    x: Floats,
    z: Floats,
    sx: Floats,
) -> None:
    """The row of an interpolated point, moved onto the equations first, ``z`` to the root that continues ``start``."""
    u = signals(task, t, inside)
    x, factors = project(kernel, task, t, x, z, u)
    if kernel.nz > 0:
        z, _ = newton.solve(t, x, z, u, start)
    sx = project_sensitivity(kernel, task, factors, t, x, z, u, sx)
    write_row(kernel, task, newton, t, x, z, u, sx)


def complete_sensitivity(
    kernel: Equations, task: Task, newton: Newton, t: float, x: Floats, z: Floats, u: Floats, sx: Floats
) -> Floats:
    """``sz`` at a point where ``z`` solves its equations."""
    if kernel.nz == 0 or task.ns == 0:
        return np.zeros((task.ns, kernel.nz))
    newton.linearise(t, x, z, u)
    return newton.sensitivity(kernel.FP(t, x, z, u, task.p), sx)
