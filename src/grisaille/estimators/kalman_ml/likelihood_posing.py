"""Experiments with their filters, discretised where a search begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.estimated_quantities import UNKNOWN_KINDS, Kind
from grisaille.bound_experiment.shared_refusals import refuse_few_instants, refuse_static, scheduled_trial
from grisaille.bound_experiment.unknown import Unknown
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.estimation.bound_penalty import with_logit_search
from grisaille.estimation.experiment_terms import ExperimentTerm, PreparedRunner, trial_of
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.likelihood import Filtered, LikelihoodProblem
from grisaille.estimation.noise_levels import level_guess
from grisaille.estimation.predictions.horizons import last_used
from grisaille.experiment.times.dating import clock_of
from grisaille.filtering.filter_runner import FilterRunner
from grisaille.filtering.horizon import HorizonRunner
from grisaille.model.classes import Model

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
    from grisaille.experiment.experiment import Experiment


def pose_likelihood(method: KalmanML, question: FitRequest) -> LikelihoodProblem:
    """Return the likelihood of a model and its data."""
    structure, data, unknowns = question.structure, question.data, question.unknowns
    open_levels = [k for k, u in enumerate(unknowns) if u.kind in ("scale", "noise") and not np.isfinite(u.guess)]
    guessed = [level_guess(structure, data, u, unknowns) if k in open_levels else u for k, u in enumerate(unknowns)]
    cases = [filter_case(method, e, *trial) for e, trial in zip(data, question.trials, strict=True)]
    guess = np.array([u.guess for u in guessed])
    prepared = [c.runner.prepare(c.own(guess)) for c in cases]
    known = question.steps or (None,) * len(cases)
    stepped = [
        replace(c, discretisation=steps) if steps else discretised(c, guess)
        for c, steps in zip(cases, known, strict=True)
    ]
    if prepared[0].levels:
        guessed = _searched_by_logarithm(prepared[0], guessed)
    if method.bounds == "transform":
        guessed = with_logit_search(guessed)
    return LikelihoodProblem(guessed, stepped, method.bound_penalty, open_levels)


def case_of(
    method: KalmanML,
    model: Model,
    experiment: Experiment,
    unknowns: Sequence[Unknown],
    kinds: Sequence[Kind] = UNKNOWN_KINDS,
) -> ExperimentTerm:
    """Return the term of one experiment with its filter; ``kinds`` of unknowns belong to it."""
    return filter_case(method, experiment, *trial_of(model, experiment, unknowns, kinds))


def filter_case(method: KalmanML, experiment: Experiment, trial: BoundExperiment, mine: tuple[int, ...]) -> Filtered:
    """Return an experiment with its trial as a filter runs it."""
    refuse_static(trial, "a filter")
    trial = scheduled_trial(trial, "a filter") if trial.flat.whens else trial
    refuse_few_instants(trial, "a filter")
    runner: FilterRunner = (
        FilterRunner(trial, method.filter_options)
        if method.horizon == 1
        else HorizonRunner(trial, method.filter_options, last_used(method.horizon, trial.times, clock_of(experiment)))
    )
    return ExperimentTerm(experiment, trial, PreparedRunner(runner), trial.data.outputs, mine)


def discretised(case: ExperimentTerm, theta: np.ndarray) -> ExperimentTerm:
    """Return the case with steps that suit these values; raises where there are none."""
    known, own = case.discretisation, case.own(theta)
    return replace(case, discretisation=case.runner.discretise(own, known))


def _searched_by_logarithm(model: StochasticModel, unknowns: Sequence[Unknown]) -> list[Unknown]:
    """Return the unknowns with parameters that are nothing but noise levels (``scale=sigma``) searched on a log
    scale.
    """
    return [
        replace(u, logarithmic=True)
        if u.kind == "parameter" and u.target in model.levels and u.lower == 0 and u.guess > 0 and not u.logarithmic
        else u
        for u in unknowns
    ]
