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
from grisaille.collocation.knots import SplineOptions, place_knots, refuse_knots_outside
from grisaille.collocation.mesh import Knots
from grisaille.collocation.program import SplineProgram
from grisaille.collocation.record import Given, Record
from grisaille.collocation.starting import measured_states, starting_coefficients
from grisaille.disturbance.hidden import refuse_hidden_disturbances
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import GrisailleError
from grisaille.estimation.cases import Case, start_guesses
from grisaille.estimation.question import Question
from grisaille.estimators.collocation.problem import CollocationProblem
from grisaille.estimators.collocation.refusals import behind, level_parameters, refuse_levels, refuse_open_noise
from grisaille.estimators.collocation.splines import Splines
from grisaille.simulation.assertions import unchecked
from grisaille.simulation.simulate import simulate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.trial.dead_times import moving_dead_times
from grisaille.trial.refusals import refuse_few_instants, refuse_static
from grisaille.trial.unknown import Unknown


def spline_obstacle(
    structure: Structure,
    model: StochasticModel | None,
    data: Sequence[Any],
    unknowns: Sequence[Unknown],
    criterion: str,
) -> str:
    """Why splines do not apply, in words that can follow "because"; empty where they do.

    model : with disturbances, as ``with_slope`` gives it
    """
    system, flat = structure.system, structure.model
    if system.nz:
        names = system.implicit_names
        return f"{', '.join(names)} of {flat.name} {'is' if len(names) == 1 else 'are'} defined implicitly"
    if system.nc:
        return f"{flat.name} has hidden constraints ({system.constraint_texts[0]})"
    model = model or _stochastic(structure, data, unknowns)
    for i in range(model.n):
        if ca.depends_on(ca.densify(model.noise[i, :]), model.X):
            return f"the noise in the equation of der({model.names[i]}) depends on the states of {flat.name}"
    pattern = ca.mtimes(model.noise, model.noise.T)
    for i in range(model.n):
        if not pattern[i, :].nnz():
            return _undisturbed(model, i)
    if ca.sprank(model.noise) < model.n:
        return f"the {model.n} states {', '.join(model.names)} share {ca.sprank(model.noise)} white noise"
    return "" if criterion == "laplace" else _unknown_gain(structure, model, data, unknowns)


def dead_time_obstacle(question: Question) -> str:
    """Why splines do not apply where a dead time is estimated; empty where none is."""
    for trial, _ in question.trials:
        moved = moving_dead_times(trial)
        if moved:
            return f"the dead time {trial.moves.names[moved[0]]} is estimated, and knots of splines lie on jumps"
    return ""


def _unknown_gain(
    structure: Structure, model: StochasticModel, data: Sequence[Any], unknowns: Sequence[Unknown]
) -> str:
    """Whether a parameter that is no level of noise stands between a disturbance and a state: C in C ẋ = f + w.

    The penalty |ẋ − f/C|²/(Q/C²) would be made small by a small C; direct collocation weighs w itself.
    """
    inside = {model.quantities[k] for k in ca.jacobian_sparsity(ca.vec(ca.densify(model.noise)), model.q).get_col()}
    outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
    gains = behind(structure, unknowns, inside) - level_parameters(structure, unknowns, outputs)
    if not gains:
        return ""
    name = min(gains, key=[u.target for u in unknowns].index)
    return f"the unknown {name} decides how strongly a disturbance acts"


def with_slope(structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown]) -> StochasticModel | None:
    """The model with disturbances, where it has any.

    Those without a linear effect where they are zero are refused: every search for a path begins there.
    """
    if not structure.model.disturbances:
        return None
    model = _stochastic(structure, data, unknowns)
    refuse_hidden_disturbances(model, "a path of it has no slope to start from")
    return model


def _stochastic(structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown]) -> StochasticModel:
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and np.isfinite(u.guess)}
    values = evaluate_parameters(structure.model, given)
    outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
    numbers = dict(zip(values.names, values.values.tolist(), strict=True))
    return build_stochastic_model(structure, outputs, noises=outputs, values=numbers)


