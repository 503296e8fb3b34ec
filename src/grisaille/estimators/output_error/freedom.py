"""Degrees of freedom of a problem of least squares at a point of its search."""

from __future__ import annotations

import numpy as np

from grisaille.estimation.determination.degrees_of_freedom import DegreesOfFreedom
from grisaille.estimation.problem import EstimationProblem, Evaluation


def freedom_of(problem: EstimationProblem, evaluation: Evaluation, told: np.ndarray) -> DegreesOfFreedom:
    """Return the degrees of freedom of residuals with the levels of noise of this problem; ``told``: unknowns that are
    determined.
    """
    outputs = np.array(problem.outputs, dtype=object)[problem.output_of]
    return DegreesOfFreedom(evaluation.curved, outputs, tuple(problem.sigma), told)
