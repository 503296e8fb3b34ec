"""Simulation-based prediction errors: the model is compared with the data through the mean of many simulations.

For each θ the outputs are simulated with M realizations of the disturbances, the same random numbers every time, and
their mean is the prediction (``mean_criterion``). Minimised by Gauss–Newton with averaged sensitivities, or on a grid.
The covariance is a sandwich whose middle comes from the ensemble itself: the errors of one record are correlated like
the deviations of one realization from the mean,

    C = A⁻¹ B A⁻¹,   A = Σ ψψᵀ/λ,   B = cov_m[ Σ_k ψ_k (ŷ_m,k − ȳ_k)/λ ] (1 + 1/M) + Σ ψψᵀ σ²/λ².

Reference: M. Abdalmoaty, O. Eriksson, R. Bereza, D. Broman, H. Hjalmarsson, Identification of non-linear
differential-algebraic equation models with process disturbances (2021).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.cases import known_starts
from grisaille.estimation.determination import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.simulation.ensemble import EnsembleOptions
from grisaille.simulation.ensemble_runner import EnsembleRunner
from grisaille.simulation.runner import Prediction, Runner

SEARCHES, MATCHES = ("gauss-newton", "grid"), ("mean", "mean-variance")


@dataclass(frozen=True)
class SimulatedPEM:
    """Options of the simulation-based prediction error method.

    realizations, seed : size of the ensemble, and which random numbers
    search : ``"gauss-newton"``, or ``"grid"`` for one bounded unknown
    points : grid points between the bounds
    match : ``"mean"``, or ``"mean-variance"`` for disturbance parameters that do not move the mean
    correction : remove the bias that a finite number of realizations gives to the criterion
    step : grid of the disturbances; chosen from their spectra when not given
    """

    realizations: int = 500
    seed: int = 1
    search: Literal["gauss-newton", "grid"] = "gauss-newton"
    match: Literal["mean", "mean-variance"] = "mean"
    correction: bool = True
    points: int = 81
    step: float | None = None
    antithetic: bool = False
    between: str = "linear"
    tolerance: float = 1e-8
    max_iterations: int = 60
    rtol: float = 1e-6
    compiled: bool | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (("search", self.search, SEARCHES), ("match", self.match, MATCHES)):
            if value not in allowed:
                raise EstimationError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")
        if isinstance(self.realizations, bool) or not isinstance(self.realizations, int) or self.realizations < 2:
            raise EstimationError(f"realizations is {self.realizations!r}; give a whole number from 2.")

    def estimate(self, problem: Problem, progress: Callable[[int, float], None] | None = None) -> Estimate:
        """Solve a problem."""
        begin = time.perf_counter()
        runners = [self._runner(problem, k) for k in range(len(problem.cases))]
        criterion = MeanCriterion(
            problem, runners, self.realizations, corrected=self.correction, with_variance=self.match == "mean-variance"
        )
        first = criterion.at(problem.guess)
        if not first.completed:
            raise EstimationError(
                f"The model cannot be simulated at the guess: {first.failure} Give another by guess=."
            )
        criterion.update_levels(first)
        value, reason, well, trace = self._search(criterion, progress)
        for _ in range(10):
            moved = criterion.update_levels(value)
            if moved < 1e-3 or (len(problem.outputs) == 1 and self.match == "mean"):
                break
            problem.with_guess(value.theta)
            value, reason, well, trace = self._search(criterion, progress)
        value = criterion.at(value.theta)
        return self._conclude(criterion, value, reason, well, trace, time.perf_counter() - begin)

    def _runner(self, problem: Problem, k: int) -> EnsembleRunner:
        case = problem.cases[k]
        runner = case.runner
        if not isinstance(runner, Runner):
            raise EstimationError(f"Experiment '{case.name}' is static; disturbances act on models that move in time.")
        if not runner.structure.model.disturbances:
            raise EstimationError(
                f"{runner.structure.model.name} has no disturbances, so every simulation is the mean: "
                f"use gr.OutputError()."
            )
        options = EnsembleOptions(
            self.realizations, self.seed, antithetic=self.antithetic, between=self.between, step=self.step,
            rtol=self.rtol, compiled=self.compiled, threads=self.threads,
        )  # fmt: skip
        names = [*runner.parameters, *(f"start({s})" for s in runner.starts)]
        return EnsembleRunner(
            runner.model, case.grid, outputs=case.outputs, names=names, inputs=runner.inputs, hold=runner.hold,
            constants=runner.constants, demands=known_starts(case.experiment), options=options,
        )  # fmt: skip

    def _search(self, criterion: MeanCriterion, progress: Any) -> tuple[MeanValue, str, bool, list[dict[str, float]]]:
        if self.search == "grid":
            return _grid(criterion, self.points, progress)
        return _gauss_newton(criterion, self.max_iterations, self.tolerance, progress)

    def _conclude(
        self,
        criterion: MeanCriterion,
        value: MeanValue,
        reason: str,
        well: bool,
        trace: list[dict[str, float]],
        seconds: float,
    ) -> Estimate:
        problem = criterion.problem
        free = _free(problem, value)
        covariance, share = _sandwich(criterion, value, free)
        notes = describe_determination(problem.unknowns, value.theta, value.jacobian, covariance, free)
        notes += _finite_notes(self.realizations, share)
        failed = sum(p.failed_realizations for p in value.predictions)
        if failed:
            notes.append(f"{failed} realizations became infinite at the estimate and were left out of the means.")
        predictions = tuple(Prediction(p.mean, p.mean_slopes) for p in value.predictions)
        evaluation = Evaluation(value.theta, value.residuals, value.jacobian, value.errors, predictions)
        return Estimate(
            unknowns=problem.unknowns,
            theta=value.theta,
            covariance=covariance,
            free=free,
            noise={},
            log_likelihood=-value.objective,
            is_likelihood=False,
            count=problem.count,
            objective=value.objective,
            evaluation=evaluation,
            cases=problem.cases,
            converged=well,
            status=_sentence(well, reason, problem.evaluations),
            notes=tuple(notes),
            trace=tuple(trace),
            evaluations=problem.evaluations,
            failures=tuple(problem.failures),
            seconds=seconds,
            extra={"monte_carlo_share": share, "realizations": float(self.realizations)},
        )


def _gauss_newton(
    criterion: MeanCriterion, most: int, tolerance: float, progress: Any
) -> tuple[MeanValue, str, bool, list[dict[str, float]]]:
    """Δ = −H⁻¹g with the Gauss–Newton matrix, shortened until the criterion falls; bounds by projection."""
    problem = criterion.problem
    lower, upper = problem.bounds
    now = criterion.at(problem.guess)
    trace: list[dict[str, float]] = []
    for _ in range(most):
        trace.append(_row(problem, now))
        if progress is not None:
            progress(problem.evaluations, now.objective)
        free = _free(problem, now)
        H = now.curvature[np.ix_(free, free)]
        scale = np.sqrt(np.clip(np.diag(H), 1e-300, None))
        step = np.zeros_like(now.theta)
        step[free] = -np.linalg.lstsq(H / np.outer(scale, scale), now.gradient[free] / scale, rcond=1e-12)[0] / scale
        gain = float(now.gradient @ step)
        # in units of the statistical error of one residual: below this the estimate is not told apart from the minimum
        if -gain <= tolerance * max(1.0, float(now.residuals @ now.residuals) / len(now.residuals)):
            return now, "the predicted gain vanished", True, trace
        length = 1.0
        while length > 1e-6:
            trial = criterion.at(np.clip(now.theta + length * step, lower, upper))
            if trial.completed and trial.objective <= now.objective + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return now, "no step lowers the criterion", abs(gain) < 1e-4, trace
        now = trial
    return now, f"{most} iterations were used up", False, trace


def _grid(criterion: MeanCriterion, points: int, progress: Any) -> tuple[MeanValue, str, bool, list[dict[str, float]]]:
    """The best of equally spaced values of one bounded unknown."""
    problem = criterion.problem
    lower, upper = problem.bounds
    if len(problem.unknowns) != 1 or not np.isfinite([*lower, *upper]).all():
        raise EstimationError("search='grid' needs exactly one unknown, with bounds on both sides.")
    trace: list[dict[str, float]] = []
    best: MeanValue | None = None
    for theta in np.linspace(lower[0], upper[0], points):
        value = criterion.at(np.array([theta]), sensitive=False)
        trace.append(_row(problem, value))
        if progress is not None:
            progress(problem.evaluations, value.objective)
        if value.completed and (best is None or value.objective < best.objective):
            best = value
    if best is None:
        raise EstimationError("No point of the grid could be simulated.")
    inside = lower[0] < best.theta[0] < upper[0]
    return criterion.at(best.theta), f"best of {points} grid points", bool(inside), trace


def _free(problem: Problem, value: MeanValue) -> np.ndarray:
    lower, upper = problem.bounds
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    low = (value.theta <= lower + 1e-9 * span) & (value.gradient >= 0)
    high = (value.theta >= upper - 1e-9 * span) & (value.gradient <= 0)
    return np.asarray(~(low | high))


def _sandwich(criterion: MeanCriterion, value: MeanValue, free: np.ndarray) -> tuple[np.ndarray, float]:
    """Covariance of the estimates, and the share of it that more realizations would remove."""
    problem, M = criterion.problem, criterion.realizations
    n = len(value.theta)
    level = np.array([criterion.levels[problem.outputs[k]] for k in problem.output_of])
    S = level + value.spread if criterion.with_variance else level
    psi = -value.jacobian * (problem.weights / np.sqrt(S))[:, None]
    # what the errors hold beyond the disturbances' share: measurement noise
    noise = np.clip(value.errors**2 - value.spread, 0.0, None).mean() if not criterion.with_variance else level
    middle = (psi * noise[:, None] if np.ndim(noise) else psi * noise).T @ psi
    at = 0
    for case, runner, prediction in zip(problem.cases, criterion.runners, value.predictions, strict=True):
        directions = np.zeros((len(case.grid), len(case.outputs), n))
        for s in case.samples:
            column = case.column(s.output)
            for row, slope in zip(s.rows, psi[at : at + len(s.values)], strict=True):
                directions[row, column] += slope
            at += len(s.values)
        mine = [(problem.unknowns[k], float(value.theta[k])) for k in case.unknowns]
        v = runner.projections(
            {u.target: x for u, x in mine if u.kind == "parameter"},
            {u.target: x for u, x in mine if u.kind == "start"}, directions, prediction.mean,
        )  # fmt: skip
        middle = middle + np.cov(v, rowvar=False).reshape(n, n) * (1 + 1 / M)
    bread, undetermined = inverse_information(value.curvature, free)
    return without_undetermined(bread @ middle @ bread, undetermined), 1.0 / (M + 1)


def _finite_notes(realizations: int, share: float) -> list[str]:
    if share > 0.01:
        return [f"{100 * share:.1f} % of the variance is due to only {realizations} realizations; 100 would leave 1 %."]
    return []


def _row(problem: Problem, value: MeanValue) -> dict[str, float]:
    row = {"evaluation": float(problem.evaluations), "objective": value.objective}
    row.update({u.name: float(v) for u, v in zip(problem.unknowns, value.theta, strict=True)})
    return row


def _sentence(well: bool, reason: str, evaluations: int) -> str:
    if well:
        return f"converged: {reason}, {evaluations} ensembles"
    return f"NOT converged after {evaluations} ensembles: {reason}. Try another guess or wider bounds"
