"""Running a task: which integrator, in slices, with a switch when the problem turns out stiff.

Slices let Python show progress and hear Ctrl-C while C does the work. A choice between two schemes begins with the
first, explicit one unless the Jacobian at the start already shows rates far beyond the time span, and goes on with the
other from the accepted point where the explicit one reports stiffness.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grisaille import interrupts
from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.schemes import EXPLICIT, Among, Scheme
from grisaille.compilation.task import Status, Task
from grisaille.simulation.delayed_unknowns import integrate_with_past

if TYPE_CHECKING:
    from scipy.sparse import csc_array

SLICE = 20_000
"""Steps that are tried before Python sees the run for the first time."""
SLICE_TIME = 0.2
"""Seconds that a slice should take; Ctrl-C and the progress bar wait for its end."""
OBVIOUSLY_STIFF = 1e5
"""Fastest decay times time span from which on an explicit method need not be tried."""
PERHAPS_STIFF = 200.0
"""From which on an explicit method may turn out too short of breath; both are then compiled at the same time."""

ALL_EIGENVALUES = 150
"""Size up to which all of them are found: 7 ms, and four times that at twice the size; beyond, in a Krylov space."""
KRYLOV_DIMENSION = 30


@dataclass(frozen=True, eq=False)
class IntegratorRun:
    """What a plan has become, and the scheme that finished it."""

    task: Task
    scheme: Scheme


def run(plan: Plan[Kernel], on_slice: Callable[[Task], None] | None = None) -> IntegratorRun:
    """Run a plan to its end or failure."""
    task = plan.task()
    return IntegratorRun(task, integrate(plan.kernel, task, plan.among, on_slice))


def integrate(kernel: Kernel, task: Task, among: Among, on_slice: Callable[[Task], None] | None = None) -> Scheme:
    """Run the task to its end or failure; return the scheme that finished it."""
    if task.plan.past is not None:
        return integrate_with_past(kernel, task, among, partial(integrate, on_slice=on_slice))
    task.slice = SLICE
    used = among[0] if len(among) == 1 else _begin(kernel, task, among)
    task.tried = 0
    while True:
        begin, steps = time.perf_counter(), int(task.slice)
        _run(kernel, task, used)
        interrupts.check()
        task.tried += steps
        task.slice = _next_slice(steps, time.perf_counter() - begin, task.tried)
        if on_slice is not None:
            on_slice(task)
        if task.status == Status.STIFF and used is not among[-1]:
            used = among[-1]
            _restart(task)
        elif task.status not in (Status.MORE, Status.STIFF):
            return used


def _next_slice(steps: int, seconds: float, tried: int) -> int:
    """Return steps that take about ``SLICE_TIME``, from how long the last ones took; none goes beyond a multiple of
    ``SLICE``, where what decides on a run may look at it, whatever the time.
    """
    wanted = max(20, min(SLICE, int(steps * SLICE_TIME / max(seconds, 1e-3))))
    return min(wanted, SLICE - tried % SLICE)


def _run(kernel: Kernel, task: Task, chosen: Scheme) -> None:
    rtol, atol, scheme = task.rtol, task.atol, chosen.taking(task.fixed_step)
    if scheme.tolerance_share != 1.0:
        task.rtol, task.atol = scheme.tolerance_share * rtol, scheme.tolerance_share * atol
    try:
        kernel.call(scheme, task)
    finally:
        task.rtol, task.atol = rtol, atol


def _restart(task: Task) -> None:
    """Go on from the last accepted point with another method."""
    task.resumed = task.tried = 0
    task.work = np.zeros(0)


def first_choice(plan: Plan[Kernel]) -> Scheme:
    """Return the scheme to begin with, from the eigenvalues at the start where there is a choice."""
    among = plan.among
    return among[-1] if len(among) > 1 and _stiffness(plan.kernel, plan.task()) > OBVIOUSLY_STIFF else among[0]


def build_for_frozen(plan: Plan[Kernel]) -> None:
    """Build, at the same time, what is needed to find a frozen discretisation: steps under error control, and frozen
    ones.
    """
    if _stiffness(plan.kernel, plan.task()) <= PERHAPS_STIFF:
        plan.kernel.build(EXPLICIT, EXPLICIT.taking(1.0))


def _begin(kernel: Kernel, task: Task, among: Among) -> Scheme:
    """Return the scheme to begin with; where another may have to go on, both are built at the same time."""
    stiffness = _stiffness(kernel, task)
    if stiffness > OBVIOUSLY_STIFF:
        return among[-1]
    if stiffness > PERHAPS_STIFF:
        kernel.build(*among)
    return among[0]


def _stiffness(kernel: Kernel, task: Task) -> float:
    """Return fastest decay times time span."""
    rates = decay_rates(kernel, task)
    return float(rates.max() * (task.t1 - task.t0)) if rates.size else 0.0


def decay_rates(kernel: Kernel, task: Task) -> np.ndarray:
    """Return −Re λ of the states' Jacobian with the implicit unknowns eliminated; of a large one the outermost,
    nearly.
    """
    nx = kernel.nx
    u = _signals_at_start(task)
    if nx + kernel.nz > ALL_EIGENVALUES:
        return _outermost_rates(kernel.jacobian(task.t, task.x, task.z, u, task.p), nx)
    full = kernel.J(task.t, task.x, task.z, u, task.p)
    if not np.isfinite(full).all():
        return np.zeros(0)
    reduced = full[:nx, :nx]
    if kernel.nz:
        try:
            reduced = reduced - full[:nx, nx:] @ np.linalg.solve(full[nx:, nx:], full[nx:, :nx])
        except np.linalg.LinAlgError:
            return np.zeros(0)
    return np.asarray(-np.linalg.eigvals(reduced).real)


def _outermost_rates(full: csc_array, nx: int) -> np.ndarray:
    """Return −Re of Ritz values in a Krylov space (Arnoldi), which approach eigenvalues at the border first."""
    from scipy.sparse.linalg import splu

    if not np.isfinite(full.data).all() or not nx:
        return np.zeros(0)
    try:
        inner = splu(full[nx:, nx:].tocsc()) if full.shape[0] > nx else None
    except RuntimeError:
        return np.zeros(0)
    A, B, C = full[:nx, :nx].tocsr(), full[:nx, nx:].tocsr(), full[nx:, :nx].tocsr()
    v = np.random.default_rng(7).normal(size=nx)
    basis = np.zeros((min(KRYLOV_DIMENSION, nx) + 1, nx))
    basis[0] = v / np.linalg.norm(v)
    H = np.zeros((len(basis), len(basis) - 1))
    for k in range(len(basis) - 1):
        w = A @ basis[k]
        if inner is not None:
            w = w - B @ inner.solve(C @ basis[k])
        for _ in range(2):
            along = basis[: k + 1] @ w
            w = w - along @ basis[: k + 1]
            H[: k + 1, k] += along
        H[k + 1, k] = np.linalg.norm(w)
        if not H[k + 1, k] > 1e-12 * np.abs(H[: k + 1, : k + 1]).max():
            return np.asarray(-np.linalg.eigvals(H[: k + 1, : k + 1]).real)
        basis[k + 1] = w / H[k + 1, k]
    return np.asarray(-np.linalg.eigvals(H[:-1]).real)


def _signals_at_start(task: Task) -> np.ndarray:
    return np.array(task.coef[0, :, 0]) if task.n_breaks else np.zeros(0)
