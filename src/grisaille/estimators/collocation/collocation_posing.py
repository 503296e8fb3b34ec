"""From a model and data to a collocation problem: records or points, meshes, starting trajectories, priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.shared_refusals import refuse_few_instants, refuse_moving_switches, refuse_static
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.direct.direct import DirectOptions, DirectProgram
from grisaille.collocation.initial_trajectories import measured_states, starting_coefficients
from grisaille.collocation.knots import place_knots, refuse_knots_outside
from grisaille.collocation.point_formulas import Formulas, formulas_of
from grisaille.collocation.spline_mesh import SplineKnots
from grisaille.collocation.spline_options import SplineOptions
from grisaille.collocation.spline_program import SplineProgram
from grisaille.collocation.trial_record import CollocationRecord, RecordValues
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm, start_guesses
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.output_law import OutputLaw, output_laws
from grisaille.estimation.prior_terms import prior_formula
from grisaille.estimators.collocation.collocation_problem import CollocationProblem
from grisaille.estimators.collocation.collocation_refusals import (
    level_parameters,
    refuse_impossible_samples,
    refuse_levels,
    refuse_open_noise,
    refuse_zero_noise,
)
from grisaille.estimators.collocation.element_trajectories import Elements
from grisaille.estimators.collocation.spline_trajectories import Splines
from grisaille.model.measurement.distributions import has_law
from grisaille.simulation.assertions import without_assertions
from grisaille.simulation.simulate import simulate

if TYPE_CHECKING:
    from grisaille.estimators.collocation.collocation import Collocation

SPLINES_ONLY = {"order": 4, "knots": "auto", "kinks": "auto", "quadrature": "gauss", "trajectories": None}
"""Options that direct collocation does not read, and what they are when not given."""


def pose_splines(question: FitRequest, options: SplineOptions, method: Collocation) -> CollocationProblem:
    """Return the problem with its starting trajectories; ``method`` is the options of ``gr.Collocation``."""
    guessed, cases = question.unknowns, _cases(question)
    if method.criterion != "laplace":
        refuse_open_noise(question.structure, question.data)
    records = [_record(c, guessed) for c in cases]
    if method.criterion != "laplace":
        refuse_levels(guessed, set().union(*(r.level_names for r in records)))
    refuse_knots_outside(records, options.knots)
    guessed = _start_guesses(guessed, cases, records)
    formulas, posed = formulas_of(records[0].stochastic, records[0].moved), []
    for case, record in zip(cases, records, strict=True):
        if record.trial.moves != records[0].trial.moves or record.outputs != records[0].outputs:
            formulas = formulas_of(record.stochastic, record.moved)
        given = record.at(np.array([guessed[k].guess for k in case.unknowns]))
        posed.append(build_spline_program(record, given, formulas, options))
    programs, betas = zip(*posed, strict=True)
    return CollocationProblem(guessed, cases, Splines(programs, betas, method), method.criterion)


def build_spline_program(
    record: CollocationRecord, given: RecordValues, formulas: Formulas, options: SplineOptions
) -> tuple[SplineProgram, np.ndarray]:
    """Return the program of a record at the values of a guess, and its starting trajectories."""
    mesh = place_knots(record, options)
    program = SplineProgram(record, SplineKnots.on(mesh, options.quadrature), formulas)
    beta = starting_coefficients(record, mesh, given.q, lambda: _simulated(record, given), options.trajectories)
    return program.frozen(beta), beta


def _simulated(record: CollocationRecord, given: RecordValues) -> np.ndarray:
    """Return states (times, nx) without disturbances; constant where the simulation fails."""
    system, flat, trial = record.structure.system, record.structure.model, record.trial
    names = record.stochastic.names[: record.stochastic.nx]
    known = dict(zip(system.parameter_names, given.q[: system.np].tolist(), strict=True))
    parameters = {n: v for n, v in known.items() if n not in flat.discretes}
    first = dict(zip(names, given.start.tolist(), strict=False))
    start = {n: v for n, v in first.items() if n in flat.variables and np.isfinite(v)}
    constant = np.repeat(np.nan_to_num(given.start[: len(names)])[None], len(record.times), axis=0)
    try:
        found = simulate(
            without_assertions(trial.model), record.times, inputs=trial.inputs, hold=trial.hold, parameters=parameters,
            start={**{n: known[n] for n in flat.discretes}, **trial.demands, **start},
        )  # fmt: skip
    except GrisailleError:
        return constant
    values = np.column_stack([found[n].values if n in found else constant[:, i] for i, n in enumerate(names)])
    return values if np.isfinite(values).all() else constant


def _cases(question: FitRequest) -> list[ExperimentTerm]:
    """Return experiments bound to the unknowns that they depend on."""
    for trial, _ in question.trials:
        refuse_static(trial, "collocation")
        refuse_few_instants(trial, "a trajectory")
    pairs = zip(question.data, question.trials, strict=True)
    laws = output_laws(question.structure.model, question.outputs)
    return [ExperimentTerm(e, trial, None, _observed(trial, laws), mine) for e, (trial, mine) in pairs]


def _observed(trial: BoundExperiment, laws: Mapping[str, OutputLaw]) -> tuple[str, ...]:
    """Return what is measured, then what numbers of laws are formulas of."""
    measured = trial.data.outputs
    flat = trial.flat
    return tuple(dict.fromkeys([*measured, *(n for m in measured if has_law(flat, m) for n in laws[m].needs)]))


def _record(case: ExperimentTerm, unknowns: Sequence[Unknown]) -> CollocationRecord:
    # the form of the equations does not depend on starts, which are not known yet
    known = [0.0 if unknowns[k].kind == "start" else unknowns[k].guess for k in case.unknowns]
    return CollocationRecord(case.trial, np.array(known))


def _start_guesses(
    unknowns: Sequence[Unknown], cases: Sequence[ExperimentTerm], records: Sequence[CollocationRecord]
) -> list[Unknown]:
    """Return guesses of estimated starts: the first measurement of their state, or the consistent start."""
    done = list(unknowns)
    for case, record in zip(cases, records, strict=True):
        seen = measured_states(record)
        for row, state in record.start_of.items():
            k = case.unknowns[row]
            if not np.isfinite(done[k].guess) and state in seen:
                y = record.y[:, seen[state]]
                value = float(y[np.flatnonzero(np.isfinite(y))[0]])
                done[k] = replace(done[k], guess=float(np.clip(value, done[k].lower, done[k].upper)))
    return list(start_guesses(done, [(c.trial, c.unknowns) for c in cases]))


def direct_options(method: Collocation, reason: str) -> DirectOptions:
    """Return the options of ``gr.Collocation`` for elements; ``reason``: why splines are not used."""
    why = f"{reason[0].upper()}{reason[1:]}" if reason else "Direct collocation was asked for"
    if method.criterion not in ("amle", "laplace"):
        raise EstimationError(
            f"{why}, and direct collocation has no criterion={method.criterion!r}: use 'amle' or 'laplace'."
        )
    unread = [n for n, usual in SPLINES_ONLY.items() if getattr(method, n) != usual]
    if unread:
        raise EstimationError(
            f"{why}: {unread[0]}={getattr(method, unread[0])!r} belongs to splines and says nothing here. Leave it "
            f"out: elements are halved until the estimates stop moving."
        )
    solver: Any = "ipopt" if method.optimizer == "ipopt" else "auto"
    return DirectOptions(solver=solver, max_iterations=method.max_iterations)


def pose_elements(
    question: FitRequest, options: DirectOptions, criterion: str = "amle", reason: str = ""
) -> CollocationProblem:
    """Return the problem of a model and its data; ``reason``: why splines are not used."""
    structure, data, unknowns = question.structure, question.data, question.unknowns
    bounds = {n: v.bounds for n, v in structure.model.variables.items() if v.bounds is not None}
    limits = {n: (-np.inf if a is None else a, np.inf if b is None else b) for n, (a, b) in bounds.items()}
    chosen = replace(options, state_bounds={**limits, **dict(options.state_bounds)})
    if criterion == "amle":
        refuse_open_noise(structure, data)
        refuse_levels(unknowns, level_parameters(structure, unknowns, question.outputs))
    cases, posed = _cases(question), question.with_starts()
    points = posed.points()
    for point in points:
        refuse_moving_switches(point.trial, point.form, "collocation")
    places = [mine for _, mine in posed.trials]
    program = DirectProgram(points, posed.unknowns, chosen, prior_formula(posed.unknowns), places)
    refuse_zero_noise(program, points)
    refuse_impossible_samples(program, cases)
    return CollocationProblem(posed.unknowns, cases, Elements(program, reason=reason), criterion)
