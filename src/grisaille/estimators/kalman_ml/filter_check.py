"""Whether the filter's approximation matters for a fit, by the slope of another filter's likelihood at the optimum.

The unscented filter beside the extended and the iterated one, the extended filter beside the unscented; both on the
steps that were fitted (``estimation.approximation``). Filters of models that are linear in their states are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.approximation import ApproximationCheck, CriterionMinimum, CriterionTerm, compare_slopes
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimators.approximation_terms import compared_curvatures, experiment_part, prior_part
from grisaille.filtering.moment_steps import STAGE_TABLES
from grisaille.filtering.values.value_runner import ValueRunner
from grisaille.filtering.values.value_steps import choose_steps_by_values

EULER_STEPS = "Euler's steps, for comparison with other programs, differ by more than the approximation."


def fitted_filter(cases: Sequence[ExperimentTerm]) -> str:
    """Return the nonlinear filter that cases were fitted by; empty where it is exact."""
    filter = cases[0].runner.filter
    return filter.name if filter is not None and filter.rival else ""


def check_filter(problem: LikelihoodProblem, estimate: Estimate) -> ApproximationCheck | None:
    """Compare the filter with another one at the estimate; None where there is nothing to compare."""
    fitted = fitted_filter(estimate.cases)
    if not fitted or not estimate.converged:
        return None
    kind = estimate.cases[0].runner.filter.rival
    first, other = f"the {fitted} filter", f"the {kind} filter"
    if any(c.runner.reach > 1 for c in estimate.cases):
        return ApproximationCheck(first, other, np.nan, obstacle="predictions over several samples have no check.")
    if STAGE_TABLES[estimate.cases[0].runner.options.solver].is_for_comparison:
        return ApproximationCheck(first, other, np.nan, obstacle=EULER_STEPS)
    try:
        parts = [_part(case, kind, estimate.theta) for case in estimate.cases]
    except GrisailleError as error:
        return ApproximationCheck(first, other, np.nan, obstacle=f"{other} refuses the model: {error}")
    return compare_slopes(_optimum(estimate), [*parts, prior_part(problem), _penalty_part(problem)], first, other)


def _part(case: ExperimentTerm, kind: str, theta: np.ndarray) -> CriterionTerm:
    """Return an experiment by the other filter, on the steps of the first where both step alike."""
    o, own = case.runner.options, case.own(theta)
    runner = ValueRunner(case.trial, replace(o, filter=kind, propagation="linearize"))
    model = runner.prepare(own)
    steps = case.discretisation
    if o.propagation != "linearize" or steps is None:
        steps = (
            choose_steps_by_values(runner, own) if kind == "unscented" and not model.jumps else runner.discretise(own)
        )
    if steps is None:
        raise EstimationError("it breaks down at the estimates.")
    refusal = runner.refusal(own, steps)
    if refusal:
        raise EstimationError(refusal)
    return experiment_part(case, runner, steps)


def _penalty_part(problem: LikelihoodProblem) -> CriterionTerm:
    return CriterionTerm(range(len(problem.unknowns)), lambda theta: problem.penalty.at(problem.unknowns, theta)[0])


def _optimum(estimate: Estimate) -> CriterionMinimum:
    evaluation, covariance = estimate.evaluation, estimate.covariance
    assert isinstance(evaluation, LikelihoodEvaluation)
    bounds = np.array([u.lower for u in estimate.unknowns]), np.array([u.upper for u in estimate.unknowns])
    if estimate.is_likelihood:
        curved = compared_curvatures(estimate)
        return CriterionMinimum(estimate.theta, bounds, evaluation.slope, covariance, covariance, estimate.free, curved)
    inverse, variances = np.array(covariance), np.diag(covariance)
    free = np.flatnonzero(estimate.free & np.isfinite(variances) & (variances > 0))
    inverse[np.ix_(free, free)] = np.linalg.pinv(evaluation.curvature[np.ix_(free, free)])
    none = np.zeros(len(estimate.theta), dtype=bool)
    return CriterionMinimum(estimate.theta, bounds, evaluation.slope, covariance, inverse, estimate.free, none)
