"""Parts of a criterion by another filter, for the comparison of slopes (``estimation.approximation``)."""

from __future__ import annotations

import numpy as np

from grisaille.estimation.approximation import Part
from grisaille.estimation.cases import Case
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.problem import Problem
from grisaille.filtering.values.runner import ValueRunner
from grisaille.trial.discretisation import Discretisation


def experiment_part(case: Case, runner: ValueRunner, steps: Discretisation) -> Part:
    """Return minus the log-likelihood of one experiment as a part of a criterion."""

    def value(theta: np.ndarray) -> float:
        found = runner.likelihood(case.own(theta), steps, sensitive=False)
        return np.nan if found.failure or found.likelihood is None else -found.likelihood.value

    return Part(case.unknowns, value)


def prior_part(problem: Problem) -> Part:
    """Return minus the log-density of the priors, up to a constant, as a part of a criterion."""

    def value(theta: np.ndarray) -> float:
        return problem.prior(theta).value

    return Part(range(len(problem.unknowns)), value)


def compared_curvatures(estimate: Estimate) -> np.ndarray:
    """Return which unknowns have a curvature to compare: not levels of noise that are zero but for their error."""
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.clip(np.diag(estimate.covariance), 0.0, None))
    is_level = np.array([u.kind in ("scale", "noise") for u in estimate.unknowns])
    return np.asarray(~(is_level & (estimate.theta < errors)))
