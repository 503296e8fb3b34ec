"""What maximum likelihood by filters minimises: a likelihood, or a criterion made of its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from grisaille.estimation.bound_penalty import BoundPenalty
from grisaille.estimation.density.criterion_kinds import Likelihood, NoLikelihood, as_discretised, refuse_no_likelihood
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.estimators.kalman_ml.filter_density import FilterDensity

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.problem import EstimationProblem

NO_PROFILES = (
    "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: fit with "
    "robust=None, horizon=1, or use gr.bootstrap."
)


@dataclass(frozen=True)
class FilterLikelihood(Likelihood):
    """That of predictions one sample ahead.

    penalty : by which bounds are kept
    """

    penalty: BoundPenalty

    has_levels: ClassVar[bool] = True

    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> FilterDensity:
        return FilterDensity.discretised(as_discretised(problem.of(LikelihoodProblem), fit))

    def around(self, fit: Fitted, held: Sequence[str]) -> FilterDensity:
        refuse_no_likelihood(fit)
        return FilterDensity.around(fit.estimate, self.penalty)


@dataclass(frozen=True)
class PredictionCriterion(NoLikelihood):
    """That of a robust loss, or of predictions further ahead."""

    no_profiles: str = NO_PROFILES

    has_levels: ClassVar[bool] = True
