"""Whether a fitted mean explains its record at all: its errors against those of records simulated from the same model.

A record that the fitted model made differs from the mean by disturbances and noise, Σ w²e² = T. A fit only makes T
smaller, so a record whose T is larger than in every one of several hundred simulated ones was not made by that model:
the minimum is one of several, the model is wrong, or disturbances and noise are larger than declared.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.findings.ensemble import UnexplainedErrors
from grisaille.estimators.simulated_pem.error_sizes import JudgedCase
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue

SUSPICIOUS_RATIO = 1.5
"""T over its expectation from which on records are simulated to compare with, and other minima looked for."""
SUSPECT_ACROSS_JUMPS = 1.2
"""The latter where paths jump: in wrong minima their spread is large as well."""


def largest_errors(criterion: MeanCriterion, value: MeanValue) -> float:
    """Return the largest T over its expectation, of outputs whose noise is known; zero where there are none."""
    cases = [JudgedCase(criterion, value, number) for number in range(len(criterion.problem.cases))]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.concatenate([c.measured().squares / c.expected for c in cases])
    return float(np.max(ratios, initial=0.0, where=np.isfinite(ratios)))


def unexplained_errors(criterion: MeanCriterion, value: MeanValue) -> tuple[UnexplainedErrors, ...]:
    """Return √(T / median T of simulated records) of outputs whose T is larger than in all of them.

    Outputs whose noise is open are left out.
    """
    found = []
    for number, case in enumerate(criterion.problem.cases):
        judged = JudgedCase(criterion, value, number)
        with np.errstate(invalid="ignore"):
            large = judged.measured().squares > SUSPICIOUS_RATIO * judged.expected
        if not large.any():
            continue
        squares, simulated = judged.measured().squares, judged.simulated().squares
        for k in np.flatnonzero(large & (squares > simulated.max(axis=0))):
            typical = max(float(np.median(simulated[:, k])), 1e-300)
            found.append(UnexplainedErrors(case.samples[k].output, case.name, float(np.sqrt(squares[k] / typical))))
    return tuple(found)
