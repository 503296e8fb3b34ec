"""The largest log-density with some unknowns held, by Fisher scoring, for any density that has an information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.density.log_density import LogDensity, Maximum
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.optimization import scoring
from grisaille.optimization.scaled import Scaled
from grisaille.optimization.search import Search

if TYPE_CHECKING:
    from grisaille.estimation.density.value import DensityValue

TOLERANCE, MOST = 1e-12, 300


def maximized(density: LogDensity, start: np.ndarray, held: Sequence[int]) -> Maximum:
    """Return the largest density, the unknowns that are not held sought from ``start``."""
    if len(held) == len(start):
        found = density.value(start, False)
        return Maximum(start, found.log_density, found.failure)
    criterion = _Minus(density, start, held)
    try:
        outcome = scoring.minimize(Search(criterion, most=MOST), tolerance=TOLERANCE)
    except EstimationError as error:
        return Maximum(start, -np.inf, str(error))
    return Maximum(criterion.whole(outcome.evaluation.theta), -outcome.evaluation.objective)


class _Minus(Scaled):
    """Minus a log-density as a criterion of the unknowns that are not held."""

    def __init__(self, density: LogDensity, start: np.ndarray, held: Sequence[int]) -> None:
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
        return _evaluation(theta, self.density.value(self.whole(theta), sensitive), self.kept)

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
