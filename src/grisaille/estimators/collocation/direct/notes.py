"""What a fit by direct collocation says about its unknowns and its path."""

from __future__ import annotations

import numpy as np

from grisaille.collocation.direct.ipopt import violates
from grisaille.estimation.determination import describe_determination
from grisaille.estimation.uncertainty import root_of
from grisaille.estimators.collocation.direct.problem import DirectEvaluation, DirectProblem

DRIFT = 1e-3
"""Change of hidden constraints along a path, relative to their terms, from which on a fit says so."""


def direct_notes(
    problem: DirectProblem, evaluation: DirectEvaluation, covariance: np.ndarray, free: np.ndarray
) -> list[str]:
    """What is not determined, what vanished, and where the path is not what it should be."""
    root = root_of(evaluation.curvature)
    level = np.array([u.kind in ("scale", "noise", "start") for u in problem.unknowns], dtype=bool)
    level &= np.isfinite(np.diag(covariance))
    notes = describe_determination(problem.unknowns, evaluation.theta, root, covariance, free)
    skipped = tuple(f"dead: no output moves with {u.name};" for u, k in zip(problem.unknowns, level, strict=True) if k)
    notes = [n for n in notes if not (skipped and n.startswith(skipped))]
    for u, zero in zip(problem.unknowns, vanished_levels(problem, evaluation.theta, free), strict=True):
        if zero:
            notes = [n for n in notes if not n.startswith(f"at bound: {u.name} ")]
            notes.append(f"zero: {u.name} is zero to all digits that the data have.")
    return [*notes, *_drift(problem, evaluation), *_beyond_bounds(problem, evaluation)]


def _beyond_bounds(problem: DirectProblem, evaluation: DirectEvaluation) -> list[str]:
    """The marginal likelihood integrates over all paths, so that the best one may leave its bounds."""
    solution, bounds = evaluation.solution, problem.program.options.state_bounds
    if solution is None or not bounds:
        return []
    named = {*solution.program.model.state_names, *solution.program.model.structure.system.implicit_names}
    broken = [n for n, b in bounds.items() if n in named and violates(solution.program, solution.point, {n: b})]
    if not broken:
        return []
    return [
        f"bounds: the path leaves the bounds of {', '.join(broken)}, which the marginal likelihood "
        f"(criterion='laplace', debias=True) of direct collocation does not keep; criterion='amle' does."
    ]


def vanished_levels(problem: DirectProblem, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Levels that ran to the lower end of their range."""
    low = [u.kind in ("scale", "noise") and v < 1e-2 * u.guess for u, v in zip(problem.unknowns, theta, strict=True)]
    return np.asarray(np.array(low, dtype=bool) & ~free)


def _drift(problem: DirectProblem, evaluation: DirectEvaluation) -> list[str]:
    """Whether hidden constraints, posed at the first point only, still hold at the end."""
    solution = evaluation.solution
    system = problem.program.model.structure.system
    if solution is None or not system.nc:
        return []
    worst = 0.0
    for r in range(len(problem.cases)):
        values = solution.program.observe(solution.point, problem.program.model.constraints, r)
        scale = 1.0 + np.abs(solution.paths[r].states).max(initial=0.0)
        worst = max(worst, float(np.abs(values).max(initial=0.0)) / scale)
    if worst < DRIFT:
        return []
    return [
        f"elements: hidden constraints drift by {worst:.1e} along the path; shorter elements are needed (refine=2)."
    ]
