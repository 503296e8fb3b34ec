"""From a model and data to a collocation problem: whether splines apply, records, meshes, starting trajectories.

Splines need an ordinary differential equation in every state whose every equation is disturbed by white noise that does
not depend on the states: otherwise the penalty |ẋ − f|²/Q has an infinite weight somewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.formulas import Formulas
from grisaille.collocation.knots import SplineOptions, place_knots
from grisaille.collocation.program import SplineProgram
from grisaille.collocation.record import Given, Record
from grisaille.collocation.starting import measured_states, starting_coefficients
from grisaille.disturbance.stochastic_model import build_stochastic_model
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.cases import Case, compared_samples, known_starts, start_guesses
from grisaille.estimation.collocation_problem import CollocationProblem
from grisaille.estimation.levels import level_guess
from grisaille.estimation.unknowns import Unknown
from grisaille.model.classes import Model
from grisaille.simulation.simulate import simulate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure


def spline_obstacle(structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown]) -> str:
    """Why splines do not apply, in words; empty where they do."""
    system, flat = structure.system, structure.model
    if system.nz:
        return f"{', '.join(system.implicit_names)} remain implicit in {flat.name}"
    if system.nc:
        return f"{flat.name} has hidden constraints ({system.constraint_texts[0]})"
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and np.isfinite(u.guess)}
    values = evaluate_parameters(flat, given)
    numbers = dict(zip(values.names, values.values.tolist(), strict=True))
    measured = [o for e in data for o in e.outputs if flat.outputs[o].noise is not None]
    model = build_stochastic_model(structure, list(dict.fromkeys(measured)), values=numbers)
    if ca.depends_on(ca.densify(model.noise), model.X):
        return f"The noise in {flat.name} depends on its states"
    pattern = ca.mtimes(model.noise, model.noise.T)
    for i, name in enumerate(model.names):
        if not pattern[i, :].nnz():
            return f"Nothing disturbs the equation of der({name})"
    if ca.sprank(model.noise) < model.n:
        return f"The disturbances of {flat.name} act on {ca.sprank(model.noise)} combinations of {model.n} states"
    return ""


def pose_splines(
    model: Model,
    structure: Structure,
    data: Sequence[Any],
    unknowns: Sequence[Unknown],
    options: SplineOptions,
    quadrature: Any,
    criterion: str,
    compiled: bool | None,
) -> CollocationProblem:
    """The problem with its starting trajectories."""
    guessed = [level_guess(structure, data, u, unknowns) for u in unknowns]
    if criterion != "laplace":
        _refuse_open_noise(structure, data)
    cases = [_case(model, e, guessed) for e in data]
    records: list[Any] = [c.runner for c in cases]
    if criterion != "laplace":
        _refuse_levels_inside(records, guessed)
    guessed = _start_guesses(guessed, cases)
    programs, betas = [], []
    formulas = Formulas(records[0].stochastic, records[0].moved)
    for case, record in zip(cases, records, strict=True):
        if record.unknowns != records[0].unknowns or record.outputs != records[0].outputs:
            formulas = Formulas(record.stochastic, record.moved)
        given = record.at([guessed[k].guess for k in case.unknowns])
        program, beta = build_spline_program(record, given, formulas, options, quadrature, compiled)
        programs.append(program)
        betas.append(beta)
    return CollocationProblem(guessed, cases, programs, betas, criterion)


def build_spline_program(
    record: Record, given: Given, formulas: Formulas, options: SplineOptions, quadrature: Any, compiled: bool | None
) -> tuple[SplineProgram, np.ndarray]:
    """The program of a record at the values of a guess, and its starting trajectories."""
    table = record.signals(given.q[: record.structure.system.np])
    mesh = place_knots(record, table, options)
    program = SplineProgram(record, mesh, formulas, table, quadrature)
    beta = starting_coefficients(record, mesh, lambda: _simulated(record, given, compiled), options.trajectories)
    program.noise_states = program.samples.local.values(beta)
    return program, beta


def _simulated(record: Record, given: Given, compiled: bool | None) -> np.ndarray:
    """States (times, nx) without disturbances; constant where the simulation fails."""
    system, names = record.structure.system, record.stochastic.names
    p = dict(zip(system.parameter_names, given.q[: system.np].tolist(), strict=True))
    plain = [n for n in names[: record.stochastic.nx] if n in record.structure.model.variables]
    start = {n: float(given.start[names.index(n)]) for n in plain if np.isfinite(given.start[names.index(n)])}
    known = given.start[: record.stochastic.nx]
    constant = np.repeat(np.nan_to_num(known)[None], len(record.times), axis=0)
    try:
        found = simulate(
            record.model, record.times, inputs=record.inputs, hold=record.hold, parameters=p,
            start={**record.demands, **start}, compiled=compiled,
        )  # fmt: skip
    except GrisailleError:
        return constant
    columns = [found[n].values if n in found else constant[:, i] for i, n in enumerate(names[: record.stochastic.nx])]
    values = np.column_stack(columns)
    return values if np.isfinite(values).all() else constant


def _case(model: Model, experiment: Any, unknowns: Sequence[Unknown]) -> Case:
    if experiment.is_static:
        raise EstimationError(
            f"Experiment '{experiment.name}' is static: collocation follows models in time; use gr.OutputError."
        )
    mine = [k for k, u in enumerate(unknowns) if u.applies_to(experiment.name)]
    outputs, grid = tuple(experiment.outputs), experiment.grid()
    if len(grid) < 2:
        raise EstimationError(f"Experiment '{experiment.name}' has {len(grid)} instant; a trajectory needs two.")
    samples = compared_samples(experiment, grid)
    y, weights = np.full((len(grid), len(outputs)), np.nan), np.ones((len(grid), len(outputs)))
    for s in samples:
        column = outputs.index(s.output)
        y[s.rows, column], weights[s.rows, column] = s.values, s.weights
    signals, hold = experiment.input_signals()
    record: Any = Record(
        model, experiment.name, grid, y, weights, outputs=outputs, inputs=signals, hold=hold,
        unknowns=[(unknowns[k].kind, unknowns[k].target) for k in mine], constants=experiment.constants,
        demands=known_starts(experiment), known={unknowns[k].target: unknowns[k].guess for k in mine},
    )  # fmt: skip
    return Case(experiment.name, experiment, record, grid, samples, outputs, tuple(mine))


def _start_guesses(unknowns: Sequence[Unknown], cases: Sequence[Case]) -> list[Unknown]:
    """Estimated starts begin at the first measurement of their state, or at the consistent start."""
    done = list(unknowns)
    for case in cases:
        record: Any = case.runner
        seen = measured_states(record)
        for row, state in record.start_of.items():
            k = case.unknowns[row]
            if not np.isfinite(done[k].guess) and state in seen:
                y = record.y[:, seen[state]]
                value = float(y[np.flatnonzero(np.isfinite(y))[0]])
                done[k] = replace(done[k], guess=float(np.clip(value, done[k].lower, done[k].upper)))
    return list(start_guesses(done, cases))


def _refuse_open_noise(structure: Structure, data: Sequence[Any]) -> None:
    for e in data:
        for o in e.outputs:
            if structure.model.outputs[o].noise is None:
                raise EstimationError(
                    f"The noise of output '{o}' is unknown, and collocation weighs data against the model by it: "
                    f"declare gr.Output(…, noise=…), or estimate it with gr.Collocation(criterion='laplace')."
                )


def _refuse_levels_inside(records: Sequence[Record], unknowns: Sequence[Unknown]) -> None:
    """A level that is minimised together with the residuals it divides would only be made large."""
    inside = set().union(*(r.level_names for r in records))
    for u in unknowns:
        if u.kind == "noise" or (u.kind == "parameter" and u.target in inside):
            raise EstimationError(
                f"'{u.name}' is a noise level: minimised with the residuals it divides, it would only be made large. "
                f"Use gr.Collocation(criterion='laplace'); intensities='estimate' finds scales from known noise."
            )
