"""What samples are on average by the law of their output, where that is not the prediction.

Samples beyond limits are recorded at them, or not at all: most of them may lie far from a right prediction.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.measurements.law_properties import laws_of
from grisaille.estimation.measurements.measured_problem import MeasuredProblem
from grisaille.estimation.measurements.output_law import output_laws


def errors_beside_recorded(estimate: Estimate) -> np.ndarray:
    """Return what is left of each sample: less the mean of a law inside of another one, else less the prediction."""
    errors, wrapped = estimate.evaluation.errors, {n for n, law in laws_of(estimate).items() if hasattr(law, "of")}
    if not wrapped:
        return errors
    flat = estimate.cases[0].trial.flat
    outputs = tuple(dict.fromkeys(s.output for c in estimate.cases for s in c.samples))
    problem = MeasuredProblem(estimate.unknowns, estimate.cases, output_laws(flat, outputs))
    left, at = list[np.ndarray](), 0
    for case, prediction in zip(estimate.cases, estimate.evaluation.predictions, strict=True):
        laws = problem.laws_at(case, prediction, estimate.theta)
        for s, law in zip(case.samples, laws, strict=True):
            own = errors[at : at + len(s.values)]
            at += len(s.values)
            if s.output in wrapped:
                beside = s.values - np.asarray(law.mean)
                own = np.where(np.isfinite(beside), beside, own)
            left.append(own)
    return np.concatenate([*left, errors[at:]])