def _undisturbed(model: StochasticModel, state: int) -> str:
    if state < model.nx:
        return f"nothing disturbs the equation of der({model.names[state]})"
    owner = model.names[state].rpartition("[")[0]
    count = sum(n.rpartition("[")[0] == owner for n in model.names[model.nx :])
    return f"the spectrum of {owner} is a filter with {count} states, not all of which its noise drives"


def pose_splines(question: Question, options: SplineOptions, method: Any) -> CollocationProblem:
    """The problem with its starting trajectories; ``method`` is the options of ``gr.Collocation``."""
    criterion, guessed, cases = method.criterion, question.unknowns, cases_of(question)
    if criterion != "laplace":
        refuse_open_noise(question.structure, question.data)
    records = [_record(c, guessed) for c in cases]
    if criterion != "laplace":
        refuse_levels(guessed, set().union(*(r.level_names for r in records)))
    refuse_knots_outside(records, options.knots)
    guessed = _start_guesses(guessed, cases, records)
    programs, betas = [], []
    formulas = Formulas(records[0].stochastic, records[0].moved)
    for case, record in zip(cases, records, strict=True):
        if record.trial.moves != records[0].trial.moves or record.outputs != records[0].outputs:
            formulas = Formulas(record.stochastic, record.moved)
        given = record.at(np.array([guessed[k].guess for k in case.unknowns]))
        program, beta = build_spline_program(record, given, formulas, options, method.quadrature, method.compiled)
        programs.append(program)
        betas.append(beta)
    return CollocationProblem(guessed, cases, Splines(programs, betas, method), criterion)


def build_spline_program(
    record: Record, given: Given, formulas: Formulas, options: SplineOptions, quadrature: Any, compiled: bool | None
) -> tuple[SplineProgram, np.ndarray]:
    """The program of a record at the values of a guess, and its starting trajectories."""
    mesh = place_knots(record, options)
    program = SplineProgram(record, Knots.on(mesh, quadrature), formulas)
    beta = starting_coefficients(
        record, mesh, given.q, lambda: _simulated(record, given, compiled), options.trajectories
    )
    return program.frozen(beta), beta


def _simulated(record: Record, given: Given, compiled: bool | None) -> np.ndarray:
    """States (times, nx) without disturbances; constant where the simulation fails."""
    system, names = record.structure.system, record.stochastic.names
    known_p = dict(zip(system.parameter_names, given.q[: system.np].tolist(), strict=True))
    discretes = record.structure.model.discretes
    p = {n: v for n, v in known_p.items() if n not in discretes}
    plain = [n for n in names[: record.stochastic.nx] if n in record.structure.model.variables]
    start = {n: float(given.start[names.index(n)]) for n in plain if np.isfinite(given.start[names.index(n)])}
    known = given.start[: record.stochastic.nx]
    constant = np.repeat(np.nan_to_num(known)[None], len(record.times), axis=0)
    try:
        found = simulate(
            unchecked(record.trial.model), record.times, inputs=record.trial.inputs, hold=record.trial.hold,
            parameters=p, start={**{n: known_p[n] for n in discretes}, **record.trial.demands, **start},
            compiled=compiled,
        )  # fmt: skip
    except GrisailleError:
        return constant
    columns = [found[n].values if n in found else constant[:, i] for i, n in enumerate(names[: record.stochastic.nx])]
    values = np.column_stack(columns)
    return values if np.isfinite(values).all() else constant


def cases_of(question: Question) -> list[Case]:
    """Experiments with those of the unknowns that move them."""
    for trial, _ in question.trials:
        refuse_static(trial, "collocation")
        refuse_few_instants(trial, "a trajectory")
    pairs = zip(question.data, question.trials, strict=True)
    return [Case(e, trial, None, trial.data.outputs, mine) for e, (trial, mine) in pairs]


def _record(case: Case, unknowns: Sequence[Unknown]) -> Record:
    # the form of the equations does not depend on starts, which are not known yet
    known = [0.0 if unknowns[k].kind == "start" else unknowns[k].guess for k in case.unknowns]
    return Record(case.trial, np.array(known))


def _start_guesses(unknowns: Sequence[Unknown], cases: Sequence[Case], records: Sequence[Record]) -> list[Unknown]:
    """Estimated starts begin at the first measurement of their state, or at the consistent start."""
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
