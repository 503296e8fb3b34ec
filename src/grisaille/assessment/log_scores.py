"""The log score of a record that was not fitted: the mean log-density of its samples, by output.

    (1/N) Σ log p(y_i; ŷ_i)

p is the law of the output, or its normal noise, at the estimates. Reference: T. Gneiting, A. E. Raftery, Strictly
proper scoring rules, J. Amer. Stat. Assoc. 102 (2007) 359.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation


def log_scores(problem: EstimationProblem, at: Evaluation) -> dict[str, float]:
    """Return the score of each output; empty of filters, whose predictions depend on samples before.

    at : of the problem at the values that are scored
    Not checked: that what is fitted is the likelihood of simulations.
    """
    parts: dict[str, list[np.ndarray]] = {}
    for output, values in problem.log_densities(at):
        parts.setdefault(output, []).append(values)
    return {output: float(np.mean(np.concatenate(values))) for output, values in parts.items()}
