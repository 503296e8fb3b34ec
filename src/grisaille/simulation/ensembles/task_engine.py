"""Ensembles of models that stay implicit, are stiff or have events: one realization after the other through the frozen
integrators.

Disturbances are sampled for a realization and handed over as polynomials between grid points, where steps end. A
direction that moves a disturbance is carried by the signals (``moving_signals``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NoReturn

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille import interrupts
from grisaille.bound_experiment import ExperimentPoint
from grisaille.cache import Cache, IdentityKey
from grisaille.compilation.batch_native import processors
from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.compilation.schemes import Among, Scheme
from grisaille.compilation.task import Status, Task
from grisaille.errors import ModelError
from grisaille.experiment.piecewise_polynomials import SignalTable, shifted_coefficients
from grisaille.simulation import integration
from grisaille.simulation.ensembles.engines import (
    EngineAnswer,
    EnsembleSetup,
    Progress,
    fixed_table,
    join_answers,
    layout_of,
)
from grisaille.simulation.ensembles.grid import on_grid
from grisaille.simulation.ensembles.moved_disturbances import moved_disturbances
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK
from grisaille.simulation.ensembles.sampled import sample_pieces
from grisaille.simulation.event_system import EventSystem, leeway_parameters
from grisaille.simulation.fixed_steps import choose_step
from grisaille.simulation.integration import IntegratorRun
from grisaille.simulation.nominal_sizes import NominalSizes, run_in_own_sizes
from grisaille.simulation.status_messages import describe
from grisaille.structure.delays.moving_signals import with_moving_signals
from grisaille.structure.held_events import hold_events

Floats = NDArray[np.float64]
Signals = tuple[Floats, Floats]
Made = Callable[[int], Task | None]
MAX_PILOT_STEPS = 2_000_000
"""Equal steps of one realization that are tried."""


@dataclass(frozen=True, eq=False)
class EngineSolver:
    """The solver that was chosen with the first realization and is used for all."""

    scheme: Scheme
    step: float
    rtol: float
    atol: Floats
    error_estimate: float


_FORMS: Cache[EventSystem] = Cache(16)
"""Systems with moving signals, held at their events."""


class TaskEngine:
    def __init__(self, setting: EnsembleSetup, solver: EngineSolver) -> None:
        self.setting, self.solver = setting, solver
        self.error_estimate = solver.error_estimate
        self.moving = layout_of(setting).places if layout_of(setting).sensitive else ()
        key = IdentityKey(setting.system), tuple(self.moving), len(setting.dp), bool(setting.crossed)
        self.form: EventSystem = _FORMS.get(key, self._form)
        self.table = on_grid(fixed_table(setting), setting.grid)
        self.kernel: Kernel = build_kernel(self.form.system, sensitive=bool(len(setting.dp)))
        self.columns = list(setting.observed)
        self.ends = np.zeros((0, setting.system.nx))
        self.reasons: dict[int, str] = {}
        """Realization → why it failed."""

    @property
    def name(self) -> str:
        return str(self.solver.scheme)

    def _form(self) -> EventSystem:
        """Return the system with events where a model has its own, or where derivatives cross relations that make it
        jump; else these are stepped across.
        """
        s = self.setting
        moved = with_moving_signals(s.system, self.moving, len(s.dp), "disturbance")
        carriers = ca.vertcat(moved.u[s.system.nu :], moved.p[s.system.np :])

        def named(formula: ca.SX) -> str:
            """Return the result in the user's names, without what carries directions."""
            return s.name(ca.substitute(formula, carriers, ca.SX.zeros(carriers.shape)))

        events = hold_events(moved, named) if s.system.reactions is not None or s.crossed else None
        form = EventSystem(moved, moved) if events is None else EventSystem(events.before, events.system, events)
        if not form.is_exact_across(s.crossed):
            refuse_derivatives(s.crossed[0].text, "its instant is not known to derivatives")
        return form

    @classmethod
    def prepared(
        cls, setting: EnsembleSetup, posed: ExperimentPoint, rtol: float, among: Among, step: float | None = None
    ) -> EngineMaker:
        """Return a maker of engines, with scheme and step (unless given) chosen on the first realization."""
        nominal = posed.initializer.nominal
        first = cls(setting, EngineSolver(among[-1], 0.0, rtol, 1e-3 * rtol * nominal, 0.0))
        signals = first._signals(np.arange(1))

        def make(sizes: Floats) -> Plan[Kernel]:
            first.solver = replace(first.solver, atol=1e-3 * rtol * sizes)
            return first._plan(signals, 0, 0).replace(max_steps=MAX_PILOT_STEPS, among=among)

        def run(plan: Plan[Kernel], _: object) -> IntegratorRun:
            return choose_step(plan, step)

        sizes = replace(NominalSizes.of(posed.initializer), system=setting.system)
        if step is None and len(nominal) == setting.system.nx + setting.system.nz:
            chosen, nominal = run_in_own_sizes(sizes, make, run)
        else:
            chosen = run(make(nominal), None)
        task = chosen.task
        if task.status == Status.TOO_MANY_STEPS and task.error_estimate > 1.0:
            warnings.warn(
                f"{posed.structure.model.name}: equal steps of {task.fixed_step:.3g} leave an error of "
                f"{task.error_estimate:.2g} times rtol in the first realization, and shorter ones would be more than "
                f"{MAX_PILOT_STEPS}: something is much shorter than the run, such as a bump of a table or a condition "
                f"of a state. Make it wider, or give a larger rtol=.",
                UserWarning,
                stacklevel=5,
            )
        first.solver = replace(first.solver, atol=1e-3 * rtol * nominal)
        solver = replace(first.solver, scheme=chosen.scheme, step=task.fixed_step, error_estimate=task.error_estimate)
        return EngineMaker(cls, solver)

    def run(
        self, slabs: Sequence[slice], skip: Sequence[int], moments: bool, rows: bool, progress: Progress | None
    ) -> Iterator[EngineAnswer]:
        with ThreadPoolExecutor(max_workers=self.setting.threads or processors()) as pool:
            for slab in slabs:
                parts = []
                for members, made in self._blocks(slab, set(skip)):
                    interrupts.check()
                    parts.append(self._block(members, slab, made, moments, rows, pool))
                    if progress is not None:
                        progress(int(members[-1]) + 1, self.setting.count)
                yield join_answers(parts)

    def _blocks(self, slab: slice, skip: set[int]) -> Iterator[tuple[NDArray[np.int64], Made]]:
        """Yield realizations that moments take up together, and what integrates one of them, named by its place."""
        for members in blocks_of(self.setting.count):
            signals = self._signals(members)

            def made(i: int, members: NDArray[np.int64] = members, signals: Signals = signals) -> Task | None:
                if int(members[i]) in skip:
                    return None
                return integration.run(self._plan(signals, i, int(members[i]), slab.stop)).task

            yield members, made

    def _block(
        self, members: NDArray[np.int64], slab: slice, made: Made, moments: bool, rows: bool, pool: ThreadPoolExecutor
    ) -> EngineAnswer:
        s, n = self.setting, len(range(*slab.indices(self.setting.grid.kept.size)))
        y = np.full((members.size, n, len(self.columns)), np.nan)
        sy = np.full((members.size, n, len(s.dp), len(self.columns)), np.nan)
        failed = np.full(members.size, -1, dtype=np.int64)
        left_out = set()
        # outputs that differ by rounding share an instant of the task
        instants = np.unique(s.grid.kept, return_inverse=True)[1][slab]

        def one(i: int) -> None:
            task = made(i)
            if task is None:
                left_out.add(i)
                return
            if task.status != Status.DONE:
                self.reasons[int(members[i])] = describe(task, self.form.system, self.solver.scheme)
                failed[i] = np.clip(np.searchsorted(s.grid.points, task.t), 0, s.grid.cells)
            done = instants[instants < task.written]
            y[i, : done.size] = task.y[done][:, self.columns]
            sy[i, : done.size] = task.sy[done][:, :, self.columns]

        for _ in pool.map(one, range(members.size)):
            interrupts.check()
        good = [i for i in range(members.size) if failed[i] < 0 and i not in left_out]
        part = SampleMoments.of(y[good], sy[good]) if moments and good else None
        return EngineAnswer(y if rows else None, sy if rows else None, part, failed)

    def _signals(self, members: NDArray[np.int64]) -> Signals:
        """Return breaks, and polynomials (realizations, segments, nu, degree + 1) of every signal of the extended
        system.
        """
        s, ns = self.setting, len(self.setting.dp)
        own, pieces = sample_pieces(s, members)
        table = self.table
        inner = table.breaks[(table.breaks > own[0]) & (table.breaks < own[-1])]
        # one piece beyond the end, so that the last instant sees what holds from there on
        breaks = np.unique(np.concatenate([own, inner, [own[-1] + max(1.0, abs(own[-1]))]]))
        starts = breaks[:-1]
        degree = max(table.coef.shape[2], *(c.shape[-1] for c in pieces.values())) if pieces else table.coef.shape[2]
        coef = np.zeros((members.size, starts.size, s.system.nu + len(self.moving) * ns, degree))
        coef[:, :, : s.system.nu, : table.coef.shape[2]] = shifted_coefficients(table.breaks, table.coef, starts)
        for place, piece in pieces.items():
            coef[:, :, place] = 0.0
            shifted = shifted_coefficients(own, np.moveaxis(piece, 0, 1), starts)
            coef[:, :, place, : piece.shape[-1]] = np.moveaxis(shifted, 0, 1)
        for k, piece in enumerate(moved_disturbances(s, members) if self.moving else ()):
            shifted = shifted_coefficients(s.grid.points, np.moveaxis(piece, 0, 1), starts)
            coef[:, :, s.system.nu + k, : piece.shape[-1]] = np.moveaxis(shifted, 0, 1)
        return breaks, coef

    def _plan(self, signals: Signals, i: int, m: int, end: int | None = None) -> Plan[Kernel]:
        s, ns = self.setting, len(self.setting.dp)
        shapes = ((s.starts.x, 1), (s.starts.z, 1), (s.starts.sx, 2), (s.starts.sz, 2))
        x, z, sx, sz = (a[m] if a.ndim > d else a for a, d in shapes)
        breaks, coef = signals
        times = s.grid.points[np.unique(s.grid.kept[:end])]
        extended = np.eye(ns) if self.moving else np.zeros((ns, 0))
        kinks = np.concatenate([s.grid.points, self.table.breaks[self.table.kink == 1]])
        form, kink = self.form, np.isin(breaks, kinks).astype(np.uint8)
        p, dp = np.concatenate([s.p, np.zeros(extended.shape[1])]), np.column_stack([s.dp, extended])
        plan = Plan(
            self.kernel, float(s.grid.points[0]), float(times[-1]), times, SignalTable(breaks, coef[i], kink), p, x, z,
            dp, sx if ns else None, sz if ns else None, rtol=self.solver.rtol, atol=self.solver.atol, nominal=s.nominal,
            max_steps=2_000_000_000, fixed_step=self.solver.step, among=(self.solver.scheme,),
        )  # fmt: skip
        return plan if form.events is None else leeway_parameters(plan, form.events)


