"""The likelihood of least squares with open levels of noise at their best: a log-density of the unknowns alone.

With RSS_k the weighted squares of output k, N_k its samples, and S the squares of residuals whose noise is known (and
of priors),

    log p(θ) = −½ (Σ_k N_k log RSS_k(θ) + S(θ)) + constant,

which is log L + log prior with every unknown noise level at its maximum-likelihood value. Formulas of noise that move
are held where the problem has them. Not for robust losses, which are no likelihoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.density.at_estimates import at_estimates
from grisaille.estimation.density.density_value import DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum, ProfileCriterion
from grisaille.estimation.density.restricted import Restricted
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.noise import noise_levels
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.model.classes import Model
from grisaille.optimization import trust_region
from grisaille.optimization.search import Search
from grisaille.structure.structure_cache import structure_of

TOLERANCE, MOST = 1e-10, 500
LEVEL_ROUNDS, STAY = 30, 1e-8
"""Of levels and unknowns in turn, at most, and how much levels may still move then."""
TINY_SQUARE = 1e-300


class ConcentratedDensity(LogDensity):
    """Of a problem of least squares, on its own steps."""

    concentrates: ClassVar[bool] = True

    def __init__(self, problem: EstimationProblem) -> None:
        self.problem = problem
        first = problem.evaluate(problem.guess, sensitive=False)
        if not first.completed:
            raise EstimationError(f"The model cannot be simulated at the estimates: {first.failure}")
        is_open = [not level.known for level in problem.noise.values()]
        self._fit: tuple[Model, Estimate] | None = None
        self._mixed = len(first.residuals) > problem.count or not all(is_open)
        self._constant, self._first = self._constant_at(first), first

    @classmethod
    def around(cls, model: Model, estimate: Estimate) -> ConcentratedDensity:
        """Return that of a fit of a model, on the steps of the fit."""
        outputs = tuple(dict.fromkeys(s.output for c in estimate.cases for s in c.samples))
        problem = EstimationProblem(
            at_estimates(estimate), estimate.cases, noise_levels(structure_of(model).model, outputs)
        )
        problem.sigma = dict(estimate.noise)
        made = cls(problem)
        made._fit = model, estimate
        return made

    @property
    def couples_levels(self) -> bool:
        """Return whether levels, of several outputs or beside priors and declared ones, have their own share."""
        return bool(self.problem.sigma) and not self._is_alone

    @property
    def _is_alone(self) -> bool:
        return len(self.problem.outputs) == 1 and not self._mixed

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; its information is the exact curvature but for that of the residuals."""
        is_first = not derivatives and np.array_equal(theta, self._first.theta)
        found = self._first if is_first else self.problem.evaluate(theta, sensitive=derivatives)
        if not found.completed:
            return DensityValue.failed(theta, found.failure)
        value = self._constant - 0.5 * self._total(found)
        slope, curvature = self._derivatives(found) if derivatives else (None, None)
        return DensityValue(theta, value, slope, curvature, found.residuals, objective=found.objective)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Minimise the squares, with levels renewed until they stay."""
        problem, theta = self.problem.discretised_problem, start
        for _ in range(LEVEL_ROUNDS):
            restricted = Restricted(problem, theta, held)
            found = trust_region.minimize(Search(restricted, most=MOST), TOLERANCE).evaluation
            theta = restricted.whole(found.theta)
            if self._is_alone or not problem.sigma:
                break
            before, levels = problem.sigma, self.levels(found)
            if max(abs(levels[n] / before[n] - 1) for n in before) < STAY:
                break
            problem = problem.replace(sigma=levels)
        return Maximum(theta, self._constant - 0.5 * self._total(found))

    def redrawn(self, values: Sequence[np.ndarray], theta: np.ndarray) -> ProfileCriterion:
        """Return the same of other measurements."""
        if self._fit is None:
            return super().redrawn(values, theta)
        model, estimate = self._fit
        return type(self).around(model, replace(estimate, cases=tuple(self.problem.renewed(values).cases), theta=theta))

    def levels(self, evaluation: Evaluation) -> dict[str, float]:
        """Return the open levels at their best."""
        counts = self._counts
        return {n: float(np.sqrt(max(s / counts[n], TINY_SQUARE))) for n, s in self._squares(evaluation).items()}

    def _derivatives(self, found: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        problem, n = self.problem, len(found.theta)
        slope, curvature = np.zeros(n), np.zeros((n, n))
        known = np.ones(len(found.residuals), dtype=bool)
        for name, m in self._counts.items():
            mine = np.flatnonzero(problem.output_of == problem.outputs.index(name))
            known[mine] = False
            J, r = found.jacobian[mine], found.residuals[mine]
            squares = max(float(r @ r), TINY_SQUARE)
            pull = J.T @ r / squares
            slope += m * pull
            curvature += m * (J.T @ J / squares - 2 * np.outer(pull, pull))
        J, r = found.jacobian[known], found.residuals[known]
        return -(slope + J.T @ r), curvature + J.T @ J

    @property
    def _counts(self) -> dict[str, float]:
        """N_k of the outputs with unknown noise."""
        problem = self.problem
        return {n: float(np.sum(problem.output_of == problem.outputs.index(n))) for n in problem.sigma}

    def _squares(self, evaluation: Evaluation) -> dict[str, float]:
        problem = self.problem
        weighted = (problem.weights * evaluation.errors) ** 2
        return {n: float(weighted[problem.output_of == problem.outputs.index(n)].sum()) for n in problem.sigma}

    def _total(self, evaluation: Evaluation) -> float:
        problem, counts = self.problem, self._counts
        unknown = sum(counts[n] * np.log(max(s, TINY_SQUARE)) for n, s in self._squares(evaluation).items())
        known = [k for k, n in enumerate(problem.outputs) if n not in problem.sigma]
        data = evaluation.residuals[: problem.count][np.isin(problem.output_of, known)]
        priors = evaluation.residuals[problem.count :]
        return float(unknown + data @ data + priors @ priors)

    def _constant_at(self, evaluation: Evaluation) -> float:
        """Return log L + log prior + ½ (Σ N log RSS + S), the same at every θ."""
        prior = prior_part(self.unknowns, evaluation.theta, False)
        believed = 0.0 if prior is None else prior.log_density
        return (
            normal_log_likelihood(self.problem.discretised_problem, evaluation)
            + believed
            + 0.5 * self._total(evaluation)
        )


def normal_log_likelihood(problem: EstimationProblem, evaluation: Evaluation) -> float:
    """Return log p(y | θ, σ), constants included; unknown σ at its maximum-likelihood value RSS/N."""
    total = 0.0
    deviations = np.concatenate(
        [
            problem.deviations(c, s.output, s.rows, p, evaluation.theta)
            for c, p in zip(problem.cases, evaluation.predictions, strict=True)
            for s in c.samples
        ]
    )
    for k, name in enumerate(problem.outputs):
        mine = problem.output_of == k
        n = int(mine.sum())
        weights = problem.weights[mine]
        if not n:
            continue
        log_weights = float(np.sum(np.log(weights[weights > 0])))
        if problem.noise[name].known:
            sigma = deviations[mine]
            r = weights * evaluation.errors[mine] / sigma
            total += float(-0.5 * r @ r - np.sum(np.log(sigma)) - 0.5 * n * np.log(2 * np.pi)) + log_weights
        else:
            variance = max(float(np.mean((weights * evaluation.errors[mine]) ** 2)), 1e-300)
            total += -0.5 * n * (np.log(2 * np.pi * variance) + 1) + log_weights
    return total
