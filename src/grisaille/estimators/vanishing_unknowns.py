"""Unknowns that vanish: searched by their logarithm, they run towards a lower bound that it never reaches.

At 1e-9 a rate may have no effect, so that its logarithm moves nothing and it looks dead, although at 0.1 it would be
seen. Where the criterion at the bound itself is no higher than at the end of a search, and rises from there into the
range, the search goes on with the unknown on its own scale, on which the bound is a bound like any other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.problem import EstimationProblem
from grisaille.optimization.journal import SearchJournal

SMALL_FACTOR = 1e-6
"""Of its guess: unknowns that have come so far down are looked at."""
CRITERION_TOLERANCE = 1e-9
"""Of the criterion, relative: differences that do not count."""
MIN_CRITERION_RISE = 0.01
"""By how much the criterion rises over the standard error that an unknown alone would have."""
DEAD_FACTOR = 1e3
"""Of the guess: an unknown whose standard error alone is larger, or than its range, is dead, not at its bound."""


def with_vanished_at_bounds(
    problem: EstimationProblem, method: Estimator, found: Estimate, journal: SearchJournal
) -> Estimate:
    """Return the estimate, sought again where unknowns have vanished."""
    errors = np.sqrt(np.clip(np.diag(found.covariance), 0.0, None))
    gone = [
        k for k, u in enumerate(problem.unknowns)
        if u.logarithmic and u.kind == "parameter" and found.free[k] and 0 <= u.lower < found.theta[k]
        and (not errors[k] < found.theta[k] or found.theta[k] < SMALL_FACTOR * abs(u.guess))
    ]  # fmt: skip
    reaches = {k: _reach_at_bound(problem, method, found.theta, k) for k in gone} if found.converged else {}
    reaches = {k: reach for k, reach in reaches.items() if reach > 0}
    if not reaches:
        return found
    gone = list(reaches)
    before, theta = problem.unknowns, found.theta.copy()
    theta[gone] = [before[k].lower for k in gone]
    problem.unknowns = tuple(
        replace(u, logarithmic=False, reach=reaches[k]) if k in reaches else u for k, u in enumerate(before)
    )
    problem.with_guess(theta)
    moved = problem.unknowns
    try:
        again = method.estimate(problem, journal)
    except EstimationError:
        return found
    finally:
        problem.unknowns = before
        problem.with_guess(np.array([u.guess for u in before]))
    if not again.converged or any(again.free[k] and not np.isfinite(again.covariance[k, k]) for k in gone):
        return found
    known = tuple(replace(u, logarithmic=v.logarithmic) for u, v in zip(again.unknowns, moved, strict=True))
    return replace(again, unknowns=known)


def _reach_at_bound(problem: EstimationProblem, method: Estimator, theta: np.ndarray, k: int) -> float:
    """Return the standard error that an unknown alone has at its lower bound; 0 where the search does not end there.

    It does where the criterion falls, or stays, down to the bound, and rises from there.
    """
    there = theta.copy()
    there[k] = problem.unknowns[k].lower
    try:
        points = [problem.evaluate(at) for at in (theta, there)]
    except GrisailleError:  # a formula has no value at the bound
        return 0.0
    if not all(p.completed for p in points):
        return 0.0
    here, end = (method.density.at(problem, p)[0] for p in points)
    bend = float(end.information[k, k])
    if not end.objective <= here.objective + CRITERION_TOLERANCE * (1 + abs(here.objective)) or not bend > 0:
        return 0.0
    reach = 1 / float(np.sqrt(bend))
    unknown = problem.unknowns[k]
    seen = reach < min(unknown.upper - unknown.lower, DEAD_FACTOR * abs(unknown.guess))
    return reach if seen and float(end.gradient[k]) * reach > MIN_CRITERION_RISE else 0.0
