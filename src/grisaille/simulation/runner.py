"""One trial simulated again and again at other values of what moves.

Steps are frozen (``simulate`` explains why): the method and the step are chosen at one point, by the error estimate,
and given to every run (``Steps``).
Where equal steps would be very many (a body that sticks and slips), steps stay adaptive, with a tighter tolerance.
Far from the first point the frozen step may be far too long: there a run takes a tenth or a hundredth of it, and where
that is not enough it fails, so that no search ends in what the discretisation makes of a model.
A run that fails is an answer, not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.task import Status, Task
from grisaille.errors import GrisailleError, InsufficientMemoryError, SimulationError
from grisaille.simulation.crossings import Crossing, find_crossings
from grisaille.simulation.discretisation import Steps
from grisaille.simulation.events import fired
from grisaille.simulation.frozen import choose_step
from grisaille.simulation.integrated import Integrated, arguments_of, integrated
from grisaille.simulation.integration import build_for_frozen, integrate
from grisaille.simulation.outcome import describe
from grisaille.structure.reduction import Structure
from grisaille.trial import Point, Trial

FIRST_STEPS = 2_000_000
"""Steps after which the first run of an experiment is given up."""
ADAPTIVE_FROM = 20
"""Equal steps per adaptive one from which on equal steps are given up."""
TIGHTER = 1e-2
"""Tolerance of adaptive steps, relative to that of frozen ones, so that the criterion is smooth enough."""
COARSE = 1e3
"""Error estimate, in tolerances, from which on a run is repeated with shorter steps."""
SHORTER = (0.1, 0.01)
"""The steps it is repeated with, relative to the frozen one: few levels, so that the criterion is smooth in each."""
HOPELESS = 1e12
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

    @property
    def completed(self) -> bool:
        return not self.failure


@dataclass(frozen=True)
class Happenings:
    """The events of a run: when, and what in words."""

    listed: tuple[tuple[float, str], ...] = ()
    failure: str = ""


class Runner:
    """Predicts the outputs of one trial.

    outputs : observed names, in the order of the columns of ``y``; derivatives are by θ of the trial
    """

    def __init__(
        self, trial: Trial, outputs: Sequence[str], *, rtol: float = 1e-7, compiled: bool | None = None
    ) -> None:
        self.trial, self.rtol, self.compiled = trial, rtol, compiled
        names = trial.structure.system.observed_names
        self.columns = np.array([names.index(o) for o in outputs], dtype=int)
        self._kernels: dict[int, tuple[Integrated, Kernel]] = {}

    @property
    def structure(self) -> Structure:
        return self.trial.structure

    def discretise(self, theta: np.ndarray) -> Steps:
        """Method and step that suit θ: adaptive for the method, halving for the step."""
        point = self.trial.at(theta).still()
        form, kernel = self._kernel(point)
        task = self._task(point, self.rtol)
        free = _copy(kernel, task)
        free.max_steps = FIRST_STEPS
        build_for_frozen(kernel, free)
        method = integrate(kernel, free, "auto")
        if free.status != Status.DONE:
            # no fixed step would do what error control cannot
            raise SimulationError(describe(free, form.system, method))
        equal = _copy(kernel, task)
        equal.max_steps = max(ADAPTIVE_FROM * free.steps, 10 * len(self.trial.times))
        choose_step(kernel, equal, f"frozen-{method}", None, None)
        reached = equal.status == Status.DONE and equal.error_estimate <= 1.0
        return Steps(method, float(equal.fixed_step) if reached else 0.0)

    def predict(self, theta: np.ndarray, steps: Steps, *, sensitive: bool) -> Prediction:
        """Outputs (and derivatives) at θ."""
        try:
            point = self.trial.at(theta)
            return self._accurate(point if sensitive else point.still(), steps, sensitive)
        except InsufficientMemoryError:
            raise
        except GrisailleError as error:
            return self.failed(str(error), sensitive)

    def predict_holding(self, theta: np.ndarray, steps: Steps, values: Mapping[str, float]) -> Prediction:
        """Outputs at θ where disturbances are held at other values than zero."""
        return self._accurate(self.trial.at(theta).still().holding(values), steps, False)

    def crossings(self, theta: np.ndarray, steps: Steps | None = None) -> list[Crossing]:
        """The switches that the trajectory at θ crosses and at which its equations jump."""
        if not (self.structure.jumps.of_states or self.structure.model.whens):
            return []
        point = self.trial.at(theta).still()
        task = self._task(point, self._tolerance(steps) if steps else self.rtol)
        return find_crossings(point.structure, self._kernel(point)[1], task, steps.method if steps else "auto")

    def happenings(self, theta: np.ndarray, steps: Steps) -> Happenings:
        """What a model's own events do at θ."""
        try:
            point = self.trial.at(theta).still()
            form, kernel = self._kernel(point)
            task = form.listing(self._task(point, self._tolerance(steps)))
            task.fixed_step = steps.step
            integrate(kernel, task, steps.method)
        except InsufficientMemoryError:
            raise
        except GrisailleError as error:
            return Happenings((), str(error))
        if task.status != Status.DONE:
            return Happenings((), describe(task, form.system, steps.method))
        return Happenings(fired(task, form.system))

    @property
    def is_exact(self) -> bool:
        """Whether derivatives contain the share of the jumps that a trajectory crosses."""
        return integrated(self.structure, 0, self.compiled).is_exact(self.structure.jumps)

    def with_trial(self, trial: Trial) -> Runner:
        """A runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial = trial
        return other

    def _accurate(self, point: Point, steps: Steps, sensitive: bool) -> Prediction:
        """A run whose steps are short enough to believe it; ``discretisation`` is that of the frozen step."""
        first = self._run(point, steps, sensitive, 1.0)
        if not steps.step or first.discretisation <= COARSE:
            return first
        for share in SHORTER if first.discretisation < HOPELESS else ():
            shorter = self._run(point, steps, sensitive, share)
            if shorter.discretisation <= COARSE:
                return replace(shorter, discretisation=first.discretisation) if shorter.completed else shorter
        # bends and jumps ask for their own steps; what only blows up would take them without end
        most = int(ADAPTIVE_FROM * ((point.times[-1] - point.t0) / steps.step + len(point.times)))
        adaptive = self._run(point, Steps(steps.method, 0.0), sensitive, 1.0, most)
        if adaptive.completed:
            return replace(adaptive, discretisation=first.discretisation)
        return self.failed(
            f"the steps that suit the first point ({steps.step:.3g}) are far too long here: the error estimate is "
            f"{first.discretisation:.1g} times the tolerance, and shorter ones do not help",
            sensitive,
        )

    def _run(self, point: Point, steps: Steps, sensitive: bool, share: float, most: int | None = None) -> Prediction:
        if sensitive and point.has_moving_jumps:
            point.refuse_moving_jumps()
        form, kernel = self._kernel(point)
        task = self._task(point, self._tolerance(steps))
        task.fixed_step, task.max_steps = share * steps.step, most or task.max_steps
        integrate(kernel, task, steps.method)
        if task.status != Status.DONE or not np.isfinite(task.y).all():
            return self.failed(describe(task, form.system, steps.method), sensitive)
        sy = np.swapaxes(task.sy[:, :, self.columns], 1, 2) if sensitive else np.zeros((0, 0, 0))
        return Prediction(task.y[:, self.columns], sy, "", task.error_estimate)

    def _tolerance(self, steps: Steps) -> float:
        """Of the integrator; tighter where the steps have been left adaptive."""
        return self.rtol if steps.step else max(TIGHTER * self.rtol, 1e-12)

    def _kernel(self, point: Point) -> tuple[Integrated, Kernel]:
        key = id(point.form)
        if key not in self._kernels:
            form = integrated(point.structure, len(self.trial.moves), self.compiled)
            self._kernels[key] = form, build_kernel(form.system, sensitive=True, compiled=self.compiled)
        return self._kernels[key]

    def _task(self, point: Point, rtol: float) -> Task:
        point = point.with_past() if point.structure.system.has.pasts else point
        form, kernel = self._kernel(point)
        moved, nominal = bool(len(point.dq)), point.initializer.nominal
        given = arguments_of(point, form, len(self.trial.moves), 1e-3 * rtol * nominal, rtol, self.rtol)
        table = given.table
        return Task.create(
            kernel, point.t0, float(point.times[-1]), p=given.p, x=point.start.x, z=given.z, times=point.times,
            breaks=table.breaks, coef=table.coef, kink=table.kink, dp=given.dp if moved else None,
            sx=point.dstart.sx if moved else None, sz=given.sz, rtol=rtol, atol=given.atol,
            nominal=nominal[: point.structure.system.nx], max_steps=20_000_000, past=given.past,
        )  # fmt: skip

    def failed(self, reason: str, sensitive: bool) -> Prediction:
        """The answer of a run that did not take place."""
        shape = (len(self.trial.times), len(self.columns))
        ns = len(self.trial.moves) if sensitive else 0
        return Prediction(np.full(shape, np.nan), np.full((*shape, ns), np.nan), reason)


def _copy(kernel: Kernel, task: Task) -> Task:
    """The same run without sensitivities."""
    return Task.create(
        kernel, task.t0, task.t1, p=task.p, x=task.x, z=task.z, times=task.times, breaks=task.breaks, coef=task.coef,
        kink=task.kink, rtol=task.rtol, atol=task.atol, nominal=task.nominal, max_steps=task.max_steps, past=task.past,
    )  # fmt: skip
