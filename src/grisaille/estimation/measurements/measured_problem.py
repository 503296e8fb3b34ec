"""Simulations compared with measurements by their laws: −log L of all experiments plus priors.

    f(θ) = −Σ_i ℓ_i(y_i; ŷ_i(θ), φ_i(θ)) + priors

with the exact gradient and the expected information in place of a Hessian. Unknowns are those that move simulations,
those that stand in laws alone, and open levels of normal noise, ``noise(y)``. Normal noise that outputs share is
counted jointly at each instant (``shared_noise``). Simulations take frozen steps, as those of least squares do
(``estimation.problem``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.bound_experiment.estimated_quantities import Kind
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.measurements.output_law import LEVEL_ARGUMENT, OutputLaw
from grisaille.estimation.measurements.quantile_residuals import DEFAULT_SEED, quantile_residuals, scores_along
from grisaille.estimation.measurements.record_laws import RecordLaws, SampleLaws
from grisaille.estimation.measurements.sample_formulas import SampleFormula
from grisaille.estimation.measurements.terms import LawTerms, SamplesUnderLaw
from grisaille.estimation.measurements.tied_samples import (
    CovarianceEntries,
    SharedNoise,
    Tie,
    joint_terms,
    shared_noises,
    ties,
)
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.model.measurement.noise_covariances import level_name
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.laws.law import Law

SIMULATED_KINDS: tuple[Kind, ...] = ("parameter", "start")
"""Kinds of unknowns that move simulations; levels of noise stand in laws alone."""


@dataclass(frozen=True)
class MeasuredEvaluation(LikelihoodEvaluation):
    """An evaluation with the log-likelihood of each experiment and the score of each sample.

    Its residuals are errors of predictions, in the units of outputs; ``MeasuredProblem.with_tested_residuals`` has
    those to be tested.
    """

    parts: tuple[float, ...] = ()
    slopes: np.ndarray | None = None
    """(experiments, n), of these."""
    scores: np.ndarray | None = None
    """(samples, n)"""


class MeasuredProblem(EstimationProblem):
    """Unknowns, experiments and laws of one estimation."""

    is_least_squares: ClassVar[bool] = False

    def __init__(
        self, unknowns: Sequence[Unknown], cases: Sequence[ExperimentTerm], laws: Mapping[str, OutputLaw]
    ) -> None:
        super().__init__(unknowns, cases)
        self.laws = dict(laws)
        estimated = [u.target for u in self.unknowns if u.kind == "parameter"]
        self.smoothing = 0.0
        """Over how much of its size a law's kink is rounded while a maximum is sought; zero for the law itself."""
        self._moving = {n: law.moving(estimated) for n, law in self.laws.items()}
        self.shared = shared_noises(self.cases[0].trial.flat, tuple(self.laws))

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> MeasuredEvaluation:
        """Return −log L with its gradient and expected information at θ."""
        n, prior = len(self.unknowns), self.prior(theta)
        parts, slopes, information = [], [], np.zeros((n, n))
        predictions, errors, rows, scores = [], [], [], []
        for case in self.discretised_problem.cases:
            prediction = case.predict(theta, sensitive=sensitive)
            predictions.append(prediction)
            if not prediction.completed:
                return self._broken(theta, f"experiment '{case.name}': {prediction.failure}")
            total, slope = 0.0, np.zeros(n)
            seen = [self._seen(case, s, prediction, theta, sensitive) for s in case.samples]
            added = self._terms(case, seen, prediction, theta, sensitive)
            for s, one, terms in zip(case.samples, seen, added, strict=True):
                refused = self._refusal(case, s, one, terms)
                if refused:
                    return self._broken(theta, refused)
                total += float(terms.log_density.sum())
                errors.append(one.errors)
                if sensitive:
                    slope += terms.scores.sum(axis=0)
                    information += terms.information
                    scores.append(terms.scores)
                    rows.append(-one.located)
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

    def log_densities(self, at: Evaluation) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the log-density of the samples of each output in each experiment, by their laws."""
        for case, prediction in zip(self.discretised_problem.cases, at.predictions, strict=True):
            laws = self.laws_at(case, prediction, at.theta)
            yield from ((s.output, law.log_density(s.values)) for s, law in zip(case.samples, laws, strict=True))

    def record_laws(self, theta: np.ndarray) -> tuple[RecordLaws, ...]:
        """Return the laws of all samples at θ, by experiment."""
        found = self.evaluate(theta, sensitive=False)
        if not found.completed:
            raise EstimationError(f"The fit cannot be simulated again: {found.failure}")
        return tuple(
            RecordLaws(
                tuple(
                    SampleLaws(s.output, law, case.grid[s.rows])
                    for s, law in zip(case.samples, self.laws_at(case, prediction, theta), strict=True)
                ),
                self.ties_at(case, prediction, theta),
            )
            for case, prediction in zip(self.discretised_problem.cases, found.predictions, strict=True)
        )

    def laws_at(self, case: ExperimentTerm, prediction: Prediction, theta: np.ndarray) -> list[Law]:
        """Return the law of each sample, one filled law for each of the ``samples`` of an experiment."""
        return [self._filled(case, s, prediction, theta, False)[0] for s in case.samples]

    def ties_at(self, case: ExperimentTerm, prediction: Prediction, theta: np.ndarray) -> tuple[Tie, ...]:
        """Return how the noise of the ``samples`` of an experiment hangs together."""
        found: list[Tie] = []
        for tied, places, entries in self._tied(case, prediction, theta, False):
            found += ties([case.samples[k].rows for k in tied], tied, places, entries)
        return tuple(found)

    def with_tested_residuals(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with randomised quantile residuals, and what unknowns take from them as Jacobian."""
        if not evaluation.completed:
            return evaluation
        prior, theta, n = self.prior(evaluation.theta), evaluation.theta, len(self.unknowns)
        rows = []
        for case, prediction in zip(self.discretised_problem.cases, evaluation.predictions, strict=True):
            is_sensitive = bool(prediction.sy.size)
            for s in case.samples:
                filled, slopes = self._filled(case, s, prediction, theta, is_sensitive)
                along = scores_along(filled, list(slopes)) if is_sensitive else np.zeros((len(s.rows), 0))
                row = np.zeros((len(s.rows), n))
                for k, moved in enumerate(slopes.values() if along.size else ()):
                    row -= along[:, [k]] * moved
                rows.append(row)
        return replace(self.with_residuals(evaluation, DEFAULT_SEED), jacobian=np.concatenate([*rows, prior.slopes]))

    def with_residuals(self, evaluation: Evaluation, seed: int) -> Evaluation:
        """Return an evaluation with quantile residuals whose random numbers have a seed."""
        residuals = [
            quantile_residuals(law, s.values, s.output, case.name, seed)
            for case, prediction in zip(self.discretised_problem.cases, evaluation.predictions, strict=True)
            for s, law in zip(case.samples, self.laws_at(case, prediction, evaluation.theta), strict=True)
        ]
        return replace(evaluation, residuals=np.concatenate([*residuals, self.prior(evaluation.theta).residuals]))

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

    def _seen(
        self, case: ExperimentTerm, s: OutputSamples, prediction: Prediction, theta: np.ndarray, sensitive: bool
    ) -> SamplesUnderLaw:
        """Return the samples of an output with the arguments of their law."""
        return SamplesUnderLaw(
            s, *self._filled(case, s, prediction, theta, sensitive), self.laws[s.output].with_unknown_limits(s)
        )

    def _filled(
        self, case: ExperimentTerm, s: OutputSamples, prediction: Prediction, theta: np.ndarray, sensitive: bool
    ) -> tuple[Law, dict[str, np.ndarray]]:
        """Return the law of each sample, and where asked for the derivatives of its location and arguments."""
        law, slopes = self.laws[s.output], dict[str, np.ndarray]()
        if sensitive:
            slopes[law.law.location_path] = self._slopes_of(s.output, case, s.rows, prediction)
        arguments = self._arguments(law, case, s.rows, prediction, theta, slopes if sensitive else None)
        arguments |= law.limits(s, arguments)
        filled = law.filled(prediction.y[s.rows, case.column(s.output)], arguments)
        return filled.smoothed(self.smoothing) if self.smoothing else filled, slopes

    def _terms(
        self,
        case: ExperimentTerm,
        seen: Sequence[SamplesUnderLaw],
        prediction: Prediction,
        theta: np.ndarray,
        sensitive: bool,
    ) -> list[LawTerms]:
        """Return what the samples of each output add, those of outputs that share noise together."""
        count, found = len(self.unknowns) if sensitive else 0, dict[int, LawTerms]()
        for tied, places, entries in self._tied(case, prediction, theta, sensitive):
            found.update(zip(tied, joint_terms([seen[k] for k in tied], places, entries, count), strict=True))
        return [found.get(k) or one.terms(count) for k, one in enumerate(seen)]

    def _tied(
        self, case: ExperimentTerm, prediction: Prediction, theta: np.ndarray, sensitive: bool
    ) -> Iterator[tuple[list[int], list[int], CovarianceEntries]]:
        """Give which of the ``samples`` share noise, their places in Σ, and Σ at their instants."""
        for shared in self.shared:
            tied = [k for k, s in enumerate(case.samples) if s.output in shared.outputs]
            if len(tied) > 1:
                places = [shared.outputs.index(case.samples[k].output) for k in tied]
                instants = np.unique(np.concatenate([case.samples[k].rows for k in tied]))
                yield tied, places, self._entries(shared, places, case, instants, prediction, theta, sensitive)

    def _entries(
        self, shared: SharedNoise, places: Sequence[int], case: ExperimentTerm, instants: np.ndarray,
        prediction: Prediction,
        theta: np.ndarray, sensitive: bool,
    ) -> CovarianceEntries:  # fmt: skip
        """Return the entries of Σ among some outputs at some instants; at one where they are the same at all."""
        laws = {k: self.laws[shared.outputs[k]] for k in places}
        is_constant = shared.is_constant and all(f.is_constant for law in laws.values() for f in law.formulas.values())
        rows = instants[:1] if is_constant else instants
        values, slopes, known = dict[tuple[int, int], np.ndarray](), dict[tuple[int, int], np.ndarray](), {}
        for k, law in laws.items():
            moved = dict[str, np.ndarray]()
            sigma = self._arguments(law, case, rows, prediction, theta, moved if sensitive else None)[LEVEL_ARGUMENT]
            by = moved.get(LEVEL_ARGUMENT, np.zeros((len(rows), len(self.unknowns))))
            known[level_name(law.output)] = sigma, by
            values[k, k], slopes[k, k] = sigma**2, 2 * sigma[:, None] * by
        for pair, formula in shared.among(places).items():
            values[pair], slopes[pair] = self._formula_at(formula, case, rows, prediction, theta, sensitive, known)
        return CovarianceEntries(values, slopes)

    def _arguments(
        self,
        law: OutputLaw,
        case: ExperimentTerm,
        rows: np.ndarray,
        prediction: Prediction,
        theta: np.ndarray,
        slopes: dict[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray]:
        """Return the law's arguments on some rows; their derivatives are entered into ``slopes``, where given."""
        found = {}
        for path, formula in law.formulas.items():
            is_moving = slopes is not None and path in self._moving[law.output]
            found[path], moved = self._formula_at(formula, case, rows, prediction, theta, is_moving)
            if slopes is not None and is_moving:
                slopes[path] = moved
        if law.is_open:
            level = self._level(law.output, case)
            found[LEVEL_ARGUMENT] = np.full(len(rows), theta[level])
            if slopes is not None:
                slopes[LEVEL_ARGUMENT] = np.zeros((len(rows), len(self.unknowns)))
                slopes[LEVEL_ARGUMENT][:, level] = 1.0
        return found

    def _formula_at(
        self,
        formula: SampleFormula,
        case: ExperimentTerm,
        rows: np.ndarray,
        prediction: Prediction,
        theta: np.ndarray,
        sensitive: bool,
        known: Mapping[str, tuple[np.ndarray, np.ndarray]] = MappingProxyType({}),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a formula on some rows with its derivatives, zero where these are not wanted.

        known : values and derivatives of names that are not observed
        """
        point, times, n = case.trial.at(case.own(theta)), case.grid[rows], len(self.unknowns)
        needed = [known[n][0] if n in known else prediction.y[rows, case.column(n)] for n in formula.needs]
        observed = np.stack(needed, axis=1) if needed else np.zeros((len(rows), 0))
        values, moved = formula.values(point.p, observed, times), np.zeros((len(rows), n))
        if sensitive:
            by_p, by_observed = formula.slopes(point.p, observed, times)
            moved = self._moved(case, by_p @ point.dp.T)
            for k, name in enumerate(formula.needs):
                own = known[name][1] if name in known else self._slopes_of(name, case, rows, prediction)
                moved = moved + by_observed[:, k, None] * own
        return values, moved

    def _slopes_of(self, name: str, case: ExperimentTerm, rows: np.ndarray, prediction: Prediction) -> np.ndarray:
        """Return the derivatives of a prediction by all unknowns on some rows."""
        if not case.unknowns:
            return np.zeros((len(rows), len(self.unknowns)))
        return self._moved(case, prediction.sy[rows, case.column(name)])

    def _moved(self, case: ExperimentTerm, slopes: np.ndarray) -> np.ndarray:
        """Return derivatives by all unknowns from those by an experiment's own, (N, …)."""
        made = np.zeros((len(slopes), len(self.unknowns)))
        made[:, list(case.unknowns)] = slopes
        return made

    def _level(self, output: str, case: ExperimentTerm) -> int:
        """Return the index of the unknown that is the open level of an output in an experiment."""
        return next(
            k
            for k, u in enumerate(self.unknowns)
            if u.kind == "noise" and u.target == output and u.applies_to(case.name)
        )

    def _refusal(self, case: ExperimentTerm, s: OutputSamples, seen: SamplesUnderLaw, terms: LawTerms) -> str:
        """Say why there is no density, with the first sample that has none; empty where all have one."""
        is_bad = ~np.isfinite(terms.log_density)
        if terms.scores.size:
            is_bad |= ~np.isfinite(terms.scores).all(axis=1)
        if not is_bad.any():
            return ""
        k = int(np.flatnonzero(is_bad)[0])
        where = f"experiment '{case.name}': "
        shared = next((n for n in self.shared if s.output in n.outputs), None)
        if shared is not None and np.isfinite(seen.location[k]):
            return (
                f"{where}the covariance of the noise of {', '.join(shared.outputs)} at t = {case.grid[s.rows[k]]:g} is "
                f"not positive definite"
            )
        numbers = {
            path: np.broadcast_to(v, s.values.shape)[k] for path, v in seen.law.arguments.items() if v is not None
        }
        others = "".join(f", {p} = {v:g}" for p, v in numbers.items() if p != seen.law.location_path)
        return (
            f"{where}{type(self.laws[s.output].law).__name__} has no density for '{s.output}' = {s.values[k]:g} at "
            f"t = {case.grid[s.rows[k]]:g}, where {seen.location[k]:g} is predicted{others}"
        )

    def _broken(self, theta: np.ndarray, reason: str) -> MeasuredEvaluation:
        n, empty = len(theta), np.zeros(0)
        return MeasuredEvaluation(theta, empty, np.zeros((0, n)), empty, (), reason)
