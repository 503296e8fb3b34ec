"""More knots where the trajectories need them.

What is left of the model, w = ẋ − f, is smooth between observations at the exact minimum. On too few knots it bends
inside the cells instead. The part of ½ ∫ |w|²/Q that a straight line through a cell's points does not explain tells
where: the cells that hold nine tenths of it are halved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.collocation.knots import halved
from grisaille.collocation.program import Linearised, SplineProgram
from grisaille.estimation.collocation_problem import CollocationEvaluation, CollocationProblem

SHARE = 0.9
NEGLIGIBLE = 1e-10
"""Of the criterion: nothing is left to refine."""


def refined(
    problem: CollocationProblem, evaluation: CollocationEvaluation, quadrature: Any
) -> CollocationProblem | None:
    """The problem on finer meshes, from the trajectories of the coarser ones; None where nothing is to be gained."""
    found = evaluation.quadratic
    assert found is not None
    errors = [cell_errors(p, part) for p, part in zip(problem.programs, found.parts, strict=True)]
    every = np.sort(np.concatenate(errors))[::-1]
    if every.sum() <= NEGLIGIBLE * (1 + found.objective):
        return None
    least = every[int(np.searchsorted(np.cumsum(every), SHARE * every.sum()))]
    programs, betas = [], []
    for program, beta, given, error in zip(problem.programs, found.betas, found.given, errors, strict=True):
        where = program.cells.t.reshape(len(error), -1).mean(axis=1)[error >= least]
        mesh = halved(program.mesh, where)
        table = program.record.signals(given.q[: program.record.structure.system.np])
        finer = SplineProgram(program.record, mesh, program.formulas, table, quadrature)
        finer.noise_states = program.noise_states
        programs.append(finer)
        betas.append(program.mesh.moved_to(mesh, beta))
    made = CollocationProblem(problem.unknowns, problem.cases, programs, betas, problem.criterion)
    made.evaluations, made.failures = problem.evaluations, problem.failures
    made.with_guess(evaluation.theta)
    return made


def cell_errors(program: SplineProgram, part: Linearised) -> np.ndarray:
    """For every cell, the share of the criterion that bends inside it."""
    group = program.cells.group
    if group < 3:
        return np.asarray(0.5 * (part.model.residuals**2).reshape(-1, group, program.n).sum(axis=(1, 2)))
    weights = np.sqrt(program.weights).reshape(-1, group)
    t = program.cells.t.reshape(-1, group)
    rho = part.model.residuals.reshape(-1, group, program.n)
    line = np.stack([weights, weights * (t - t.mean(axis=1, keepdims=True))], axis=2)
    Q, _ = np.linalg.qr(line)
    left = rho - Q @ (np.swapaxes(Q, 1, 2) @ rho)
    return np.asarray(0.5 * (left**2).sum(axis=(1, 2)))
