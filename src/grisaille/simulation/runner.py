"""One experiment simulated again and again: same times and inputs, other parameters and starts.

What does not depend on values is made once: structure, kernel, signal table, formulas. Steps are frozen (``simulate``
explains why): the method and the step are chosen at the first point, by the error estimate, and kept until ``refine``.
Where equal steps would be very many (a body that sticks and slips), steps stay adaptive, with a tighter tolerance.
Far from the first point the frozen step may be far too long: there a run takes a tenth or a hundredth of it, and where
that is not enough it fails, so that no search ends in what the discretisation makes of a model.
A run that fails is an answer, not an exception: optimizers must survive it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.task import Status, Task
from grisaille.errors import GrisailleError, SimulationError
from grisaille.experiment.interpolation import SignalTable, make_table
from grisaille.experiment.switching import find_switches, refuse_moving_jumps
from grisaille.model.classes import Model
from grisaille.simulation.crossings import Crossing, find_crossings
from grisaille.simulation.direct_start import DirectStart
from grisaille.simulation.frozen import choose_step
from grisaille.simulation.integration import integrate
from grisaille.simulation.leeway import with_leeway
from grisaille.simulation.outcome import describe
from grisaille.structure.initialization import Initializer, Start, StartSensitivity
from grisaille.structure.parameters import ParameterFormulas, ParameterValues
from grisaille.structure.prepared import structure_of, vanishing_pivots

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


class Runner:
    """Predicts the outputs of one experiment.

    times : increasing, the start first
    outputs : observed names, in the order of the columns of ``y``
    parameters, starts : names whose values come with every call, in the order of the columns of ``sy``
    constants, demands : values that hold for this experiment
    """

    def __init__(
        self,
        model: Model,
        times: np.ndarray,
        *,
        outputs: Sequence[str],
        inputs: Mapping[str, Any] | None = None,
        hold: Mapping[str, str] | str | None = None,
        parameters: Sequence[str] = (),
        starts: Sequence[str] = (),
        constants: Mapping[str, float] | None = None,
        demands: Mapping[str, float] | None = None,
        rtol: float = 1e-7,
        compiled: bool | None = None,
    ) -> None:
        self.model, self.times = model, np.asarray(times, dtype=float)
        self.parameters, self.starts = tuple(parameters), tuple(starts)
        self.constants, self.demands = dict(constants or {}), dict(demands or {})
        self.inputs, self.hold, self.rtol, self.compiled = dict(inputs or {}), hold, rtol, compiled
        self.formulas = ParameterFormulas(structure_of(model).model, {*self.constants, *self.parameters})
        self._prepare(None)
        names = self.structure.system.observed_names
        self.columns = np.array([names.index(o) for o in outputs], dtype=int)
        self.method, self.step = "", 0.0

    def _prepare(self, p: np.ndarray | None) -> None:
        self.structure = structure_of(self.model, p)
        self.initializer = Initializer(self.structure)
        self.kernel: Kernel = build_kernel(self.structure.system, sensitive=True, compiled=self.compiled)
        self.direct = DirectStart.of(self.initializer, frozenset({*self.demands, *self.starts}))
        self._table: SignalTable | None = None
        formulas = ca.vertcat(self.structure.system.switches, self.structure.system.bends)
        self._switches_move = formulas.numel() > 0 and bool(ca.depends_on(formulas, self.structure.system.p))

    def predict(self, values: Mapping[str, float], starts: Mapping[str, float], *, sensitive: bool) -> Prediction:
        """Outputs (and derivatives by ``parameters`` then ``starts``) at given values."""
        try:
            given = self.formulas.evaluate({**self.constants, **values})
            if vanishing_pivots(self.structure, given.values):
                self._prepare(given.values)
            return self._accurate(given, {**self.demands, **starts}, sensitive)
        except GrisailleError as error:
            return self._failed(str(error), sensitive)

    def start_at(self, values: Mapping[str, float]) -> dict[str, float]:
        """Every observed name at the consistent start, without the starts that come with a call."""
        given = self.formulas.evaluate({**self.constants, **values})
        if vanishing_pivots(self.structure, given.values):
            self._prepare(given.values)
        t0 = float(self.times[0])
        u = self._signals(given.values).at(t0)
        start = self.initializer.solve(t0, u, given.values, self.demands)
        return self.initializer.observe(t0, start, u, given.values)

    def crossings(self, values: Mapping[str, float], starts: Mapping[str, float]) -> list[Crossing]:
        """The switches that the trajectory at these values crosses and at which its equations jump."""
        if not self.structure.jumps.of_states:
            return []
        given = self.formulas.evaluate({**self.constants, **values})
        dp, moved = self._directions(given)
        table = self._signals(given.values)
        start, _ = self._start(
            table.at(float(self.times[0])), given.values, {**self.demands, **starts}, dp, moved, sensitive=False
        )
        task = self._task(given.values, start, table)
        return find_crossings(self.structure, self.kernel, task, self.method or "auto")

    @property
    def tolerance(self) -> float:
        """Of the integrator; tighter once the steps have been left adaptive."""
        return max(TIGHTER * self.rtol, 1e-12) if self.method and not self.step else self.rtol

    def refine(self, excess: float = 1.0) -> None:
        """Shorten the frozen step, by more than a half where the error estimate is many tolerances (``excess``).

        Adaptive steps keep their tolerance.
        """
        # the estimate is of fourth order or higher
        self.step *= min(0.5, 0.8 * excess**-0.25)

    def _directions(self, given: ParameterValues) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        ns = len(self.parameters) + len(self.starts)
        dp = np.zeros((ns, len(given.names)))
        for k, name in enumerate(self.parameters):
            dp[k] = given.jacobian[:, given.names.index(name)]
        return dp, {name: np.eye(ns)[len(self.parameters) + k] for k, name in enumerate(self.starts)}

    def _accurate(self, given: ParameterValues, demands: dict[str, float], sensitive: bool) -> Prediction:
        """A run whose steps are short enough to believe it; ``discretisation`` is that of the frozen step."""
        first = self._run(given, demands, sensitive, 1.0)
        if not self.step or first.discretisation <= COARSE:
            return first
        for share in SHORTER if first.discretisation < HOPELESS else ():
            shorter = self._run(given, demands, sensitive, share)
            if shorter.discretisation <= COARSE:
                return replace(shorter, discretisation=first.discretisation) if shorter.completed else shorter
        return self._failed(
            f"the steps that suit the first point ({self.step:.3g}) are far too long here: the error estimate is "
            f"{first.discretisation:.1g} times the tolerance, and shorter ones do not help",
            sensitive,
        )

    def _run(self, given: ParameterValues, demands: dict[str, float], sensitive: bool, share: float) -> Prediction:
        system, t0 = self.structure.system, float(self.times[0])
        table = self._signals(given.values)
        dp, moved = self._directions(given)
        start, s = self._start(table.at(t0), given.values, demands, dp, moved, sensitive)
        if sensitive and self._switches:
            names = (*self.parameters, *self.starts)
            refuse_moving_jumps(system, self._switches, given.values, dp, names, np.concatenate([start.x, start.z]))
        task = self._task(given.values, start, table, dp if sensitive else None, s)
        chosen_here = not self.method
        if chosen_here:
            self._choose(task)
            task.rtol, task.atol = self.tolerance, 1e-3 * self.tolerance * self.initializer.nominal
        method, task.fixed_step = self.method, share * self.step
        integrate(self.kernel, task, method)
        if task.status != Status.DONE or not np.isfinite(task.y).all():
            if chosen_here:
                # what suits a run that fails need not suit the next one
                self.method, self.step = "", 0.0
            return self._failed(describe(task, system, method), sensitive)
        sy = np.swapaxes(task.sy[:, :, self.columns], 1, 2) if sensitive else np.zeros((0, 0, 0))
        return Prediction(task.y[:, self.columns], sy, "", task.error_estimate)

    def _task(
        self,
        p: np.ndarray,
        start: Start,
        table: SignalTable,
        dp: np.ndarray | None = None,
        s: StartSensitivity | None = None,
    ) -> Task:
        return Task.create(
            self.kernel, float(self.times[0]), float(self.times[-1]), p=p, x=start.x, z=start.z, times=self.times,
            breaks=table.breaks, coef=table.coef, kink=table.kink, dp=dp, sx=s.sx if s else None,
            sz=s.sz if s else None, rtol=self.tolerance, atol=1e-3 * self.tolerance * self.initializer.nominal,
            nominal=self.initializer.nominal[: self.structure.system.nx], max_steps=20_000_000,
        )  # fmt: skip

    def _start(
        self,
        u: np.ndarray,
        p: np.ndarray,
        demands: dict[str, float],
        dp: np.ndarray,
        moved: dict[str, np.ndarray],
        sensitive: bool,
    ) -> tuple[Start, StartSensitivity | None]:
        """The consistent start, read off where that is possible."""
        read = self.direct.solve(p, demands, dp, moved) if self.direct is not None else None
        if read is not None:
            return read[0], read[1] if sensitive else None
        t0 = float(self.times[0])
        start = self.initializer.solve(t0, u, p, demands)
        return start, self.initializer.sensitivity(t0, u, p, start, dp, demands, moved) if sensitive else None

    def _choose(self, task: Task) -> None:
        """Method and step at the first point: adaptive for the method, halving for the step."""
        free = _copy(self.kernel, task)
        free.max_steps = FIRST_STEPS
        method = integrate(self.kernel, free, "auto")
        if free.status != Status.DONE:
            # no fixed step would do what error control cannot
            raise SimulationError(describe(free, self.structure.system, method))
        self.method = method
        equal = _copy(self.kernel, task)
        equal.max_steps = max(ADAPTIVE_FROM * free.steps, 10 * len(self.times))
        choose_step(self.kernel, equal, f"frozen-{self.method}", None, None)
        reached = equal.status == Status.DONE and equal.error_estimate <= 1.0
        self.step = equal.fixed_step if reached else 0.0

    def _signals(self, p: np.ndarray) -> SignalTable:
        """Made once, unless formulas of time switch at instants that depend on parameters."""
        system = self.structure.system
        if self._table is None or self._switches_move:
            defaults = {n: i.default for n, i in self.structure.model.inputs.items()}
            switches, bends = find_switches(system, p, self.times)
            table = make_table(system.signals, self.inputs, self.hold, self.times, defaults, switches, bends)
            self._table = with_leeway(table, system, self.rtol)
            self._switches = switches
        return self._table

    def _failed(self, reason: str, sensitive: bool) -> Prediction:
        shape = (len(self.times), len(self.columns))
        ns = len(self.parameters) + len(self.starts) if sensitive else 0
        return Prediction(np.full(shape, np.nan), np.full((*shape, ns), np.nan), reason)


def _copy(kernel: Kernel, task: Task) -> Task:
    """The same run without sensitivities."""
    return Task.create(
        kernel, task.t0, task.t1, p=task.p, x=task.x, z=task.z, times=task.times, breaks=task.breaks, coef=task.coef,
        kink=task.kink, rtol=task.rtol, atol=task.atol, nominal=task.nominal, max_steps=task.max_steps,
    )  # fmt: skip
