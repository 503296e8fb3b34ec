"""Experiments and unknowns as direct collocation reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct import DirectOptions, DirectProgram, DirectRecord, DirectUnknown
from grisaille.errors import EstimationError
from grisaille.estimation.cases import known_starts
from grisaille.estimation.unknowns import Unknown
from grisaille.experiment.interpolation import make_table
from grisaille.experiment.switching import find_switches
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import ParameterFormulas
from grisaille.structure.reduction import Structure


def pose_direct(
    structure: Structure,
    experiments: Sequence[Any],
    unknowns: Sequence[Unknown],
    options: DirectOptions | None = None,
    information: Callable[[ca.SX], ca.SX] | None = None,
) -> DirectProgram:
    """The program of a model and its data; starts without a guess begin at the consistent ones."""
    outputs = tuple(dict.fromkeys(o for e in experiments for o in e.outputs))
    unknowns = [_with_value(structure, experiments, unknowns, u) for u in unknowns]
    records = [direct_record(structure, e, unknowns, outputs) for e in experiments]
    guess = [u.guess if np.isfinite(u.guess) else _start_guess(structure, records, unknowns, u) for u in unknowns]
    described = [DirectUnknown(u.name, u.kind, u.target, u.experiment, u.lower, u.upper) for u in unknowns]
    return DirectProgram(structure, records, described, outputs, options, guess=guess, information=information)


def direct_record(
    structure: Structure, experiment: Any, unknowns: Sequence[Unknown], outputs: Sequence[str]
) -> DirectRecord:
    """One experiment: all its samples on one grid, NaN where an output was not measured."""
    if experiment.is_static:
        raise EstimationError(
            f"Experiment '{experiment.name}' is static: collocation follows models in time; use gr.OutputError."
        )
    grid = experiment.grid()
    y, weights = np.full((len(grid), len(outputs)), np.nan), np.ones((len(grid), len(outputs)))
    for column, name in enumerate(outputs):
        if name in experiment.outputs:
            times, values, factor = experiment.measurements(name)
            rows = np.searchsorted(grid, times)
            y[rows, column], weights[rows, column] = values, factor
    system = structure.system
    signals, hold = experiment.input_signals()
    defaults = {n: i.default for n, i in structure.model.inputs.items()}
    switches, bends = find_switches(system, _parameters(structure, experiment, unknowns), grid)
    table = make_table(system.signals, signals, hold, grid, defaults, switches, bends)
    return DirectRecord(experiment.name, grid, y, weights, table, dict(experiment.constants), known_starts(experiment))


def _with_value(structure: Structure, experiments: Sequence[Any], unknowns: Sequence[Unknown], u: Unknown) -> Unknown:
    """A parameter without a guess begins at the model's value."""
    if u.kind != "parameter" or np.isfinite(u.guess):
        return u
    first = next(e for e in experiments if u.applies_to(e.name))
    given = {o.target: o.guess for o in unknowns if o.kind == "parameter" and np.isfinite(o.guess)}
    given = {**dict(first.constants), **given}
    return replace(u, guess=ParameterFormulas(structure.model, given).evaluate(given)[u.target])


def _parameters(structure: Structure, experiment: Any, unknowns: Sequence[Unknown]) -> np.ndarray:
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and u.applies_to(experiment.name)}
    given = {**dict(experiment.constants), **given}
    return ParameterFormulas(structure.model, given).evaluate(given).values


def _start_guess(
    structure: Structure, records: Sequence[DirectRecord], unknowns: Sequence[Unknown], unknown: Unknown
) -> float:
    if unknown.kind != "start":
        raise EstimationError(f"'{unknown.name}' has no value to start from: guess={{'{unknown.name}': …}}.")
    record = next(r for r in records if unknown.applies_to(r.name))
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and u.applies_to(record.name)}
    given = {**dict(record.constants), **given}
    p = ParameterFormulas(structure.model, given).evaluate(given).values
    t0, initializer = float(record.times[0]), Initializer(structure)
    start = initializer.solve(t0, record.signals.at(t0), p, record.starts)
    return initializer.observe(t0, start, record.signals.at(t0), p)[unknown.target]
