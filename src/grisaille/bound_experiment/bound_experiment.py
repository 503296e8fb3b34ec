"""One experiment of one model, with the unknowns that belong to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment.data_matrix import DataMatrix, measured_samples
from grisaille.bound_experiment.dead_times import dead_times_at
from grisaille.bound_experiment.estimated_quantities import EstimatedQuantities
from grisaille.bound_experiment.experiment_point import ExperimentPoint
from grisaille.bound_experiment.system_form import FormSignals, SystemForm
from grisaille.bound_experiment.theta_encoding import encoding_of
from grisaille.errors import ModelError
from grisaille.experiment.piecewise_polynomials import constant, hold_of, make_table, refuse_derivative, smoothness_of
from grisaille.experiment.switching_times import find_switches, refuse_jumps
from grisaille.model.classes import Model
from grisaille.structure.delays.moving_breaks import with_moving_breaks
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of
from grisaille.structure.time_schedule import with_schedule

if TYPE_CHECKING:
    from grisaille.bound_experiment.unknown import Unknown
    from grisaille.experiment.delayed_signals import DelayedSignals
    from grisaille.experiment.experiment import Experiment
    from grisaille.structure.descriptor.operating_point import PointConditions

Floats = NDArray[np.float64]


class BoundExperiment:
    """What an experiment is, whatever is done with it.

    times : increasing, the start first; row numbers of a static experiment
    moves : what comes with every call of ``at``
    constants, scales, demands : parameters, scales of disturbances and starts that hold for this experiment
    steady : look for a start at which nothing moves
    breaks : further instants at which steps end
    origin : when the record began of which this is a part, for delays; the first of ``times`` if not given
    is_scheduled : discrete variables are signals that are known before a run (``structure/time_schedule.py``)

    Nothing of it changes after it was made; what is computed once is kept.
    """

    def __init__(
        self,
        model: Model,
        times: Floats,
        *,
        name: str = "",
        moves: EstimatedQuantities = EstimatedQuantities(),  # noqa: B008 (frozen)
        inputs: Mapping[str, Any] | None = None,
        hold: Mapping[str, str] | str | None = None,
        constants: Mapping[str, float] | None = None,
        scales: Mapping[str, float] | None = None,
        demands: Mapping[str, float] | None = None,
        steady: bool = False,
        breaks: Floats | None = None,
        data: DataMatrix | None = None,
        is_static: bool = False,
        origin: float | None = None,
        is_scheduled: bool = False,
    ) -> None:
        self.model, self.name, self.moves, self.is_static = model, name, moves, is_static
        self.is_scheduled = is_scheduled
        self.times = np.asarray(times, dtype=float)
        self.inputs, self.hold, self.breaks = dict(inputs or {}), hold, breaks
        self.scales = dict(scales or {})
        self.steady, self.data = steady, data or DataMatrix()
        self.t0 = float(self.times[0]) if len(self.times) else 0.0
        self.origin = self.t0 if origin is None else float(origin)
        self.flat = structure_of(model).model
        self.constants, self.demands = dict(constants or {}), dict(demands or {})
        if self.flat.discretes:
            self.constants, self.demands = self._sorted(self.constants, self.demands)
        self.encoding = encoding_of(self.flat, moves, tuple(self.constants), tuple(self.demands))
        self.formulas = self.encoding.formulas
        self.np = len(self.formulas.names)
        self._forms: list[SystemForm] = []
        self._moved: dict[tuple[object, ...], BoundExperiment] = {}

    @classmethod
    def of(
        cls,
        model: Model,
        experiment: Experiment,
        moves: EstimatedQuantities = EstimatedQuantities(),  # noqa: B008
    ) -> BoundExperiment:
        """Return an experiment as it was measured."""
        grid, data = measured_samples(experiment)
        signals, hold = experiment.input_signals()
        return cls(
            model, grid, name=str(experiment.name), moves=moves, inputs=signals, hold=hold,
            constants=experiment.constants, demands=known_starts(experiment), data=data,
            is_static=experiment.is_static,
        )  # fmt: skip

    def moving(self, moves: EstimatedQuantities) -> BoundExperiment:
        """Return the same experiment with other estimated quantities."""
        given = (moves, *self.constants, "and", *self.demands)
        if given not in self._moved:
            other = self._moved[given] = self._changed(moves=moves)
            if not self.structure.system.delays:  # their clock depends on what moves
                other._forms = self._forms
        return self._moved[given].with_values_of(self.constants, self.scales, self.demands).with_data(self.data)

    def with_values_of(
        self, constants: Mapping[str, float], scales: Mapping[str, float], demands: Mapping[str, float]
    ) -> BoundExperiment:
        """Return the same experiment with other numbers for the same constants and fixed starts; what is made once is
        shared.
        """
        other = copy.copy(self)
        for name in ("conditions", "_constant_quantities", "given"):
            other.__dict__.pop(name, None)
        other.scales = dict(scales)
        other.constants, other.demands = self._sorted(constants, demands)
        return other

    def _sorted(
        self, constants: Mapping[str, float], demands: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return constants and fixed starts; the start of a discrete variable is a constant."""
        discrete = {n: v for n, v in demands.items() if n in self.flat.discretes}
        return {**constants, **discrete}, {n: v for n, v in demands.items() if n not in discrete}

    def scheduled(self) -> BoundExperiment:
        """Return the same experiment, where discrete variables are signals; not checked: that they are known before a
        run.
        """
        return self if self.is_scheduled or not self.flat.whens else self._changed(is_scheduled=True)

    def part(
        self, first: int, last: int, moves: EstimatedQuantities, *, demands: Mapping[str, float]
    ) -> BoundExperiment:
        """Return a stretch of the record between two of its instants, with its own starts and without measurements."""
        return self._changed(
            times=self.times[first : last + 1], moves=moves, demands=demands, data=None, origin=self.origin
        )  # fmt: skip

    def with_data(self, data: DataMatrix) -> BoundExperiment:
        """Return the same instants with other measurements; everything else is shared."""
        other = copy.copy(self)
        other.data = data
        return other

    def _changed(self, **changes: Any) -> BoundExperiment:
        kept = {
            "times": self.times, "name": self.name, "moves": self.moves, "inputs": self.inputs, "hold": self.hold,
            "constants": self.constants, "scales": self.scales, "demands": self.demands, "steady": self.steady,
            "breaks": self.breaks, "data": self.data, "is_static": self.is_static, "origin": self.origin,
            "is_scheduled": self.is_scheduled,
        }  # fmt: skip
        return BoundExperiment(self.model, **{**kept, **changes})

    def at(self, theta: Iterable[float] | Floats = (), form: SystemForm | None = None) -> ExperimentPoint:
        """Return the point of θ; raises ``ModelError`` where a formula of parameters has no value.

        form : the equations that something was prepared for, which then must hold here
        """
        values = np.array(theta if isinstance(theta, np.ndarray) else list(theta), dtype=float)
        q, dq = self._quantities(values)
        if form is None:
            form = self.form(q[: self.np])
        elif form.structure.system.has.divisors and not form.holds(q[: self.np]):
            raise ModelError(f"{self.flat.name} is solved by dividing by something that vanishes at these values.")
        demands = dict(self.demands)
        for name, place in zip(self.moves.targets("start"), self.moves.places("start"), strict=True):
            demands[name] = float(values[place])
        return ExperimentPoint(
            self, values, form, form.structure, form.initializer, self.moves.names if len(dq) else (), self.times,
            self.t0, q, dq, q[: self.np], dq[:, : self.np], demands,
        )  # fmt: skip

    def named(self, values: Mapping[str, float]) -> Floats:
        """Return θ from its entries by name: ``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        return np.array([values[n] for n in self.moves.names], dtype=float)

    def form(self, p: Floats | None = None) -> SystemForm:
        """Return the equations, such that they divide by nothing that vanishes at these parameter values, or makes
        rounding grow.
        """
        for known in self._forms:
            if p is None or known.suits(p):
                return known
        structure = structure_of(self.model, p)
        if self.is_scheduled:
            structure = with_schedule(structure)
        if structure.system.delays and len(self.moves):  # breaks move with dead times that do
            held = {n for n in self.flat.inputs if self.is_held(n)}
            structure = with_moving_breaks(structure, dead_times_at(self, structure.system), held)
        self._forms.append(SystemForm(structure, p))
        return self._forms[-1]

    def is_held(self, name: str) -> bool:
        """Return whether an input is constant between its samples."""
        return self._smoothness(name) == 0

    def _smoothness(self, name: str) -> int:
        default = self.flat.inputs[name].default
        return smoothness_of(self.inputs.get(name, default), hold_of(self.hold, name))

    @property
    def structure(self) -> Structure:
        """Return the equations as they were first needed."""
        return self.form().structure

    def signals(self, form: SystemForm, p: Floats) -> FormSignals:
        """Return the table of u; made once, unless formulas of time switch at instants that depend on parameters."""
        system = form.structure.system
        key = p[list(system.has.timing)].tobytes()
        if form.kept is None or form.kept[0] != key:
            switches = find_switches(system, p, self.times) if system.has.switches else {}
            if switches:
                refuse_jumps(system, switches, p)
            defaults = {n: i.default for n, i in self.flat.inputs.items()}
            later = self._delayed(form, p) if system.delays else None
            table = make_table(
                system.signals, self.inputs, self.hold, self.times, defaults, switches, self.breaks, later
            )
            form.kept = key, FormSignals(table, switches)
        return form.kept[1]

    def _delayed(self, form: SystemForm, p: Floats) -> DelayedSignals:
        from grisaille.experiment.delayed_signals import DelayedSignals

        system = form.structure.system
        sources = {d.name: d for d in system.delays if d.kind == "input"}
        for s in system.signals:
            if s.kind == "delayed" and s.order and s.name in sources:
                source = sources[s.name].source
                if s.order > self._smoothness(source):
                    refuse_derivative(source, s.order, hold_of(self.hold, source))
        span = float(self.times[0]), float(self.times[-1])
        past = {d.name: constant(0.0, span) for d in system.delays if d.kind == "unknown"}
        return DelayedSignals(system, form.taus(p).tolist(), self.origin, past)

    @cached_property
    def conditions(self) -> list[PointConditions]:
        """Return where the record is, for what has to be examined along it before anything is minimised."""
        from grisaille.bound_experiment.examined_conditions import conditions_of

        return conditions_of(self.structure, self.times, self.inputs, self.hold, self.demands)

    @property
    def reach(self) -> NDArray[np.bool_]:
        """Return which entries of q depend on each entry of θ, through formulas too: (len(θ), len(q))."""
        return self.encoding.reach

    @cached_property
    def given(self) -> Floats:
        """Return the given numbers (constants and fixed starts) in the order of the encoding."""
        return np.array([float(v) for v in (*self.constants.values(), *self.demands.values())])

    def _quantities(self, theta: Floats) -> tuple[Floats, Floats]:
        if len(theta) != len(self.moves):
            raise ValueError(f"θ has {len(theta)} entries; {len(self.moves)} move: {', '.join(self.moves.names)}")
        if not len(theta):
            q = self._constant_quantities
            return q, np.zeros((0, len(q)))
        q, dq = self.encoding.quantities(theta, self.given)
        if not np.isfinite(q).all():
            moved = zip(self.moves.targets("parameter"), theta[self.moves.places("parameter")].tolist(), strict=True)
            self.formulas.evaluate({**self.constants, **dict(moved)})
        return q, dq.reshape(len(theta), len(q))

    @cached_property
    def _constant_quantities(self) -> Floats:
        return self.formulas.evaluate(self.constants)


def known_starts(experiment: Experiment) -> dict[str, float]:
    """Return starts that an experiment gives as numbers."""
    return {n: float(v) for n, v in experiment.start.items() if isinstance(v, int | float | np.number)}


def estimated_quantities_of(unknowns: Sequence[Unknown]) -> EstimatedQuantities:
    """Return the movement of unknowns, in their order."""
    return EstimatedQuantities(tuple((u.kind, u.target) for u in unknowns))
