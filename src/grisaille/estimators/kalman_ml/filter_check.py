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
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.horizon import HorizonRunner
from grisaille.filtering.other_filter import ValueRunner
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
        return ApproximationCheck(first, other, np.nan, (), "predictions over several samples have no check.")
    try:
        runs = [_run(case, kind, estimate.theta) for case in estimate.cases]
    except GrisailleError as error:
        return ApproximationCheck(first, other, np.nan, (), f"{other} refuses the model: {error}")
    return compare_slopes(_optimum(problem, estimate), lambda theta: value_of(runs, theta), first, other)


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


def _optimum(problem: LikelihoodProblem, estimate: Estimate) -> Optimum:
    evaluation = estimate.evaluation
    assert isinstance(evaluation, LikelihoodEvaluation)
    extra, extra_slopes = problem.prior_residuals(estimate.theta)
    gradient = evaluation.slope - extra_slopes.T @ extra - problem.penalty.at(problem.unknowns, estimate.theta)[1]
    inverse = estimate.covariance
    if not estimate.is_likelihood:
        inverse = np.array(estimate.covariance)
        free = np.flatnonzero(estimate.free & np.isfinite(np.diag(inverse)) & (np.diag(inverse) > 0))
        inverse[np.ix_(free, free)] = np.linalg.pinv(evaluation.curvature[np.ix_(free, free)])
    return Optimum(estimate.theta, problem.bounds, gradient, estimate.covariance, inverse, estimate.free)
