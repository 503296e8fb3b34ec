"""What output error minimises: a likelihood, or the criterion of a robust loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.density.criterion_kinds import (
    Levels,
    Likelihood,
    NoLikelihood,
    as_discretised,
    refuse_no_likelihood,
)
from grisaille.estimation.density.least_squares import ConcentratedDensity, normal_log_likelihood
from grisaille.estimation.measurements.density import MeasuredDensity
from grisaille.estimation.measurements.measured_problem import MeasuredProblem
from grisaille.estimators.output_error import criterion_at, robust_losses
from grisaille.estimators.output_error.normal_density import NormalDensity

if TYPE_CHECKING:
    from grisaille.estimation.estimate import Estimate
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.problem import EstimationProblem, Evaluation

LEVELS_OF_SQUARES = Levels("no", "without being named, where the model leaves it open", are_unknowns=False)
WITH_ROBUST_ERRORS = (
    "Profiles, confidence regions and likelihood ratios take residuals to be independent, which errors='robust' does "
    "not: fit.intervals() has the robust errors, fit.with_errors('plain') the others."
)
WITH_A_ROBUST_LOSS = (
    "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: fit with "
    "loss='linear', or use gr.bootstrap."
)


@dataclass(frozen=True)
class NormalLikelihood(Likelihood):
    """That of normal noise around simulations.

    no_profiles : why there are none, or nothing
    """

    no_profiles: str = ""
    levels: Levels = LEVELS_OF_SQUARES

    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> NormalDensity | MeasuredDensity:
        if not problem.is_least_squares:
            return MeasuredDensity(as_discretised(problem.of(MeasuredProblem), fit))
        return NormalDensity(as_discretised(problem, fit))

    def around(self, fit: Fitted, held: Sequence[str]) -> ConcentratedDensity | MeasuredDensity:
        refuse_no_likelihood(fit)
        if not fit.estimate.evaluation.is_least_squares:
            return MeasuredDensity.around(fit.estimate)
        return ConcentratedDensity.around(fit.initial_model, fit.estimate)

    def at(self, problem: EstimationProblem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        if not problem.is_least_squares:
            return super().at(problem, evaluation)
        evaluation = criterion_at.across_jumps(problem, evaluation)
        log_likelihood = normal_log_likelihood(problem, evaluation)
        if problem.sigma:
            return criterion_at.profiled_likelihood(problem, evaluation, log_likelihood), log_likelihood
        return evaluation, log_likelihood


@dataclass(frozen=True)
class RobustLoss(NoLikelihood):
    """That of a loss by which large residuals count less."""

    because: str = "a robust loss"
    no_profiles: str = WITH_A_ROBUST_LOSS
    instead: str = "gr.OutputError(loss='linear')"
    levels: Levels = LEVELS_OF_SQUARES
    loss: str = "soft_l1"
    scale: float = 1.0

    def at(self, problem: EstimationProblem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        evaluation = criterion_at.across_jumps(problem, evaluation)
        return criterion_at.robust_criterion(problem, evaluation, self.loss, self.scale), np.nan

    def compared(self, estimate: Estimate) -> float:
        """Return Σ (½ C² ρ((w e / σC)²) + log σ) with half the squares of priors, known σ left out."""
        beyond, data = estimate.evaluation.residuals[estimate.count :], estimate.evaluation.residuals[: estimate.count]
        value = robust_losses.LOSSES[self.loss].value((data / self.scale) ** 2)
        levels = [np.full(len(s.values), estimate.noise.get(s.output, 1.0)) for c in estimate.cases for s in c.samples]
        loss = 0.5 * self.scale**2 * float(np.sum(value))
        return 0.5 * float(beyond @ beyond) + loss + float(np.sum(np.log(np.concatenate(levels))))
