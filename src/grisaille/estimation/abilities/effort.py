"""How long a fit takes and how much memory, as its method expects it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grisaille.estimation.effort.cost import Cost, usual_cost
from grisaille.estimation.effort.fit_memory import bytes_of_least_squares

if TYPE_CHECKING:
    from grisaille.estimation.fit_request import FitRequest
    from grisaille.estimation.problem import EstimationProblem
    from grisaille.experiment.experiment import Experiment
    from grisaille.model.classes import Model

USUAL_EVALUATIONS = 25
"""Of a search that does not say otherwise."""


class Effort:
    """The effort of a search by least squares; a method overrides what is different for it."""

    def evaluations(self, problem: EstimationProblem) -> int:
        """Return how many evaluations a search usually takes."""
        return USUAL_EVALUATIONS

    def cost(self, problem: EstimationProblem) -> Cost:
        """Return how many evaluations a search usually takes, why they take long, and what would be faster."""
        return usual_cost(problem, self.evaluations(problem))

    def early_cost(self, problem: EstimationProblem) -> Cost:
        """Return the same while the first evaluation has not ended: what is known of the problem as it was posed."""
        return usual_cost(problem, self.evaluations(problem))

    def bytes_needed(self, question: FitRequest) -> float:
        """Return the bytes that posing and solving a problem take, about: it is refused where there are fewer."""
        return bytes_of_least_squares(question)

    def beforehand(self, model: Model, experiments: Sequence[Experiment]) -> str:
        """Return a message before anything is computed, where the size of the model makes a fit long; else empty."""
        return ""
