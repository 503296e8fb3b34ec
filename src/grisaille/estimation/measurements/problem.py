"""Simulations compared with measurements by their laws: −log L of all experiments plus priors.

    f(θ) = −Σ_i ℓ_i(y_i; ŷ_i(θ), φ_i(θ)) + priors

with the exact gradient and the expected information in place of a Hessian. Unknowns are those that move simulations,
those that stand in laws alone, and open levels of normal noise, ``noise(y)``. Simulations take frozen steps, as those
of least squares do (``estimation.problem``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from grisaille.estimation.cases import Case
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.measurements.output_law import LEVEL, OutputLaw
from grisaille.estimation.measurements.quantile_residuals import SEED, quantile_residuals, scores_along
from grisaille.estimation.measurements.terms import LawTerms
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.simulation.runner import Prediction
from grisaille.trial.data_matrix import Samples
from grisaille.trial.movement import Kind
from grisaille.trial.unknown import Unknown

SIMULATED: tuple[Kind, ...] = ("parameter", "start")
"""Kinds of unknowns that move simulations; levels of noise stand in laws alone."""


@dataclass(frozen=True)
class MeasuredEvaluation(LikelihoodEvaluation):
    """An evaluation with the log-likelihood of each experiment and the score of each sample.

    Its residuals are errors of predictions, in the units of outputs; ``MeasuredProblem.judged`` has those to be tested.
    """

    parts: tuple[float, ...] = ()
    slopes: np.ndarray | None = None
    """(experiments, n), of these."""
    scores: np.ndarray | None = None
    """(samples, n)"""


class MeasuredProblem(Problem):
    """Unknowns, experiments and laws of one estimation."""

    is_least_squares: ClassVar[bool] = False

    def __init__(self, unknowns: Sequence[Unknown], cases: Sequence[Case], laws: Mapping[str, OutputLaw]) -> None:
        super().__init__(unknowns, cases)
        self.laws = dict(laws)
        estimated = [u.target for u in self.unknowns if u.kind == "parameter"]
        self.smoothing = 0.0
        """Over how much of its size a law's kink is rounded while a maximum is sought; zero for the law itself."""
        self._moving = {n: law.moving(estimated) for n, law in self.laws.items()}

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> MeasuredEvaluation:
        """Return −log L with its gradient and expected information at θ."""
        n, prior = len(self.unknowns), self.prior(theta)
        parts, slopes, information = [], [], np.zeros((n, n))
        predictions, errors, rows, scores = [], [], [], []
        for case in self.begun.cases:
            prediction = case.predict(theta, sensitive=sensitive)
            predictions.append(prediction)
            if not prediction.completed:
                return self._broken(theta, f"experiment '{case.name}': {prediction.failure}")
            total, slope = 0.0, np.zeros(n)
            for s in case.samples:
                terms, moved = self.terms(case, s, prediction, theta, sensitive)
                refused = _refusal(self.laws[s.output], case, s, prediction, terms)
                if refused:
                    return self._broken(theta, refused)
                total += float(terms.log_density.sum())
                location = prediction.y[s.rows, case.column(s.output)]
                errors.append(s.values - location)
                if sensitive:
                    slope += terms.scores.sum(axis=0)
                    information += terms.information
                    scores.append(terms.scores)
                    rows.append(-moved)
            parts.append(total)
            slopes.append(slope)
        if prior.failure:
            return self._broken(theta, prior.failure)
        e, log_likelihood = np.concatenate(errors), float(sum(parts))
        return MeasuredEvaluation(
            theta,
            np.concatenate([e, prior.residuals]),
            np.concatenate([*rows, prior.slopes]) if sensitive else np.zeros((0, n)),
            e,
            tuple(predictions),
            prior=prior,
            value=-log_likelihood + prior.value,
            slope=-np.sum(slopes, axis=0) + prior.gradient,
            curvature=information + prior.search_curvature,
            log_likelihood=log_likelihood,
            parts=tuple(parts),
            slopes=np.array(slopes),
            scores=np.concatenate(scores) if sensitive else None,
        )

    def terms(
        self, case: Case, s: Samples, prediction: Prediction, theta: np.ndarray, sensitive: bool
    ) -> tuple[LawTerms, np.ndarray]:
        """Return what the samples of an output add, and the derivatives of their locations by all unknowns."""
        filled, slopes = self._filled(case, s, prediction, theta, sensitive)
        if not sensitive:
            return LawTerms(filled, filled.log_density(s.values)), np.zeros((len(s.rows), len(self.unknowns)))
        unknown_limits = self.laws[s.output].with_unknown_limits(s)
        terms = LawTerms.of(filled, s.values, slopes, len(self.unknowns), unknown_limits)
        return terms, slopes[filled.location_path]

    def laws_at(self, case: Case, prediction: Prediction, theta: np.ndarray) -> list[Any]:
        """Return the law of each sample, one filled law for each of the ``samples`` of an experiment."""
        return [self._filled(case, s, prediction, theta, False)[0] for s in case.samples]

    def judged(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with randomised quantile residuals, and what unknowns take from them as Jacobian."""
        if not evaluation.completed:
            return evaluation
        prior, theta, n = self.prior(evaluation.theta), evaluation.theta, len(self.unknowns)
        rows = []
        for case, prediction in zip(self.begun.cases, evaluation.predictions, strict=True):
            is_sensitive = bool(prediction.sy.size)
            for s in case.samples:
                filled, slopes = self._filled(case, s, prediction, theta, is_sensitive)
                along = scores_along(filled, list(slopes)) if is_sensitive else np.zeros((len(s.rows), 0))
                row = np.zeros((len(s.rows), n))
                for k, moved in enumerate(slopes.values() if along.size else ()):
                    row -= along[:, [k]] * moved
                rows.append(row)
        return replace(self.with_residuals(evaluation, SEED), jacobian=np.concatenate([*rows, prior.slopes]))

    def with_residuals(self, evaluation: Evaluation, seed: int) -> Evaluation:
        """Return an evaluation with quantile residuals whose random numbers have a seed."""
        residuals = [
            quantile_residuals(law, s.values, s.output, case.name, seed)
            for case, prediction in zip(self.begun.cases, evaluation.predictions, strict=True)
            for s, law in zip(case.samples, self.laws_at(case, prediction, evaluation.theta), strict=True)
        ]
        return replace(evaluation, residuals=np.concatenate([*residuals, self.prior(evaluation.theta).residuals]))

    def _filled(
        self, case: Case, s: Samples, prediction: Prediction, theta: np.ndarray, sensitive: bool
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Return the law of each sample, and where asked for the derivatives of its location and arguments."""
        law, column = self.laws[s.output], case.column(s.output)
        slopes: dict[str, np.ndarray] = {}
        if sensitive:
            located = np.zeros((len(s.rows), len(self.unknowns)))
            if case.unknowns:
                located[:, list(case.unknowns)] = prediction.sy[s.rows, column]
            slopes[law.law.location_path] = located
        arguments = self._arguments(law, case, s, prediction, theta, slopes if sensitive else None)
        filled: Any = law.filled(prediction.y[s.rows, column], arguments)
        return filled.smoothed(self.smoothing) if self.smoothing else filled, slopes

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient."""
        found = self.evaluate(theta)
        return found.objective, found.gradient if found.completed else np.full(len(theta), np.nan)

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> MeasuredProblem:
        """Return an independent problem with other measurements, one array for each ``samples``, or another guess."""
        problem = MeasuredProblem(self.unknowns, self.renewed_cases(values), self.laws)
        if guess is not None:
            problem.with_guess(guess)
        return problem

    def _arguments(
        self,
        law: OutputLaw,
        case: Case,
        s: Samples,
        prediction: Prediction,
        theta: np.ndarray,
        slopes: dict[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray]:
        """Return the law's arguments for each sample; their derivatives are entered into ``slopes``, where given."""
        point, times, found = case.trial.at(case.own(theta)), case.grid[s.rows], {}
        for path, formula in law.formulas.items():
            columns = [case.column(n) for n in formula.needs]
            observed = prediction.y[s.rows][:, columns]
            found[path] = formula.values(point.p, observed, times)
            if slopes is not None and path in self._moving[law.output]:
                by_p, by_observed = formula.slopes(point.p, observed, times)
                moved = by_p @ point.dp.T
                if columns:
                    moved = moved + np.einsum("ij,ijk->ik", by_observed, prediction.sy[s.rows][:, columns])
                slopes[path] = np.zeros((len(times), len(self.unknowns)))
                slopes[path][:, list(case.unknowns)] = moved
        found |= law.limits(s, found)
        if law.is_open:
            level = self._level(law.output, case)
            found[LEVEL] = np.full(len(times), theta[level])
            if slopes is not None:
                slopes[LEVEL] = np.zeros((len(times), len(self.unknowns)))
                slopes[LEVEL][:, level] = 1.0
        return found

    def _level(self, output: str, case: Case) -> int:
        """Return the index of the unknown that is the open level of an output in an experiment."""
        return next(
            k
            for k, u in enumerate(self.unknowns)
            if u.kind == "noise" and u.target == output and u.applies_to(case.name)
        )

    def _broken(self, theta: np.ndarray, reason: str) -> MeasuredEvaluation:
        n, empty = len(theta), np.zeros(0)
        return MeasuredEvaluation(theta, empty, np.zeros((0, n)), empty, (), reason)


def _refusal(law: OutputLaw, case: Case, s: Samples, prediction: Prediction, terms: LawTerms) -> str:
    """Say why there is no density, with the first sample that has none; empty where all have one."""
    is_bad = ~np.isfinite(terms.log_density)
    if terms.scores.size:
        is_bad |= ~np.isfinite(terms.scores).all(axis=1)
    if not is_bad.any():
        return ""
    k = int(np.flatnonzero(is_bad)[0])
    location = prediction.y[s.rows[k], case.column(s.output)]
    return (
        f"experiment '{case.name}': {type(law.law).__name__} has no density for '{s.output}' = {s.values[k]:g} at "
        f"t = {case.grid[s.rows[k]]:g}, where {location:g} is predicted"
    )
