"""What a search by simulations costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.abilities.effort import Effort
from grisaille.estimation.effort.cost import MANY_SAMPLES, Cost, usual_cost
from grisaille.estimation.problem import EstimationProblem
from grisaille.simulation.simulation_steps import SimulationSteps

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

OFTEN, ROUGH = 2.0, 1e-5
"""Steps for each sample that are worth a word, and the tolerance of a first look."""


@dataclass(frozen=True)
class SimulationEffort(Effort):
    """Steps between samples, and twenty evaluations with derivatives."""

    method: OutputError

    def evaluations(self, problem: EstimationProblem) -> int:
        return 100 * len(problem.unknowns) if self.method.optimizer == "nelder-mead" else 20

    def cost(self, problem: EstimationProblem) -> Cost:
        steps = [c.discretisation for c in problem.discretised_problem.cases]
        is_implicit = any(isinstance(s, SimulationSteps) and s.scheme.is_implicit for s in steps)
        causes: list[str] = []
        faster: list[str] = []
        spans = zip(problem.discretised_problem.cases, steps, strict=True)
        equal = [np.ptp(c.trial.times) / s.step for c, s in spans if isinstance(s, SimulationSteps) and s.step]
        samples = sum(len(c.trial.times) for c in problem.cases)
        if sum(equal) > max(OFTEN * samples, MANY_SAMPLES):
            causes.append(f"{sum(equal):.2g} steps with derivatives")
            if self.method.rtol < ROUGH:
                faster.append(f"a larger tolerance for a first look, gr.OutputError(rtol={ROUGH:g})")
        if is_implicit:
            causes.append("implicit steps")
        if self.method.optimizer == "nelder-mead":
            faster.append("derivatives, gr.OutputError(optimizer='gauss-newton')")
        return usual_cost(problem, self.evaluations(problem), causes, faster)
