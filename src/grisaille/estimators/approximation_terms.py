"""Parts of a criterion by another filter, for the comparison of slopes (``estimation.approximation``)."""

from __future__ import annotations

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.estimation.approximation import CriterionTerm
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem
from grisaille.filtering.values.value_runner import ValueRunner


def experiment_part(case: ExperimentTerm, runner: ValueRunner, steps: Discretisation) -> CriterionTerm:
    """Return minus the log-likelihood of one experiment as a part of a criterion."""

    def value(theta: np.ndarray) -> float:
        found = runner.likelihood(case.own(theta), steps, sensitive=False)
        return np.nan if found.failure or found.likelihood is None else -found.likelihood.value

    return CriterionTerm(case.unknowns, value)


def prior_part(problem: EstimationProblem) -> CriterionTerm:
    """Return minus the log-density of the priors, up to a constant, as a part of a criterion."""

    def value(theta: np.ndarray) -> float:
        return problem.prior(theta).value

    return CriterionTerm(range(len(problem.unknowns)), value)


def compared_curvatures(estimate: Estimate) -> np.ndarray:
    """Return which unknowns have a curvature to compare: not levels of noise that are zero but for their error."""
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.clip(np.diag(estimate.covariance), 0.0, None))
    is_level = np.array([u.kind in ("scale", "noise") for u in estimate.unknowns])
    return np.asarray(~(is_level & (estimate.theta < errors)))
