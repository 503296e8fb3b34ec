"""One experiment inside a problem: its runner, its samples, and which unknowns move it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.noise import NoiseLevel
from grisaille.model.classes import Model
from grisaille.simulation.rows import RowRunner
from grisaille.simulation.runner import Runner
from grisaille.trial import Trial
from grisaille.trial.data_matrix import Samples
from grisaille.trial.movement import KINDS, Kind
from grisaille.trial.trial import movement_of
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True)
class Case:
    """An experiment that can be predicted at any values of the unknowns."""

    experiment: Any
    trial: Trial
    runner: Any
    """What an estimator makes of the trial; None where it makes one thing of all trials."""
    outputs: tuple[str, ...]
    """Columns of a prediction: measured outputs, then what noise formulas need."""
    unknowns: tuple[int, ...]
    """Indices into the problem's unknowns, in the order of the trial's θ."""

    @property
    def name(self) -> str:
        return self.trial.name

    @property
    def grid(self) -> np.ndarray:
        return self.trial.times

    @property
    def samples(self) -> tuple[Samples, ...]:
        return self.trial.data.samples

    @property
    def count(self) -> int:
        return sum(len(s.values) for s in self.samples)

    def own(self, theta: np.ndarray) -> np.ndarray:
        """θ of the trial among values of all unknowns."""
        return np.asarray(theta[list(self.unknowns)])

    def column(self, name: str) -> int:
        return self.outputs.index(name)

    def with_values(self, values: Iterator[np.ndarray]) -> Case:
        """The same with other measurements, one array for each of ``samples``."""
        trial = self.trial.with_data(self.trial.data.with_values(values))
        return replace(self, trial=trial, runner=None if self.runner is None else self.runner.with_trial(trial))


def build_case(
    model: Model,
    experiment: Any,
    unknowns: Sequence[Unknown],
    noise: dict[str, NoiseLevel],
    rtol: float,
    compiled: bool | None,
) -> Case:
    """The case of one experiment."""
    trial, mine = trial_of(model, experiment, unknowns)
    measured = tuple(experiment.outputs)
    outputs = tuple(dict.fromkeys([*measured, *(n for m in measured for n in noise[m].needs)]))
    if trial.is_static:
        runner: Runner | RowRunner = RowRunner(trial, outputs)
    else:
        runner = Runner(trial, outputs, rtol=rtol, compiled=compiled)
    return Case(experiment, trial, runner, outputs, mine)


def trial_of(
    model: Model, experiment: Any, unknowns: Sequence[Unknown], kinds: Sequence[Kind] = KINDS
) -> tuple[Trial, tuple[int, ...]]:
    """An experiment with those of the unknowns that move it, and which these are."""
    mine = tuple(k for k, u in enumerate(unknowns) if u.applies_to(experiment.name) and u.kind in kinds)
    starts = [unknowns[k].name for k in mine if unknowns[k].kind == "start"]
    if experiment.is_static and starts:
        raise EstimationError(f"'{starts[0]}' is estimated, but a static experiment has no start.")
    return Trial.of(model, experiment, movement_of([unknowns[k] for k in mine])), mine


def unknown_starts(experiment: Any) -> dict[str, Any]:
    """Starts that the experiment declares unknown: variable → None or a prior."""
    return {n: v for n, v in experiment.start.items() if not isinstance(v, int | float | np.number)}


def start_guesses(unknowns: Sequence[Unknown], cases: Sequence[Any]) -> tuple[Unknown, ...]:
    """Starts begin at the consistent start of their experiment at the guess."""
    done = list(unknowns)
    for case in cases:
        wanted = [k for k in case.unknowns if done[k].kind == "start" and not np.isfinite(done[k].guess)]
        if not wanted:
            continue
        still = [k for k in case.unknowns if k not in wanted]
        trial = case.trial.moving(movement_of([done[k] for k in still]))
        start = trial.at([done[k].guess for k in still]).observed()
        for k in wanted:
            done[k] = replace(done[k], guess=start[done[k].target])
    return tuple(done)
