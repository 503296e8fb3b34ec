"""The largest log-density with some unknowns held, by Fisher scoring.

``density_from_objective`` searches on the problem that a density is made of, whose objective is −log p up to a
constant; ``maximize_log_density``
on a density itself, where no problem has all of its unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grisaille.estimation.density.density_value import DensityValue
from grisaille.estimation.density.profile_criterion import Maximum, ProfileCriterion
from grisaille.estimation.density.restricted import Restricted
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import EstimationProblem
from grisaille.optimization import scoring
from grisaille.optimization.scaled import Scaled
from grisaille.optimization.search import Search

TOLERANCE, MOST = 1e-12, 300
NEARLY, FEWER = 1e-7, 80
"""The same where a statistic of drawn records is sought."""


def density_from_objective(
    problem: EstimationProblem, start: np.ndarray, held: Sequence[int], nearly: bool, constant: float
) -> Maximum:
    """Return the least objective of a problem, as a log-density that is ``constant`` − objective."""
    restricted = Restricted(problem, start, held)
    if nearly:
        found = scoring.score(Search(restricted, most=FEWER), tolerance=NEARLY).evaluation
    else:
        found = scoring.minimize(Search(restricted, most=MOST), tolerance=TOLERANCE).evaluation
    return Maximum(restricted.whole(found.theta), constant - found.objective)


def maximize_log_density(density: ProfileCriterion, start: np.ndarray, held: Sequence[int]) -> Maximum:
    """Return the largest density, the unknowns that are not held sought from ``start``."""
    criterion = _Minus(density, start, held)
    outcome = scoring.minimize(Search(criterion, most=MOST), tolerance=TOLERANCE)
    return Maximum(criterion.whole(outcome.evaluation.theta), -outcome.evaluation.objective)


class _Minus(Scaled):
    """Minus a log-density as a criterion of the unknowns that are not held."""

    def __init__(self, density: ProfileCriterion, start: np.ndarray, held: Sequence[int]) -> None:
        self.density, self.at = density, start
        self.kept = [k for k in range(len(start)) if k not in held]
        self.unknowns = tuple(replace(density.unknowns[k], guess=float(start[k])) for k in self.kept)

    def whole(self, theta: np.ndarray) -> np.ndarray:
        """Return all unknowns."""
        values = self.at.copy()
        values[self.kept] = theta
        return values

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        """Return −log p with its derivatives."""
        return _evaluation(theta, self.density.evaluate(self.whole(theta), sensitive), self.kept)

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return −log p and its gradient."""
        found = self.evaluate(theta)
        return found.objective, found.gradient if found.completed else np.full(len(theta), np.nan)


def _evaluation(theta: np.ndarray, value: DensityValue, kept: list[int]) -> LikelihoodEvaluation:
    empty, n = np.zeros(0), len(theta)
    if value.failure:
        return LikelihoodEvaluation(theta, empty, np.zeros((0, n)), empty, (), value.failure)
    slope = empty if value.gradient is None else -value.gradient[kept]
    curvature = np.zeros((0, 0)) if value.information is None else value.information[np.ix_(kept, kept)]
    return LikelihoodEvaluation(
        theta, empty, np.zeros((0, n)), empty, (), value=-value.log_density, slope=slope, curvature=curvature,
        log_likelihood=value.log_density,
    )  # fmt: skip
