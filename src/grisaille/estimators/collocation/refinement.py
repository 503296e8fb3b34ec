"""More knots where the trajectories need them.

What is left of the model, w = ẋ − f, is smooth between observations at the exact minimum. On too few knots it bends
inside the cells instead. The part of ½ ∫ |w|²/Q that a straight line through a cell's points does not explain tells
where: the cells that hold nine tenths of it are halved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.collocation.descent import Quadratic
from grisaille.collocation.knots import halved
from grisaille.collocation.program import Linearised, SplineProgram
from grisaille.estimators.collocation.problem import CollocationProblem

SHARE = 0.9
NEGLIGIBLE = 3e-3
"""Of the criterion, which is a negative logarithm of a density: less moves estimates by small parts of their errors."""
ROUGHLY = 0.05
"""Of the criterion, relative, at the guess: a mesh that is good enough to search on."""
BEFORE, AFTER = 6, 10
"""Rounds of refinement at the guess and at the estimates, at most."""


def prepared(problem: CollocationProblem, quadrature: Any) -> CollocationProblem:
    """The problem on meshes that can follow the model at the guess, from trajectories solved for there.

    On knots too coarse for a fast transient the model looks wrong, and a search would run away from it.
    """
    for _ in range(BEFORE):
        found = problem.solved(problem.guess)
        if isinstance(found, str) or left_over(problem, found) <= ROUGHLY * (1 + found.objective):
            break
        problem = refined(problem, found, quadrature)
    return problem


def left_over(problem: CollocationProblem, found: Quadratic) -> float:
    """The part of the criterion that more knots would take away, roughly."""
    return float(sum(cell_errors(p, part).sum() for p, part in zip(problem.programs, found.parts, strict=True)))


def refined(problem: CollocationProblem, found: Quadratic, quadrature: Any) -> CollocationProblem:
    """The problem on finer meshes, from the trajectories of the coarser ones."""
    errors = [cell_errors(p, part) for p, part in zip(problem.programs, found.parts, strict=True)]
    every = np.sort(np.concatenate(errors))[::-1]
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
    return made


def cell_errors(program: SplineProgram, part: Linearised) -> np.ndarray:
    """For every cell, the share of the criterion that bends inside it."""
    group = program.cells.group
    if group < 3:
        # two points always lie on a line: nothing can be said
        return np.zeros(len(part.model.residuals) // group)
    weights = np.sqrt(program.weights).reshape(-1, group)
    t = program.cells.t.reshape(-1, group)
    rho = part.model.residuals.reshape(-1, group, program.n)
    line = np.stack([weights, weights * (t - t.mean(axis=1, keepdims=True))], axis=2)
    Q, _ = np.linalg.qr(line)
    left = rho - Q @ (np.swapaxes(Q, 1, 2) @ rho)
    return np.asarray(0.5 * (left**2).sum(axis=(1, 2)))
