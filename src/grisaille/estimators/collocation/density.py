"""The marginal likelihood by Laplace's method as a log-density, on one mesh.

Without ``guess=`` a fit by collocation of the same experiments, the mesh is one that follows the model at the guess; a
fit goes on to finer ones, as its estimates need them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.errors import EstimationError
from grisaille.estimation.density.log_density import LogDensity, Maximum, held_at
from grisaille.estimation.density.priors import prior_part
from grisaille.estimation.density.search import maximized
from grisaille.estimation.density.value import DensityPart, DensityValue
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.collocation.criteria import about_held_states
from grisaille.estimators.collocation.problem import UNDETERMINED, CollocationProblem
from grisaille.estimators.collocation.states import solved_again


class LaplaceDensity(LogDensity):
    """Of a problem of collocation.

    fit : of the same experiments, whose mesh is taken where its unknowns are the same
    refine : as in ``gr.Collocation``
    """

    def __init__(self, problem: CollocationProblem, fit: Fitted | None = None, refine: int | str = 0) -> None:
        own, self.unknowns = problem.renewed(), problem.unknowns
        if fit is not None and self.names == tuple(fit.names):
            own = _on_mesh_of(fit, own)
        elif own.trajectories.rounds(refine):
            own = own.on(own.trajectories.prepared(own))
        self.problem = own
        first = self.value(self.start, False)
        if first.failure:
            raise EstimationError(f"There is no marginal likelihood at the guess: {first.failure}")

    def maximize(self, held: Mapping[int, float], start: np.ndarray) -> Maximum:
        """Return the largest density, sought by Fisher scoring."""
        return maximized(self, held_at(start, held), list(held))

    def _value(self, theta: np.ndarray, derivatives: bool) -> DensityValue:
        problem = self.problem
        found = problem.followed(theta)
        if isinstance(found, str):
            return DensityValue.failed(theta, found)
        try:
            marginals = found.marginals(derivatives)
            held = found.held_states()
            information = problem.at(found).curvature if derivatives else None
        except NotPositiveDefinite:
            return DensityValue.failed(theta, UNDETERMINED)
        if held:
            return DensityValue.failed(theta, about_held_states(held))
        parts = [
            DensityPart(case.name, "experiment", -m.value, -m.slope)
            for case, m in zip(problem.cases, marginals, strict=True)
        ]
        prior = prior_part(self.unknowns, theta)
        every = (*parts, *(() if prior is None else (prior,)))
        return DensityValue.summed(theta, every, derivatives, information)


def _on_mesh_of(fit: Fitted, problem: CollocationProblem) -> CollocationProblem:
    """Return a problem on the mesh of a fit, whose trajectories begin where those of the fit are."""
    evaluation = solved_again(fit)
    trajectories, solution = evaluation.trajectories, evaluation.solution
    assert trajectories is not None and solution is not None
    trajectories = trajectories.renewed(problem.cases)
    trajectories.keep(solution, True)
    return problem.on(trajectories)
