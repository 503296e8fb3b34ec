"""What simulated prediction error estimation minimises, with exact derivatives.

Mean (eqs. (2)–(3) of Abdalmoaty et al. 2021, corrected for finite M):

    V(θ) = ½ Σ_k w_k² [ (y_k − ȳ_k)² − s_k²/M ] / λ

Mean and variance (Gaussian pseudo-likelihood), S_k = s_k² + σ_k²:

    V(θ) = ½ Σ_k w_k² [ ((y_k − ȳ_k)² − s_k²/M) / S_k + log S_k ]

ȳ, s² are the mean and variance over M realizations. Without the correction the mean criterion is biased by the variance
of ȳ itself, (1/M) s², which moves the minimum where s² depends on θ. The Gauss–Newton matrix leaves out second
derivatives of ȳ and of s².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.problem import Problem
from grisaille.simulation.ensemble_runner import EnsemblePrediction, EnsembleRunner


@dataclass(frozen=True)
class MeanValue:
    """The criterion at one point."""

    theta: np.ndarray
    objective: float
    gradient: np.ndarray
    curvature: np.ndarray
    """The Gauss–Newton matrix."""
    residuals: np.ndarray
    """w (y − ȳ)/√λ, or /√S."""
    jacobian: np.ndarray
    errors: np.ndarray
    spread: np.ndarray
    """s² of every sample."""
    predictions: tuple[EnsemblePrediction, ...]
    failure: str = ""

    @property
    def completed(self) -> bool:
        return not self.failure


class MeanCriterion:
    """The criterion of a problem whose cases are predicted by ensembles."""

    def __init__(
        self,
        problem: Problem,
        runners: Sequence[EnsembleRunner],
        realizations: int,
        *,
        corrected: bool,
        with_variance: bool,
    ) -> None:
        self.problem, self.runners, self.realizations = problem, tuple(runners), realizations
        self.corrected, self.with_variance = corrected, with_variance
        self.levels = {name: 1.0 for name in problem.outputs}
        """λ of the mean criterion, or σ² of the measurement noise: per output."""

    def at(self, theta: np.ndarray, *, sensitive: bool = True) -> MeanValue:
        """Value and derivatives at θ."""
        problem = self.problem
        problem.evaluations += 1
        n = len(theta)
        errors, spreads, predictions = [], [], []
        slopes: list[np.ndarray] = []
        spread_slopes: list[np.ndarray] = []
        for case, runner in zip(problem.cases, self.runners, strict=True):
            mine = [(problem.unknowns[k], float(theta[k])) for k in case.unknowns]
            values = {u.target: v for u, v in mine if u.kind == "parameter"}
            starts = {u.target: v for u, v in mine if u.kind == "start"}
            p = runner.predict(values, starts, sensitive=sensitive)
            predictions.append(p)
            if not p.completed:
                problem.failures.append(f"{case.name}: {p.failure}")
                return self._failed(theta, p.failure)
            for s in case.samples:
                column = case.column(s.output)
                errors.append(s.values - p.mean[s.rows, column])
                spreads.append(p.variance[s.rows, column])
                if sensitive:
                    for slope, out in ((p.mean_slopes, slopes), (p.variance_slopes, spread_slopes)):
                        rows = np.zeros((len(s.values), n))
                        rows[:, list(case.unknowns)] = slope[s.rows, column]
                        out.append(rows)
        e, s2 = np.concatenate(errors), np.concatenate(spreads)
        empty = np.zeros((len(e), n))
        psi = np.concatenate(slopes) if sensitive else empty
        ds2 = np.concatenate(spread_slopes) if sensitive else empty
        return self._value(theta, e, s2, psi, ds2, tuple(predictions))

    def _value(
        self,
        theta: np.ndarray,
        e: np.ndarray,
        s2: np.ndarray,
        psi: np.ndarray,
        ds2: np.ndarray,
        predictions: tuple[EnsemblePrediction, ...],
    ) -> MeanValue:
        level = np.array([self.levels[self.problem.outputs[k]] for k in self.problem.output_of])
        w2 = self.problem.weights**2
        share = 1.0 / self.realizations if self.corrected else 0.0
        squares = e**2 - share * s2
        if self.with_variance:
            S = level + s2
            objective = 0.5 * float(np.sum(w2 * (squares / S + np.log(S))))
            gradient = -(psi.T @ (w2 * e / S)) + ds2.T @ (0.5 * w2 * (1 / S - squares / S**2 - share / S))
            curvature = (psi * (w2 / S)[:, None]).T @ psi + 0.5 * (ds2 * (w2 / S**2)[:, None]).T @ ds2
        else:
            S = level
            objective = 0.5 * float(np.sum(w2 * squares / S))
            gradient = -(psi.T @ (w2 * e / S)) - ds2.T @ (0.5 * w2 * share / S)
            curvature = (psi * (w2 / S)[:, None]).T @ psi
        root = self.problem.weights / np.sqrt(S)
        prior, prior_slopes = self.problem.prior_residuals(theta)
        return MeanValue(
            theta,
            objective + 0.5 * float(prior @ prior),
            gradient + prior_slopes.T @ prior,
            curvature + prior_slopes.T @ prior_slopes,
            root * e,
            -psi * root[:, None],
            e,
            s2,
            predictions,
        )

    def update_levels(self, value: MeanValue) -> float:
        """λ (or σ²) from the errors at a point; gives the largest relative change."""
        moved = 0.0
        for k, name in enumerate(self.problem.outputs):
            mine = self.problem.output_of == k
            w2 = self.problem.weights[mine] ** 2
            total = float(np.sum(w2 * value.errors[mine] ** 2) / max(np.sum(w2), 1e-300))
            if self.with_variance:
                total = max(total - float(np.mean(value.spread[mine])), 1e-6 * total)
                known = self._known_noise(name)
                total = known if known is not None else total
            moved = max(moved, abs(total / self.levels[name] - 1))
            self.levels[name] = max(total, 1e-300)
        return moved

    def _known_noise(self, output: str) -> float | None:
        level = self.problem.noise[output]
        if not level.known or level.needs:
            return None
        case = next(c for c in self.problem.cases if output in c.outputs)
        values = {self.problem.unknowns[k].target: self.problem.unknowns[k].guess for k in case.unknowns
                  if self.problem.unknowns[k].kind == "parameter"}  # fmt: skip
        p = case.runner.formulas.evaluate({**case.runner.constants, **values}).values
        return float(level.at(p, np.zeros((1, 0)), np.zeros(1))[0] ** 2)

    def _failed(self, theta: np.ndarray, reason: str) -> MeanValue:
        n, empty = len(theta), np.zeros(0)
        return MeanValue(theta, np.inf, np.zeros(n), np.eye(n), empty, np.zeros((0, n)), empty, empty, (), reason)
