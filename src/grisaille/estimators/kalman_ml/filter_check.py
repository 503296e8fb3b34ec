"""Whether the filter's approximation matters for a fit, by the slope of another filter's likelihood at the optimum.

The unscented filter beside the extended and the iterated one, the extended filter beside the unscented; both on the
steps that were fitted (``estimation.approximation``). Filters of models that are linear in their states are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.approximation import ApproximationCheck, Optimum, compare_slopes
from grisaille.estimation.cases import Case
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.problem import Problem
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.horizon import HorizonRunner
from grisaille.filtering.values.runner import ValueRunner
from grisaille.trial.discretisation import Discretisation

Runs = Sequence[tuple[Case, ValueRunner, Discretisation]]


def fitted_filter(cases: Sequence[Case]) -> str:
    """Return the nonlinear filter that cases were fitted by; empty where it is exact."""
    filter = cases[0].runner.filter
    return filter.kind.update if isinstance(filter, ExtendedFilter) and filter.model.nonlinear else ""


def check_filter(problem: LikelihoodProblem, estimate: Estimate) -> ApproximationCheck | None:
    """Compare the filter with another one at the estimate; None where there is nothing to compare."""
    fitted = fitted_filter(estimate.cases)
    if not fitted or not estimate.converged:
        return None
    kind = "extended" if fitted == "unscented" else "unscented"
    first, other = f"the {fitted} filter", f"the {kind} filter"
    if any(isinstance(c.runner, HorizonRunner) for c in estimate.cases):
        return ApproximationCheck(first, other, np.nan, obstacle="predictions over several samples have no check.")
    try:
        runs = [_run(case, kind, estimate.theta) for case in estimate.cases]
    except GrisailleError as error:
        return ApproximationCheck(first, other, np.nan, obstacle=f"{other} refuses the model: {error}")

    def value(theta: np.ndarray) -> float:
        beside = problem.penalty.at(problem.unknowns, theta)[0] + prior_value(problem, theta)
        return value_of(runs, theta) + beside

    return compare_slopes(_optimum(estimate), value, first, other)


def _run(case: Case, kind: str, theta: np.ndarray) -> tuple[Case, ValueRunner, Discretisation]:
    """The other filter on the steps of the first."""
    o = case.runner.options
    moved = "moments" if o.propagation == "square-root" else o.propagation
    other = ValueRunner(case.trial, replace(o, filter=kind, propagation=moved))
    other.prepare(case.own(theta))
    assert case.discretisation is not None
    refusal = other.refusal(case.own(theta), case.discretisation)
    if refusal:
        raise GrisailleError(refusal)
    return case, other, case.discretisation


def value_of(runs: Runs, theta: np.ndarray) -> float:
    """Return minus the log-likelihood of all experiments; NaN where a filter breaks down."""
    total = 0.0
    for case, runner, steps in runs:
        found = runner.likelihood(case.own(theta), steps, sensitive=False)
        if found.failure or found.likelihood is None:
            return np.nan
        total -= found.likelihood.value
    return total


def prior_value(problem: Problem, theta: np.ndarray) -> float:
    """Return minus the log-density of the priors, up to a constant."""
    residuals, _ = problem.prior_residuals(theta)
    return 0.5 * float(residuals @ residuals)


def _optimum(estimate: Estimate) -> Optimum:
    evaluation, covariance = estimate.evaluation, estimate.covariance
    assert isinstance(evaluation, LikelihoodEvaluation)
    bounds = np.array([u.lower for u in estimate.unknowns]), np.array([u.upper for u in estimate.unknowns])
    if estimate.is_likelihood:
        return Optimum(estimate.theta, bounds, evaluation.slope, covariance, covariance, estimate.free)
    inverse, variances = np.array(covariance), np.diag(covariance)
    free = np.flatnonzero(estimate.free & np.isfinite(variances) & (variances > 0))
    inverse[np.ix_(free, free)] = np.linalg.pinv(evaluation.curvature[np.ix_(free, free)])
    return Optimum(estimate.theta, bounds, evaluation.slope, covariance, inverse, estimate.free, is_hessian=False)
