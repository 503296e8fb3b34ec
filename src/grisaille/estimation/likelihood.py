"""What likelihood estimators minimise: −log L of all experiments plus priors, with its exact gradient.

    f(θ) = −Σ_experiments log L(θ) + ½ Σ prior residuals² + penalty of bounds,    H ≈ expected information + priors + …

An evaluation keeps standardised innovations where least squares keeps residuals, so that tables, residual tests and
pictures read both alike. Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (31),
(33).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.bound_penalty import BoundPenalty
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.filtering.filter_runner import FilterResult as FilteredOnce, FilterRunner, RecentKind
from grisaille.filtering.kalman import Likelihood
from grisaille.simulation.runner import Prediction


@dataclass(frozen=True)
class LikelihoodEvaluation(Evaluation):
    """An evaluation whose objective is not a sum of squares."""

    value: float = np.inf
    slope: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Gradient of the objective by the unknowns."""
    curvature: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Expected information plus priors; of an estimate with the exact curvature of these."""
    log_likelihood: float = -np.inf
    penalty: float = 0.0

    is_least_squares: ClassVar[bool] = False

    @property
    def objective(self) -> float:
        return self.value

    @property
    def gradient(self) -> np.ndarray:
        return self.slope

    @property
    def information(self) -> np.ndarray:
        return self.curvature

    def among(self, kept: Sequence[int]) -> Self:
        found = super().among(kept)
        return found if not self.completed else replace(
            found, slope=self.slope[kept], curvature=self.curvature[np.ix_(kept, kept)]
        )  # fmt: skip


Filtered = ExperimentTerm[FilterRunner]


def own_theta_and_steps(case: Filtered, theta: np.ndarray) -> tuple[np.ndarray, Discretisation]:
    """Return θ of a filtered case, and its discretisation; made here where it has none."""
    own = case.own(theta)
    return own, case.discretisation or case.runner.discretise(own)


class LikelihoodProblem(EstimationProblem):
    """Unknowns and filtered experiments of one estimation."""

    is_least_squares: ClassVar[bool] = False

    def __init__(
        self,
        unknowns: Sequence[Unknown],
        cases: Sequence[ExperimentTerm],
        penalty: BoundPenalty | None = None,
        open_levels: Sequence[int] = (),
    ) -> None:
        super().__init__(unknowns, cases)
        self.penalty, self.open_levels = penalty or BoundPenalty(), tuple(open_levels)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        """Return −log L and its gradient at θ."""
        n = len(self.unknowns)
        total, slope, curvature = 0.0, np.zeros(n), np.zeros((n, n))
        parts: list[tuple[ExperimentTerm, Likelihood]] = []
        for case in self.discretised_problem.cases:
            found = self.filtered(case, theta, "all" if sensitive else "value")
            if found.failure or found.likelihood is None:
                return self._broken(theta, f"experiment '{case.name}': {found.failure}")
            likelihood, mine = found.likelihood, list(case.unknowns)
            total += likelihood.value
            if sensitive:
                slope[mine] -= likelihood.gradient
                curvature[np.ix_(mine, mine)] += likelihood.information
            parts.append((case, likelihood))
        prior = self.prior(theta)
        if prior.failure:
            return self._broken(theta, prior.failure)
        fence, fence_slope, fence_bend = self.penalty.at(self.unknowns, theta)
        errors, scales, rows = self._innovations(parts, sensitive)
        return LikelihoodEvaluation(
            theta,
            np.concatenate([errors / scales, prior.residuals]),
            np.concatenate([rows, prior.slopes]) if sensitive and len(prior.slopes) else rows,
            errors,
            tuple(Prediction(c.trial.data.y - p.innovations, np.zeros((0, 0, 0))) for c, p in parts),
            value=-total + prior.value + fence,
            slope=slope + prior.gradient + fence_slope,
            curvature=curvature + prior.search_curvature + np.diag(fence_bend),
            log_likelihood=total,
            penalty=fence,
        )

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient only: nonlinear filters run in reverse, without the expected
        information.
        """
        total, slope = 0.0, np.zeros(len(self.unknowns))
        for case in self.discretised_problem.cases:
            found = self.filtered(case, theta, "gradient")
            if found.failure or found.likelihood is None:
                return np.inf, np.full(len(slope), np.nan)
            total += found.likelihood.value
            slope[list(case.unknowns)] -= found.likelihood.gradient
        prior = self.prior(theta)
        fence, fence_slope, _ = self.penalty.at(self.unknowns, theta)
        return -total + prior.value + fence, slope + prior.gradient + fence_slope

    def filtered(self, case: Filtered, theta: np.ndarray, kind: RecentKind) -> FilteredOnce:
        """Return the result of a filter; with several experiments most do not change when an unknown of one of them
        does.
        """
        own, steps = own_theta_and_steps(case, theta)
        if len(self.cases) > 1:
            return case.runner.recalled(own, steps, kind)
        if kind == "gradient":
            return case.runner.gradient(own, steps)
        return case.runner.likelihood(own, steps, sensitive=kind == "all")

    def refusal(self, theta: np.ndarray) -> str:
        """Return why the likelihood at θ must not be believed, in words; empty where it may."""
        for case in self.discretised_problem.cases:
            reason = case.runner.refusal(*own_theta_and_steps(case, theta))
            if reason:
                return f"Experiment '{case.name}': {reason}"
        return ""

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> LikelihoodProblem:
        """Return an independent problem with other measurements (an array for each ``samples``, in order) or another
        guess.

        A filter follows its measurements, and its steps are those that it needs along them: others have their own.
        """
        cases = self.renewed_cases(values)
        if values is not None and guess is None:
            cases = [replace(c, discretisation=None).discretised(self.guess) for c in cases]
        problem = LikelihoodProblem(self.unknowns, cases, self.penalty, self.open_levels if guess is None else ())
        if guess is not None:
            problem.with_guess(guess)
        return problem

    def _innovations(
        self, parts: Sequence[tuple[ExperimentTerm, Likelihood]], sensitive: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return innovations, their standard deviations, and derivatives in these, in the order of the samples."""
        count, n = len(self.weights), len(self.unknowns)
        errors, scales, rows = np.zeros(count), np.ones(count), np.zeros((count if sensitive else 0, n))
        first = 0
        for case, found in parts:
            for s in case.samples:
                column = case.column(s.output)
                here, first = slice(first, first + len(s.rows)), first + len(s.rows)
                e = found.innovations[s.rows, column]
                is_there = np.isfinite(e)  # after a filter broke down there are none
                errors[here] = np.where(is_there, e, 0.0)
                scales[here] = np.where(is_there, np.sqrt(found.variances[s.rows, column]), 1.0)
                if sensitive:
                    rows[here, list(case.unknowns)] = found.slopes[s.rows, :, column] / scales[here, None]
        return errors, scales, rows

    def _broken(self, theta: np.ndarray, reason: str) -> LikelihoodEvaluation:
        n, empty = len(theta), np.zeros(0)
        return LikelihoodEvaluation(theta, empty, np.zeros((0, n)), empty, (), reason)
