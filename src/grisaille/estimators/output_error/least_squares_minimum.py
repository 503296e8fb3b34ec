"""What a search for the least squares of output errors has found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.optimization.search import Search, SearchOutcome

Squares = Search[Evaluation]
Ending = SearchOutcome[Evaluation]


@dataclass(frozen=True)
class LeastSquaresMinimum:
    """A minimum, and the problem with the levels, formulas and steps that belong to it."""

    problem: EstimationProblem
    outcome: Ending
    evaluation: Evaluation

    @property
    def whole(self) -> float:
        """Return the objective with the levels that were estimated: comparable between minima of the same data."""
        of = self.problem.outputs.index
        logs = [np.sum(self.problem.output_of == of(name)) * np.log(s) for name, s in self.problem.sigma.items()]
        return float(self.evaluation.objective + sum(logs))
