"""Scales of disturbances by splines, one output each: the one that sees the disturbed state most directly."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.intensity import Misfit, misfit_of
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.estimators.collocation.intensity_roots import (
    Conditions,
    Intensities,
    assigned,
    find_scales,
    solve_conditions,
)
from grisaille.estimators.collocation.joint import Progress, settled
from grisaille.estimators.collocation.problem import CollocationProblem

UNSEEN = 100.0
"""Integrations between a disturbance and an output that never sees it."""


class SplineConditions(Conditions):
    """With the trajectories, and the unknowns that are not levels, at their joint minimum."""

    def __init__(self, method: Any, problem: CollocationProblem, progress: Progress | None) -> None:
        super().__init__(problem, pair_outputs(problem))
        self.method, self.splines, self.progress = method, problem, progress

    def misfit(self, theta: np.ndarray) -> tuple[Misfit, np.ndarray]:
        found = settled(self.method, self.splines, theta, self.progress)
        return misfit_of(found.quadratic, self.problem.outputs), found.quadratic.theta


def find_intensities(method: Any, problem: CollocationProblem, progress: Progress | None) -> Intensities:
    """Scales at which every paired output's misfit is what its noise says."""
    return solve_conditions(SplineConditions(method, problem, progress))


def pair_outputs(problem: CollocationProblem) -> dict[int, int]:
    """Scale → the output whose misfit decides it."""
    scales = find_scales(problem)
    models = list({id(p.record.stochastic): p.record.stochastic for p in problem.programs}.values())
    cost = np.array(
        [[min(_distance(m, problem.unknowns[k].target, o) for m in models) for o in problem.outputs] for k in scales],
        dtype=float,
    )
    return assigned(problem, scales, cost, cost >= UNSEEN)


def _distance(model: StochasticModel, disturbance: str, output: str) -> float:
    """How many integrations lie between a disturbance's noise and an output."""
    if output not in model.outputs or f"scale({disturbance})" not in model.quantities:
        return UNSEEN
    level = model.q[model.quantities.index(f"scale({disturbance})")]
    driven = {
        i
        for i in range(model.n)
        if ca.depends_on(ca.densify(ca.vertcat(ca.vec(model.noise[i, :]), model.drift[i])), level)
    }
    reach = np.array(ca.DM(ca.jacobian_sparsity(model.drift, model.X)).full()) != 0
    seen = set(ca.jacobian_sparsity(model.measured[model.outputs.index(output)], model.X).get_col())
    for steps in range(model.n + 1):
        if driven & seen:
            return float(steps)
        driven |= {i for i in range(model.n) if any(reach[i, j] for j in driven)}
    return UNSEEN
