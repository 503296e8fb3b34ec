"""Maximum likelihood by Kalman filtering: parameters, noise levels and starts of models with disturbances.

    maximise  log L(θ) = Σ_k log N(y_k; ŷ_{k|k−1}, S_k)  (+ log prior)

One-step predictions and their covariances come from the exact filter of a linear model, or from linearisation along the
way (``filtering``). The covariance of the estimates is the inverse Hessian of −log L − log prior at the optimum.
Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (9), (31), (53).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation import scoring
from grisaille.estimation.cases import Case, Samples, known_starts, start_guesses
from grisaille.estimation.determination import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import PLACES, LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.search import Outcome, Search
from grisaille.estimation.unknowns import Unknown
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.runner import FilterOptions, FilterRunner, Moved
from grisaille.filtering.start import KINDS
from grisaille.model.classes import Model
from grisaille.model.lowering import evaluate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.well_posedness import well_posedness

CONVERGED = 1e-8
"""The Newton decrement: the estimate is then within a ten-thousandth of its standard error."""
COARSE = 1e-2
"""Change of the log-likelihood with shorter steps from which on a fit says so."""
ZERO = 1e-6
"""A level is reported as zero where that costs no more log-likelihood than this."""


@dataclass(frozen=True)
class KalmanML:
    """Options of maximum likelihood by Kalman filtering.

    filter : ``"linear"``, the exact filter of models that are linear in their states; ``"extended"``, by linearisation
        along the way; ``"auto"`` takes the exact one where it applies
    substeps : steps of the extended filter between samples, or ``"auto"``: chosen at the guess
    initial_covariance : of the states before the first sample: ``"first-sample"`` (what process noise builds up over
        the first interval), ``"stationary"``, ``"diffuse"``, ``{state: variance}`` or a matrix; disturbances start
        stationary
    first_observation : ``"include"`` it in the likelihood, or ``"condition"`` on it
    robust : None, or Huber's threshold c in standard deviations: larger innovations count linearly (the filter itself
        is not changed, and the criterion is then no likelihood)
    tolerance, max_evaluations : when to stop
    compiled : as in ``gr.simulate``
    """

    filter: Literal["auto", "linear", "extended"] = "auto"
    substeps: int | Literal["auto"] = "auto"
    initial_covariance: Any = "first-sample"
    first_observation: Literal["include", "condition"] = "include"
    robust: float | None = None
    tolerance: float = 1e-11
    max_evaluations: int = 500
    compiled: bool | None = None

    def __post_init__(self) -> None:
        if self.filter not in ("auto", "linear", "extended"):
            raise EstimationError(f"filter is {self.filter!r}; it must be 'auto', 'linear' or 'extended'.")
        if self.substeps != "auto" and not (isinstance(self.substeps, int) and self.substeps > 0):
            raise EstimationError(f"substeps is {self.substeps!r}; give a whole number from 1, or 'auto'.")
        if self.first_observation not in ("include", "condition"):
            raise EstimationError(f"first_observation is {self.first_observation!r}; give 'include' or 'condition'.")
        kind = self.initial_covariance
        if isinstance(kind, str) and kind not in KINDS:
            raise EstimationError(
                f"initial_covariance is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}, a dict or a matrix."
            )
        if self.robust is not None and not self.robust > 0:
            raise EstimationError(
                f"robust is {self.robust!r}; give a threshold in standard deviations, such as 3, or None."
            )
        if isinstance(kind, str) and kind == "diffuse" and (self.robust or self.first_observation == "condition"):
            raise EstimationError("initial_covariance='diffuse' goes with robust=None and first_observation='include'.")

    def further_unknowns(self, structure: Structure, data: Sequence[Any], wanted: Sequence[str]) -> list[str]:
        """Noise levels that the model leaves open are estimated too."""
        measured = dict.fromkeys(o for e in data for o in e.outputs)
        said = {name.partition("@")[0] for name in wanted}
        still = [f"noise({o})" for o in measured if structure.model.outputs[o].noise is None]
        return [*wanted, *(n for n in still if n not in said)]

    def pose(
        self, model: Model, structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown]
    ) -> LikelihoodProblem:
        """The problem of a model and its data; outputs of infinite variance are refused."""
        measured = tuple(dict.fromkeys(o for e in data for o in e.outputs))
        known = {u.target: u.guess for u in unknowns if u.kind == "parameter" and np.isfinite(u.guess)}
        well_posedness(model, parameters=known).require("gr.fit", measured)
        guessed = [_level_guess(structure, data, u, unknowns) for u in unknowns]
        cases = [self._case(model, structure, e, guessed) for e in data]
        problem = LikelihoodProblem(start_guesses(guessed, cases), cases)
        for case in cases:
            values = problem.values_for(case, problem.guess)
            problem.runner_of(case).prepare(values)
        return problem

    def _case(self, model: Model, structure: Structure, experiment: Any, unknowns: Sequence[Unknown]) -> Case:
        if experiment.is_static:
            raise EstimationError(
                f"Experiment '{experiment.name}' is static: filters follow models in time; use gr.OutputError."
            )
        mine = [k for k, u in enumerate(unknowns) if u.applies_to(experiment.name)]
        order = sorted(mine, key=lambda k: PLACES[unknowns[k].kind])
        moved = Moved(*(tuple(unknowns[k].target for k in order if unknowns[k].kind == kind) for kind in PLACES))
        outputs, grid = tuple(experiment.outputs), experiment.grid()
        if len(grid) < 2:
            raise EstimationError(f"Experiment '{experiment.name}' has {len(grid)} instant; a filter needs two.")
        samples = tuple(_samples(experiment, name, grid) for name in outputs)
        y, weights = np.full((len(grid), len(outputs)), np.nan), np.ones((len(grid), len(outputs)))
        for column, s in enumerate(samples):
            y[s.rows, column], weights[s.rows, column] = s.values, s.weights
        signals, hold = experiment.input_signals()
        options = FilterOptions(
            self.filter, self.substeps, self.initial_covariance, self.first_observation == "condition",
            self.robust or np.inf, self.compiled,
        )  # fmt: skip
        runner: Any = FilterRunner(
            model, experiment.name, grid, y, weights, outputs=outputs, inputs=signals, hold=hold, moved=moved,
            constants=experiment.constants, demands=known_starts(experiment), options=options,
        )  # fmt: skip
        return Case(experiment.name, experiment, runner, grid, samples, outputs, tuple(order))

    def estimate(self, problem: LikelihoodProblem, progress: Callable[[int, float], None] | None = None) -> Estimate:
        """Solve a problem."""
        begin = time.perf_counter()
        guessed = problem.unknowns
        search = Search(problem, progress)
        outcome = scoring.minimize(search, max_evaluations=self.max_evaluations, tolerance=self.tolerance)
        evaluation = outcome.evaluation
        assert isinstance(evaluation, LikelihoodEvaluation)
        evaluation, zero = _levels_at_zero(problem, evaluation)
        free = scoring.free_unknowns(search, _inside(problem, evaluation, zero)) & ~zero
        polished = _polish(search, evaluation, free, zero)
        return self._conclude(problem, guessed, outcome, polished, free, zero, time.perf_counter() - begin)

    def _conclude(
        self,
        problem: LikelihoodProblem,
        guessed: Sequence[Unknown],
        outcome: Outcome,
        polished: scoring.Polished,
        free: np.ndarray,
        zero: np.ndarray,
        seconds: float,
    ) -> Estimate:
        evaluation = polished.evaluation
        converged = polished.is_minimum and polished.decrement < CONVERGED
        covariance = _covariance(problem, polished)
        notes = _describe(problem, evaluation, covariance, free, zero)
        notes += _discretisation(problem, evaluation)
        if problem.failures:
            notes.append(f"{len(problem.failures)} evaluations failed on the way; the last: {problem.failures[-1]}")
        if self.robust is not None:
            notes.append(f"robust: innovations beyond {self.robust:g} standard deviations count linearly.")
        return Estimate(
            unknowns=tuple(guessed),
            theta=evaluation.theta,
            covariance=covariance,
            free=free,
            noise={},
            log_likelihood=evaluation.log_likelihood,
            is_likelihood=self.robust is None,
            count=problem.count,
            objective=evaluation.objective,
            evaluation=evaluation,
            cases=problem.cases,
            converged=converged,
            status=_sentence(converged, outcome, polished, problem.evaluations),
            notes=tuple(notes),
            trace=outcome.trace,
            evaluations=problem.evaluations,
            failures=tuple(problem.failures),
            seconds=seconds,
            offset=float(np.sqrt(polished.decrement)),
        )


def _samples(experiment: Any, output: str, grid: np.ndarray) -> Samples:
    times, values, weights = experiment.measurements(output)
    return Samples(output, np.searchsorted(grid, times), values, weights)


def _level_guess(structure: Structure, data: Sequence[Any], unknown: Unknown, unknowns: Sequence[Unknown]) -> Unknown:
    """Where a level without a guess starts: the declared value, or half the scatter between neighbouring samples."""
    if unknown.kind not in ("scale", "noise") or np.isfinite(unknown.guess):
        return unknown
    flat = structure.model
    formula = flat.disturbances[unknown.target].scale if unknown.kind == "scale" else flat.outputs[unknown.target].noise
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and u.experiment is None}
    values = evaluate_parameters(flat, given)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    if formula is None:
        value = 1.0 if unknown.kind == "scale" else _scatter(data, unknown.target)
    else:
        try:
            value = evaluate([formula], known)[0]
        except KeyError:
            value = _scatter(data, unknown.target)
    if not (np.isfinite(value) and value > 0):
        raise EstimationError(
            f"'{unknown.name}' starts from {value:g}, but its logarithm is estimated: guess={{'{unknown.name}': …}}."
        )
    return replace(unknown, guess=float(np.clip(value, unknown.lower, unknown.upper)))


def _scatter(data: Sequence[Any], output: str) -> float:
    steps = [np.diff(e.measurements(output).values) for e in data if output in e.outputs]
    every = np.concatenate(steps) if steps else np.zeros(0)
    size = float(np.std(every)) if every.size else 0.0
    return 0.5 * size if size > 0 else 1.0


def _levels_at_zero(
    problem: LikelihoodProblem, evaluation: LikelihoodEvaluation
) -> tuple[LikelihoodEvaluation, np.ndarray]:
    """Levels whose logarithm would run away: log L depends on σ², so at σ = 0 it is flat and nothing is lost."""
    zero = np.zeros(len(problem.unknowns), dtype=bool)
    for k, unknown in enumerate(problem.unknowns):
        if unknown.kind in ("scale", "noise") and unknown.lower == 0:
            theta = evaluation.theta.copy()
            theta[k] = 0.0
            trial = problem.evaluate(theta)
            if trial.completed and trial.objective <= evaluation.objective + ZERO:
                evaluation, zero[k] = trial, True
            elif not trial.completed:
                problem.failures.pop()
    return evaluation, zero


def _inside(problem: LikelihoodProblem, evaluation: LikelihoodEvaluation, zero: np.ndarray) -> LikelihoodEvaluation:
    """The same with levels at zero where their logarithm exists, for tests of bounds only."""
    return replace(evaluation, theta=np.where(zero, problem.guess, evaluation.theta))


def _polish(search: Search, evaluation: LikelihoodEvaluation, free: np.ndarray, zero: np.ndarray) -> scoring.Polished:
    """Newton's method in the unknowns that are left; those at zero stay, on a linear scale."""
    problem = search.problem
    if zero.any():
        kept = tuple(replace(u, logarithmic=False) if z else u for u, z in zip(problem.unknowns, zero, strict=True))
        problem.unknowns = kept
    return scoring.polish(search, evaluation, free)


