"""A trial at one θ: numbers with their derivatives, signals, and the consistent start.

What has to be solved is solved when it is first asked for; derivatives have one row for each entry of θ.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment.system_form import FormSignals, SystemForm
from grisaille.errors import EstimationError, StructureError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.experiment.switching_times import refuse_held_conditions, refuse_moving_jumps
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import ConsistentStart, Initializer, StartSensitivity

if TYPE_CHECKING:
    from grisaille.bound_experiment.bound_experiment import BoundExperiment

Floats = NDArray[np.float64]
MAX_START_ITERATIONS = 50
"""Times that a start and what is delayed are compared with each other."""


@dataclass(frozen=True, eq=False)
class ExperimentPoint:
    """Everything that a method needs of one experiment at one θ."""

    trial: BoundExperiment
    theta: Floats
    form: SystemForm
    structure: Structure
    """The form's, or one with more outputs or other coordinates (``with_structure``)."""
    initializer: Initializer
    names: tuple[str, ...]
    """Of θ; none where there are no derivatives."""
    times: Floats
    t0: float
    q: Floats
    """All parameters, then the moved scales, then the moved noises."""
    dq: Floats
    """(len(θ), len(q))"""
    p: Floats
    """The parameters among q."""
    dp: Floats
    demands: dict[str, float]
    """Starts that are given, known or moved."""

    @cached_property
    def known(self) -> dict[str, float]:
        """Every parameter by name."""
        return dict(zip(self.trial.formulas.names, self.p.tolist(), strict=True))

    @cached_property
    def scales(self) -> dict[str, float]:
        """Disturbance → scale, where it is given or estimated."""
        moves = self.trial.moves
        given = zip(moves.targets("scale"), self.theta[moves.places("scale")].tolist(), strict=True)
        return {**self.trial.scales, **dict(given)}

    @cached_property
    def dscales(self) -> dict[str, Floats]:
        """Disturbance → derivative of its scale."""
        return self._unit_rows("scale")

    @cached_property
    def ddemands(self) -> dict[str, Floats]:
        """Variable → derivative of its fixed start, where that depends on θ."""
        return self._unit_rows("start")

    def _unit_rows(self, kind: Any) -> dict[str, Floats]:
        moves, one = self.trial.moves, np.eye(len(self.theta))
        if not len(self.dq):
            return {}
        return {target: one[k] for target, k in zip(moves.targets(kind), moves.places(kind), strict=True)}

    @cached_property
    def signals(self) -> FormSignals:
        return self.trial.signals(self.form, self.p)

    @property
    def table(self) -> SignalTable:
        return self.signals.table

    @cached_property
    def u(self) -> Floats:
        """Signals at the first instant."""
        return self.table.at(self.t0)

    @cached_property
    def _read(self) -> tuple[Floats, Floats] | None:
        trial = self.trial
        reader = trial.encoding.reader(self.initializer) if len(trial.moves) and not trial.steady else None
        if reader is None:
            return None
        x, slopes = reader.at(self.theta, trial.given)
        return (x, slopes) if np.isfinite(x).all() else None

    @cached_property
    def start(self) -> ConsistentStart:
        """Return the consistent start; raises ``StructureError`` where there is none."""
        if self._read is not None:
            return ConsistentStart(self._read[0], np.zeros(0), 0.0, {})
        return self.form.start.get(self._decides, self._solve)

    @property
    def _decides(self) -> tuple[object, ...]:
        """Return what the consistent start depends on, bit by bit."""
        return self.p[self._needed].tobytes(), self.u.tobytes(), tuple(self.demands.items())

    @property
    def _needed(self) -> NDArray[np.int64]:
        return self.form.start_parameters(self.demands, self.trial.steady)

    def _solve(self) -> ConsistentStart:
        found = self.initializer.solve(self.t0, self.u, self.p, self.demands, steady=self.trial.steady)
        if self.structure.system.schedule is not None:
            self._refuse_moved_start(found)
        return found

    def _refuse_moved_start(self, found: ConsistentStart) -> None:
        """Refuse starts of discrete variables that the ticks of the start change before signals have them."""
        schedule, u = self.structure.system.schedule, np.array(self.u)
        assert schedule is not None
        kinds = [(s.name, s.kind) for s in self.structure.system.signals]
        for name, place in zip(schedule.names, schedule.places, strict=True):
            u[kinds.index((name, "switch"))] = self.p[place]
        if np.array_equal(u, self.u):
            return
        before = self.initializer.solve(self.t0, u, self.p, self.demands, steady=self.trial.steady)
        size = np.maximum(np.abs(found.x), np.abs(before.x))
        off = np.abs(found.x - before.x) > 1e-6 * size + 1e-10 * size.max(initial=0.0)
        if off.any():
            name = self.structure.system.state_names[int(np.argmax(off))]
            raise EstimationError(
                f"The start of '{name}' follows from equations with discrete variables that an event at the start, "
                f"t = {self.t0:g}, changes: before it {before.x[off][0]:.6g}, after it {found.x[off][0]:.6g}. Let "
                f"clocks begin later, gr.clock(period, start), or give '{name}' a start of its own."
            )

    @cached_property
    def dstart(self) -> StartSensitivity:
        """Derivatives of the start, (len(θ), nx) and (len(θ), nz)."""
        if self._read is not None:
            return StartSensitivity(self._read[1][: len(self.dq)], np.zeros((len(self.dq), 0)))
        moved = self.dp[:, self._needed]
        return self.form.start_slopes.get((*self._decides, moved.shape, moved.tobytes()), self._differentiate)

    def _differentiate(self) -> StartSensitivity:
        return self.initializer.sensitivity(
            self.t0, self.u, self.p, self.start, self.dp, self.demands, self.ddemands, steady=self.trial.steady
        )

    def observed(self) -> dict[str, float]:
        """Return every name the user knows, at the start."""
        return self.initializer.observe(self.t0, self.start, self.u, self.p)

    @property
    def has_moving_jumps(self) -> bool:
        """Return whether anything jumps at an instant that may depend on θ."""
        structure = self.structure
        return bool(len(self.dq) and (structure.system.has.switches or structure.jumps.conditions_of_inputs))

    def refuse_moving_jumps(self) -> None:
        """Refuse derivatives by unknowns on which the instant of a jump depends."""
        refuse_held_conditions(self.structure, self.table, self.dp, self.names)
        if self.signals.switches and len(self.dq):
            w = np.concatenate([self.start.x, self.start.z])
            refuse_moving_jumps(
                self.structure.system, dict(self.signals.switches), self.p, self.dp, self.names, w
            )  # fmt: skip

    def without_derivatives(self) -> ExperimentPoint:
        """Return the same without derivatives."""
        return self._changed(names=(), dq=self.dq[:0], dp=self.dp[:0], _drop=("dstart", "ddemands", "dscales"))

    def holding(self, values: Mapping[str, float]) -> ExperimentPoint:
        """Return the same where disturbances are held at given values; its start is solved again."""
        table = replace(self.table, coef=self.table.coef.copy())
        for k, signal in enumerate(self.structure.system.signals):
            if signal.kind == "disturbance" and signal.order == 0 and signal.name in values:
                table.coef[:, k, 0] = values[signal.name]
        return self._changed(signals=replace(self.signals, table=table), _drop=("u", "start", "dstart"))

    def as_at(self, other: ExperimentPoint) -> ExperimentPoint:
        """Return the same with the start of another trial's point that it equals, and with scales given only where
        there.
        """
        return self._changed(start=other.start, scales=other.scales)

    def with_past(self) -> ExperimentPoint:
        """Return the same where delayed unknowns begin with their values at the start, which may depend on them in
        turn.
        """
        system = self.structure.system
        delays = {d.name: d.source for d in system.delays if d.kind == "unknown"}
        if delays and len(self.dq):
            self._refuse_followed_start(delays)
        if not delays:
            return self
        for share in (1.0, 0.5):  # values that swing around what they should be are averaged
            point = self
            for _ in range(MAX_START_ITERATIONS):
                known, wanted = point.observed(), point.table.coef.copy()
                for k, signal in enumerate(system.signals):
                    if signal.kind == "delayed" and signal.order == 0 and signal.name in delays:
                        wanted[:, k, 0] = known[delays[signal.name]]
                if np.allclose(wanted, point.table.coef, rtol=1e-13, atol=0.0):
                    return point
                table = replace(point.table, coef=point.table.coef + share * (wanted - point.table.coef))
                point = point._changed(signals=replace(self.signals, table=table), _drop=("u", "start", "dstart"))
        raise StructureError(
            f"{self.trial.flat.name}: what is delayed has no value at the start that agrees with itself: give "
            f"before= in gr.delay(…), what held before the start."
        )

    def _refuse_followed_start(self, delays: Collection[str]) -> None:
        """Refuse derivatives where the start is solved from what is delayed, which begins with the start."""
        system = self.structure.system
        past = [system.u[k] for k, s in enumerate(system.signals) if s.kind == "delayed" and s.name in delays]
        deciding = ca.vertcat(system.constraints, *([system.rhs] if self.trial.steady else []))
        if past and deciding.numel() and ca.depends_on(deciding, ca.vertcat(*past)):
            raise StructureError(
                f"{self.trial.flat.name}: the start is solved from {', '.join(sorted(delays))}, which begins with the "
                f"start, and its derivatives are not known there: give start values, or before= in gr.delay(…)."
            )

    def on_standing_steps(self) -> ExperimentPoint:
        """Return the same for steps that do not follow moving breaks; its table must be projected on them."""
        form = self.form.standing
        if form is self.form:
            return self
        return self._changed(structure=form.structure, form=form, initializer=form.initializer)

    def with_structure(self, structure: Structure, initializer: Initializer | None = None) -> ExperimentPoint:
        """Return the same point of other equations with the same states and signals."""
        form = self.form
        if initializer is not None:
            form = form.with_structure(structure, initializer)
        return self._changed(structure=structure, form=form, initializer=form.initializer)

    def _changed(self, _drop: tuple[str, ...] = (), **changes: Any) -> ExperimentPoint:
        """Return a copy that keeps what was solved."""
        other = copy.copy(self)
        for name in _drop:
            other.__dict__.pop(name, None)
        other.__dict__.update(changes)
        return other
