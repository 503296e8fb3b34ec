"""What collocation minimises: the marginal likelihood, or a criterion of trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import Levels, Likelihood, NoLikelihood
from grisaille.estimators.collocation.collocation_density import LaplaceDensity, TrajectoryCriterion
from grisaille.estimators.collocation.collocation_problem import CollocationEvaluation, CollocationProblem

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.problem import EstimationProblem, Evaluation

OF_MISFIT = (
    "criterion='smoothing' has no profiles or regions: its parameters minimise the misfit of trajectories that follow "
    "the data themselves, and differences of that misfit say nothing about confidence. Fit with criterion='amle' or "
    "'laplace', or see gr.monte_carlo(fit.model, fit.experiments, …)."
)
GIVEN_LEVELS = Levels("no", "no")
DEBIASED_REASON = (
    "debias=True moved the estimates off the minimum of their criterion, so there are no profiles or regions around "
    "them: fit with criterion='laplace', or without debias."
)


@dataclass(frozen=True)
class MarginalLikelihood(Likelihood):
    """That of Laplace's method; ``refine`` as in ``gr.Collocation``."""

    refine: int | str

    has_levels: ClassVar[bool] = True

    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> LaplaceDensity:
        return LaplaceDensity.discretised(problem.of(CollocationProblem), fit, self.refine)

    def around(self, fit: Fitted, held: Sequence[str]) -> LaplaceDensity:
        if not fit.estimate.is_likelihood:
            raise EstimationError(
                "Profiles, regions and tests need a likelihood, and declared bounds that hold states leave none "
                "(fit.notes): fit a model without bounds= of these variables, or use fit.intervals(method='wald')."
            )
        return LaplaceDensity.around(fit)

    def at(self, problem: EstimationProblem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        solution = evaluation.solution if isinstance(evaluation, CollocationEvaluation) else None
        is_free = solution is None or not solution.held_states()
        return evaluation, evaluation.log_likelihood if is_free else np.nan


@dataclass(frozen=True)
class OfTrajectories(NoLikelihood):
    """That of trajectories and unknowns together, or in turn."""

    instead: str = "gr.Collocation(criterion='laplace')"
    levels: Levels = GIVEN_LEVELS

    supports_profiles: ClassVar[bool] = True
    has_levels: ClassVar[bool] = True

    @property
    def no_ratio(self) -> str:  # type: ignore[override]
        """That it is no likelihood."""
        return (
            f"A ratio test needs a likelihood, and {self.because} is not one: fit with "
            f"gr.Collocation(criterion='laplace'). fit.profile(name) shows how the criterion grows."
        )

    def around(self, fit: Fitted, held: Sequence[str]) -> TrajectoryCriterion:
        found = [u.name for u in fit.estimate.unknowns if u.kind == "scale" and u.name in held]
        if found:
            raise EstimationError(
                f"'{found[0]}' was found from the misfit of the outputs and does not minimise the criterion, so it has "
                f"no profile: fit with gr.Collocation(criterion='laplace', intensities='estimate')."
            )
        return TrajectoryCriterion.around(fit)

    def at(self, problem: EstimationProblem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        return evaluation, np.nan
