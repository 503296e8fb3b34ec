"""Whether Laplace's integral over trajectories matters for a fit, by the slope of a filter's likelihood at the optimum.

Both approximate the likelihood of the same model, starts known: Laplace's method by a normal law about the best
trajectory, the unscented filter by normal laws of the states from sample to sample (``estimation.approximation``).
"""

from __future__ import annotations

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.approximation import ApproximationCheck, Optimum, compare_slopes
from grisaille.estimation.cases import Case
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import Problem
from grisaille.estimators.kalman_ml.filter_check import prior_value, value_of
from grisaille.filtering.runner import FilterOptions
from grisaille.filtering.steps import FilterSteps
from grisaille.filtering.values.runner import ValueRunner
from grisaille.filtering.values.steps import choose_steps_by_values

FIRST, OTHER = "Laplace's method", "the unscented filter"


def check_laplace(problem: Problem, estimate: Estimate, compiled: bool | None) -> ApproximationCheck | None:
    """Compare the marginal likelihood with that of a filter; None where both are exact, or nothing has converged."""
    if not estimate.converged or not problem.cases[0].trial.flat.disturbances:
        return None
    try:
        runs = [_run(case, estimate.theta, compiled) for case in problem.cases]
    except GrisailleError as error:
        return ApproximationCheck(FIRST, OTHER, np.nan, obstacle=f"{OTHER} refuses the model: {error}")
    if all(runner.filter is not None and not runner.filter.model.nonlinear for _, runner, _ in runs):
        return None
    evaluation = estimate.evaluation
    assert isinstance(evaluation, LikelihoodEvaluation)
    covariance = estimate.covariance
    at = Optimum(estimate.theta, problem.bounds, evaluation.slope, covariance, covariance, estimate.free)
    return compare_slopes(at, lambda theta: value_of(runs, theta) + prior_value(problem, theta), FIRST, OTHER)


def _run(case: Case, theta: np.ndarray, compiled: bool | None) -> tuple[Case, ValueRunner, FilterSteps]:
    nx = case.trial.structure.system.nx
    known = tuple((0.0,) * nx for _ in range(nx))
    options = FilterOptions(filter="unscented", initial_covariance=known, compiled=compiled)
    runner, own = ValueRunner(case.trial, options), case.own(theta)
    model = runner.prepare(own)
    steps = FilterSteps(1) if not model.nonlinear else choose_steps_by_values(runner, own)
    if steps is None:
        raise EstimationError("it breaks down at the estimates.")
    return case, runner, steps
