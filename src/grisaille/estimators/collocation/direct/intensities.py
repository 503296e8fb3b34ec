"""Scales of disturbances by direct collocation, one output each: the one whose misfit a scale moves most.

    σ̂_j²/σ_j² = (|residuals of output j|² + Σ_k Var ŷ_j(t_k)/σ_j²)/n_j

Var ŷ is that of the band of the output, parameters included: the trace of (5.15) in ``collocation.intensity``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.collocation.direct.direct import DirectProgram, DirectSolution
from grisaille.collocation.direct.summary import curvature_at, seen
from grisaille.collocation.direct.transcription import Point
from grisaille.collocation.intensity import Misfit
from grisaille.errors import EstimationError
from grisaille.estimation.problem import Problem
from grisaille.estimators.collocation.direct.programs import with_held
from grisaille.estimators.collocation.intensity_roots import (
    Conditions,
    Intensities,
    assigned,
    find_scales,
    solve_conditions,
)

PROBE = 0.2
"""Change of the logarithm of a scale from which outputs are paired."""
BLIND = 1e-6
"""Fall of log σ̂² below which an output does not see a disturbance."""


class DirectConditions(Conditions):
    """With path and parameters at their joint minimum."""

    def __init__(self, problem: Any) -> None:
        super().__init__(problem, {k: 0 for k in find_scales(problem)})
        self.program: DirectProgram = problem.program
        self.last: Point | None = None
        self.columns = self._paired()

    def misfit(self, theta: np.ndarray) -> tuple[Misfit, np.ndarray]:
        program = with_held(self.program, {k: float(theta[k]) for k in self.scales})
        solution = program.solve(theta, self.last)
        if not solution.converged and self.last is not None:
            solution = program.solve(theta)
        if not solution.converged:
            raise EstimationError(
                f"The path {solution.status}, while intensities were looked for: give another guess=, or bounds, or "
                f"use criterion='laplace'."
            )
        if self.program.options.pieces != "auto":
            self.last = solution.point  # on elements that do not change
        return direct_misfit(self.problem, solution), solution.theta

    def _paired(self) -> list[int]:
        """Outputs in the order of the scales."""
        here = np.log(self.misfit(self.current)[0].ratios)
        falls = []
        for k in self.scales:
            trial = self.current.copy()
            trial[k] *= np.exp(PROBE)
            falls.append(here - np.log(self.misfit(trial)[0].ratios))
        fall = np.array(falls).reshape(len(self.scales), len(self.problem.outputs))
        pairs = assigned(self.problem, self.scales, -fall, np.abs(fall) < BLIND)
        return [pairs[k] for k in self.scales]


def find_direct_intensities(problem: Any) -> Intensities:
    """Scales at which every paired output's misfit is what its noise says."""
    return solve_conditions(DirectConditions(problem))


def direct_misfit(problem: Problem, solution: DirectSolution) -> Misfit:
    """Of every output at a solution."""
    program = solution.program
    squares, explained, counts = (np.zeros(len(problem.outputs)) for _ in range(3))
    covariance = np.nan_to_num(solution.covariance)
    model = curvature_at(program, solution.result, solution.inside)
    for r, case in enumerate(problem.cases):
        y, deviation = seen(program, solution.result, model, r, covariance, "measured")
        sigma = program.look("deviation", solution.point, r)[0]
        ends = program.meshes[r].ends_of_samples
        for s in case.samples:
            j, column, at = problem.outputs.index(s.output), program.model.outputs.index(s.output), ends[s.rows]
            scaled = (s.weights / sigma[at, column]) ** 2
            squares[j] += float((scaled * (s.values - y[at, column]) ** 2).sum())
            explained[j] += float((scaled * deviation[at, column] ** 2).sum())
            counts[j] += len(s.values)
    return Misfit(squares, explained, counts)
