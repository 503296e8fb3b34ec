"""The likelihood of a model and its data where outputs declare laws or share noise, and what does not go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm, PreparedRunner, trial_of
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.law_refusals import refuse_moving_limits, refuse_values, refuse_weights
from grisaille.estimation.measurements.measured_problem import SIMULATED_KINDS, MeasuredProblem
from grisaille.estimation.measurements.output_law import OutputLaw, have_laws, output_laws
from grisaille.estimation.measurements.sample_formulas import parameters_in
from grisaille.estimation.measurements.tied_samples import shared_noises
from grisaille.estimation.noise import noise_alone, noise_levels
from grisaille.estimation.noise_levels import level_guess
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.noise_covariances import Pair, correlations_of, level_name, shared_covariances
from grisaille.simulation.row_runner import RowRunner
from grisaille.simulation.runner import Runner
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

MIN_RELATIVE_LEVEL = 1e-12
"""Of the scatter of neighbouring samples: the smallest level that a search begins with."""


def needs_laws(method: OutputError, structure: Structure, outputs: Sequence[str], parameters: Sequence[str]) -> bool:
    """Return whether squares are not enough.

    They are not where outputs declare laws, where they share noise, and where parameters stand in formulas of noise
    alone. Options that are made for squares leave declared covariances aside (``notes.correlation_notes``).
    """
    flat = structure.model
    if have_laws(flat, outputs) or unknown_covariances(flat, outputs, parameters):
        return True
    if method.loss != "linear" or method.shooting != "single" or method.errors != "plain":
        return False
    return bool(shared_covariances(flat, outputs) or noise_alone(noise_levels(flat, outputs), parameters, structure))


def unknown_covariances(model: FlatModel, outputs: Sequence[str], parameters: Sequence[str]) -> list[Pair]:
    """Return the pairs of outputs whose covariance contains unknowns."""
    unknown = {*parameters, *correlations_of(model, outputs)}
    pairs = shared_covariances(model, outputs).items()
    return [pair for pair, formula in pairs if not unknown.isdisjoint(parameters_in(model, formula))]


def open_levels(model: FlatModel, outputs: Sequence[str]) -> list[str]:
    """Return the names of unknowns that are estimated beside laws: open levels of normal noise, and correlations."""
    levels = [n for n in outputs if model.outputs[n].noise is None and model.outputs[n].distribution is None]
    return [*map(level_name, levels), *correlations_of(model, outputs)]


def pose_by_law(method: OutputError, question: FitRequest) -> MeasuredProblem:
    """Return the likelihood of a model and its data."""
    refuse_moving_limits(question)
    laws = output_laws(question.structure.model, question.outputs)
    unknowns = tuple(level_guess(question.structure, question.data, u, question.unknowns) for u in question.unknowns)
    cases = [_case(method, question, e, laws) for e in question.data]
    for case in cases:
        refuse_weights(case, laws)
    return _looked_at(MeasuredProblem(unknowns, cases, laws))


OPTIONS_OF_SQUARES = (
    ("loss", "linear", "A law of data with outliers is gr.laws.Student(df=…, scale=…)"),
    ("shooting", "single", "Fit normal noise with shooting='multiple' first, then guess=fit"),
    ("errors", "plain", "Errors without curvature come from gr.bootstrap(fit)"),
    ("optimizer", "trust-region", "Likelihoods are maximised by Fisher scoring"),
)
"""Options with the value that goes with every law, and what to do beside laws instead of another one."""


def option_of_squares(method: OutputError) -> tuple[str, str] | None:
    """Return the first option of a method that is made for squares of errors, and what to do instead."""
    given = method.options
    return next(((name, instead) for name, plain, instead in OPTIONS_OF_SQUARES if given[name] != plain), None)


def refuse_options(method: OutputError, question: FitRequest) -> None:
    """Refuse options that speak of squares."""
    (why, is_law), chosen = _no_squares(question), option_of_squares(method)
    if not why or chosen is None:
        return
    option, instead = chosen
    without = "Without noise_covariance in the model, outputs are taken as independent"
    raise EstimationError(
        f"gr.OutputError({option}={method.options[option]!r}) is made for squares of errors, and {why}: leave {option} "
        f"out. ({instead if is_law else without}.)"
    )


def _no_squares(question: FitRequest) -> tuple[str, bool]:
    """Say what makes the criterion another one than squares of errors; empty for nothing.

    The second answer is whether that is anything but a covariance.
    """
    flat = question.structure.model
    named = [n for n in question.outputs if flat.outputs[n].distribution is not None]
    if named:
        law = type(flat.outputs[named[0]].distribution).__name__
        return f"output '{named[0]}' is measured by the law {law}", True
    estimated = [u.target for u in question.unknowns if u.kind == "parameter"]
    unknown = unknown_covariances(flat, question.outputs, estimated)
    tied = unknown or list(shared_covariances(flat, question.outputs))
    if not tied:
        inside = noise_alone(noise_levels(flat, question.outputs), estimated, question.structure)
        return ("'{}' stands in the noise of output '{}' alone".format(*inside[0]) if inside else "", bool(inside))
    return f"the noise of {' and '.join(tied[0])} has {'an unknown' if unknown else 'a'} covariance", False


def _case(method: OutputError, question: FitRequest, experiment: object, laws: dict[str, OutputLaw]) -> ExperimentTerm:
    trial, mine = trial_of(question.model, experiment, question.unknowns, SIMULATED_KINDS)
    measured = trial.data.outputs
    needed = [n for m in measured for n in laws[m].needs]
    needed += [n for shared in shared_noises(trial.flat, tuple(laws)) for n in shared.needs]
    outputs = tuple(dict.fromkeys([*measured, *needed]))
    runner: Runner | RowRunner = (
        RowRunner(trial, outputs) if trial.is_static else Runner(trial, outputs, rtol=method.rtol)
    )
    return ExperimentTerm(experiment, trial, PreparedRunner(runner), outputs, mine)


def _looked_at(problem: MeasuredProblem) -> MeasuredProblem:
    """Refuse measurements that a law cannot give; begin open levels of noise with what the guess leaves."""
    problem = problem.discretised_problem
    left: dict[str, list[np.ndarray]] = {}
    for case in problem.cases:
        prediction = case.predict(problem.guess, sensitive=False)
        if not prediction.completed:
            return problem
        for s, law in zip(case.samples, problem.laws_at(case, prediction, problem.guess), strict=True):
            refuse_values(case, s, law)
            left.setdefault(s.output, []).append(s.values - prediction.y[s.rows, case.column(s.output)])
    unknowns = [_begun_level(u, left) if u.kind == "noise" else u for u in problem.unknowns]
    return MeasuredProblem(unknowns, problem.cases, problem.laws)


def _begun_level(level: Unknown, left: dict[str, list[np.ndarray]]) -> Unknown:
    """Return a level of noise that begins with the size of what the guess leaves of its output."""
    size = float(np.sqrt(np.mean(np.concatenate(left.get(level.target, [np.zeros(1)])) ** 2)))
    return (
        replace(level, guess=size)
        if size > MIN_RELATIVE_LEVEL * level.guess and level.lower < size < level.upper
        else level
    )
