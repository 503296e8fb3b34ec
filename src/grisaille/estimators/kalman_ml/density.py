"""The likelihood of filters as a log-density: one part for each experiment, the prior, and a penalty of bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.density.log_density import LogDensity, Maximum, held_at
from grisaille.estimation.density.priors import prior_part
from grisaille.estimation.density.search import maximized
from grisaille.estimation.density.value import DensityPart, DensityValue
from grisaille.estimation.likelihood import LikelihoodProblem


class FilterDensity(LogDensity):
    """Of a problem of filtered experiments, on the steps between samples that suit its guess."""

    def __init__(self, problem: LikelihoodProblem) -> None:
        self.problem = problem.begun
        self.unknowns = problem.unknowns
        first = self.value(self.start, False)
        if first.failure:
            raise EstimationError(f"The data cannot be followed at the guess: {first.failure}")

    def maximize(self, held: Mapping[int, float], start: np.ndarray) -> Maximum:
        """Return the largest density, sought by Fisher scoring."""
        return maximized(self, held_at(start, held), list(held))

    def _value(self, theta: np.ndarray, derivatives: bool) -> DensityValue:
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
        refusal = problem.refusal(theta)
        if refusal:
            return DensityValue.failed(theta, refusal)
        prior = prior_part(self.unknowns, theta)
        if prior is not None:
            parts.append(prior)
            information += problem.prior(theta).curvature
        if problem.penalty.weight:
            fence, pull, bend = problem.penalty.at(self.unknowns, theta)
            parts.append(DensityPart("penalty", "penalty", -fence, -pull))
            information += np.diag(bend)
        return DensityValue.summed(theta, tuple(parts), derivatives, information if derivatives else None)
