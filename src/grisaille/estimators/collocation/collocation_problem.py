"""What collocation minimises over the unknowns: at each θ trajectories are solved for, then the criterion is taken.

    amle, ipda   f(θ) = min_β J(β, θ)                       gradient ∂J/∂θ, curvature C − Bᵀ A⁻¹ B
    smoothing    f(θ) = ½ |data residuals at β̂(θ)|²          Jacobian by the implicit function theorem
    laplace      f(θ) = −log L by Laplace's method

In a search trajectories are kept from one evaluation to the next, so that solving for them again takes a few steps;
elsewhere an evaluation leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.collocation.trajectory_basis import Solution, TrajectoryBasis

UNDETERMINED = "the curvature of the trajectories is singular: some state is not determined"


@dataclass(frozen=True)
class CollocationEvaluation(LikelihoodEvaluation):
    """An evaluation with the trajectories it was made at."""

    solution: Solution | None = field(default=None, compare=False)
    trajectories: TrajectoryBasis | None = field(default=None, compare=False)


class CollocationProblem(EstimationProblem):
    """Unknowns, experiments and trajectories of one estimation."""

    keeps_trajectories = False
    """Whether the trajectories of one evaluation begin the next: in a search, which has its problem for itself."""

    def __init__(
        self,
        unknowns: Sequence[Unknown],
        cases: Sequence[ExperimentTerm],
        trajectories: TrajectoryBasis,
        criterion: str,
    ) -> None:
        super().__init__(unknowns, _on_meshes(cases, trajectories))
        self.trajectories, self.criterion = trajectories, criterion

    @property
    def transcription(self) -> str:
        """Return how trajectories are represented, and why so."""
        return self.trajectories.text

    @cached_property
    def levels(self) -> np.ndarray:
        """Unknowns that are intensities or noise levels, or parameters inside them or inside a spectrum."""
        named = np.array([u.kind in ("scale", "noise") for u in self.unknowns], dtype=bool)
        return np.asarray(named | self.trajectories.inside_levels(self.unknowns))

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> CollocationEvaluation:
        """Return the criterion at θ."""
        found = self.follow_at(theta)
        try:
            if not isinstance(found, str):
                return self.at(found, sensitive=sensitive)
            reason = found
        except NotPositiveDefinite:
            reason = UNDETERMINED
        empty = np.zeros(0)
        return CollocationEvaluation(theta, empty, np.zeros((0, len(theta))), empty, (), reason)

    def follow_at(self, theta: np.ndarray) -> Solution | str:
        trajectories = self.trajectories if self.keeps_trajectories else self.trajectories.renewed(self.cases)
        return trajectories.follow(self, theta)

    def at(self, found: Solution, *, sensitive: bool = True) -> CollocationEvaluation:
        """Return the evaluation of trajectories that are solved for."""
        theta, told = found.theta, found.told(self.cases, self.criterion == "smoothing")
        slope, information = self.least(found)
        prior = self.prior(theta)
        residuals = np.concatenate([told.residuals, prior.residuals])
        jacobian = np.concatenate([told.jacobian, prior.slopes])
        value, log_likelihood = found.objective, -found.objective
        if self.criterion == "smoothing":
            value = 0.5 * float(residuals @ residuals)
            slope = jacobian.T @ residuals
            information = told.jacobian.T @ told.jacobian + prior.search_curvature + prior.correction
        elif self.criterion == "laplace":
            value, slope, information = self.marginal_at(found, information, sensitive)
            log_likelihood = -value + prior.value
        return CollocationEvaluation(
            theta, residuals, jacobian, told.errors, told.predictions, value=value, slope=slope,
            curvature=information, log_likelihood=log_likelihood, solution=found, trajectories=self.trajectories,
        )  # fmt: skip

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient only, without values at samples."""
        if self.criterion != "laplace":
            return super().gradient(theta)
        found = self.follow_at(theta)
        try:
            marginal = None if isinstance(found, str) else found.marginal(True)
        except NotPositiveDefinite:
            marginal = None
        if marginal is None:
            return np.inf, np.full(len(theta), np.nan)
        return marginal.value, marginal.slope

    def marginal_at(
        self, found: Solution, information: np.ndarray, sensitive: bool = True
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return −log L with priors, its gradient, and an information in which levels have that of their own freedom.

        That of a level σ is var(log σ) = 1/(2γ) with γ degrees of freedom.
        """
        marginal = found.marginal(sensitive)
        return marginal.value, marginal.slope, self.with_levels(information, marginal.freedom, found)

    def least(self, found: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return slope and curvature of the least criterion over trajectories, with the exact curvature of priors."""
        slope, information = found.least()
        return slope, information if found.has_exact_priors else information + self.prior(found.theta).correction

    def with_levels(self, information: np.ndarray, freedom: np.ndarray, found: Solution) -> np.ndarray:
        """Return an information in which levels have that of their own freedom.

        A number of a law need not be a size: where it is small beside what samples tell of it, that is taken.
        """
        information, theta, told = information.copy(), found.theta, found.residuals_by_laws()
        freedom = freedom + 0.5 * told * theta
        for k in np.flatnonzero(self.levels):
            information[k, :], information[:, k] = 0.0, 0.0
            if told[k] > 0 and (theta[k] <= 0 or told[k] * theta[k] ** 2 < 1):
                information[k, k] = told[k]
                continue
            information[k, k] = 2 * max(abs(freedom[k]) * theta[k], 0.5) / theta[k] ** 2
        return information

    def on(self, trajectories: TrajectoryBasis) -> CollocationProblem:
        """Return the same problem on another mesh."""
        return self.replace(trajectories=trajectories, cases=_on_meshes(self.cases, trajectories))

    def holding(self, theta: np.ndarray, held: np.ndarray, criterion: str = "amle") -> CollocationProblem:
        """Return the same with some unknowns held at their values in θ, from which the others start."""
        unknowns = [
            replace(u.starting_from(v), lower=v, upper=v, logit=False) if k else u.starting_from(v)
            for u, v, k in zip(self.unknowns, theta.tolist(), held, strict=True)
        ]
        return self.replace(unknowns=tuple(unknowns), criterion=criterion)

    def renewed(
        self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None
    ) -> CollocationProblem:
        """Return an independent problem with other measurements (an array for each ``samples``, in order) or another
        guess.
        """
        cases = self.renewed_cases(values)
        problem = CollocationProblem(self.unknowns, cases, self.trajectories.renewed(cases), self.criterion)
        if guess is not None:
            problem.with_guess(guess)
        return problem


def _on_meshes(cases: Sequence[ExperimentTerm], trajectories: TrajectoryBasis) -> tuple[ExperimentTerm, ...]:
    return tuple(replace(c, discretisation=d) for c, d in zip(cases, trajectories.meshes, strict=True))
