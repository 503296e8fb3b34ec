"""One experiment simulated again and again: same times and inputs, other parameters and starts.

What does not depend on values is made once: structure, kernel, signal table, formulas. Steps are frozen (``simulate``
explains why): the method and the step are chosen at the first point, by the error estimate, and kept until ``refine``.
A run that fails is an answer, not an exception: optimizers must survive it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.task import Status, Task
from grisaille.errors import GrisailleError
from grisaille.model.classes import Model
from grisaille.simulation.frozen import choose_step
from grisaille.simulation.integration import integrate
from grisaille.simulation.outcome import describe
from grisaille.simulation.signals import SignalTable, make_table
from grisaille.simulation.switching import find_switches
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import ParameterFormulas, ParameterValues
from grisaille.structure.prepared import structure_of, vanishing_pivots


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
        self._table: SignalTable | None = None

    def predict(self, values: Mapping[str, float], starts: Mapping[str, float], *, sensitive: bool) -> Prediction:
        """Outputs (and derivatives by ``parameters`` then ``starts``) at given values."""
        try:
            given = self.formulas.evaluate({**self.constants, **values})
            if vanishing_pivots(self.structure, given.values):
                self._prepare(given.values)
            return self._run(given, {**self.demands, **starts}, sensitive)
        except GrisailleError as error:
            return self._failed(str(error), sensitive)

    def start_at(self, values: Mapping[str, float]) -> dict[str, float]:
        """Every observed name at the consistent start, without the starts that come with a call."""
        given = self.formulas.evaluate({**self.constants, **values})
        t0 = float(self.times[0])
        u = self._signals(given.values).at(t0)
        start = self.initializer.solve(t0, u, given.values, self.demands)
        return self.initializer.observe(t0, start, u, given.values)

    def refine(self) -> None:
        """Halve the frozen step."""
        self.step /= 2

    def _directions(self, given: ParameterValues) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        ns = len(self.parameters) + len(self.starts)
        dp = np.zeros((ns, len(given.names)))
        for k, name in enumerate(self.parameters):
            dp[k] = given.jacobian[:, given.names.index(name)]
        return dp, {name: np.eye(ns)[len(self.parameters) + k] for k, name in enumerate(self.starts)}

    def _run(self, given: ParameterValues, demands: dict[str, float], sensitive: bool) -> Prediction:
        system, t0 = self.structure.system, float(self.times[0])
        table = self._signals(given.values)
        u = table.at(t0)
        start = self.initializer.solve(t0, u, given.values, demands)
        task = Task.create(
            self.kernel, t0, float(self.times[-1]), p=given.values, x=start.x, z=start.z, times=self.times,
            breaks=table.breaks, coef=table.coef, kink=table.kink, dp=self._directions(given)[0] if sensitive else None,
            rtol=self.rtol, atol=1e-3 * self.rtol * self.initializer.nominal,
            nominal=self.initializer.nominal[: system.nx], max_steps=20_000_000,
        )  # fmt: skip
        if sensitive:
            dp, moved = self._directions(given)
            s = self.initializer.sensitivity(t0, u, given.values, start, dp, demands, moved)
            task.sx[:], task.sz[:] = s.sx, s.sz
        if not self.method:
            self._choose(task)
        task.fixed_step = self.step
        integrate(self.kernel, task, self.method)
        if task.status != Status.DONE or not np.isfinite(task.y).all():
            return self._failed(describe(task, system, self.method), sensitive)
        sy = np.swapaxes(task.sy[:, :, self.columns], 1, 2) if sensitive else np.zeros((0, 0, 0))
        return Prediction(task.y[:, self.columns], sy, "", task.error_estimate)

    def _choose(self, task: Task) -> None:
        """Method and step at the first point: adaptive for the method, halving for the step."""
        trial = _copy(self.kernel, task)
        self.method = integrate(self.kernel, trial, "auto")
        trial = _copy(self.kernel, task)
        choose_step(self.kernel, trial, f"frozen-{self.method}", None, None)
        self.step = trial.fixed_step

    def _signals(self, p: np.ndarray) -> SignalTable:
        """Made once, unless formulas of time switch at instants that depend on parameters."""
        system = self.structure.system
        moving = system.switches.numel() + system.bends.numel() > 0
        if self._table is None or moving:
            defaults = {n: i.default for n, i in self.structure.model.inputs.items()}
            switches, bends = find_switches(system, p, self.times)
            self._table = make_table(system.signals, self.inputs, self.hold, self.times, defaults, switches, bends)
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
