"""What collocation minimises over the unknowns: at each θ trajectories are solved for, then the criterion is taken.

    amle, ipda   f(θ) = min_β J(β, θ)                       gradient ∂J/∂θ, curvature C − Bᵀ A⁻¹ B
    smoothing    f(θ) = ½ |data residuals at β̂(θ)|²          Jacobian by the implicit function theorem
    laplace      f(θ) = −log L by Laplace's method

Trajectories are kept from one evaluation to the next, so that solving for them again takes a few steps.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from grisaille.collocation import banded, descent
from grisaille.collocation.banded import BandedFactor, NotPositiveDefinite
from grisaille.collocation.descent import Quadratic, Task
from grisaille.collocation.laplace import marginal
from grisaille.collocation.program import SplineProgram
from grisaille.collocation.record import Record
from grisaille.errors import GrisailleError
from grisaille.estimation.cases import Case
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import Problem
from grisaille.simulation.runner import Prediction
from grisaille.trial.unknown import Unknown

INNER = 1e-13
"""Predicted gain, relative to 1 + J, at which trajectories count as solved for given unknowns."""
NEAR = 0.05
"""A change of the scaled unknowns up to which trajectories are moved along with them."""


@dataclass(frozen=True)
class CollocationEvaluation(LikelihoodEvaluation):
    """An evaluation with the trajectories it was made at."""

    quadratic: Quadratic | None = field(default=None, compare=False)

    follows_valleys: ClassVar[bool] = False


class CollocationProblem(Problem):
    """Unknowns, experiments and trajectories of one estimation."""

    def __init__(
        self,
        unknowns: Sequence[Unknown],
        cases: Sequence[Case],
        programs: Sequence[SplineProgram],
        betas: Sequence[np.ndarray],
        criterion: str,
    ) -> None:
        super().__init__(unknowns, cases)
        self.programs, self.criterion = tuple(programs), criterion
        self.betas = self.first_betas = list(betas)
        self._last: tuple[np.ndarray, Sequence[np.ndarray]] | None = None
        self.solved_before = False
        self.evaluations, self.failures = 0, list[str]()

    @property
    def transcription(self) -> str:
        """How trajectories are represented, and why so."""
        orders = sorted({s.order for p in self.programs for s in p.mesh.splines})
        return f"splines of order {' and '.join(map(str, orders))}, because white noise disturbs every state"

    @cached_property
    def levels(self) -> np.ndarray:
        """Unknowns that are intensities or noise levels, or parameters inside them or inside a spectrum."""
        inside = set().union(*(p.record.level_names for p in self.programs))
        return np.array(
            [u.kind in ("scale", "noise") or (u.kind == "parameter" and u.target in inside) for u in self.unknowns],
            dtype=bool,
        )

    def task(self) -> Task:
        """Unknowns and trajectories as the descent sees them."""
        lower, upper = self.inner_bounds()
        floors, ceilings = zip(*(state_bounds(p) for p in self.programs), strict=True)
        bounded = any(np.isfinite(b).any() for b in (*floors, *ceilings))
        scaled = copy.copy(self)  # the scale of unknowns follows their guess: a task keeps its own
        return Task(
            self.programs, [c.unknowns for c in self.cases], scaled.outer, scaled.inner, scaled.slopes, lower, upper,
            scaled.prior_residuals, self.criterion == "smoothing",
            floors if bounded else (), ceilings if bounded else (),
        )  # fmt: skip

    def solved(self, theta: np.ndarray) -> Quadratic | str:
        """The trajectories for given unknowns, or why there are none."""
        task = self.task()
        nothing = np.zeros(len(self.unknowns), dtype=bool)
        tries = ((self._predicted(theta), True), (self.betas, False), (self.first_betas, False))
        for start, near in tries if self.solved_before else tries[1:]:
            try:
                found = descent.minimize(task, self.inner(theta), start, wanted=nothing, near=near, tolerance=INNER)
            except GrisailleError as error:
                return str(error)
            if found.converged:
                self.keep(found.quadratic, True)
                return found.quadratic
        return f"the trajectories could not be solved for: {found.reason}"

    def keep(self, found: Quadratic, solved: bool) -> None:
        """Trajectories that the next search starts from."""
        self.betas, self._last, self.solved_before = found.betas, None, solved

    def _predicted(self, theta: np.ndarray) -> list[np.ndarray]:
        """The last trajectories, moved along with the unknowns."""
        if self._last is None or np.abs(self.inner(theta) - self.inner(self._last[0])).max(initial=0.0) > NEAR:
            return self.betas
        return [b - V @ (theta - self._last[0]) for b, V in zip(self.betas, self._last[1], strict=True)]

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> CollocationEvaluation:
        """The criterion at θ."""
        self.evaluations += 1
        found = self.solved(theta)
        if isinstance(found, str):
            self.failures.append(found)
            return self._broken(theta, found)
        try:
            return self.at_trajectories(found, sensitive=sensitive)
        except NotPositiveDefinite:
            reason = "the curvature of the trajectories is singular: some state is not determined"
            self.failures.append(reason)
            return self._broken(theta, reason)

    def at_trajectories(self, found: Quadratic, *, sensitive: bool = True) -> CollocationEvaluation:
        """The evaluation of trajectories that are solved for."""
        theta = found.theta
        S, _, carried, _ = found.reduced(found.factors())
        slopes = found.task.slopes(theta)
        information, slope = S / np.outer(slopes, slopes), found.slope / slopes
        moved = self._implicit(found) if self.criterion == "smoothing" else [V / slopes for V in carried]
        residuals, errors, jacobian = self._samples(found, moved)
        self._last = theta, moved
        extra, extra_slopes = self.prior_residuals(theta)
        residuals, jacobian = np.concatenate([residuals, extra]), np.concatenate([jacobian, extra_slopes])
        value, log_likelihood = found.objective, -found.objective
        if self.criterion == "smoothing":
            value, slope, information = (
                0.5 * float(residuals @ residuals),
                jacobian.T @ residuals,
                jacobian.T @ jacobian,
            )
        elif self.criterion == "laplace":
            value, slope, information = self.marginal_at(found, information, sensitive)
            log_likelihood = -value + 0.5 * float(extra @ extra)
        predictions = tuple(
            Prediction(p.record.y - part.errors, np.zeros((0, 0, 0)))
            for p, part in zip(self.programs, found.parts, strict=True)
        )
        return CollocationEvaluation(
            theta, residuals, jacobian, errors, predictions, value=value, slope=slope, curvature=information,
            log_likelihood=log_likelihood, quadratic=found,
        )  # fmt: skip

    def marginal_at(self, found: Quadratic, information: np.ndarray, sensitive: bool) -> tuple[float, Any, Any]:
        """−log L with priors, its gradient, and an information in which levels have that of their own freedom."""
        extra, extra_slopes = self.prior_residuals(found.theta)
        value, slope, freedom = 0.5 * float(extra @ extra), extra_slopes.T @ extra, np.zeros(len(found.theta))
        for program, part, given, held, case in zip(
            self.programs, found.parts, found.given, found.held, self.cases, strict=True
        ):
            at, mine = marginal(program, part, given, held, sensitive=sensitive), list(case.unknowns)
            value += at.value
            slope[mine] += at.slope
            freedom[mine] += at.freedom
        information = information.copy()
        for k in np.flatnonzero(self.levels):
            information[k, :], information[:, k] = 0.0, 0.0
            information[k, k] = 2 * max(abs(freedom[k]) * found.theta[k], 0.5) / found.theta[k] ** 2
        return value, slope, information

    def _implicit(self, found: Quadratic) -> list[np.ndarray]:
        """−dβ̂/dθ by the exact curvature."""
        slopes = found.task.slopes(found.theta)
        exact = found.task.linearised(found.xi, found.betas, exact=True)
        moved = []
        for part, held, border in zip(exact.parts, found.held, exact.borders, strict=True):
            factor = BandedFactor(banded.without(part.band, held))
            moved.append(factor.solve(np.where(held[:, None], 0.0, border)) / slopes)
        return moved

    def _samples(self, found: Quadratic, moved: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standardised residuals, errors and the residuals' derivatives, in the order of the samples."""
        residuals, errors, rows = [], [], []
        for case, program, part, given, V in zip(
            self.cases, self.programs, found.parts, found.given, moved, strict=True
        ):
            data, mine = part.data, list(case.unknowns)
            total = -(data.by_beta @ V[program.samples.local.index])
            total[:, :, mine] += data.by_theta + program.start_share(part, given)
            place = np.full(len(case.grid), -1)
            place[program.seen] = np.arange(len(program.seen))
            for s in case.samples:
                column = program.record.outputs.index(s.output)
                at = place[s.rows]
                residuals.append(data.residuals[at, column])
                errors.append(part.errors[s.rows, column])
                rows.append(total[at, column])
        return np.concatenate(residuals), np.concatenate(errors), np.concatenate(rows)

    def renewed(
        self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None
    ) -> CollocationProblem:
        """An independent problem with other measurements (an array for each ``samples``, in order) or another guess."""
        cases = self.renewed_cases(values)
        programs = [p.with_measurements(c.runner) for p, c in zip(self.programs, cases, strict=True)]
        problem = CollocationProblem(self.unknowns, cases, programs, self.first_betas, self.criterion)
        if guess is not None:
            problem.with_guess(guess)
        return problem

    def record_of(self, case: Case) -> Record:
        assert isinstance(case.runner, Record)
        return case.runner

    def _broken(self, theta: np.ndarray, reason: str) -> CollocationEvaluation:
        n, empty = len(theta), np.zeros(0)
        return CollocationEvaluation(theta, empty, np.zeros((0, n)), empty, (), reason)


def state_bounds(program: SplineProgram) -> tuple[np.ndarray, np.ndarray]:
    """Declared bounds of states as bounds of their coefficients, between which a spline stays."""
    low, high = np.full(program.mesh.count, -np.inf), np.full(program.mesh.count, np.inf)
    model = program.record.stochastic
    for name, place in zip(model.names[: model.nx], program.mesh.places, strict=False):
        variable = model.structure.model.variables.get(name)
        if variable is not None and variable.bounds is not None:
            lower, upper = variable.bounds
            low[place] = -np.inf if lower is None else lower
            high[place] = np.inf if upper is None else upper
    return low, high
