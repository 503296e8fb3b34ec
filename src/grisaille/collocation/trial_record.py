"""One experiment as collocation reads it: values of q and of the starts for given unknowns, signals and measurements.

``RecordValues`` is what a program needs at one value of the unknowns: q with its derivatives, and the states at the
first
instant that are known there (a formula of parameters, or an unknown of its own), with theirs. States that nothing fixes
at the first instant have a NaN start.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.shared_refusals import refuse_moving_instants, scheduled_trial
from grisaille.collocation.array_types import Floats
from grisaille.disturbance.stochastic_model import build_stochastic_model, plant_states
from grisaille.errors import EstimationError


@dataclass(frozen=True, eq=False)
class RecordValues:
    """Numbers at one value of the p unknowns of this experiment."""

    q: Floats
    dq: Floats
    """(p, len(q))"""
    start: Floats
    """(n,), NaN where the trajectory starts freely."""
    dstart: Floats
    """(p, n)"""


def outputs_that_are_states(X: ca.SX, measured: ca.SX) -> dict[int, int]:
    """Return output → the state that it is."""
    places = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(X))}
    found = [places.get(y.element_hash()) for y in ca.vertsplit(measured)]
    return {column: state for column, state in enumerate(found) if state is not None}


class TrialReader:
    """What both bases read of a trial."""

    trial: BoundExperiment

    @property
    def name(self) -> str:
        return self.trial.name

    @property
    def times(self) -> Floats:
        return self.trial.times


class CollocationRecord(TrialReader):
    """A trial, and how its unknowns enter; ``known`` is θ where the form of the equations is decided."""

    def __init__(self, trial: BoundExperiment, known: Floats) -> None:
        self.trial = trial = scheduled_trial(trial, "collocation")
        point = trial.at(known)
        self.form, self.structure, self.table = point.form, point.structure, point.table
        self.stochastic = build_stochastic_model(
            point.structure, trial.data.outputs, scales=trial.moves.targets("scale"),
            noises=trial.moves.targets("noise"), values=point.known,
        )  # fmt: skip
        refuse_moving_instants(trial, point.form, "a trajectory between knots")
        self.start_of = self._start_states()

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.trial.data.outputs

    @property
    def y(self) -> Floats:
        return self.trial.data.y

    @property
    def weights(self) -> Floats:
        return self.trial.data.weights

    def _start_states(self) -> dict[int, int]:
        """Return unknown → the state whose start it is."""
        states, moves = plant_states(self.stochastic), self.trial.moves
        for target in moves.targets("start"):
            if target not in states:
                raise EstimationError(
                    f"'start({target})' is not the start of a state, so the trajectory cannot take it as it is; "
                    f"estimate the start of one of {', '.join(states)}."
                )
        return {k: states[t] for k, t in zip(moves.places("start"), moves.targets("start"), strict=True)}

    @cached_property
    def level_names(self) -> set[str]:
        """Parameters that noise, or the motion of disturbances, depends on: their estimates need a likelihood."""
        m = self.stochastic
        inside = ca.vertcat(ca.vec(ca.densify(m.noise)), ca.vec(ca.densify(m.variance)), m.drift[m.nx :])
        depends = [k for k in ca.jacobian_sparsity(inside, m.q).get_col() if k < self.trial.np]
        moves = self.trial.moves
        return {moves.names[k] for k in moves.places("parameter") if self.trial.reach[k, depends].any()}

    @cached_property
    def noise_follows(self) -> bool:
        """Return whether formulas of measurement noise contain states."""
        return bool(ca.depends_on(ca.densify(self.stochastic.variance), self.stochastic.X))

    @property
    def moved(self) -> tuple[int, ...]:
        """Entries of q that depend on some unknown, through formulas too."""
        return tuple(map(int, np.flatnonzero(self.trial.reach.any(axis=0))))

    def at(self, theta: Floats, free_starts: bool = False) -> RecordValues:
        """Return the numbers at values of the unknowns; with ``free_starts`` estimated starts belong to the
        trajectory.
        """
        point, model = self.trial.at(theta, self.form), self.stochastic
        start, dstart = np.full(model.n, np.nan), np.zeros((len(point.dq), model.n))
        start[: model.nx], dstart[:, : model.nx] = point.start.x, point.dstart.sx
        start[model.nx :][[s == "zero" for s in model.starts]] = 0.0
        if free_starts:
            for row, state in self.start_of.items():
                start[state], dstart[:, state] = np.nan, 0.0
                dstart[row] = 0.0
        return RecordValues(point.q, point.dq, start, dstart)

    def with_experiment(self, trial: BoundExperiment) -> CollocationRecord:
        """Return the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial = trial
        return other