def refuse_crossings_between_steps(s: EnsembleSetup, posed: ExperimentPoint) -> None:
    """Refuse derivatives where realizations cross jumps and are made with steps that cannot end there."""
    why = ""
    if s.white is not None and s.white.formula.noise.numel():
        why = "under white noise there is no instant at which that happens"
    elif s.white is not None:
        why = "steps that solve implicit unknowns inside do not end there: take method='frozen'"
    elif s.system.has.pasts:
        why = "steps of models with delayed states do not end there"
    if why:
        refuse_derivatives(s.crossed[0].text, why, posed.names[0])


def refuse_derivatives(relation: str, why: str, name: str = "") -> NoReturn:
    by = f" by '{name}'" if name else ""
    raise ModelError(
        f"The derivative{by} of realizations that cross '{relation}', where the equations jump, "
        f"would be wrong: {why}. Replace the relation by a smooth formula (gr.smooth_sign, or a ramp with gr.minimum "
        f"and gr.maximum), or take differences of simulations."
    )


def blocks_of(count: int) -> Iterator[NDArray[np.int64]]:
    for first in range(0, count, REALIZATIONS_PER_BLOCK):
        yield np.arange(first, min(first + REALIZATIONS_PER_BLOCK, count))


@dataclass(frozen=True, eq=False)
class EngineMaker:
    make: type[TaskEngine]
    solver: EngineSolver

    @property
    def error_estimate(self) -> float:
        return self.solver.error_estimate

    def __call__(self, setting: EnsembleSetup) -> TaskEngine:
        return self.make(setting, self.solver)
