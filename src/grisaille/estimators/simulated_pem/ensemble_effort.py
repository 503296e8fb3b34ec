"""What a search by ensembles costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grisaille.estimation.abilities.effort import Effort
from grisaille.estimation.effort.cost import Cost, usual_cost
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.simulated_pem.ensemble_size import FIRST

if TYPE_CHECKING:
    from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM

FIRST_REALIZATIONS = 50
"""Realizations that are enough for a first look."""


@dataclass(frozen=True)
class EnsembleEffort(Effort):
    """Realizations of every experiment at every evaluation."""

    method: SimulatedPEM

    def evaluations(self, problem: EstimationProblem) -> int:
        """Return the number of ensembles: Gauss–Newton takes a dozen, and as many for the errors."""
        usual = {"grid": self.method.points, "gauss-newton": 25}
        return usual.get(self.method.search, 25 * len(problem.unknowns))

    def cost(self, problem: EstimationProblem) -> Cost:
        return self.early_cost(problem)

    def early_cost(self, problem: EstimationProblem) -> Cost:
        """Return the cost, of which the number of realizations is known at once."""
        causes = [f"{FIRST if self.method.realizations == 'auto' else self.method.realizations} realizations"]
        faster: list[str] = []
        if self.method.realizations != "auto" and self.method.realizations > FIRST_REALIZATIONS:
            faster.append(f"fewer realizations for a first look, gr.SimulatedPEM(realizations={FIRST_REALIZATIONS})")
        return usual_cost(problem, self.evaluations(problem), causes, faster)
