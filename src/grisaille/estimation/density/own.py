"""The likelihood of an estimator that brings its own criterion and its own search.

``Estimator.density`` returns ``OwnLikelihood(self, log_density)`` with what it maximises, log L and the priors as it
counts them, as a function of an evaluation of its problem. Profiles and tests ask the estimator to fit again with
unknowns held. Gradients are central differences, extrapolated twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.criterion_kinds import (
    NO_LEVELS,
    Levels,
    Likelihood,
    as_discretised,
    refuse_no_likelihood,
)
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.profile_criterion import Maximum
from grisaille.estimation.density.restricted import Restricted
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.problem import EstimationProblem, Evaluation

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fitted import Fitted

DIFFERENCE_STEP = 2e-3
"""Of an unknown's size: the widest of three differences."""


@dataclass(frozen=True)
class OwnLikelihood(Likelihood):
    """That of a method that maximises a function of an evaluation of its problem.

    levels : of noise that it estimates by name
    """

    method: Estimator
    log_density: Callable[[Evaluation], float]
    levels: Levels = NO_LEVELS

    refits: ClassVar[bool] = True

    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> OwnDensity:
        return OwnDensity(self.method, as_discretised(problem, fit), self.log_density)

    def around(self, fit: Fitted, held: Sequence[str]) -> OwnDensity:
        refuse_no_likelihood(fit)
        question = FitRequest.of(fit.initial_model, list(fit.experiments), at_estimates(fit.estimate))
        return OwnDensity(self.method, self.method.pose(question), self.log_density)


class OwnDensity(LogDensity):
    """The log-density that a method gives for its own problem."""

    def __init__(
        self, method: Estimator, problem: EstimationProblem, log_density: Callable[[Evaluation], float]
    ) -> None:
        self.method, self.problem, self.log_density = method, problem, log_density

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ as one part; there is no information."""
        found = self.problem.evaluate(theta, sensitive=False)
        if not found.completed:
            return DensityValue.failed(theta, found.failure)
        slope = self._differences(theta) if derivatives else np.zeros(0)
        names = ", ".join(c.name for c in self.problem.cases)
        part = DensityPart(names, "experiment", float(self.log_density(found)), slope)
        return DensityValue.summed(theta, (part,), derivatives)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Fit again."""
        restricted = Restricted(self.problem, start, held)
        theta = restricted.whole(self.method.estimate(restricted).theta)
        found = self.evaluate(theta, False)
        return Maximum(theta, found.log_density, found.failure)

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> OwnDensity:
        """Return the same of other measurements."""
        return OwnDensity(self.method, self.problem.renewed(values, theta), self.log_density)

    def _differences(self, theta: np.ndarray) -> np.ndarray:
        steps = [DIFFERENCE_STEP * max(abs(v), u.size) for u, v in zip(self.unknowns, theta.tolist(), strict=True)]
        return np.array([self._slope(theta, k, step) for k, step in enumerate(steps)])

    def _slope(self, theta: np.ndarray, k: int, step: float) -> float:
        """Return the derivative by one unknown: differences over h, h/2, h/4, whose errors ~ h², h⁴ are taken away."""

        def at(share: float) -> float:
            moved = theta.copy()
            moved[k] += share * step
            return self.evaluate(moved, False).log_density

        wide, middle, narrow = ((at(s) - at(-s)) / (2 * s * step) for s in (1.0, 0.5, 0.25))
        first, second = (4 * middle - wide) / 3, (4 * narrow - middle) / 3
        return (16 * second - first) / 15
