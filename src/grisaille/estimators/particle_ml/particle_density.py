"""The likelihood of particle filters as a log-density.

At one seed log L̂ is nearly a smooth function, with the same Monte Carlo error everywhere near: ratios and profiles are
much better known than log L itself. Several seeds are averaged. Derivatives are differences over steps that are long
against what is left of roughness; searches are those of the estimator, with unknowns held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import logsumexp

from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.criterion_kinds import Likelihood, as_discretised, refuse_no_likelihood
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.estimators.particle_ml.particle_search import SurfaceSearch, usable_root
from grisaille.estimators.particle_ml.restricted_particles import RestrictedParticles
from grisaille.optimization.journal import SearchJournal

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.problem import EstimationProblem

SEEDS = 4
"""Whose estimates are averaged."""
STEP, RELATIVE_STEP = 0.3, 0.02
"""Of differences: in standard errors, and of an unknown's size where these are not known."""
MAX_SEARCH = 2000
"""Evaluations of a search with unknowns held."""
MAX_DEVIATION = 1.0
"""In coordinates of a search, that a design begins with."""


@dataclass(frozen=True)
class ParticleLikelihood(Likelihood):
    """That of a particle filter."""

    has_levels: ClassVar[bool] = True
    refits: ClassVar[bool] = True
    no_posterior: str = (
        "A posterior is sampled by slopes of the log-density, and that of a particle filter is rough: use "
        "gr.KalmanML(), or gr.Collocation(), where they describe the model; fit.profile(name) and gr.bootstrap(fit) "
        "do not need slopes."
    )

    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> ParticleDensity:
        posed = as_discretised(problem.of(ParticleProblem), fit).discretised_problem
        assert isinstance(posed, ParticleProblem)
        return ParticleDensity(posed, None if fit is None else fit.estimate.covariance)

    def around(self, fit: Fitted, held: Sequence[str]) -> ParticleDensity:
        refuse_no_likelihood(fit)
        seed = getattr(fit.method, "seed", 1)
        problem = ParticleProblem(at_estimates(fit.estimate), fit.estimate.cases, seed)
        return ParticleDensity(problem, fit.estimate.covariance)


class ParticleDensity(LogDensity):
    """Of a problem with discretised experiments.

    covariance : of the unknowns, where a fit is known
    """

    def __init__(self, problem: ParticleProblem, covariance: np.ndarray | None = None) -> None:
        self.problem: ParticleProblem = problem
        self.covariance = covariance
        prior = prior_part(self.unknowns, self.start, False)
        self._constant = 0.0 if prior is None else prior.log_density + problem.prior(self.start).value

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; the information is that of the fit, where one is known."""
        values, failure = self._experiments(theta)
        if failure:
            return DensityValue.failed(theta, failure)
        slopes = self._differences(theta) if derivatives else np.zeros((len(values), 0))
        cases = zip(self.problem.cases, values.tolist(), slopes, strict=True)
        parts = [DensityPart(case.name, "experiment", value, slope) for case, value, slope in cases]
        prior = prior_part(self.unknowns, theta, derivatives)
        every = (*parts, *(() if prior is None else (prior,)))
        return DensityValue.summed(theta, every, derivatives, None, constant=self._constant)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Search by response surfaces in the unknowns that are not held."""
        restricted = RestrictedParticles(self.problem, start, held)
        search = SurfaceSearch(restricted, SearchJournal(), MAX_SEARCH)
        centre = search.inner(search.guess)
        root = self._root(restricted)
        noise = restricted.repeated(search.guess, 4).spread
        begin = search.probed_root(centre) if root is None else root
        found = search.run(centre, begin, max(noise, 1e-3), nearly=True)
        theta = restricted.whole(search.outer(found.xi))
        value = self.evaluate(theta, False)
        return Maximum(theta, value.log_density, value.failure)

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> ParticleDensity:
        """Return the same of other measurements."""
        return ParticleDensity(self.problem.renewed(values, theta), self.covariance)

    def _experiments(self, theta: np.ndarray) -> tuple[np.ndarray, str]:
        """Return log L̂ of each experiment, averaged over seeds that are the same everywhere."""
        rows = []
        for k in range(SEEDS):
            values, failure = self.problem.parts_at(theta, self.problem.seed + k)
            if failure:
                return values, failure
            rows.append(values)
        return np.asarray(logsumexp(np.array(rows), axis=0) - np.log(SEEDS)), ""

    def _differences(self, theta: np.ndarray) -> np.ndarray:
        """Return derivatives of each experiment's log L̂, (experiments, n)."""
        slopes = []
        for k, unknown in enumerate(self.unknowns):
            step = RELATIVE_STEP * max(abs(float(theta[k])), unknown.size)
            if self.covariance is not None and 0 < self.covariance[k, k] < np.inf:
                step = STEP * float(np.sqrt(self.covariance[k, k]))
            ends = []
            for side in (step, -step):
                moved = theta.copy()
                moved[k] = np.clip(moved[k] + side, unknown.lower, unknown.upper)
                values, failure = self._experiments(moved)
                ends.append((float(moved[k]), values if not failure else np.full(len(values), np.nan)))
            (above, there), (below, back) = ends
            slopes.append((there - back) / (above - below))
        return np.array(slopes).T

    def _root(self, restricted: RestrictedParticles) -> np.ndarray | None:
        """Return a root of the covariance with unknowns held."""
        if self.covariance is None or not np.isfinite(self.covariance).all():
            return None
        kept = restricted.kept
        try:
            inverse = np.linalg.inv(self.covariance)
            conditional = np.linalg.inv(inverse[np.ix_(kept, kept)])
        except np.linalg.LinAlgError:
            return None
        slopes = restricted.slopes(restricted.guess)
        return usable_root(conditional, slopes, [MAX_DEVIATION] * len(slopes))
