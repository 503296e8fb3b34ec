"""Generalised smoothing: least squares of the data misfit over the unknowns, the trajectories following.

The Jacobian is that of the implicit function theorem; estimated starts belong to the trajectories.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.collocation.collocation_problem import CollocationEvaluation, CollocationProblem
from grisaille.estimators.collocation.collocation_result import CollocationResult
from grisaille.estimators.collocation.spline_solution import SplineSolution
from grisaille.optimization import convergence, scoring, trust_region
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.search import Search, arrival_reason


def minimize_misfit(problem: CollocationProblem, journal: SearchJournal, near: bool, most: int) -> CollocationResult:
    """Minimise the misfit of smoothed trajectories; for splines only."""
    search = Search(problem, journal, journal.evaluations + most)
    outcome = trust_region.minimize(search, 1e-9)
    nearly = outcome.evaluation
    starts = np.array([u.kind == "start" for u in problem.unknowns], dtype=bool)
    free = scoring.free_unknowns(search, nearly)
    evaluation = scoring.polish(search, nearly, free & ~starts).evaluation
    offset = convergence.relative_offset(search, evaluation)
    covariance, lost = inverse_information(evaluation.curvature, free & ~starts)
    covariance = without_undetermined(covariance, lost)
    evaluation = _with_own_starts(problem, evaluation, covariance)
    converged = offset < convergence.OFFSET_TOLERANCE
    reason = arrival_reason(outcome, offset) if converged else outcome.reason
    return CollocationResult(evaluation, covariance, free, converged, reason)


def _with_own_starts(
    problem: CollocationProblem, evaluation: CollocationEvaluation, covariance: np.ndarray
) -> CollocationEvaluation:
    """Return starts that belong to the trajectories, read off them, with their variances."""
    solution, theta = evaluation.solution, evaluation.theta.copy()
    assert isinstance(solution, SplineSolution)
    found, shared = solution.at, covariance.copy()
    for case, program, beta, factor, V in zip(
        problem.cases, found.task.programs, found.betas, solution.factors, solution.implicit_responses, strict=True
    ):
        for row, state in program.record.start_of.items():
            k, place = case.unknowns[row], program.mesh.first[state]
            unit = np.zeros(len(beta))
            unit[place] = 1.0
            theta[k] = beta[place]
            covariance[k, :] = covariance[:, k] = -V[place] @ shared
            covariance[k, k] = factor.solve(unit)[place] + V[place] @ shared @ V[place]
    return replace(evaluation, theta=theta)
