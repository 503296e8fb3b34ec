"""The likelihood of filters as a log-density: one part for each experiment, the prior, and a penalty of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.bound_penalty import BoundPenalty
from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.density_search import density_from_objective
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import LikelihoodProblem

SMALLEST_LEVEL = 0.1
"""Of the limit of a level that is zero: where a search for it begins."""


class FilterDensity(LogDensity):
    """Of a problem of filtered experiments, on the steps between samples that suit its guess.

    zeros : levels that are zero at the guess, by index, and what a search begins with: at zero itself log L has no
        slope in them
    """

    def __init__(self, problem: LikelihoodProblem, zeros: Mapping[int, float] = MappingProxyType({})) -> None:
        self.problem: LikelihoodProblem = problem.discretised_problem
        self.zeros = zeros
        prior = prior_part(self.unknowns, self.start, False)
        self._constant = 0.0 if prior is None else prior.log_density + problem.prior(self.start).value

    @classmethod
    def discretised(cls, problem: LikelihoodProblem) -> FilterDensity:
        """Return that of a problem whose data can be followed at the guess."""
        made = cls(problem)
        first = made.value(made.start, False)
        if first.failure:
            raise EstimationError(f"The data cannot be followed at the guess: {first.failure}")
        return made

    @classmethod
    def around(cls, estimate: Estimate, penalty: BoundPenalty) -> FilterDensity:
        """Return the density at a fit, with its filters."""
        limits = {k: estimate.limits.get(u.name) for k, u in enumerate(estimate.unknowns)}
        zeros = {k: SMALLEST_LEVEL * limit for k, limit in limits.items() if limit is not None}
        unknowns = [
            replace(u.starting_from(zeros[k]), logarithmic=True) if k in zeros else u
            for k, u in enumerate(at_estimates(estimate))
        ]
        made = cls(LikelihoodProblem(unknowns, estimate.cases, penalty), zeros)
        first = made.evaluate(estimate.theta, False)
        if first.failure:
            raise EstimationError(f"The data cannot be followed at the estimates: {first.failure}")
        return made

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; its information is the expected one."""
        problem, n, parts = self.problem, len(theta), []
        information = np.zeros((n, n))
        for case in problem.cases:
            found = problem.filtered(case, theta, "all" if derivatives else "value")
            if found.failure or found.likelihood is None:
                return DensityValue.failed(theta, f"experiment '{case.name}': {found.failure}")
            likelihood, mine, slope = found.likelihood, list(case.unknowns), np.zeros(n)
            if derivatives:
                slope[mine] = likelihood.gradient
                information[np.ix_(mine, mine)] += likelihood.information
            parts.append(DensityPart(case.name, "experiment", float(likelihood.value), slope))
        prior = prior_part(self.unknowns, theta)
        if prior is not None:
            parts.append(prior)
            information += problem.prior(theta).search_curvature
        if problem.penalty.weight:
            fence, pull, curved = problem.penalty.at(self.unknowns, theta)
            parts.append(DensityPart("penalty", "penalty", -fence, -pull))
            information += np.diag(curved)
        bend = information if derivatives else None
        return DensityValue.summed(theta, tuple(parts), derivatives, bend, constant=self._constant)

    def value(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ inside the bounds; a failure in words where it must not be believed."""
        found = super().value(theta, derivatives)
        refusal = "" if found.failure else self.problem.refusal(found.theta)
        return DensityValue.failed(found.theta, refusal) if refusal else found

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Search by Fisher scoring."""
        for k in self.zeros.keys() - set(held):
            start[k] = max(start[k], self.zeros[k])
        return density_from_objective(self.problem, start, held, nearly, self._constant)

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> FilterDensity:
        """Return the same of other measurements, on steps that these need at θ."""
        return FilterDensity(self.problem.renewed(values, theta))
