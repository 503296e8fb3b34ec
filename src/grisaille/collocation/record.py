"""One experiment as collocation reads it: values of q and of the starts for given unknowns, signals and measurements.

``Given`` is what a program needs at one value of the unknowns: q with its derivatives, and the states at the first
instant that are known there (a formula of parameters, or an unknown of its own), with theirs. States that nothing fixes
at the first instant have a NaN start.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model, plant_states
from grisaille.errors import EstimationError
from grisaille.experiment.interpolation import SignalTable, make_table
from grisaille.experiment.switching import find_switches
from grisaille.model.classes import Model
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import ParameterFormulas, ParameterValues
from grisaille.structure.prepared import structure_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Given:
    """Numbers at one value of the p unknowns that move this experiment."""

    q: Floats
    dq: Floats
    """(p, len(q))"""
    start: Floats
    """(n,), NaN where the trajectory starts freely."""
    dstart: Floats
    """(p, n)"""


class Record:
    """An experiment, and how its unknowns enter.

    times : of the samples, the start first
    y, weights : (times, outputs), NaN where not measured
    unknowns : (kind, target) of everything that comes with a call, in order; kinds as in ``estimation.unknowns``
    """

    def __init__(
        self,
        model: Model,
        name: str,
        times: Floats,
        y: Floats,
        weights: Floats,
        *,
        outputs: Sequence[str],
        inputs: Mapping[str, Any],
        hold: Mapping[str, str] | str | None,
        unknowns: Sequence[tuple[str, str]],
        constants: Mapping[str, float],
        demands: Mapping[str, float],
        known: Mapping[str, float],
    ) -> None:
        self.model, self.name, self.times, self.weights = model, name, times, weights
        self.y = np.where(weights > 0, y, np.nan)
        self.unknowns, self.outputs = tuple(unknowns), tuple(outputs)
        self.constants, self.demands = dict(constants), dict(demands)
        self.inputs, self.hold, self.known = dict(inputs), hold, dict(known)
        own = [target for kind, target in self.unknowns if kind == "parameter"]
        self.formulas = ParameterFormulas(structure_of(model).model, {*self.constants, *own})
        values = self.formulas.evaluate({**self.constants, **{n: known[n] for n in own}})
        self.structure = structure_of(model, values.values)
        self.initializer = Initializer(self.structure)
        self.stochastic = self._stochastic(values)
        self._table: SignalTable | None = None
        self._refuse_moving_switches(own)
        self.places = {name: k for k, name in enumerate(self.stochastic.quantities)}
        self.start_of = self._start_states()
        self._fixed_start = self._start_stays(own)
        self._kept_start: Floats | None = None

    def _stochastic(self, values: ParameterValues) -> StochasticModel:
        levels = {kind: [t for k, t in self.unknowns if k == kind] for kind in ("scale", "noise")}
        numbers = dict(zip(values.names, values.values.tolist(), strict=True))
        return build_stochastic_model(
            self.structure, self.outputs, scales=levels["scale"], noises=levels["noise"], values=numbers
        )

    def _start_states(self) -> dict[int, int]:
        """Unknown → the state whose start it is."""
        states = plant_states(self.stochastic)
        found = {}
        for k, (kind, target) in enumerate(self.unknowns):
            if kind != "start":
                continue
            if target not in states:
                raise EstimationError(
                    f"'start({target})' is not the start of a state, so the trajectory cannot take it as it is; "
                    f"estimate the start of one of {', '.join(states)}."
                )
            found[k] = states[target]
        return found

    @cached_property
    def level_names(self) -> set[str]:
        """Parameters that noise, or the motion of disturbances, depends on: their estimates need a likelihood."""
        m = self.stochastic
        inside = ca.vertcat(ca.vec(ca.densify(m.noise)), ca.vec(ca.densify(m.variance)), m.drift[m.nx :])
        depends = {m.quantities[k] for k in ca.jacobian_sparsity(inside, m.q).get_col()}
        own = [target for kind, target in self.unknowns if kind == "parameter"]
        tied = self.formulas.evaluate({**self.constants, **{n: self.known[n] for n in own}})
        return {
            n
            for n in own
            if any(tied.jacobian[tied.names.index(d), tied.names.index(n)] for d in depends if d in tied.names)
        }

    @property
    def moved(self) -> tuple[int, ...]:
        """Entries of q that some unknown moves, through formulas too."""
        own = [target for kind, target in self.unknowns if kind == "parameter"]
        names, columns = self.formulas.names, [self.formulas.names.index(n) for n in own]
        dependent = np.zeros(len(names), dtype=bool)
        for shift in (1.0, 1.1):  # a derivative that vanishes at one point by accident does not at the other
            tied = self.formulas.evaluate({**self.constants, **{n: shift * self.known[n] for n in own}})
            dependent |= np.any(tied.jacobian[:, columns], axis=1)
        return (*map(int, np.flatnonzero(dependent)), *range(len(names), len(self.places)))

    def at(self, values: Sequence[float], free_starts: bool = False) -> Given:
        """The numbers at values of the unknowns; with ``free_starts`` estimated starts belong to the trajectory."""
        mine = list(zip(self.unknowns, values, strict=True))
        parameters = self.formulas.evaluate({**self.constants, **{t: v for (k, t), v in mine if k == "parameter"}})
        n_p, count = len(parameters.names), len(mine)
        q, dq = np.zeros(len(self.places)), np.zeros((count, len(self.places)))
        q[:n_p] = parameters.values
        for row, ((kind, target), value) in enumerate(mine):
            if kind == "parameter":
                dq[row, :n_p] = parameters.jacobian[:, parameters.names.index(target)]
            elif kind in ("scale", "noise"):
                q[self.places[f"{kind}({target})"]] = value
                dq[row, self.places[f"{kind}({target})"]] = 1.0
        start, dstart = self._start(parameters.values, dq[:, :n_p])
        for row, state in self.start_of.items():
            start[state], dstart[:, state] = np.nan if free_starts else values[row], 0.0
            dstart[row, state] = 0.0 if free_starts else 1.0
        return Given(q, dq, start, dstart)

    def _start_stays(self, own: Sequence[str]) -> bool:
        """Whether no estimated parameter moves the known starts."""
        system = self.structure.system
        moved = [system.p[k] for k in self.moved if k < system.np]
        formulas = self.initializer.declared.formulas
        direct = set(self.demands) <= set(plant_states(self.stochastic))
        return direct and not (moved and formulas.numel() and ca.depends_on(formulas, ca.vertcat(*moved)))

    def _start(self, p: Floats, dp: Floats) -> tuple[Floats, Floats]:
        """Known states at the first instant: those of the plant, and disturbances that start from zero."""
        model, t0 = self.stochastic, float(self.times[0])
        if self._kept_start is not None:
            return self._kept_start.copy(), np.zeros((len(dp), model.n))
        u = self.signals(p).at(t0)
        found = self.initializer.solve(t0, u, p, self.demands)
        start, dstart = np.full(model.n, np.nan), np.zeros((len(dp), model.n))
        start[: model.nx] = found.x
        start[model.nx :][[s == "zero" for s in model.starts]] = 0.0
        if self._fixed_start:
            self._kept_start = start.copy()
        elif len(dp):
            dstart[:, : model.nx] = self.initializer.sensitivity(t0, u, p, found, dp, self.demands, {}).sx
        return start, dstart

    def with_measurements(self, y: Floats) -> Record:
        """The same experiment with other measurements."""
        other = copy.copy(self)
        other.y = np.where(self.weights > 0, y, np.nan)
        return other

    def signals(self, p: Floats) -> SignalTable:
        """Made once, unless formulas of time switch."""
        system = self.structure.system
        if self._table is None or system.switches.numel() + system.bends.numel():
            defaults = {n: i.default for n, i in self.structure.model.inputs.items()}
            switches, bends = find_switches(system, p, self.times)
            self._table = make_table(system.signals, self.inputs, self.hold, self.times, defaults, switches, bends)
        return self._table

    def start_at(self, values: Mapping[str, float]) -> dict[str, float]:
        """Every observed name at the consistent start, without estimated starts."""
        p = self.formulas.evaluate({**self.constants, **values}).values
        t0, u = float(self.times[0]), self.signals(p).at(float(self.times[0]))
        return self.initializer.observe(t0, self.initializer.solve(t0, u, p, self.demands), u, p)

    def _refuse_moving_switches(self, own: Sequence[str]) -> None:
        system = self.structure.system
        formulas = ca.vertcat(system.switches, system.bends)
        moved = [system.p[system.parameter_names.index(n)] for n in own]
        if formulas.numel() and moved and ca.depends_on(formulas, ca.vertcat(*moved)):
            raise EstimationError(
                f"{self.structure.model.name} switches at instants that depend on an estimated parameter; knots need "
                "instants that stay. Fix that parameter, or use gr.OutputError."
            )
