"""Whether Laplace's integral over trajectories matters for a fit, by the slope of a filter's likelihood at the optimum.

Both approximate the likelihood of the same model, starts known: Laplace's method by a normal law about the best
trajectory, the unscented filter by normal laws of the states from sample to sample (``estimation.approximation``).
"""

from __future__ import annotations

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.approximation import ApproximationCheck, CriterionMinimum, compare_slopes
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.measurements.output_law import have_laws
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.approximation_terms import compared_curvatures, experiment_part, prior_part
from grisaille.filtering.filter_runner import FilterOptions
from grisaille.filtering.filter_steps import FilterSteps
from grisaille.filtering.values.value_runner import ValueRunner
from grisaille.filtering.values.value_steps import choose_steps_by_values

FIRST, OTHER = "Laplace's method", "the unscented filter"


def check_laplace(problem: EstimationProblem, estimate: Estimate) -> ApproximationCheck | None:
    """Compare the marginal likelihood with that of a filter; None where both are exact, or nothing has converged."""
    flat = problem.cases[0].trial.flat
    if not estimate.converged or not flat.disturbances or have_laws(flat, problem.outputs):
        return None
    try:
        runners = [_prepared(case, estimate.theta) for case in problem.cases]
        if not any(runner.filter is not None and runner.filter.model.nonlinear for runner in runners):
            return None
        pairs = zip(problem.cases, runners, strict=True)
        parts = [experiment_part(case, runner, _steps(case, runner, estimate.theta)) for case, runner in pairs]
    except GrisailleError as error:
        return ApproximationCheck(FIRST, OTHER, np.nan, obstacle=f"{OTHER} refuses the model: {error}")
    evaluation = estimate.evaluation
    assert isinstance(evaluation, LikelihoodEvaluation)
    covariance = estimate.covariance
    curved = compared_curvatures(estimate)
    at = CriterionMinimum(
        estimate.theta, problem.bounds, evaluation.slope, covariance, covariance, estimate.free, curved
    )
    return compare_slopes(at, [*parts, prior_part(problem)], FIRST, OTHER)


def _prepared(case: ExperimentTerm, theta: np.ndarray) -> ValueRunner:
    """Return the filter of one experiment whose start is known, as it is for trajectories."""
    nx = case.trial.structure.system.nx
    known = tuple((0.0,) * nx for _ in range(nx))
    runner = ValueRunner(case.trial, FilterOptions("unscented", initial_covariance=known))
    runner.prepare(case.own(theta))
    return runner


def _steps(case: ExperimentTerm, runner: ValueRunner, theta: np.ndarray) -> FilterSteps:
    steps = choose_steps_by_values(runner, case.own(theta))
    if steps is None:
        raise EstimationError("it breaks down at the estimates.")
    return steps
