"""Direct collocation as a problem: the criterion over the unknowns, paths solved for at each θ.

    amle      f(θ) = min over paths of Σ (y − ŷ)²/2σ² + ∫ |v|²/2 dt
    laplace   f(θ) = −log p(y | θ), paths integrated out

both with priors. Residuals are those of the data against the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from grisaille.collocation.direct.direct import DirectOptions, DirectProgram, DirectSolution
from grisaille.collocation.direct.marginal import marginal
from grisaille.collocation.direct.summary import curvature_at, output_slopes
from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import Problem
from grisaille.estimators.collocation.direct.cases import direct_cases, pose_direct
from grisaille.estimators.collocation.direct.programs import evaluated_program
from grisaille.estimators.collocation.refusals import (
    level_parameters,
    refuse_levels,
    refuse_open_noise,
    refuse_zero_noise,
)
from grisaille.model.classes import Model
from grisaille.model.priors import LogNormal, MultivariateNormal, Normal
from grisaille.simulation.runner import Prediction
from grisaille.structure.reduction import Structure
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True)
class DirectEvaluation(LikelihoodEvaluation):
    """An evaluation with the paths it was made at."""

    solution: DirectSolution | None = field(default=None, compare=False)
    program: DirectProgram | None = field(default=None, compare=False)

    follows_valleys: ClassVar[bool] = False


SPLINES_ONLY = {"order": 4, "knots": "auto", "kinks": "auto", "quadrature": "gauss", "trajectories": None}
"""Options that direct collocation does not read, and what they are when not given."""


class DirectProblem(Problem):
    """Unknowns, experiments and the program of one estimation."""

    def __init__(
        self, unknowns: Sequence[Unknown], cases: Sequence[Case], program: DirectProgram, reason: str = ""
    ) -> None:
        super().__init__(unknowns, cases)
        self.program, self.reason = program, reason
        self.evaluations, self.failures = 0, list[str]()

    @property
    def transcription(self) -> str:
        """How trajectories are represented, and why so."""
        return f"direct collocation at Radau points, {f'because {self.reason}' if self.reason else 'as asked'}"

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        """The criterion at θ, with the best path there."""
        self.evaluations += 1
        solution = evaluated_program(self.program).solve(theta, free=False)
        if not solution.converged:
            self.failures.append(solution.status)
            return self._broken(theta, f"the path {solution.status}")
        return self.at(solution)

    def _broken(self, theta: np.ndarray, reason: str) -> DirectEvaluation:
        empty = np.zeros(0)
        return DirectEvaluation(theta, empty, np.zeros((0, len(theta))), empty, (), reason)

    def at(self, solution: DirectSolution) -> DirectEvaluation:
        """The evaluation of a solved path."""
        program, theta = solution.program, solution.theta
        model = curvature_at(program, solution.result, solution.inside)
        errors, residuals, rows, predictions = [], [], [], []
        for r, case in enumerate(self.cases):
            if model is None:
                y, sigma = (program.look(what, solution.point, r)[0] for what in ("measured", "deviation"))
                slopes = np.zeros((*y.shape, len(theta)))
            else:
                y, sigma, slopes = output_slopes(program, model, solution.result, r)
            ends = program.meshes[r].ends_of_samples
            predictions.append(Prediction(y[ends], np.zeros((0, 0, 0))))
            for s in case.samples:
                column, at = program.model.outputs.index(s.output), ends[s.rows]
                e = s.values - y[at, column]
                errors.append(e)
                residuals.append(e * s.weights / sigma[at, column])
                rows.append(-slopes[at, column] * (s.weights / sigma[at, column])[:, None])
        extra, extra_slopes = self.prior_residuals(theta)
        value, gradient = solution.objective, model.gradient if model is not None else np.zeros(len(theta))
        curvature = model.curvature if model is not None else np.zeros((len(theta), len(theta)))
        likelihood = -value
        if self.program.options.criterion == "laplace":
            found = marginal(program, solution.point, 1e-10, solution.result.multipliers)
            if found is not None:
                value, gradient, likelihood = found.value, found.gradient, -found.value + 0.5 * float(extra @ extra)
        return DirectEvaluation(
            theta, np.concatenate([*residuals, extra]), np.concatenate([*rows, extra_slopes]), np.concatenate(errors),
            tuple(predictions), value=value, slope=gradient, curvature=curvature, log_likelihood=likelihood,
            solution=solution, program=self.program,
        )  # fmt: skip

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> DirectProblem:
        """An independent problem with other measurements (an array for each ``samples``, in order) or another guess."""
        cases = self.renewed_cases(values)
        program = self.program.with_trials([c.trial for c in cases])
        problem = DirectProblem(self.unknowns, cases, program, self.reason)
        if guess is not None:
            problem.with_guess(guess)
        return problem


def pose_direct_problem(
    model: Model, structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown], options: DirectOptions,
    reason: str = "",
) -> DirectProblem:  # fmt: skip
    """The problem of a model and its data; ``reason`` says why splines are not taken."""
    bounds = {n: v.bounds for n, v in structure.model.variables.items() if v.bounds is not None}
    limits = {
        n: (-np.inf if a is None else float(a), np.inf if b is None else float(b)) for n, (a, b) in bounds.items()
    }
    chosen = replace(options, state_bounds={**limits, **dict(options.state_bounds)})
    if options.criterion == "amle":
        outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
        refuse_open_noise(structure, data)
        refuse_levels(unknowns, level_parameters(structure, unknowns, outputs))
    posed, cases = direct_cases(model, data, unknowns)
    program = pose_direct(cases, posed, chosen, _priors(posed))
    refuse_zero_noise(program, [e.name for e in data])
    return DirectProblem(posed, cases, program, reason)


def _priors(unknowns: Sequence[Unknown]) -> Callable[[ca.SX], ca.SX] | None:
    """−log prior up to a constant, as a formula of θ."""
    if all(u.prior is None for u in unknowns):
        return None
    names = [u.name for u in unknowns]

    def formula(theta: ca.SX) -> ca.SX:
        total, joint = ca.SX(0), {}
        for k, u in enumerate(unknowns):
            if isinstance(u.prior, Normal):
                total += ((theta[k] - u.prior.mean) / u.prior.std) ** 2 / 2
            elif isinstance(u.prior, LogNormal):
                total += (ca.log(theta[k] / u.prior.median) / u.prior.log_std) ** 2 / 2
            elif isinstance(u.prior, MultivariateNormal):
                joint[id(u.prior)] = u.prior
        for prior in joint.values():
            missing = [n for n in prior.names if n not in names]
            if missing:
                raise EstimationError(f"The joint prior names '{missing[0]}', which is not estimated.")
            root = np.linalg.inv(np.linalg.cholesky(np.asarray(prior.cov, dtype=float)))
            r = ca.DM(root) @ (ca.vertcat(*(theta[names.index(n)] for n in prior.names)) - ca.DM(list(prior.mean)))
            total += ca.sumsqr(r) / 2
        return total

    return formula


def direct_options(method: Any, reason: str) -> DirectOptions:
    """What the options of ``gr.Collocation`` mean here; ``reason`` says why splines are not taken."""
    why = f"{reason[0].upper()}{reason[1:]}" if reason else "Direct collocation was asked for"
    if method.criterion not in ("amle", "laplace"):
        raise EstimationError(
            f"{why}, and direct collocation has no criterion={method.criterion!r}: use 'amle' or 'laplace'."
        )
    unread = [n for n, usual in SPLINES_ONLY.items() if getattr(method, n) != usual]
    if unread:
        raise EstimationError(
            f"{why}: {unread[0]}={getattr(method, unread[0])!r} belongs to splines and says nothing here. Leave it "
            f"out: elements are halved until the estimates stop moving."
        )
    solver: Any = "ipopt" if method.optimizer == "ipopt" else "auto"
    return DirectOptions(criterion=method.criterion, solver=solver, max_iterations=method.max_iterations)
