"""The normal law of measurements around simulations, as a log-density of the unknowns and of the open noise levels.

    log L(θ, σ) = Σ_i −½ (w_i e_i / σ_i)² − log(σ_i / w_i) − ½ log 2π,          e = y − ŷ(θ)

σ_i of an output with open noise is the unknown ``noise(y)``; declared ones are numbers or formulas, which are evaluated
at θ: where a formula moves with the unknowns or the predictions, what the size of the residuals tells of them is
contained, and the maximum is not that of a fit, which holds the formula and renews it (``output_error``).

Steps are those that suit the guess; where they are too long at θ they are shortened, by a rule of θ alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.density_search import maximize_log_density
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.log_priors import prior_part
from grisaille.estimation.density.profile_criterion import Maximum
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error import criterion_at
from grisaille.estimators.output_error.difference_steps import has_jumps
from grisaille.simulation.runner import MAX_ERROR_IN_TOLERANCES, Prediction

TOO_LONG, ROUNDS = 3.0, 4
"""Error estimate, in tolerances, from which on steps are shortened, and how often."""
MIN_RELATIVE_LEVEL = 1e-12
"""Of the range of the data: the smallest level that a search begins with."""


class NormalDensity(LogDensity):
    """Of a problem of least squares."""

    def __init__(self, problem: EstimationProblem) -> None:
        self.problem = problem.discretised_problem
        self.count = len(problem.unknowns)
        _refuse_jumping_noise(self.problem)
        _, first = self._evaluated(self.problem.guess, False)
        if not first.completed:
            raise EstimationError(f"The model cannot be simulated at the guess: {first.failure}")
        self._levels = tuple(_level(self.problem, first, output) for output in self.problem.sigma)

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Those of the problem, then the open levels."""
        return (*self.problem.unknowns, *self._levels)

    def search(self, start: np.ndarray, held: Sequence[int], nearly: bool) -> Maximum:
        """Search by Fisher scoring."""
        return maximize_log_density(self, start, held)

    def evaluate(self, theta: np.ndarray, derivatives: bool = True) -> DensityValue:
        """Return the value at θ; its information is the expected one, with the curvature of priors."""
        problem, found = self._evaluated(theta[: self.count], derivatives)
        if not found.completed:
            return DensityValue.failed(theta, found.failure)
        if found.discretisation > MAX_ERROR_IN_TOLERANCES:
            reason = f"simulations miss their tolerance by a factor {found.discretisation:.2g}: use a smaller rtol"
            return DensityValue.failed(theta, reason)
        levels = dict(zip(self.problem.sigma, theta[self.count :].tolist(), strict=True))
        silent = next((n for n, v in levels.items() if not v > 0), "")
        if silent:
            return DensityValue.failed(theta, f"noise({silent}) is zero, so that no measurement has a density")
        parts, rows = self._parts(problem, theta, found, levels, derivatives)
        prior = prior_part(self.unknowns, theta, derivatives)
        every = (*parts, *(() if prior is None else (prior,)))
        information = rows.T @ rows if derivatives else None
        if information is not None and found.prior is not None:
            information[: self.count, : self.count] += found.prior.search_curvature
        return DensityValue.summed(theta, every, derivatives, information)

    def _evaluated(self, theta: np.ndarray, sensitive: bool) -> tuple[EstimationProblem, Evaluation]:
        """Return residuals on steps that are short enough at θ, and the problem with these steps."""
        problem = self.problem
        found = problem.evaluate(theta, sensitive=sensitive)
        for _ in range(ROUNDS):
            if not found.completed or found.discretisation <= TOO_LONG:
                break
            problem = problem.refined(found).discretised_problem
            found = problem.evaluate(theta, sensitive=sensitive)
        return problem, criterion_at.across_jumps(problem, found) if sensitive and found.completed else found

    def _parts(
        self,
        problem: EstimationProblem,
        theta: np.ndarray,
        found: Evaluation,
        levels: Mapping[str, float],
        derivatives: bool,
    ) -> tuple[list[DensityPart], np.ndarray]:
        """Return the experiments' parts, and rows whose squares are their information."""
        parts, rows, first = [], [np.zeros((0, len(theta)))], 0
        for case, prediction in zip(problem.cases, found.predictions, strict=True):
            total, slope = 0.0, np.zeros(len(theta))
            for s in case.samples:
                here, first = slice(first, first + len(s.rows)), first + len(s.rows)
                frozen = problem.deviations(case, s.output, s.rows, prediction, theta[: self.count])
                sigma, moved = self._deviations(case, s, prediction, theta, levels, derivatives)
                sigma = frozen if sigma is None else sigma
                r = s.weights * found.errors[here] / sigma
                is_weighed = s.weights > 0
                total += float(-0.5 * r @ r - np.sum(np.log(sigma)) - 0.5 * len(r) * np.log(2 * np.pi))
                total += float(np.sum(np.log(s.weights[is_weighed])))
                if derivatives:
                    own = np.zeros((len(r), len(theta)))
                    own[:, : self.count] = found.jacobian[here] * (frozen / sigma)[:, None]
                    relative = moved / sigma[:, None]
                    slope += -r @ own + (r**2 - 1) @ relative
                    rows += [own, 2**0.5 * relative]
            parts.append(DensityPart(case.name, "experiment", total, slope if derivatives else np.zeros(0)))
        return parts, np.concatenate(rows)

    def _deviations(
        self,
        case: ExperimentTerm,
        s: OutputSamples,
        prediction: Prediction,
        theta: np.ndarray,
        levels: Mapping[str, float],
        derivatives: bool,
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """Return σ of some samples at θ, None where it is constant, and its derivatives where these are requested."""
        slopes = np.zeros((len(s.rows), len(theta)))
        if s.output in levels:
            slopes[:, self.count + list(levels).index(s.output)] = 1.0
            return np.full(len(s.rows), levels[s.output]), slopes
        if s.output not in self.problem.moving:
            return None, slopes
        level, point = self.problem.noise[s.output], case.trial.at(case.own(theta[: self.count]))
        columns = [case.column(n) for n in level.needs]
        observed, times = prediction.y[s.rows][:, columns], case.grid[s.rows]
        sigma = level.at(point.p, observed, times)
        if derivatives:
            by_p, by_observed = level.slopes(point.p, observed, times)
            moved = by_p @ point.dp.T
            if columns:
                moved = moved + np.einsum("ij,ijk->ik", by_observed, prediction.sy[s.rows][:, columns])
            slopes[:, list(case.unknowns)] = moved
        return sigma, slopes


def _refuse_jumping_noise(problem: EstimationProblem) -> None:
    """Refuse formulas of σ that follow predictions across jumps, of which there are no derivatives."""
    following = [n for n in sorted(problem.moving) if problem.noise[n].needs]
    if following and has_jumps(problem):
        raise EstimationError(
            f"The noise of '{following[0]}' is a formula of predictions, and the equations jump with states in a way "
            f"that derivatives do not see: give it a number, or leave it open (noise=None)."
        )


def _level(problem: EstimationProblem, evaluation: Evaluation, output: str) -> Unknown:
    """Return the open level of an output as an unknown, which begins with what the guess leaves."""
    mine = problem.output_of == problem.outputs.index(output)
    left = float(np.sqrt(np.mean((problem.weights[mine] * evaluation.errors[mine]) ** 2)))
    values = np.concatenate([s.values for c in problem.cases for s in c.samples if s.output == output])
    least = MIN_RELATIVE_LEVEL * max(float(np.ptp(values)), float(np.abs(values).max()), MIN_RELATIVE_LEVEL)
    unit = problem.cases[0].trial.flat.outputs[output].unit
    return Unknown(f"noise({output})", "noise", output, None, max(left, least), 0.0, np.inf, True, unit)
