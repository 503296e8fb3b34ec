"""What an estimator minimises: unknowns, experiments, and weighted residuals with exact derivatives.

    r_i = w_i (y_i − ŷ_i(θ)) / σ_i,      J = ∂r/∂θ,      objective = ½ Σ r_i²  (+ ½ Σ prior residuals²)

σ is a formula or unknown; unknown levels are kept in ``sigma`` and updated by whoever minimises. A formula may move
with the prediction or the unknowns, as in ``noise=0.05 * abs(x)`` or ``0.05 * exp(-k * time)``. Minimised together
with the residuals it would be made large instead of them small, so its values are frozen at the guess and renewed by
whoever minimises (``refrozen``) until they stay: iteratively reweighted least squares. A simulation that fails gives
an evaluation with a reason and no residuals.

What residuals depend on beside θ, levels, frozen formulas and the discretisation of each case, is part of the problem's
value: another one is another problem (``but``), and evaluating leaves nothing behind.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import INDEPENDENT_OF_VALUES, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.noise import NoiseLevel, moving_levels
from grisaille.estimation.prior_terms import prior_term
from grisaille.estimation.starts.warm_start import Course
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI
from grisaille.laws.term import PriorTerm
from grisaille.optimization.scaled import Scaled
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.estimation.measurements.record_laws import RecordLaws

K = TypeVar("K", bound="EstimationProblem")
MAX_RESIDUAL = 1e100
"""Residuals beyond this would overflow when squared; the point counts as failed."""


class HasPredictions(Protocol):
    """The values that a formula of σ may depend on."""

    @property
    def y(self) -> np.ndarray:
        """(times, outputs)"""


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
    prior: PriorTerm | None = None
    """Of which the last residuals are (``laws.term``)."""

    log_likelihood = np.nan

    is_least_squares: ClassVar[bool] = True
    """Whether the objective is ½ Σ r²."""

    @property
    def completed(self) -> bool:
        return not self.failure

    @property
    def gradient(self) -> np.ndarray:
        """Gradient of the objective by the unknowns."""
        return np.asarray(self.jacobian.T @ self.residuals) if len(self.jacobian) else np.zeros(0)

    @property
    def information(self) -> np.ndarray:
        """Return the approximation of the Hessian of the objective; empty where derivatives were not requested."""
        if not len(self.jacobian):
            return np.zeros((0, 0))
        information = np.asarray(self.curved.T @ self.curved)
        if self.prior is None or not self.has_upward_priors:
            return information
        return np.asarray(information - self.prior.upward.T @ self.prior.upward)

    @property
    def has_upward_priors(self) -> bool:
        """Return whether the curvature of some prior is negative here, so that no rows of a Jacobian have it."""
        return self.prior is not None and bool(self.prior.upward.any())

    @property
    def curved(self) -> np.ndarray:
        """Return the Jacobian with the curvature of priors in place of the slopes of their residuals."""
        count = 0 if self.prior is None else len(self.prior.rows)
        if self.prior is None or not count or not len(self.jacobian):
            return self.jacobian
        return np.concatenate([self.jacobian[:-count], self.prior.rows])

    @property
    def objective(self) -> float:
        return 0.5 * float(self.residuals @ self.residuals) if self.completed else np.inf

    def among(self, kept: Sequence[int]) -> Self:
        """Return the same as a function of some of the unknowns."""
        prior = None if self.prior is None else self.prior.among(kept)
        return replace(self, theta=self.theta[kept], jacobian=self.jacobian[:, kept], prior=prior)

    @property
    def steps(self) -> int:
        """That integrators have taken for it."""
        return sum(p.steps for p in self.predictions)

    @property
    def discretisation(self) -> float:
        return max((p.discretisation for p in self.predictions), default=0.0)


class EstimationProblem(Scaled):
    """Unknowns and cases of one estimation.

    noise : of each output; empty where the noise is part of what is evaluated (likelihoods, collocation)
    """

    is_least_squares: ClassVar[bool] = True
    """Whether its objective is ½ Σ r²."""

    def __init__(
        self,
        unknowns: Sequence[Unknown],
        cases: Sequence[ExperimentTerm],
        noise: Mapping[str, NoiseLevel] = MappingProxyType({}),
    ) -> None:
        self.unknowns, self.cases, self.noise = tuple(unknowns), tuple(cases), dict(noise)
        self.outputs = tuple(dict.fromkeys(s.output for c in cases for s in c.samples))
        self.output_of = np.concatenate(
            [np.full(len(s.values), self.outputs.index(s.output)) for c in cases for s in c.samples]
        )
        self.weights = np.concatenate([s.weights for c in cases for s in c.samples])
        self._begun: Self | None = None
        self.sigma: Mapping[str, float] = {n: 1.0 for n in self.outputs if noise and not noise[n].known}
        """The noise levels that are unknown, as they are taken."""
        self.frozen: Mapping[tuple[str, str], np.ndarray] = {}
        """σ of each sample by (case, output), where it is a formula."""
        self.courses: dict[str, Course] = {}
        """States of experiments, by name, that a search over them may begin with."""
        self.differences: np.ndarray | None = None
        """Steps by which residuals are differenced instead of differentiated (``difference_steps.py``)."""

    def replace(self, **changes: Any) -> Self:
        """Return the same problem with some of its parts replaced: ``sigma``, ``frozen``, ``differences``,
        ``cases`` …
        """
        other = copy.copy(self)
        other._begun = None
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def of(self, kind: type[K]) -> K:
        """Return the problem itself, as the kind of problem that a method poses."""
        if not isinstance(self, kind):
            raise TypeError(f"a {kind.__name__} is expected, not a {type(self).__name__}: another method has posed it")
        return self

    @property
    def moving(self) -> set[str]:
        """Outputs whose formulas of σ follow the estimates."""
        return moving_levels(self.noise, self.unknowns)

    @property
    def discretised_problem(self) -> Self:
        """Return the same with the discretisations and frozen formulas that suit the guess, where it has none of its
        own.

        Made once. A case that cannot be simulated at the guess is left as it is.
        """
        if self._begun is None:
            begun = self.replace(cases=tuple(c.discretised(self.guess) for c in self.cases))
            begun = begun._freeze_at_guess() if self.noise else begun
            begun._begun = self._begun = begun
        return self._begun

    @property
    def transcription(self) -> str:
        """Return how trajectories are represented, and why so, where there is a choice."""
        return ""

    def refusal(self, theta: np.ndarray) -> str:
        """Return why the criterion at θ must not be believed, in words; empty where it may."""
        return ""

    @property
    def count(self) -> int:
        """Number of measurements."""
        return len(self.output_of)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        """Return residuals and their Jacobian at θ."""
        if sensitive and self.differences is not None:
            return self.differenced(theta, self.differences)
        begun = self.discretised_problem
        prior = self.prior(theta)
        extra = prior.residuals
        # rows are written where they stay: with many experiments this is the largest array of a fit
        count = sum(len(s.values) for c in begun.cases for s in c.samples)
        jacobian = np.zeros(((count + len(extra)) * sensitive, len(self.unknowns)))
        predictions, errors, scales, at = [], [], [], 0
        for case in begun.cases:
            prediction = case.predict(theta, sensitive=sensitive)
            predictions.append(prediction)
            if not prediction.completed:
                reason = f"experiment '{case.name}': {prediction.failure}"
                return self._failed(theta, predictions, reason)
            for s in case.samples:
                column = case.column(s.output)
                errors.append(s.values - prediction.y[s.rows, column])
                scales.append(begun.deviations(case, s.output, s.rows, prediction, theta))
                if sensitive:
                    jacobian[at : at + len(s.values), list(case.unknowns)] = -prediction.sy[s.rows, column]
                    at += len(s.values)
        e = np.concatenate(errors)
        factor = self.weights / np.concatenate(scales)
        if sensitive:
            jacobian[:at] *= factor[:, None]
            jacobian[at:] = prior.slopes
        if prior.failure:
            return self._failed(theta, predictions, prior.failure)
        if not np.abs(factor * e).max(initial=0.0) < MAX_RESIDUAL:
            return self._failed(theta, predictions, "the residuals exceed 1e100")
        return Evaluation(theta, np.concatenate([factor * e, extra]), jacobian, e, tuple(predictions), prior=prior)

    def with_tested_residuals(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with the residuals that are tested; those that are searched with, unless laws differ."""
        return evaluation

    def log_densities(self, at: Evaluation) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the log-density of the samples of each output in each experiment, given their simulation.

        None where noise is part of what is evaluated: predictions of filters depend on the samples before. The standard
        deviation of a sample with a weight is divided by it.
        """
        first = 0
        for case, prediction in zip(self.discretised_problem.cases, at.predictions, strict=True) if self.noise else ():
            for s in case.samples:
                r = at.residuals[first : first + len(s.values)]
                first += len(s.values)
                sigma = self.discretised_problem.deviations(case, s.output, s.rows, prediction, at.theta) / s.weights
                yield s.output, -0.5 * r**2 - np.log(sigma) - HALF_LOG_TWO_PI

    def record_laws(self, theta: np.ndarray) -> tuple[RecordLaws, ...]:
        """Return the laws of all samples at θ, by experiment; none where samples are predictions plus σ/w z."""
        return ()

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient only."""
        found = self.evaluate(theta)
        return found.objective, found.gradient if found.completed else np.full(len(theta), np.nan)

    def differenced(self, theta: np.ndarray, steps: np.ndarray) -> Evaluation:
        """Return central differences; one-sided at a bound and beside a point that cannot be simulated."""
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

    def refined(self, evaluation: Evaluation) -> Self:
        """Return the problem with finer discretisations in every experiment where those of an evaluation are too
        coarse.
        """
        pairs = zip(self.discretised_problem.cases, evaluation.predictions, strict=True)
        theta = evaluation.theta
        finer = (c.refined(theta, p.discretisation) if p.discretisation > 1.0 else c for c, p in pairs)
        return self.replace(cases=tuple(finer))

    def with_guess(self, theta: np.ndarray) -> None:
        """Start from other values."""
        self._begun = None
        super().with_guess(theta)

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> EstimationProblem:
        """Return an independent problem with other measurements (one array for each ``samples``, in order) or another
        guess.

        Kernels, signals and formulas are shared; what a search changes on its way, noise levels and steps, is not.
        """
        problem = EstimationProblem(self.unknowns, self.renewed_cases(values), self.noise)
        if guess is not None:
            problem.with_guess(guess)
        return problem

    def renewed_cases(self, values: Sequence[np.ndarray] | None) -> list[ExperimentTerm]:
        """Return independent cases with other measurements."""
        given = iter(values if values is not None else [s.values for c in self.cases for s in c.samples])
        return [c.with_values(given) for c in self.cases]

    def deviations(
        self, case: ExperimentTerm, output: str, rows: np.ndarray, prediction: HasPredictions, theta: np.ndarray
    ) -> np.ndarray:
        """Return σ of each sample of an output; a formula that is not frozen is evaluated here."""
        if not self.noise[output].known:
            return np.full(len(rows), self.sigma[output])
        if (case.name, output) in self.frozen:
            return self.frozen[case.name, output]
        return self._formula(case, output, rows, prediction.y, theta)

    def _formula(
        self, case: ExperimentTerm, output: str, rows: np.ndarray, y: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        level = self.noise[output]
        observed = y[rows][:, [case.column(n) for n in level.needs]]
        return level.at(case.trial.at(case.own(theta)).p, observed, case.grid[rows])

    def freeze(self, predictions: Mapping[str, HasPredictions], theta: np.ndarray) -> Self:
        """Return the problem with every formula of σ that is not frozen at θ, as far as it needs no other predictions,
        by experiment term.
        """
        frozen = dict(self.frozen)
        for case in self.cases:
            y = predictions[case.name].y if case.name in predictions else np.zeros((len(case.grid), len(case.outputs)))
            for s in case.samples:
                key, level = (case.name, s.output), self.noise[s.output]
                if level.known and key not in frozen and (case.name in predictions or not level.needs):
                    frozen[key] = self._formula(case, s.output, s.rows, y, theta)
        return self.replace(frozen=frozen) if len(frozen) > len(self.frozen) else self

    def _freeze_at_guess(self) -> Self:
        needing = {n for n, level in self.noise.items() if level.known and level.needs}
        found = {
            c.name: c.predict(self.guess, sensitive=True)
            for c in self.cases
            if any(s.output in needing and (c.name, s.output) not in self.frozen for s in c.samples)
        }
        try:
            return self.freeze({n: p for n, p in found.items() if p.completed}, self.guess)
        except INDEPENDENT_OF_VALUES:
            raise  # no other values of the unknowns would help
        except GrisailleError:
            return self

    def refrozen(self, predictions: Sequence[HasPredictions], theta: np.ndarray) -> tuple[Self, float]:
        """Return the problem with formulas of σ that depend on predictions evaluated at those of a point, and the
        largest relative change of a σ.
        """
        frozen, changes = dict(self.frozen), [0.0]
        for case, prediction in zip(self.cases, predictions, strict=True):
            for s in case.samples:
                key = case.name, s.output
                if s.output in self.moving and key in frozen:
                    renewed = self._formula(case, s.output, s.rows, prediction.y, theta)
                    changes.append(float(np.abs(renewed / frozen[key] - 1).max(initial=0.0)))
                    frozen[key] = renewed
        return self.replace(frozen=frozen), max(changes)

    def prior(self, theta: np.ndarray) -> PriorTerm:
        """Return what the criterion contains of priors at θ."""
        return prior_term(self.unknowns, theta)

    def _failed(self, theta: np.ndarray, predictions: list[Prediction], reason: str) -> Evaluation:
        empty = np.zeros(0)
        return Evaluation(theta, empty, np.zeros((0, len(theta))), empty, tuple(predictions), reason)
