"""Quantile residuals in place of others, and with other random numbers: whether a verdict hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.measurements.law_properties import laws_of
from grisaille.estimation.measurements.measured_problem import MeasuredProblem
from grisaille.estimation.measurements.output_law import output_laws
from grisaille.estimation.measurements.quantile_residuals import DEFAULT_SEED, quantile_residuals
from grisaille.estimation.problem import Evaluation

E = TypeVar("E", bound=Evaluation)


def with_new_seed(estimate: Estimate, seed: int) -> Estimate:
    """Return an estimate with the residuals of a seed; itself where no output has a law."""
    if seed == DEFAULT_SEED or not laws_of(estimate):
        return estimate
    found = with_quantile_residuals(estimate.evaluation, estimate.unknowns, estimate.cases, seed)
    return replace(estimate, evaluation=found)


def with_quantile_residuals(
    evaluation: E, unknowns: Sequence[Unknown], cases: Sequence[ExperimentTerm], seed: int = DEFAULT_SEED
) -> E:
    """Return an evaluation with quantile residuals of the outputs that declare laws; those of others stay."""
    flat = cases[0].trial.flat
    outputs = tuple(dict.fromkeys(s.output for c in cases for s in c.samples))
    problem, residuals, at = MeasuredProblem(unknowns, cases, output_laws(flat, outputs)), [], 0
    for case, prediction in zip(cases, evaluation.predictions, strict=True):
        laws = problem.laws_at(case, prediction, evaluation.theta)
        for s, law in zip(case.samples, laws, strict=True):
            own = evaluation.residuals[at : at + len(s.rows)]
            at += len(s.rows)
            if flat.outputs[s.output].distribution is not None:
                own = quantile_residuals(law, s.values, s.output, case.name, seed)
            residuals.append(own)
    return replace(evaluation, residuals=np.concatenate([*residuals, evaluation.residuals[at:]]))
