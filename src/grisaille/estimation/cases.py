"""One experiment inside a problem: its runner, its samples, and which unknowns move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.noise import NoiseLevel
from grisaille.estimation.unknowns import Unknown
from grisaille.model.classes import Model
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.rows import RowRunner
from grisaille.simulation.runner import Prediction, Runner


@dataclass(frozen=True)
class Samples:
    """The measurements of one output: rows of the grid they belong to, values and weights."""

    output: str
    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Case:
    """An experiment that can be predicted at any values of the unknowns."""

    name: str
    experiment: Any
    runner: Runner | RowRunner
    grid: np.ndarray
    samples: tuple[Samples, ...]
    outputs: tuple[str, ...]
    """Columns of a prediction: measured outputs, then what noise formulas need."""
    unknowns: tuple[int, ...]
    """Indices into the problem's unknowns, in the order of the prediction's derivatives."""

    @property
    def count(self) -> int:
        return sum(len(s.values) for s in self.samples)

    def predict(self, unknowns: Sequence[Unknown], theta: np.ndarray, *, sensitive: bool) -> Prediction:
        """The outputs at values of all unknowns."""
        return self.runner.predict(*self._values(unknowns, theta), sensitive=sensitive)

    def crossings(self, unknowns: Sequence[Unknown], theta: np.ndarray) -> list[Crossing]:
        """Switches that the trajectory crosses and at which its equations jump."""
        return self.runner.crossings(*self._values(unknowns, theta))

    def _values(self, unknowns: Sequence[Unknown], theta: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
        """Parameters and starts by name."""
        mine = [(unknowns[k], float(theta[k])) for k in self.unknowns]
        values = {u.target: v for u, v in mine if u.kind == "parameter"}
        return values, {u.target: v for u, v in mine if u.kind == "start"}

    def column(self, name: str) -> int:
        return self.outputs.index(name)


def build_case(
    model: Model,
    experiment: Any,
    unknowns: Sequence[Unknown],
    noise: dict[str, NoiseLevel],
    rtol: float,
    compiled: bool | None,
) -> Case:
    """The case of one experiment."""
    mine = [k for k, u in enumerate(unknowns) if u.applies_to(experiment.name)]
    parameters = [k for k in mine if unknowns[k].kind == "parameter"]
    starts = [k for k in mine if unknowns[k].kind == "start"]
    measured = tuple(experiment.outputs)
    outputs = tuple(dict.fromkeys([*measured, *(n for m in measured for n in noise[m].needs)]))
    names = [unknowns[k].target for k in parameters]
    grid = experiment.grid()
    if experiment.is_static:
        if starts:
            raise EstimationError(f"'{unknowns[starts[0]].name}' is estimated, but a static experiment has no start.")
        inputs = {n: s.values if hasattr(s, "values") else np.asarray(float(s)) for n, s in experiment.inputs.items()}
        runner: Runner | RowRunner = RowRunner(
            model, inputs, len(grid), outputs=outputs, parameters=names, constants=experiment.constants
        )
    else:
        signals, hold = experiment.input_signals()
        runner = Runner(
            model, grid, outputs=outputs, inputs=signals, hold=hold, parameters=names,
            starts=[unknowns[k].target for k in starts], constants=experiment.constants,
            demands=known_starts(experiment), rtol=rtol, compiled=compiled,
        )  # fmt: skip
    samples = compared_samples(experiment, grid)
    return Case(experiment.name, experiment, runner, grid, samples, outputs, (*parameters, *starts))


def known_starts(experiment: Any) -> dict[str, float]:
    """Starts that the experiment gives as numbers."""
    return {n: float(v) for n, v in experiment.start.items() if isinstance(v, int | float | np.number)}


def unknown_starts(experiment: Any) -> dict[str, Any]:
    """Starts that the experiment declares unknown: variable → None or a prior."""
    return {n: v for n, v in experiment.start.items() if not isinstance(v, int | float | np.number)}


def compared_samples(experiment: Any, grid: np.ndarray) -> tuple[Samples, ...]:
    """What is compared, by output; an output without samples is not among them."""
    found = []
    for output in experiment.outputs:
        times, values, weights = experiment.measurements(output)
        if len(times):
            found.append(Samples(output, np.searchsorted(grid, times), values, weights))
    return tuple(found)


def start_guesses(unknowns: Sequence[Unknown], cases: Sequence[Any]) -> tuple[Unknown, ...]:
    """Starts begin at the consistent start of their experiment at the guess."""
    done = list(unknowns)
    for case in cases:
        wanted = [k for k in case.unknowns if done[k].kind == "start" and not np.isfinite(done[k].guess)]
        if not wanted or not hasattr(case.runner, "start_at"):
            continue
        values = {done[k].target: done[k].guess for k in case.unknowns if done[k].kind == "parameter"}
        start = case.runner.start_at(values)
        for k in wanted:
            done[k] = replace(done[k], guess=start[done[k].target])
    return tuple(done)
