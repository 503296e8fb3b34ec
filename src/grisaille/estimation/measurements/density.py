"""The likelihood of measurements by any law as a log-density: a part for each experiment, and the prior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.density_search import density_from_objective
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.measurements.measured_problem import MeasuredProblem
from grisaille.estimation.measurements.output_law import output_laws
from grisaille.simulation.runner import MAX_ERROR_IN_TOLERANCES


class MeasuredDensity(LogDensity):
    """Of a problem of simulated experiments, on the steps that suit its guess."""

    def __init__(self, problem: MeasuredProblem) -> None:
        self.problem: MeasuredProblem = problem.discretised_problem
        prior = prior_part(self.unknowns, self.start, False)
        self._constant = 0.0 if prior is None else prior.log_density + problem.prior(self.start).value
        first = self.value(self.start, False)
        if first.failure:
            raise EstimationError(f"There is no likelihood at the guess: {first.failure}")

    @classmethod
    def around(cls, estimate: Estimate) -> MeasuredDensity:
        """Return that of a fit, on its steps."""
        outputs = tuple(dict.fromkeys(s.output for c in estimate.cases for s in c.samples))
        laws = output_laws(estimate.cases[0].trial.flat, outputs)
        return cls(MeasuredProblem(at_estimates(estimate), estimate.cases, laws))

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; its information is the expected one, with the curvature of priors."""
        found = self.problem.evaluate(theta, sensitive=derivatives)
        if not found.completed:
            return DensityValue.failed(theta, found.failure)
        if found.discretisation > MAX_ERROR_IN_TOLERANCES:
            reason = f"simulations miss their tolerance by a factor {found.discretisation:.2g}: use a smaller rtol"
            return DensityValue.failed(theta, reason)
        nothing = np.zeros(0)
        slopes = found.slopes if derivatives and found.slopes is not None else [nothing] * len(found.parts)
        parts = [
            DensityPart(case.name, "experiment", value, np.asarray(slope))
            for case, value, slope in zip(self.problem.cases, found.parts, slopes, strict=True)
        ]
        prior = prior_part(self.unknowns, theta, derivatives)
        every = (*parts, *(() if prior is None else (prior,)))
        information = found.curvature if derivatives else None
        return DensityValue.summed(theta, every, derivatives, information, constant=self._constant)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Search by Fisher scoring."""
        return density_from_objective(self.problem, start, held, nearly, self._constant)

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> MeasuredDensity:
        """Return the same of other measurements, starting from θ."""
        return MeasuredDensity(self.problem.renewed(values, theta))
