"""Single runs of one setting, again and again: what the numbers do not change is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.adjoint_kernel import AdjointKernel, build_adjoint
from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.plan import Functions, Plan
from grisaille.compilation.schemes import AUTO, Among, Scheme, methods, schemes_of
from grisaille.compilation.task import Status, Task
from grisaille.errors import DataError, SimulationError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.memory import BYTES_PER_DOUBLE, require_memory
from grisaille.simulation import integration
from grisaille.simulation.adjoint_gradient import gradient
from grisaille.simulation.crossings import find_crossings, refuse_crossings
from grisaille.simulation.dataset import Labels
from grisaille.simulation.event_system import EventSystem, event_system, plan_of
from grisaille.simulation.fixed_steps import choose_step
from grisaille.simulation.forward_gradient import ForwardGradient
from grisaille.simulation.integration import IntegratorRun
from grisaille.simulation.nominal_sizes import NominalSizes, Watch, run_in_own_sizes, watch_both
from grisaille.simulation.posing import SimulationSetup, missed_starts
from grisaille.simulation.progress import progress_of
from grisaille.simulation.simulation_arguments import absolute_tolerances, as_positive, longest_step, most_steps
from grisaille.simulation.static import solve_static
from grisaille.simulation.status_messages import WITHOUT_STEPS, describe
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class IntegratorOptions:
    """How a run is solved; the arguments of ``simulate`` of the same names."""

    rtol: float = 1e-6
    atol: float | Mapping[str, float] | None = None
    method: str = "auto"
    step: float | None = None
    max_step: float | None = None
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if self.method not in methods():
            raise DataError(f"method is {self.method!r}; it must be one of {', '.join(map(repr, methods()))}.")
        if not as_positive("rtol", self.rtol, "a number between 0 and 1, such as 1e-6") < 1:
            raise DataError(f"rtol is {self.rtol!r}; give a number between 0 and 1, such as 1e-6.")

    @cached_property
    def among(self) -> Among:
        """Return the schemes that the method takes, or chooses among."""
        return schemes_of(self.method)

    @cached_property
    def is_frozen(self) -> bool:
        return not any(scheme.is_adaptive for scheme in self.among)


@dataclass(frozen=True)
class PreparedRun:
    """Everything a run needs before the first step."""

    point: ExperimentPoint
    table: SignalTable
    form: EventSystem
    plan: Plan[Kernel]

    @property
    def structure(self) -> Structure:
        return self.point.structure


@dataclass(frozen=True)
class FinishedRun:
    """A run and how it ended."""

    prepared: PreparedRun
    task: Task
    scheme: Scheme | None
    """None where no steps are taken."""
    sentence: str

    @property
    def is_complete(self) -> bool:
        return self.task.status == Status.DONE


def refuse_gradient(posed: ExperimentPoint, solver: IntegratorOptions) -> None:
    """Refuse runs of which no gradient can be computed."""
    name = posed.structure.model.name
    if not all(scheme.has_adjoint for scheme in solver.among):
        raise DataError(
            f"A gradient is that of frozen steps: gr.Simulator(…, method='frozen'), not method={solver.method!r}."
        )
    if posed.structure.system.nx == 0:
        raise DataError(f"{name} has no states: take its derivatives with sensitivities=.")
    if posed.structure.system.has.pasts:
        raise DataError(
            f"{name} contains the past of its unknowns, and the way back through it does not exist: take derivatives "
            f"forwards, with sensitivities=."
        )
    if posed.structure.model.whens or posed.structure.jumps.of_states:
        why = "has events" if posed.structure.model.whens else "jumps with a relation of its states"
        raise DataError(
            f"{name} {why}, and the way back through events does not exist: take derivatives forwards, with "
            f"sensitivities=."
        )


def _require_written_equations(prepared: PreparedRun, task: Task) -> None:
    """Refuse a run at whose end equations that were replaced do not hold.

    Asked where everything in them is known: no past, and implicit unknowns neither held nor at a jump of a signal.
    """
    system = prepared.structure.system
    if task.status != Status.DONE or system.has.pasts or not prepared.structure.written_check.formulas(system):
        return
    u, before = prepared.table.at(task.t), prepared.table.at(np.nextafter(task.t, -np.inf))
    is_known = system.nz == 0 or (prepared.form.system is system and np.allclose(u, before, rtol=1e-6))
    if not is_known or u.size != system.u.numel():
        return
    w = np.concatenate([task.x, task.z[: system.nz]])
    prepared.structure.written_check.require(system, task.t, w, u, task.p[: system.p.numel()], is_start=False)


def _require_rows(posed: ExperimentPoint, names: int) -> None:
    """Refuse trajectories that do not fit into memory: as they are computed, and once more by name."""
    each = 2 * BYTES_PER_DOUBLE * (1 + names * (1 + len(posed.names)))
    sensitive = f", with derivatives by {len(posed.names)} names" if posed.names else ""
    require_memory(
        each * posed.times.size,
        f"A trajectory of {posed.structure.model.name} ({posed.times.size} output times, {names} variables{sensitive})",
        lambda available: f"{available // each} output times would fit: give fewer times=, or fewer sensitivities=.",
    )


class SimulationRuns:
    """Runs of one setting by one solver, with derivatives by the same names."""

    def __init__(
        self, setting: SimulationSetup, solver: IntegratorOptions, sensitivities: Sequence[object] = ()
    ) -> None:
        self.setting, self.solver, self.sensitivities = setting, solver, sensitivities
        self._kernels: dict[tuple[int, bool], tuple[object, EventSystem, Kernel]] = {}
        self._adjoints: dict[tuple[int, Scheme], tuple[System, AdjointKernel]] = {}
        self._frozen: tuple[Scheme, float] | None = None
        """Scheme and step of gradients."""
        self._labels: dict[tuple[int, tuple[str, ...]], Labels] = {}

    def run(
        self,
        parameters: Mapping[str, float] | None,
        start: Mapping[str, float] | str | None,
        *,
        progress: bool = False,
    ) -> FinishedRun:
        """Run to the end, or to where the integrator stops."""
        prepared = self.prepare(parameters, start)
        if prepared.point.names and not prepared.form.is_exact(prepared.structure.jumps):
            crossings = find_crossings(prepared.structure, prepared.plan.replace(among=AUTO))
            refuse_crossings(crossings, prepared.point.names)
        task, scheme = self._integrate_in_own_sizes(prepared, progress)
        _require_written_equations(prepared, task)
        sentence = describe(task, prepared.form.system, scheme)
        remarks = (missed_starts(prepared.point), prepared.point.start.undecided)
        return FinishedRun(prepared, task, scheme, "; ".join(part for part in (sentence, *remarks) if part))

    def _integrate_in_own_sizes(self, prepared: PreparedRun, progress: bool) -> tuple[Task, Scheme | None]:
        """Return the run, with tolerances for the sizes that its states reach where none are declared."""
        solver, point = self.solver, prepared.point
        step = self._given_step()
        if prepared.structure.system.nx == 0 and prepared.plan.past is None:
            return solve_static(point.initializer, prepared.plan), None
        sizes = NominalSizes.of(point.initializer)

        def make(nominal: np.ndarray) -> Plan[Kernel]:
            if nominal is sizes.nominal:
                return prepared.plan
            return prepared.form.listing(self._plan(point, prepared.form, prepared.plan.kernel, nominal))

        def run(plan: Plan[Kernel], watch: Watch | None) -> IntegratorRun:
            with progress_of(plan, prepared.structure.model.name, progress) as on_slice:
                if solver.is_frozen:
                    return choose_step(plan, step, on_slice)
                return integration.run(plan, watch_both(on_slice, watch))

        if solver.atol is not None or step is not None or prepared.structure.system.nx == 0:
            finished = run(prepared.plan, None)
        else:
            finished, _ = run_in_own_sizes(sizes, make, run)
        return finished.task, finished.scheme

    def _given_step(self) -> float | None:
        """Return the length of frozen steps that was asked for."""
        if self.solver.step is None:
            return None
        step = as_positive("step", self.solver.step)
        if not self.solver.is_frozen:
            raise DataError("step= fixes the steps of method='frozen'; the adaptive methods choose theirs (see rtol).")
        return step

    def prepare(self, parameters: Mapping[str, float] | None, start: Mapping[str, float] | str | None) -> PreparedRun:
        """Return structure, kernel, consistent start and plan of one run."""
        posed = self.setting.pose(parameters, start, self.sensitivities)
        posed = posed.with_past() if posed.structure.system.has.pasts else posed
        form, kernel = self._kernel(posed)
        plan = form.listing(self._plan(posed, form, kernel))
        assert isinstance(plan.signals, SignalTable)
        return PreparedRun(posed, plan.signals, form, plan)

    def _plan(
        self, posed: ExperimentPoint, form: EventSystem, kernel: Functions, nominal: np.ndarray | None = None
    ) -> Plan[Functions]:
        solver, structure = self.solver, posed.structure
        _require_rows(posed, kernel.ny)
        nominal = posed.initializer.nominal if nominal is None else nominal
        atol = absolute_tolerances(structure, self.setting.model, nominal, solver.rtol, solver.atol)
        plan = plan_of(posed, form, kernel, atol, solver.rtol, directions=len(posed.names), leeway=solver.rtol)
        return plan.replace(
            max_steps=most_steps(solver.max_steps), hmax=longest_step(posed.times, solver.max_step),
            among=solver.among,
        )  # fmt: skip

    def gradient(
        self, parameters: Mapping[str, float] | None, start: Mapping[str, float] | str | None, by: Sequence[object],
        weigh: Callable[[np.ndarray], np.ndarray],
    ) -> dict[str, float]:  # fmt: skip
        """Return derivatives of Σ weights · y by names, through the adjoint of the frozen steps; forwards where
        equations bend inside of these so that it matters.
        """
        posed = self.setting.pose(parameters, start, by)
        refuse_gradient(posed, self.solver)
        if self._frozen is None:
            # the step that suits the first point suits all: the gradient is then that of one function
            first = self.run(parameters, start)
            self.demand(first)
            assert first.scheme is not None
            self._frozen = first.scheme, float(first.task.fixed_step)
        system = posed.structure.system
        scheme, step = self._frozen

        def require_end(task: Task) -> None:
            if task.status != Status.DONE:
                name, sentence = posed.structure.model.name, describe(task, system, scheme)
                raise SimulationError(f"The simulation of {name} stopped: {sentence}", None)

        form, still = EventSystem(system, system), posed.without_derivatives()
        found = gradient(self._plan(still, form, self._adjoint(system, scheme)).replace(fixed_step=step), weigh)
        if found.failed is not None:
            require_end(found.failed)
        slopes = posed.dp @ found.by_parameters + posed.dstart.sx @ found.by_state
        if found.weights is not None and self._kernel(still)[1].bends:
            kernel = build_kernel(system, sensitive=True)
            run = self._plan(still, form, kernel).replace(fixed_step=step, among=(scheme,))
            start_slopes = posed.dstart.sx, posed.dstart.sz
            forwards = ForwardGradient(run, posed.dp, *start_slopes, found.weights, require_end)
            slopes = slopes if forwards.agrees(slopes) else forwards.slopes()
        return dict(zip(posed.names, slopes.tolist(), strict=True))

    def labelled(self, finished: FinishedRun, *, strict: bool) -> xr.Dataset:
        """Return trajectories in the user's names; with ``strict``, a run that stopped early is an error."""
        prepared = finished.prepared
        result = self.labels(finished).dataset(
            prepared.structure,
            finished.task,
            prepared.point.start,
            str(finished.scheme or WITHOUT_STEPS),
            finished.sentence,
        )
        if strict:
            self.demand(finished, result)
        return result

    def labels(self, finished: FinishedRun) -> Labels:
        """Return names of what a run gave."""
        prepared = finished.prepared
        key = id(prepared.form), prepared.point.names
        if key not in self._labels:
            self._labels[key] = Labels(prepared.structure, prepared.form.system, prepared.point.names)
        return self._labels[key]

    def demand(self, finished: FinishedRun, result: object = None) -> None:
        """Raise an error where a run stopped early."""
        if not finished.is_complete:
            name = finished.prepared.structure.model.name
            raise SimulationError(f"The simulation of {name} stopped: {finished.sentence}", result)

    def _kernel(self, posed: ExperimentPoint) -> tuple[EventSystem, Kernel]:
        system, key = posed.structure.system, (id(posed.structure.system), bool(posed.names))
        if key not in self._kernels:
            form = event_system(posed.structure, len(posed.names))
            kernel = build_kernel(form.system, sensitive=bool(posed.names))
            # the system is kept with them: its identity is the key
            self._kernels[key] = system, form, kernel
        return self._kernels[key][1:]

    def _adjoint(self, system: System, scheme: Scheme) -> AdjointKernel:
        if (id(system), scheme) not in self._adjoints:
            self._adjoints[id(system), scheme] = system, build_adjoint(system, scheme)
        return self._adjoints[id(system), scheme][1]
