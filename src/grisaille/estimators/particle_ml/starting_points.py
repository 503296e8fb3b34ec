"""Where a search by particles begins: at the maximum of a Kalman filter's likelihood, after iterated filtering, or at
the guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
from grisaille.estimators.particle_ml.iterated_filtering import Cooling, IteratedFiltering
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.estimators.particle_ml.particle_search import usable_root
from grisaille.optimization.journal import SearchJournal

if TYPE_CHECKING:
    from grisaille.estimators.particle_ml.particle_ml import ParticleML

MAX_SIZE = 1.0
"""Largest standard error, in coordinates of a search, that a design begins with."""
ROUGH = 10.0
"""Standard deviation of log L̂ at a start from which on a surface shows nothing."""


@dataclass(frozen=True, eq=False)
class StartingPoint:
    """θ, perhaps a root of the covariance expected in coordinates of the search, and where it comes from."""

    theta: np.ndarray
    root: np.ndarray | None
    source: str


def find_start(method: ParticleML, problem: ParticleProblem, journal: SearchJournal) -> StartingPoint:
    """Return where the search begins."""
    guess = np.array([u.guess for u in problem.unknowns])
    found = None if method.search == "iterated" else kalman_start(method, problem)
    if found is None:
        found = StartingPoint(guess, None, "the guess")
    repeated = problem.repeated(found.theta, 4)
    journal.add(4)
    is_rough = not np.isfinite(repeated.values).all() or repeated.spread > ROUGH
    if method.search == "iterated" or (method.search == "auto" and is_rough):
        theta = IteratedFiltering(problem, Cooling(), journal).run(guess if is_rough else found.theta, method.seed)
        return StartingPoint(theta, None, "iterated filtering")
    if not np.isfinite(repeated.values).any():
        _, failure = problem.parts_at(found.theta, problem.seed)
        raise EstimationError(f"The likelihood cannot be estimated at {found.source}: {failure}")
    return found


def kalman_start(method: ParticleML, problem: ParticleProblem) -> StartingPoint | None:
    """Return the estimate by a Kalman filter, where one takes the model, its data and the unknowns."""
    from grisaille.estimators.particle_ml.normal_stand_in import kalman_request

    try:
        kalman = KalmanML(initial_covariance=method.initial_covariance)
        request = kalman_request(problem)
        if request is None:
            return None
        found = kalman.estimate(kalman.pose(request))
    except (GrisailleError, np.linalg.LinAlgError, ArithmeticError):
        return None
    if not found.converged or not np.isfinite(found.theta).all():
        return None
    slopes = np.array([u.slope(v) for u, v in zip(problem.unknowns, found.theta, strict=True)])
    root = usable_root(found.covariance, slopes, [MAX_SIZE] * len(slopes))
    return StartingPoint(np.array(found.theta), root, "the estimate of a Kalman filter")
