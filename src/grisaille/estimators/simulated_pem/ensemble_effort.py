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

    def cost(self, problem: EstimationProblem) -> Cost:
        """Return the cost: Gauss–Newton takes a dozen ensembles, and as many for the errors."""
        causes = [f"{FIRST if self.method.realizations == 'auto' else self.method.realizations} realizations"]
        faster: list[str] = []
        if self.method.realizations != "auto" and self.method.realizations > FIRST_REALIZATIONS:
            faster.append(f"fewer realizations for a first look, gr.SimulatedPEM(realizations={FIRST_REALIZATIONS})")
        usual = {"grid": self.method.points, "gauss-newton": 25}.get(self.method.search, 25 * len(problem.unknowns))
        return usual_cost(problem, usual, causes, faster)
