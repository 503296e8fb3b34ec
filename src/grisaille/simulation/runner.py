"""One experiment simulated repeatedly at other values of its unknowns.

Steps are frozen (``simulate`` explains why): the method and the step are chosen at one point, by the error estimate,
and given to every run (``SimulationSteps``).
Where equal steps would be very many (a body that sticks and slips), steps stay adaptive, with a tighter tolerance.
Far from the first point the frozen step may be far too long: there a run takes a tenth or a hundredth of it, and where
that is not enough it fails, so that no search ends in what the discretisation makes of a model.
A run that fails is an answer, not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Status, Task
from grisaille.errors import INDEPENDENT_OF_VALUES, GrisailleError, SimulationError
from grisaille.simulation.crossings import Crossing, find_crossings
from grisaille.simulation.event_system import EventSystem, event_system, plan_of
from grisaille.simulation.event_texts import clauses_fired
from grisaille.simulation.fixed_steps import choose_step
from grisaille.simulation.integration import build_for_frozen, run
from grisaille.simulation.nominal_sizes import NominalSizes, run_in_own_sizes
from grisaille.simulation.simulation_steps import SimulationSteps
from grisaille.simulation.status_messages import FIT_ADVICE, describe, describe_coincidence
from grisaille.structure.reduction import Structure

ADAPTIVE_STEPS, PER_SAMPLE = 2_000_000, 20
"""Adaptive steps after which a run ends, or so many for each sample where that is more."""
FROZEN_STEPS = 20_000_000
"""Frozen steps after which a run is given up; how many there will be is known when they are chosen."""
ADAPTIVE_FROM = 20
"""Equal steps per adaptive one from which on equal steps are given up."""
ADAPTIVE_TOLERANCE_SHARE = 1e-2
"""Tolerance of adaptive steps, relative to that of frozen ones, so that the criterion is smooth enough."""
MIN_TOLERANCE = 1e-13
"""Below which rounding decides."""
COMPARISON_TOLERANCE_SHARE = 0.1
"""Of the tolerance of adaptive steps, with which they are compared."""
MAX_ERROR_IN_TOLERANCES = 1e3
"""Error estimate, in tolerances, from which on a run is repeated with shorter steps."""
REPEATED_STEP_SHARES = (0.1, 0.01)
"""The steps it is repeated with, relative to the frozen one: few levels, so that the criterion is smooth in each."""
SMOOTH_ERROR_RATIO = 0.1
"""What is left of the error estimate, at most, when a smooth solution takes a tenth of the step; bends leave more."""
HOPELESS_ERROR = 1e12
"""Error estimate that shorter steps will not mend: a hundredth of the step gains eight digits or more."""


@dataclass(frozen=True)
class Prediction:
    """What a run gave; ``y`` is (times, outputs), ``sy`` (times, outputs, directions)."""

    y: np.ndarray
    sy: np.ndarray
    failure: str = ""
    """Empty when the run completed, else why it did not."""
    discretisation: float = 0.0
    """Largest scaled error estimate; above one the steps are too long for the tolerance."""
    coincidence: str = ""
    """Which switches are reached at one instant, where it failed because their order decides what follows; there are
    derivatives beside this point."""
    steps: int = 0
    """Taken in all, those of runs that were repeated with shorter ones included."""

    @property
    def completed(self) -> bool:
        return not self.failure


@dataclass(frozen=True)
class EventListing:
    """The events of a run: when, and what in words."""

    listed: tuple[tuple[float, str], ...] = ()
    failure: str = ""


class Runner:
    """Predicts the outputs of one trial.

    outputs : observed names, in the order of the columns of ``y``; derivatives are by θ of the trial
    """

    def __init__(self, trial: BoundExperiment, outputs: Sequence[str], *, rtol: float = 1e-7) -> None:
        self.trial, self.rtol = trial, rtol
        self.outputs = tuple(outputs)
        names = trial.structure.system.observed_names
        self.columns = np.array([names.index(o) for o in outputs], dtype=int)
        self._kernels: dict[int, tuple[EventSystem, Kernel]] = {}

    @property
    def structure(self) -> Structure:
        return self.trial.structure

    def discretise(self, theta: np.ndarray, tolerance: float = 0.0) -> SimulationSteps:
        """Return method and step that suit θ: adaptive for the method, halving for the step.

        tolerance : relative, instead of the runner's own
        """
        rtol = tolerance or self.rtol
        point = self.trial.at(theta).without_derivatives()
        form = self._kernel(point)[0]
        sizes = NominalSizes.of(point.initializer)

        def make(nominal: np.ndarray) -> Plan[Kernel]:
            plan = self._plan(point, rtol, nominal).replace(max_steps=self._most_adaptive)
            build_for_frozen(plan)
            return plan

        free, nominal = run_in_own_sizes(sizes, make, run)
        if free.task.status != Status.DONE:
            # no fixed step would do what error control cannot
            raise SimulationError(describe(free.task, form.system, free.scheme, FIT_ADVICE))
        plan = self._plan(point, rtol, nominal)
        frozen = (free.scheme.taking(plan.t1 - plan.t0),)
        equal = choose_step(plan.replace(max_steps=self._most_equal(free.task), among=frozen), None).task
        reached = equal.status == Status.DONE and equal.error_estimate <= 1.0
        own = () if nominal is sizes.nominal else tuple(nominal.tolist())
        return SimulationSteps(free.scheme.name, float(equal.fixed_step) if reached else 0.0, own, tolerance)

    def tightened(self, theta: np.ndarray, steps: SimulationSteps, share: float) -> SimulationSteps:
        """Return steps for θ that keep this share of the tolerance, as far as numbers can."""
        return self.discretise(theta, max(share * (steps.tolerance or self.rtol), MIN_TOLERANCE))

    def refined(self, theta: np.ndarray, steps: SimulationSteps, excess: float) -> SimulationSteps:
        """Return shorter steps for θ, where the error estimate was so many tolerances.

        Where equal steps would be very many, as in a model that is stiff there, they are chosen again at θ; where the
        estimate falls slowly with the step, as at a solution with bends, error control chooses them.
        """
        finer = steps.refined(excess)
        if not finer.step:
            return finer
        point = self.trial.at(theta).without_derivatives()
        plan = self._plan(point, steps.tolerance or self.rtol, _sizes(steps))
        free = run(plan.replace(max_steps=self._most_adaptive)).task
        if free.status != Status.DONE:
            return steps
        most = self._most_equal(free)
        if (plan.t1 - plan.t0) / finer.step > most:
            return self.discretise(theta, steps.tolerance)
        equal = run(plan.replace(fixed_step=finer.step, max_steps=most, among=(steps.scheme,))).task
        falls = equal.status == Status.DONE and equal.error_estimate <= max(SMOOTH_ERROR_RATIO * excess, 1.0)
        return finer if falls else replace(steps, step=0.0)

    @property
    def _most_adaptive(self) -> int:
        """Adaptive steps of one run, at most."""
        return max(ADAPTIVE_STEPS, PER_SAMPLE * len(self.trial.times))

    def _most_equal(self, free: Task) -> int:
        """Return equal steps that are not too many beside the adaptive ones of a run."""
        return max(ADAPTIVE_FROM * int(free.steps), 10 * len(self.trial.times))

    def predict(self, theta: np.ndarray, steps: SimulationSteps, *, sensitive: bool) -> Prediction:
        """Return outputs (and derivatives) at θ."""
        try:
            point = self.trial.at(theta)
            return self._accurate(point if sensitive else point.without_derivatives(), steps, sensitive)
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return self.failed(str(error), sensitive)

    def predict_holding(self, theta: np.ndarray, steps: SimulationSteps, values: Mapping[str, float]) -> Prediction:
        """Return outputs at θ where disturbances are held at other values than zero."""
        return self._accurate(self.trial.at(theta).without_derivatives().holding(values), steps, False)

    def predict_finer(self, theta: np.ndarray, steps: SimulationSteps) -> Prediction:
        """Return the outputs at θ by steps half as long or, where they are adaptive, with a tolerance of a tenth: what
        they differ by from ``predict`` is the error of integration there, up to a tenth of itself."""
        try:
            return self._run(
                self.trial.at(theta).without_derivatives(),
                steps,
                False,
                0.5,
                tighter=1.0 if steps.step else COMPARISON_TOLERANCE_SHARE,
            )
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return self.failed(str(error), False)

    def crossings(self, theta: np.ndarray, steps: SimulationSteps | None = None) -> list[Crossing]:
        """Return the switches that the trajectory at θ crosses and at which its equations jump."""
        if not (self.structure.jumps.of_states or self.structure.model.whens):
            return []
        point = self.trial.at(theta).without_derivatives()
        plan = self._plan(point, self._tolerance(steps) if steps else self.rtol, _sizes(steps))
        return find_crossings(point.structure, plan.replace(among=(steps.scheme,)) if steps else plan)

    def event_listing(self, theta: np.ndarray, steps: SimulationSteps) -> EventListing:
        """Return what a model's own events do at θ."""
        try:
            point = self.trial.at(theta).without_derivatives()
            form = self._kernel(point)[0]
            plan = form.listing(self._plan(point, self._tolerance(steps), _sizes(steps)))
            task = run(plan.replace(fixed_step=steps.step, among=(steps.scheme,))).task
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return EventListing((), str(error))
        if task.status != Status.DONE:
            return EventListing((), describe(task, form.system, steps.scheme, FIT_ADVICE))
        return EventListing(clauses_fired(task, form.system))

    @property
    def is_exact(self) -> bool:
        """Return whether derivatives contain the share of the jumps that a trajectory crosses."""
        return event_system(self.structure, 0).is_exact(self.structure.jumps)

    def with_experiment(self, trial: BoundExperiment) -> Runner:
        """Return a runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.__dict__.pop("_compared", None)
        other.trial = trial
        return other

    def _accurate(self, point: ExperimentPoint, steps: SimulationSteps, sensitive: bool) -> Prediction:
        """Return a run whose steps are short enough to believe it; ``discretisation`` is that of the frozen step."""
        first = self._run(point, steps, sensitive, 1.0)
        if not steps.step or first.discretisation <= MAX_ERROR_IN_TOLERANCES:
            return first
        taken, before = first.steps, first.discretisation
        for share in REPEATED_STEP_SHARES if before < HOPELESS_ERROR else ():
            shorter = self._run(point, steps, sensitive, share)
            taken += shorter.steps
            if shorter.discretisation <= MAX_ERROR_IN_TOLERANCES:
                shorter = replace(shorter, steps=taken)
                return replace(shorter, discretisation=first.discretisation) if shorter.completed else shorter
            if shorter.discretisation > SMOOTH_ERROR_RATIO * before:
                break
            before = shorter.discretisation
        # bends and jumps ask for their own steps; what only blows up would take them without end
        most = int(ADAPTIVE_FROM * ((point.times[-1] - point.t0) / steps.step + len(point.times)))
        adaptive = self._run(point, replace(steps, step=0.0), sensitive, 1.0, most)
        taken += adaptive.steps
        if adaptive.completed:
            return replace(adaptive, discretisation=first.discretisation, steps=taken)
        failed = self.failed(
            f"the steps that suit the first point ({steps.step:.3g}) are far too long here: the error estimate is "
            f"{first.discretisation:.1g} times the tolerance, and shorter ones do not help",
            sensitive,
        )
        return replace(failed, steps=taken)

    def _run(
        self,
        point: ExperimentPoint,
        steps: SimulationSteps,
        sensitive: bool,
        share: float,
        most: int | None = None,
        tighter: float = 1.0,
    ) -> Prediction:
        if sensitive and point.has_moving_jumps:
            point.refuse_moving_jumps()
        form = self._kernel(point)[0]
        step = share * steps.step
        most = most or (FROZEN_STEPS if step else self._most_adaptive)
        plan = self._plan(point, tighter * self._tolerance(steps), _sizes(steps))
        task = run(plan.replace(fixed_step=step, max_steps=most, among=(steps.scheme,))).task
        y = task.y[:, self.columns]
        is_defined = np.isfinite(y)
        if task.status != Status.DONE or not is_defined[self._compared].all():
            failed = self.failed(describe(task, form.system, steps.scheme, FIT_ADVICE), sensitive)
            return replace(failed, coincidence=describe_coincidence(task, form.system), steps=int(task.steps))
        sy = np.swapaxes(task.sy[:, :, self.columns], 1, 2) if sensitive else np.zeros((0, 0, 0))
        if not is_defined.all():
            sy = np.where(is_defined[:, :, None], sy, 0.0) if sensitive else sy
            y = np.where(is_defined, y, np.nan)
        return Prediction(y, sy, "", task.error_estimate, steps=int(task.steps))

    @cached_property
    def _compared(self) -> np.ndarray:
        """Return which entries of ``y`` are compared with data: an output may be undefined where nothing was measured,
        as log(c) is before a dose. Of a trial without measurements all but those at the first instant.
        """
        if self.trial.data.samples:
            return self.trial.data.compared(self.outputs)
        compared = np.ones((len(self.trial.times), len(self.outputs)), dtype=bool)
        compared[0] = [name in self.structure.system.state_names for name in self.outputs]
        return compared

    def _tolerance(self, steps: SimulationSteps) -> float:
        """Return the tolerance of the integrator; tighter where the steps have been left adaptive."""
        if steps.tolerance:
            return steps.tolerance if steps.step else max(ADAPTIVE_TOLERANCE_SHARE * steps.tolerance, MIN_TOLERANCE)
        return self.rtol if steps.step else max(ADAPTIVE_TOLERANCE_SHARE * self.rtol, 1e-12)

    def _kernel(self, point: ExperimentPoint) -> tuple[EventSystem, Kernel]:
        key = id(point.form)
        if key not in self._kernels:
            form = event_system(point.structure, len(self.trial.moves))
            self._kernels[key] = form, build_kernel(form.system, sensitive=True)
        return self._kernels[key]

    def _plan(self, point: ExperimentPoint, rtol: float, sizes: np.ndarray | None = None) -> Plan[Kernel]:
        point = point.with_past() if point.structure.system.has.pasts else point
        form, kernel = self._kernel(point)
        atol = 1e-3 * rtol * (point.initializer.nominal if sizes is None else sizes)
        plan = plan_of(point, form, kernel, atol, rtol, directions=len(self.trial.moves), leeway=self.rtol)
        return plan.replace(max_steps=FROZEN_STEPS)

    def failed(self, reason: str, sensitive: bool) -> Prediction:
        """Return the answer of a run that did not take place."""
        shape = (len(self.trial.times), len(self.columns))
        ns = len(self.trial.moves) if sensitive else 0
        return Prediction(np.full(shape, np.nan), np.full((*shape, ns), np.nan), reason)


def _sizes(steps: SimulationSteps | None) -> np.ndarray | None:
    """Return nominal sizes that a discretisation has found, where they are not those of the model."""
    return np.array(steps.sizes) if steps is not None and steps.sizes else None