def _covariance(problem: LikelihoodProblem, polished: scoring.Polished) -> np.ndarray:
    """Inverse Hessian in the unknowns themselves."""
    slopes = problem.slopes(polished.evaluation.theta)
    return np.asarray(polished.covariance * np.outer(slopes, slopes))


def _describe(
    problem: LikelihoodProblem,
    evaluation: LikelihoodEvaluation,
    covariance: np.ndarray,
    free: np.ndarray,
    zero: np.ndarray,
) -> list[str]:
    """What the data determined; levels at zero are named as such, not as dead."""
    names = [u.name for u, z in zip(problem.unknowns, zero, strict=True) if z]
    root = _root(evaluation.curvature)
    notes = describe_determination(problem.unknowns, evaluation.theta, root, covariance, free | zero)
    known = tuple(f"dead: no output moves with {name};" for name in names)
    zeros = [f"zero: {name} is zero to all digits that the data have." for name in names]
    return zeros + [n for n in notes if not n.startswith(known)] if known else notes


def _discretisation(problem: LikelihoodProblem, evaluation: LikelihoodEvaluation) -> list[str]:
    """Whether the steps chosen at the guess are short enough at the estimate."""
    filters = [f for c in problem.cases if isinstance(f := problem.runner_of(c).filter, ExtendedFilter)]
    if not filters:
        return []
    before = [f.substeps for f in filters]
    for f in filters:
        f.substeps *= 2
    finer = problem.evaluate(evaluation.theta, sensitive=False)
    for f, n in zip(filters, before, strict=True):
        f.substeps = n
    change = abs(finer.log_likelihood - evaluation.log_likelihood)
    if change < COARSE:
        return []
    return [
        f"discretisation: steps half as long change log L by {change:.2g}; use gr.KalmanML(substeps={2 * max(before)})."
    ]


def _root(information: np.ndarray) -> np.ndarray:
    """J with JᵀJ = information."""
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size)


def _sentence(converged: bool, outcome: Outcome, polished: scoring.Polished, evaluations: int) -> str:
    if converged:
        return f"converged: {outcome.reason}, {evaluations} evaluations"
    if not polished.is_minimum:
        return (
            f"NOT converged: the point is not a maximum of the likelihood, {evaluations} evaluations. Try another guess"
        )
    left = np.sqrt(polished.decrement)
    return (
        f"NOT converged after {evaluations} evaluations: {outcome.reason}; the point is {left:.2g} standard errors "
        f"from a maximum. Try another guess, gr.multistart, or a larger max_evaluations"
    )
