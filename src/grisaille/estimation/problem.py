"""What an estimator minimises: unknowns, experiments, and weighted residuals with exact derivatives.

    r_i = w_i (y_i − ŷ_i(θ)) / σ_i,      J = ∂r/∂θ,      objective = ½ Σ r_i²  (+ ½ Σ prior residuals²)

σ is a formula or unknown; unknown levels are kept in ``sigma`` and updated by whoever minimises. A formula may move
with the prediction, as in ``noise=0.05 * abs(x)``. Minimised together with the residuals it would be made large instead
of them small, so its values are frozen at the first evaluation and renewed by whoever minimises (``refreeze``) until
they stay: iteratively reweighted least squares. A simulation that fails gives an evaluation with a reason and no
residuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case
from grisaille.estimation.noise import NoiseLevel
from grisaille.estimation.unknowns import prior_residual
from grisaille.estimation.warm_start import Course
from grisaille.model.priors import MultivariateNormal
from grisaille.optimization.scaled import Scaled
from grisaille.simulation.runner import Prediction
from grisaille.trial.unknown import Unknown

HUGE = 1e100
"""Residuals beyond this would overflow when squared; the point counts as failed."""


@dataclass(frozen=True)
class Evaluation:
    """Residuals at one point; empty arrays and a reason where a simulation failed."""

    theta: np.ndarray
    residuals: np.ndarray
    """(N,) weighted, then one per prior."""
    jacobian: np.ndarray
    """(N, n) by the unknowns themselves (not ξ)."""
    errors: np.ndarray
    """(N_data,) y − ŷ without weights."""
    predictions: tuple[Prediction, ...]
    failure: str = ""
    covariance: np.ndarray | None = None
    """Of θ, where the problem has further unknowns and JᵀJ does not tell it (multiple shooting)."""
    cost: int = 1
    """Simulations of all experiments that it took."""

    log_likelihood = np.nan

    is_least_squares: ClassVar[bool] = True
    """Whether the objective is ½ Σ r²."""
    follows_valleys: ClassVar[bool] = False
    """Whether its valleys, where it is not ½ Σ r² itself, are those of Σ r²."""

    @property
    def completed(self) -> bool:
        return not self.failure

    @property
    def gradient(self) -> np.ndarray:
        """Gradient of the objective by the unknowns."""
        return np.asarray(self.jacobian.T @ self.residuals) if len(self.jacobian) else np.zeros(0)

    @property
    def information(self) -> np.ndarray:
        """What stands for the Hessian of the objective; empty where derivatives were not asked for."""
        return np.asarray(self.jacobian.T @ self.jacobian) if len(self.jacobian) else np.zeros((0, 0))

    @property
    def objective(self) -> float:
        return 0.5 * float(self.residuals @ self.residuals) if self.completed else np.inf

    def among(self, kept: Sequence[int]) -> Self:
        """The same as a function of some of the unknowns."""
        return replace(self, theta=self.theta[kept], jacobian=self.jacobian[:, kept])

    @property
    def discretisation(self) -> float:
        return max((p.discretisation for p in self.predictions), default=0.0)


class Problem(Scaled):
    """Unknowns and cases of one estimation.

    noise : of each output; empty where the noise is part of what is evaluated (likelihoods, collocation)
    """

    def __init__(
        self, unknowns: Sequence[Unknown], cases: Sequence[Case], noise: Mapping[str, NoiseLevel] = MappingProxyType({})
    ) -> None:
        self.unknowns, self.cases, self.noise = tuple(unknowns), tuple(cases), dict(noise)
        self.outputs = tuple(dict.fromkeys(s.output for c in cases for s in c.samples))
        self.output_of = np.concatenate(
            [np.full(len(s.values), self.outputs.index(s.output)) for c in cases for s in c.samples]
        )
        self.weights = np.concatenate([s.weights for c in cases for s in c.samples])
        self.sigma = {name: 1.0 for name in self.outputs if noise and not noise[name].known}
        self.frozen: dict[tuple[str, str], np.ndarray] = {}
        """σ of each sample by (case, output), where it is a formula."""
        self.courses: dict[str, Course] = {}
        """States of experiments, by name, that a search over them may begin with."""
        self.differences: np.ndarray | None = None
        """Steps by which residuals are differenced instead of differentiated (``differences.py``)."""

    @property
    def transcription(self) -> str:
        """How trajectories are represented, and why so, where there is a choice."""
        return ""

    def refusal(self, theta: np.ndarray) -> str:
        """Why the criterion at θ must not be believed, in words; empty where it may."""
        return ""

    @property
    def count(self) -> int:
        """Number of measurements."""
        return len(self.output_of)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        """Residuals and their Jacobian at θ."""
        if sensitive and self.differences is not None:
            return self.differenced(theta, self.differences)
        predictions, errors, slopes, scales = [], [], [], []
        for case in self.cases:
            prediction = case.runner.predict(case.own(theta), sensitive=sensitive)
            predictions.append(prediction)
            if not prediction.completed:
                return self._failed(theta, predictions, f"experiment '{case.name}': {prediction.failure}")
            for s in case.samples:
                column = case.column(s.output)
                errors.append(s.values - prediction.y[s.rows, column])
                scales.append(self.deviations(case, s.output, s.rows, prediction, theta))
                if sensitive:
                    rows = np.zeros((len(s.values), len(self.unknowns)))
                    rows[:, list(case.unknowns)] = -prediction.sy[s.rows, column]
                    slopes.append(rows)
        e = np.concatenate(errors)
        factor = self.weights / np.concatenate(scales)
        jacobian = np.concatenate(slopes) * factor[:, None] if sensitive else np.zeros((0, len(self.unknowns)))
        if not np.abs(factor * e).max(initial=0.0) < HUGE:
            return self._failed(theta, predictions, "the residuals exceed 1e100")
        extra, extra_slopes = self.prior_residuals(theta)
        return Evaluation(
            theta,
            np.concatenate([factor * e, extra]),
            np.concatenate([jacobian, extra_slopes]) if sensitive else jacobian,
            e,
            tuple(predictions),
        )

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient only."""
        found = self.evaluate(theta)
        return found.objective, found.gradient if found.completed else np.full(len(theta), np.nan)

    def differenced(self, theta: np.ndarray, steps: np.ndarray) -> Evaluation:
        """Central differences; one-sided at a bound and beside a point that cannot be simulated."""
        here = self.evaluate(theta, sensitive=False)
        if not here.completed:
            return here
        lower, upper = self.bounds
        columns, cost = [], 1
        for k, step in enumerate(steps):
            ends = []
            for side in (-step, step):
                moved = theta.copy()
                moved[k] = np.clip(theta[k] + side, lower[k], upper[k])
                other = self.evaluate(moved, sensitive=False) if moved[k] != theta[k] else here
                cost += moved[k] != theta[k]
                ends.append((moved[k], other) if other.completed else (theta[k], here))
            (a, left), (b, right) = ends
            columns.append((right.residuals - left.residuals) / (b - a) if b > a else np.zeros_like(here.residuals))
        return replace(here, jacobian=np.stack(columns, axis=1), cost=cost)

    def refine(self, evaluation: Evaluation) -> None:
        """Shorter frozen steps in every experiment where those of an evaluation are too long."""
        for case, prediction in zip(self.cases, evaluation.predictions, strict=True):
            if prediction.discretisation > 1.0:
                case.runner.refine(prediction.discretisation)

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> Problem:
        """An independent problem with other measurements (one array for each ``samples``, in order) or another guess.

        Kernels, signals and formulas are shared; what a search changes on its way, noise levels and steps, is not.
        """
        problem = Problem(self.unknowns, self.renewed_cases(values), self.noise)
        if guess is not None:
            problem.with_guess(guess)
        return problem

    def renewed_cases(self, values: Sequence[np.ndarray] | None) -> list[Case]:
        """Independent cases with other measurements."""
        given = iter(values if values is not None else [s.values for c in self.cases for s in c.samples])
        return [c.with_values(given) for c in self.cases]

    def deviations(
        self, case: Case, output: str, rows: np.ndarray, prediction: Prediction, theta: np.ndarray
    ) -> np.ndarray:
        """σ of each sample of an output; a formula is evaluated once and kept until ``refreeze``."""
        if not self.noise[output].known:
            return np.full(len(rows), self.sigma[output])
        if (case.name, output) not in self.frozen:
            self.frozen[case.name, output] = self._formula(case, output, rows, prediction, theta)
        return self.frozen[case.name, output]

    def _formula(
        self, case: Case, output: str, rows: np.ndarray, prediction: Prediction, theta: np.ndarray
    ) -> np.ndarray:
        level = self.noise[output]
        observed = prediction.y[rows][:, [case.column(n) for n in level.needs]]
        return level.at(case.trial.at(case.own(theta)).p, observed, case.grid[rows])

    def refreeze(self, evaluation: Evaluation) -> float:
        """Noise formulas at another point; gives the largest relative change of a σ."""
        changes = [0.0]
        for case, prediction in zip(self.cases, evaluation.predictions, strict=True):
            for s in case.samples:
                if self.noise[s.output].needs and (case.name, s.output) in self.frozen:
                    renewed = self._formula(case, s.output, s.rows, prediction, evaluation.theta)
                    changes.append(float(np.abs(renewed / self.frozen[case.name, s.output] - 1).max(initial=0.0)))
                    self.frozen[case.name, s.output] = renewed
        return max(changes)

    def prior_residuals(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One residual per prior (several for a joint one) and their derivatives."""
        residuals, slopes = [], []
        joint: dict[int, MultivariateNormal] = {}
        for k, (unknown, value) in enumerate(zip(self.unknowns, theta, strict=True)):
            if isinstance(unknown.prior, MultivariateNormal):
                joint[id(unknown.prior)] = unknown.prior
                continue
            found = prior_residual(unknown, float(value))
            if found is not None:
                residuals.append(np.array([found[0]]))
                slopes.append(found[1] * np.eye(len(theta))[[k]])
        for prior in joint.values():
            r, s = self._joint(prior, theta)
            residuals.append(r)
            slopes.append(s)
        n = len(theta)
        return np.concatenate(residuals) if residuals else np.zeros(0), np.vstack(slopes) if slopes else np.zeros(
            (0, n)
        )

    def _joint(self, prior: MultivariateNormal, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = [u.name for u in self.unknowns]
        missing = [n for n in prior.names if n not in names]
        if missing:
            raise EstimationError(
                f"The joint prior names '{missing[0]}', which is not estimated; estimated: {', '.join(names)}."
            )
        root = np.linalg.inv(np.linalg.cholesky(np.asarray(prior.cov, dtype=float)))
        index = [names.index(n) for n in prior.names]
        return root @ (theta[index] - np.asarray(prior.mean, dtype=float)), root @ np.eye(len(theta))[index]

    def _failed(self, theta: np.ndarray, predictions: list[Prediction], reason: str) -> Evaluation:
        empty = np.zeros(0)
        return Evaluation(theta, empty, np.zeros((0, len(theta))), empty, tuple(predictions), reason)
