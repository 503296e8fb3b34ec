"""Degrees of freedom of a problem of least squares at a point of its search."""

from __future__ import annotations

import numpy as np

from grisaille.estimation.determination.freedom import Freedom
from grisaille.estimation.problem import Evaluation, Problem


def freedom_of(problem: Problem, evaluation: Evaluation, told: np.ndarray) -> Freedom:
    """What residuals leave with the levels of noise of this problem; ``told``: unknowns that are determined."""
    outputs = np.array(problem.outputs, dtype=object)[problem.output_of]
    return Freedom(evaluation.curved, outputs, tuple(problem.sigma), told)
