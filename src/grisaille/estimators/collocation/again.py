"""Trajectories at the estimates of a fit: its own, those of a loaded fit solved for again, those of a new experiment.

A file keeps meshes and coefficients (or the path), so that a loaded fit has the trajectories it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.question import Question
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.experiment.experiment import Experiment
from grisaille.structure.prepared import structure_of
from grisaille.trial.unknown import Unknown


def solved_again(fit: Fitted) -> CollocationEvaluation:
    """The evaluation of the fit with its trajectories, solved for again after loading."""
    evaluation = fit.estimate.evaluation
    if isinstance(evaluation, CollocationEvaluation) and evaluation.solution is not None:
        return evaluation
    kept: dict[str, Any] = fit.__dict__.setdefault("_trajectories", {})
    if "own" not in kept:
        kept["own"] = _solved(fit, fit.experiments, fit.estimate.unknowns, fit.estimate.theta, bool(fit.kept))
    found: CollocationEvaluation = kept["own"]
    return found


def of_new_experiment(fit: Fitted, experiment: Any) -> tuple[CollocationEvaluation, np.ndarray]:
    """The trajectories of another experiment at the estimates, and the covariance of the unknowns that move it."""
    named = experiment if experiment.name else experiment.replace(name="new experiment")
    named.check(fit.initial_model)
    e = fit.estimate
    # starts belong to the experiments they were estimated for
    mine = [k for k, u in enumerate(e.unknowns) if u.experiment is None and u.kind != "start"]
    unknowns = [e.unknowns[k] for k in mine]
    found = _solved(fit, [named], unknowns, e.theta[mine], False)
    return found, np.where(np.isfinite(e.covariance), e.covariance, 0.0)[np.ix_(mine, mine)]


def kept_arrays(fit: Fitted) -> dict[str, np.ndarray]:
    """Coefficients, or the path, as a file keeps them beside the meshes of the cases."""
    evaluation = fit.estimate.evaluation
    if not isinstance(evaluation, CollocationEvaluation) or evaluation.solution is None:
        return dict(fit.kept)
    return evaluation.solution.arrays()


def _solved(
    fit: Fitted, experiments: Sequence[Experiment], unknowns: Sequence[Unknown], theta: np.ndarray, from_file: bool
) -> CollocationEvaluation:
    structure = structure_of(fit.initial_model)
    guessed = [_guessed(u, float(v)) for u, v in zip(unknowns, theta, strict=True)]
    problem = fit.method.pose(Question(fit.initial_model, structure, experiments, guessed))
    assert isinstance(problem, CollocationProblem)
    if from_file:
        problem = problem.on(problem.trajectories.restored([c.discretisation for c in fit.estimate.cases], fit))
    found = problem.trajectories.follow(problem, theta)
    if isinstance(found, str):
        raise EstimationError(f"The trajectories at the estimates could not be solved for: {found}")
    return problem.at(found)


def _guessed(unknown: Unknown, value: float) -> Unknown:
    """Starting from the estimate; a level that came out as zero keeps its guess, from which ranks are decided."""
    return unknown if value == 0 and unknown.kind in ("scale", "noise") else replace(unknown, guess=value)
