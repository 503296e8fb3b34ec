"""The likelihood of a model and its data where outputs declare laws, and what does not go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import DataError, EstimationError
from grisaille.estimation.cases import Case, Ready, trial_of
from grisaille.estimation.levels import level_guess
from grisaille.estimation.measurements.output_law import OutputLaw, have_laws, output_laws
from grisaille.estimation.measurements.problem import SIMULATED, MeasuredProblem
from grisaille.estimation.noise import noise_alone, noise_levels
from grisaille.estimation.question import Question
from grisaille.laws import Law
from grisaille.model.flat import FlatModel
from grisaille.simulation.rows import RowRunner
from grisaille.simulation.runner import Runner
from grisaille.structure.reduction import Structure
from grisaille.trial.data_matrix import Samples
from grisaille.trial.unknown import Unknown

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

LEAST = 1e-12
"""Of the scatter of neighbouring samples: the smallest level that a search begins with."""


def needs_laws(method: OutputError, structure: Structure, outputs: Sequence[str], parameters: Sequence[str]) -> bool:
    """Return whether squares are not enough: outputs declare laws, or parameters stand in formulas of noise alone."""
    if have_laws(structure.model, outputs):
        return True
    if method.loss != "linear" or method.shooting != "single" or method.errors != "plain":
        return False
    return bool(noise_alone(noise_levels(structure.model, outputs), parameters, structure))


def open_levels(model: FlatModel, outputs: Sequence[str]) -> list[str]:
    """Return the names of levels of normal noise that are estimated beside laws."""
    return [f"noise({n})" for n in outputs if model.outputs[n].noise is None and model.outputs[n].distribution is None]


def pose_by_law(method: OutputError, question: Question) -> MeasuredProblem:
    """Return the likelihood of a model and its data."""
    refuse_options(method, question)
    refuse_moving_limits(question)
    laws = output_laws(question.structure.model, question.outputs)
    unknowns = tuple(level_guess(question.structure, question.data, u, question.unknowns) for u in question.unknowns)
    cases = [_case(method, question, e, laws) for e in question.data]
    for case in cases:
        _refuse_weights(case, laws)
    return _looked_at(MeasuredProblem(unknowns, cases, laws))


def refuse_options(method: OutputError, question: Question) -> None:
    """Refuse options that speak of squares."""
    named = [n for n in question.outputs if question.structure.model.outputs[n].distribution is not None]
    if not named:
        return
    name, law = named[0], type(question.structure.model.outputs[named[0]].distribution).__name__
    for option, value, plain, instead in (
        ("loss", method.loss, "linear", "gr.laws.Student(df=…, scale=…) is the law of data with outliers"),
        ("shooting", method.shooting, "single", "fit normal noise with shooting='multiple' first, then guess=fit"),
        ("errors", method.errors, "plain", "gr.bootstrap(fit) needs no curvature"),
        ("optimizer", method.optimizer, "trust-region", "likelihoods are maximised by Fisher scoring"),
    ):
        if value != plain:
            raise EstimationError(
                f"gr.OutputError({option}={value!r}) is made for squares of errors, and output '{name}' is measured "
                f"by the law {law}: leave {option} out. ({instead[0].upper()}{instead[1:]}.)"
            )


def refuse_moving_limits(question: Question) -> None:
    """Refuse estimated unknowns and predictions in what says where values can lie: limits, steps, numbers of trials."""
    flat = question.structure.model
    estimated = {u.target for u in question.unknowns if u.kind == "parameter"}
    for output, law in output_laws(flat, question.outputs).items():
        for path in law.law.held_arguments:
            if path not in law.formulas:
                continue
            formula = law.formulas[path]
            moving = [n for n in formula.parameters if n in estimated] + [
                n for n in formula.needs if n not in flat.inputs
            ]
            if moving:
                what = "is estimated" if moving[0] in estimated else "is predicted"
                raise EstimationError(
                    f"'{path}' of the law {type(law.law).__name__} of output '{output}' contains '{moving[0]}', which "
                    f"{what}, and where values can lie is known before a fit: give a number, or a column of the data "
                    f"through an input, {path.rpartition('.')[2]}=gr.Input()."
                )


def _case(method: OutputError, question: Question, experiment: object, laws: dict[str, OutputLaw]) -> Case:
    trial, mine = trial_of(question.model, experiment, question.unknowns, SIMULATED)
    measured = trial.data.outputs
    outputs = tuple(dict.fromkeys([*measured, *(n for m in measured for n in laws[m].needs)]))
    runner: Runner | RowRunner = (
        RowRunner(trial, outputs)
        if trial.is_static
        else Runner(trial, outputs, rtol=method.rtol, compiled=method.compiled)
    )
    return Case(experiment, trial, Ready(runner), outputs, mine)


def _looked_at(problem: MeasuredProblem) -> MeasuredProblem:
    """Refuse measurements that a law cannot give; begin open levels of noise with what the guess leaves."""
    problem = problem.begun
    left: dict[str, list[np.ndarray]] = {}
    for case in problem.cases:
        prediction = case.predict(problem.guess, sensitive=False)
        if not prediction.completed:
            return problem
        for s, law in zip(case.samples, problem.laws_at(case, prediction, problem.guess), strict=True):
            _refuse_values(case, s, law)
            left.setdefault(s.output, []).append(s.values - prediction.y[s.rows, case.column(s.output)])
    unknowns = [_begun_level(u, left) if u.kind == "noise" else u for u in problem.unknowns]
    return MeasuredProblem(unknowns, problem.cases, problem.laws)


def _begun_level(level: Unknown, left: dict[str, list[np.ndarray]]) -> Unknown:
    """Return a level of noise that begins with the size of what the guess leaves of its output."""
    size = float(np.sqrt(np.mean(np.concatenate(left.get(level.target, [np.zeros(1)])) ** 2)))
    return replace(level, guess=size) if size > LEAST * level.guess and level.lower < size < level.upper else level


def _refuse_values(case: Case, s: Samples, law: Law) -> None:
    """Refuse measurements that a law cannot have given."""
    found = law.refused_values(s.values)
    if found is not None:
        k, why = found
        raise DataError(
            f"Experiment '{case.name}': the sample of '{s.output}' at t = {case.grid[s.rows[k]]:g} {why}, as the law "
            f"{type(law).__name__} has it. Mend the data, or give the output another distribution."
        )


def _refuse_weights(case: Case, laws: dict[str, OutputLaw]) -> None:
    """Refuse weights, which are factors of residuals, beside laws that have none."""
    for s in case.samples:
        if (s.weights != 1.0).any():
            raise EstimationError(
                f"Experiment '{case.name}' gives weights to '{s.output}', which multiply residuals, and a likelihood "
                f"by laws ({type(laws[s.output].law).__name__}) has none: leave samples out as NaN, or write what you "
                f"know of their scatter into the law, e.g. gr.laws.Student(df=4, scale=formula)."
            )
