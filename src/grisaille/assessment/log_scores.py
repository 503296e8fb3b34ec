"""The log score of a record that was not fitted: the mean log-density of its samples, by output.

    (1/N) Σ log p(y_i; ŷ_i)

p is the law of the output, or its normal noise, at the estimates. Reference: T. Gneiting, A. E. Raftery, Strictly
proper scoring rules, J. Amer. Stat. Assoc. 102 (2007) 359.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grisaille.estimation.measurements.problem import MeasuredProblem
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.laws.formulas import HALF_LOG_TWO_PI

Scored = Iterator[tuple[str, np.ndarray]]


def log_scores(problem: Problem, at: Evaluation) -> dict[str, float]:
    """Return the score of each output; empty of filters, whose predictions depend on samples before.

    at : of the problem at the values that are scored
    Not checked: that what is fitted is the likelihood of simulations.
    """
    if isinstance(problem, MeasuredProblem):
        found = _by_law(problem, at)
    elif problem.is_least_squares and problem.noise:
        found = _by_noise(problem, at)
    else:
        return {}
    parts: dict[str, list[np.ndarray]] = {}
    for output, values in found:
        parts.setdefault(output, []).append(values)
    return {output: float(np.mean(np.concatenate(values))) for output, values in parts.items()}


def _by_law(problem: MeasuredProblem, at: Evaluation) -> Scored:
    for case, prediction in zip(problem.begun.cases, at.predictions, strict=True):
        laws = problem.laws_at(case, prediction, at.theta)
        yield from ((s.output, law.log_density(s.values)) for s, law in zip(case.samples, laws, strict=True))


def _by_noise(problem: Problem, at: Evaluation) -> Scored:
    """Of normal noise; the standard deviation of a sample with a weight is divided by it."""
    first = 0
    for case, prediction in zip(problem.begun.cases, at.predictions, strict=True):
        for s in case.samples:
            r = at.residuals[first : first + len(s.values)]
            first += len(s.values)
            sigma = problem.begun.deviations(case, s.output, s.rows, prediction, at.theta) / s.weights
            yield s.output, -0.5 * r**2 - np.log(sigma) - HALF_LOG_TWO_PI
