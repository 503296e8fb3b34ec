"""A fit whose quantile residuals have other random numbers: whether a verdict hangs on them."""

from __future__ import annotations

from dataclasses import replace

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.measurements.declared import laws_of
from grisaille.estimation.measurements.output_law import output_laws
from grisaille.estimation.measurements.problem import MeasuredProblem
from grisaille.estimation.measurements.quantile_residuals import SEED


def reseeded(estimate: Estimate, seed: int) -> Estimate:
    """Return an estimate with the residuals of a seed; itself where no output has a law."""
    if seed == SEED or not laws_of(estimate):
        return estimate
    outputs = tuple(dict.fromkeys(s.output for c in estimate.cases for s in c.samples))
    laws = output_laws(estimate.cases[0].trial.flat, outputs)
    problem = MeasuredProblem(estimate.unknowns, estimate.cases, laws)
    return replace(estimate, evaluation=problem.with_residuals(estimate.evaluation, seed))
