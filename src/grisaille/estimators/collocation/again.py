"""Trajectories at the estimates of a fit: its own, those of a loaded fit solved for again, those of a new experiment.

A file keeps knots and coefficients (or elements and the path), so that a loaded fit has the trajectories it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from grisaille.collocation.direct.transcription import Point
from grisaille.collocation.mesh import Mesh
from grisaille.collocation.program import SplineProgram
from grisaille.collocation.record import Given
from grisaille.collocation.splines import Spline
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.question import Question
from grisaille.estimators.collocation.direct.problem import DirectEvaluation, DirectProblem
from grisaille.estimators.collocation.direct.programs import evaluated_program, on_elements
from grisaille.estimators.collocation.problem import CollocationEvaluation, CollocationProblem
from grisaille.structure.prepared import structure_of
from grisaille.trial.unknown import Unknown

Trajectories = CollocationEvaluation | DirectEvaluation


def solved_again(fit: Fitted) -> Trajectories:
    """The evaluation of the fit with its trajectories, solved for again after loading."""
    evaluation = fit.estimate.evaluation
    if isinstance(evaluation, Trajectories):
        return evaluation
    kept: dict[str, Any] = fit.__dict__.setdefault("_trajectories", {})
    if "own" not in kept:
        kept["own"] = _solved(fit, fit.experiments, fit.estimate.unknowns, fit.estimate.theta, fit.kept)
    found: Trajectories = kept["own"]
    return found


def of_new_experiment(fit: Fitted, experiment: Any) -> tuple[Trajectories, np.ndarray]:
    """The trajectories of another experiment at the estimates, and the covariance of the unknowns that move it."""
    named = experiment if experiment.name else experiment.replace(name="new experiment")
    named.check(fit.initial_model)
    e = fit.estimate
    # starts belong to the experiments they were estimated for
    mine = [k for k, u in enumerate(e.unknowns) if u.experiment is None and u.kind != "start"]
    unknowns = [e.unknowns[k] for k in mine]
    found = _solved(fit, [named], unknowns, e.theta[mine], {})
    return found, np.where(np.isfinite(e.covariance), e.covariance, 0.0)[np.ix_(mine, mine)]


def kept_arrays(fit: Fitted) -> dict[str, np.ndarray]:
    """Knots and coefficients, or the path, as a file keeps them."""
    evaluation = fit.estimate.evaluation
    if isinstance(evaluation, DirectEvaluation) and evaluation.solution is not None:
        point = evaluation.solution.point
        return {f"path_{f.name}": getattr(point, f.name) for f in fields(point)}
    if not isinstance(evaluation, CollocationEvaluation) or evaluation.quadratic is None:
        return dict(fit.kept)
    kept: dict[str, np.ndarray] = {}
    for k, (program, beta) in enumerate(
        zip(evaluation.quadratic.task.programs, evaluation.quadratic.betas, strict=True)
    ):
        kept |= {f"knots_{k}_{i}": s.knots for i, s in enumerate(program.mesh.splines)}
        kept |= {f"coefficients_{k}": beta, f"noise_states_{k}": program.noise_states}
    return kept


def _solved(
    fit: Fitted, experiments: Any, unknowns: Any, theta: np.ndarray, kept: Mapping[str, np.ndarray]
) -> Trajectories:
    structure = structure_of(fit.initial_model)
    guessed = [_guessed(u, float(v)) for u, v in zip(unknowns, theta, strict=True)]
    problem: Any = fit.method.pose(Question(fit.initial_model, structure, experiments, guessed))
    if isinstance(problem, DirectProblem):
        return _path(fit, problem, theta, kept)
    splines: CollocationProblem = _on_knots(fit, problem, kept) if kept else problem
    found = splines.solved(theta)
    if isinstance(found, str):
        raise EstimationError(f"The trajectories at the estimates could not be solved for: {found}")
    return splines.at_trajectories(found)


def _guessed(unknown: Unknown, value: float) -> Unknown:
    """Starting from the estimate; a level that came out as zero keeps its guess, from which ranks are decided."""
    return unknown if value == 0 and unknown.kind in ("scale", "noise") else replace(unknown, guess=value)


def _path(fit: Fitted, problem: DirectProblem, theta: np.ndarray, kept: Mapping[str, np.ndarray]) -> DirectEvaluation:
    e = fit.estimate
    problem.program = on_elements(problem.program, int(e.extra.get("pieces", 1)))
    start = Point(**{f.name: kept[f"path_{f.name}"] for f in fields(Point)}) if kept else None
    if start is not None and start.inner.shape[1] != problem.program.functions.element.sizes.inner:
        start = None  # of a file that kept no algebraic unknowns after jumps of inputs
    path = evaluated_program(problem.program).solve(theta, start, free=False)
    if not path.converged:
        raise EstimationError(f"The path at the estimates could not be solved for: it {path.status}")
    return problem.at(path)


def _on_knots(fit: Fitted, problem: CollocationProblem, kept: Mapping[str, np.ndarray]) -> CollocationProblem:
    programs, betas = [], []
    for k, (program, case) in enumerate(zip(problem.programs, problem.cases, strict=True)):
        mesh = Mesh(tuple(_spline(kept[f"knots_{k}_{i}"]) for i in range(len(program.mesh.splines))))
        given = program.record.at(case.own(problem.guess))
        beta = np.asarray(kept[f"coefficients_{k}"], dtype=float)
        programs.append(on_mesh(program, mesh, given, fit.method.options["quadrature"]))
        programs[-1].noise_states = np.asarray(kept[f"noise_states_{k}"], dtype=float)
        betas.append(beta)
    return CollocationProblem(problem.unknowns, problem.cases, programs, betas, problem.criterion)


def on_mesh(program: SplineProgram, mesh: Mesh, given: Given, quadrature: Any) -> SplineProgram:
    """The same experiment on another mesh."""
    table = program.record.signals(given.q[: program.record.structure.system.np])
    return SplineProgram(program.record, mesh, program.formulas, table, quadrature)


def _spline(knots: np.ndarray) -> Spline:
    breaks, multiplicity = np.unique(knots, return_counts=True)
    return Spline(int(multiplicity[0]), breaks, multiplicity.astype(np.int64))
