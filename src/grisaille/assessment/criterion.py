"""The criterion of a fit with some unknowns held: what profiles and surfaces are made of.

With RSS_k the weighted squares of output k, N_k its samples, and S the squares of residuals whose noise is known (and
of priors), the deviance of a point is

    D(θ) = Σ_k N_k log(RSS_k(θ) / RSS_k(θ̂)) + S(θ) − S(θ̂),

the difference of −2 log L − 2 log prior with every unknown noise level at its maximum-likelihood value: its minimum is
the estimate. What it is compared with is in ``law``. Not for robust losses, which are not likelihoods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from grisaille.assessment.at_estimates import at_estimates
from grisaille.assessment.collocation_criterion import collocation_criterion
from grisaille.assessment.law import Law, law_of
from grisaille.assessment.likelihood_criterion import LikelihoodCriterion
from grisaille.assessment.own_criterion import OwnCriterion
from grisaille.assessment.points import Local, Point
from grisaille.assessment.restricted import Restricted
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.noise import noise_levels
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.estimation.uncertainty import inverse_information
from grisaille.experiment.experiment import Experiment
from grisaille.optimization import trust_region
from grisaille.optimization.search import Search
from grisaille.structure.prepared import structure_of

Threshold = Literal["t", "chi2"]
TOLERANCE = 1e-10
LEVEL_ROUNDS = 30


def criterion_of(fit: Fitted, *held: str) -> Criterion | LikelihoodCriterion:
    """Deviances around a fit, whatever its criterion; ``held``: names of unknowns that will be given values."""
    if fit.method.no_profiles:
        raise EstimationError(fit.method.no_profiles)
    kind = fit.method.deviance
    if kind == "trajectories":
        return collocation_criterion(fit, held)
    _accept(fit)
    if kind == "itself":
        return OwnCriterion(fit)
    return LikelihoodCriterion(fit) if kind == "likelihood" else Criterion(fit)


class Criterion:
    """Deviances around a fit, on the frozen steps of the fit itself."""

    def __init__(self, fit: Fitted) -> None:
        estimate = fit.estimate
        _accept(fit)
        self.theta = estimate.theta
        outputs = tuple(dict.fromkeys(s.output for c in estimate.cases for s in c.samples))
        noise = noise_levels(structure_of(fit.initial_model).model, outputs)
        self.problem = Problem(at_estimates(estimate), estimate.cases, noise)
        self.problem.sigma = dict(estimate.noise)
        self._law_of, self._law = partial(law_of, fit), law_of(fit)
        best = self.problem.evaluate(self.theta)
        if not best.completed:
            raise EstimationError(f"The model cannot be simulated at the estimates: {best.failure}")
        self._mixed = len(best.residuals) > self.problem.count or any(level.known for level in noise.values())
        self._best = self._total(best)

    def deviance(self, evaluation: Evaluation) -> float:
        """D at an evaluated point; infinite where the simulation failed."""
        return self._total(evaluation) - self._best if evaluation.completed else np.inf

    def local(self, theta: np.ndarray) -> Local:
        """Half the statistic of the law of all unknowns around a point: for one output ½ (RSS − RSS at θ̂)/s².

        ½ D itself where all noise is known.
        """
        found = self.problem.evaluate(theta)
        if not found.completed:
            return Local(np.inf, np.zeros(0), np.zeros((0, 0)), found.failure)
        problem, counts, n = self.problem, self._counts, len(theta)
        slope, curvature = np.zeros(n), np.zeros((n, n))
        known = np.ones(len(found.residuals), dtype=bool)
        for name, m in counts.items():
            mine = np.flatnonzero(problem.output_of == problem.outputs.index(name))
            known[mine] = False
            J, r = found.jacobian[mine], found.residuals[mine]
            squares = max(float(r @ r), 1e-300)
            pull = J.T @ r / squares
            slope += m * pull
            curvature += m * (J.T @ J / squares - 2 * np.outer(pull, pull))
        J, r = found.jacobian[known], found.residuals[known]
        slope, curvature = slope + J.T @ r, curvature + J.T @ J
        deviance, law = self.deviance(found), self._law
        if not np.isfinite(law.freedom):
            return Local(0.5 * deviance, slope, curvature)
        statistic, each = law.statistic(deviance), law.factor / law.freedom
        factor = law.factor * (1 + statistic / law.freedom)
        bent = factor * (curvature + 2 * each * np.outer(slope, slope))
        return Local(0.5 * statistic, factor * slope, bent)

    def scaled(self, deviance: float) -> float:
        """Of a deviance, what is compared with ``reached``."""
        return self._law.statistic(deviance)

    def reached(self, level: float, k: int | None = None) -> float:
        """Twice the value of ``local`` at the ends of an interval, of one unknown: the χ² quantile, or t²."""
        return self.scaled(self.threshold(level, among=None if k is None else (k,)))

    def threshold(self, level: float, kind: Threshold = "t", among: Sequence[int] | None = None) -> float:
        """The deviance that a region of some unknowns with the given confidence reaches; of one by default.

        ``"t"``: by the law of the fit (``law``), which makes regions of linear models exact; ``"chi2"``: its limit for
        many data.
        """
        law, dimension = Law() if kind == "chi2" else self._law_of(among), 1 if among is None else len(among)
        return law.threshold(level, dimension)

    def radius(self, level: float, among: Sequence[int]) -> float:
        """Of the joint ellipse of some unknowns, squared, in units of the covariance."""
        return self._law_of(among).quantile(level, len(among))

    def spread(self, covariance: np.ndarray) -> np.ndarray:
        """The inverse of the curvature of ``local`` at the estimate: the fit's covariance, unless levels of several
        outputs, or priors, have their own share in the law of each unknown."""
        if not self.problem.sigma or (len(self.problem.outputs) == 1 and not self._mixed):
            return covariance
        told = np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0)
        return np.where(
            np.isfinite(covariance), inverse_information(self.local(self.theta).curvature, told)[0], covariance
        )

    def minimize(self, held: Mapping[int, float], start: np.ndarray) -> Point:
        """The least deviance with the unknowns of some indices held at values, sought from ``start``."""
        theta = np.array(start, dtype=float)
        theta[list(held)] = list(held.values())
        if len(held) == len(theta):
            evaluation = self.problem.evaluate(theta, sensitive=False)
            return Point(theta, self.deviance(evaluation), evaluation.failure)
        try:
            return self._minimize(theta, list(held))
        except EstimationError as error:
            return Point(theta, np.inf, str(error))

    def _minimize(self, theta: np.ndarray, held: Sequence[int]) -> Point:
        problem, alone = self.problem.begun, len(self.problem.outputs) == 1 and not self._mixed
        for _ in range(LEVEL_ROUNDS):
            restricted = Restricted(problem, theta, held)
            found = trust_region.minimize(Search(restricted, most=500), TOLERANCE).evaluation
            theta = restricted.whole(found.theta)
            if alone or not problem.sigma:
                break
            before, levels = problem.sigma, self.levels(found)
            if max(abs(levels[n] / before[n] - 1) for n in before) < 1e-8:
                break
            problem = problem.but(sigma=levels)
        return Point(theta, self.deviance(found))

    @property
    def _counts(self) -> dict[str, float]:
        """N_k of the outputs with unknown noise."""
        problem = self.problem
        return {n: float(np.sum(problem.output_of == problem.outputs.index(n))) for n in problem.sigma}

    def _squares(self, evaluation: Evaluation) -> dict[str, float]:
        problem = self.problem
        weighted = (problem.weights * evaluation.errors) ** 2
        return {n: float(weighted[problem.output_of == problem.outputs.index(n)].sum()) for n in problem.sigma}

    def levels(self, evaluation: Evaluation) -> dict[str, float]:
        counts = self._counts
        return {n: float(np.sqrt(max(s / counts[n], 1e-300))) for n, s in self._squares(evaluation).items()}

    def _total(self, evaluation: Evaluation) -> float:
        problem, counts = self.problem, self._counts
        unknown = sum(counts[n] * np.log(max(s, 1e-300)) for n, s in self._squares(evaluation).items())
        known = [k for k, n in enumerate(problem.outputs) if n not in problem.sigma]
        data = evaluation.residuals[: problem.count][np.isin(problem.output_of, known)]
        priors = evaluation.residuals[problem.count :]
        return float(unknown + data @ data + priors @ priors)


def index_of(fit: Fitted, name: str) -> int:
    """The position of an unknown, by its name in the table."""
    if name not in fit.names:
        raise EstimationError(f"'{name}' was not estimated; choose from {', '.join(fit.names)}.")
    return fit.names.index(name)


def check_level(level: float) -> None:
    if isinstance(level, Experiment):
        raise EstimationError(
            "level is an experiment; a record that was not fitted is tested by fit.validate(experiment)."
        )
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")


def _accept(fit: Fitted) -> None:
    if not fit.estimate.is_likelihood:
        raise EstimationError(
            "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: use "
            "fit.intervals(method='wald')."
        )
    if not fit.estimate.cases:
        raise EstimationError(f"{type(fit.method).__name__} gives no residuals from which deviances could be computed.")
