"""Trajectories as splines: solved with the arrow structure of their curvature, with their predictions of samples and
states.

A joint descent first. With nearly no disturbance the minimum lies in a narrow curved valley, which such a descent
follows in short steps: then trajectories are solved for at each step of a search over the unknowns alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import casadi as ca
import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.skipped_bends import SkippedBump
from grisaille.bound_experiment.unknown import Unknown, describe_start
from grisaille.collocation import arrow_descent, banded
from grisaille.collocation.arrow_descent import ArrowQuadratic, DescentTask
from grisaille.collocation.knots import halve_intervals
from grisaille.collocation.spline_mesh import SplineKnots, SplineMesh
from grisaille.collocation.spline_program import SplineProgram
from grisaille.collocation.splines import spline_of
from grisaille.collocation.trajectory_newton import SearchEnd
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimation.findings.mesh import MeshResult
from grisaille.estimation.prior_terms import prior_formula
from grisaille.estimators.collocation.skipped_features import describe_skipped_features, features_skipped_by_cells
from grisaille.estimators.collocation.spline_solution import TRAJECTORY_GAIN, SplineSolution
from grisaille.estimators.collocation.trajectory_basis import (
    SETTLED_ESTIMATES,
    UNSEEN_DISTANCE,
    MeshJudgement,
    TrajectoryBasis,
)
from grisaille.optimization import scoring
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.optimization.search import Search

if TYPE_CHECKING:
    from grisaille.estimation.experiment_terms import ExperimentTerm
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimators.collocation.collocation import Collocation
    from grisaille.estimators.collocation.collocation_problem import CollocationProblem

MAX_PREDICTED_MOVE = 0.05
"""A change of the scaled unknowns up to which trajectories are moved along with them."""
MAX_JOINT_STEPS = 60
"""Steps over unknowns and trajectories together after which the trajectories are solved for at each step instead."""
SETTLED_NOISE_CHANGE = 1e-6
"""Relative change of noise formulas below which they count as settled."""
NEGLIGIBLE, COARSE = 3e-3, 0.1
"""Of the criterion, a negative logarithm of a density: bends that move estimates by small parts of their errors, and
those that are refined further, and mentioned where they are not."""
MESH_ERROR_AT_GUESS = 0.05
"""Of the criterion, relative, at the guess: a mesh that is good enough to search on."""
BEFORE, AFTER = 6, 10
"""Rounds of refinement at the guess and at the estimates, at most."""
REFINED_SHARE = 0.9
"""Of what bends inside cells: the cells that hold so much of it are halved."""


class Splines(TrajectoryBasis):
    """One spline program per experiment; ``method``: options of ``gr.Collocation``."""

    is_exact: ClassVar[bool] = False

    def __init__(self, programs: Sequence[SplineProgram], betas: Sequence[np.ndarray], method: Collocation) -> None:
        self.programs, self.method = tuple(programs), method
        self.betas = self.first_betas = list(betas)
        self.solved_before = False
        self._last: SplineSolution | None = None

    @property
    def text(self) -> str:
        orders = sorted({s.order for p in self.programs for s in p.mesh.splines})
        return f"splines of order {' and '.join(map(str, orders))}, because white noise disturbs every state"

    @property
    def placed(self) -> bool:
        """Return whether knots were placed automatically; those of the user's own are added to, not judged."""
        return isinstance(self.method.knots, str)

    @property
    def meshes(self) -> tuple[SplineKnots, ...]:
        return tuple(p.knots for p in self.programs)

    def inside_levels(self, unknowns: Sequence[Unknown]) -> np.ndarray:
        inside = set().union(*(p.record.level_names for p in self.programs))
        return np.array([u.kind == "parameter" and u.target in inside for u in unknowns], dtype=bool)

    def task(self, problem: CollocationProblem) -> DescentTask:
        """Return unknowns and trajectories as a task of the descent."""
        lower, upper = problem.inner_bounds()
        limits = [p.limits for p in self.programs]
        limits = limits if np.isfinite(np.concatenate([b for pair in limits for b in pair])).any() else []
        scaled = copy.copy(problem)  # the scale of unknowns follows their guess: a task keeps its own
        return DescentTask(
            self.programs, [c.unknowns for c in problem.cases], scaled.outer, scaled.inner, scaled.slopes, lower,
            upper, scaled.prior, prior_formula(problem.unknowns), problem.criterion == "smoothing", limits,
        )  # fmt: skip

    def follow(self, problem: CollocationProblem, theta: np.ndarray) -> SplineSolution | str:
        task, xi = self.task(problem), problem.inner(theta)
        nothing = np.zeros(len(theta), dtype=bool)
        tries = ((self._predicted(problem, theta), True), (self.betas, False), (self.first_betas, False))
        for start, near in tries if self.solved_before else tries[1:]:
            try:
                found = arrow_descent.minimize(task, xi, start, wanted=nothing, near=near, tolerance=TRAJECTORY_GAIN)
            except INDEPENDENT_OF_VALUES:
                raise
            except GrisailleError as error:
                return str(error)
            if found.converged:
                solution = SplineSolution.of(found, placed=self.placed)
                self.keep(solution, True)
                self._last = solution
                return solution
        return f"the trajectories could not be solved for: {found.reason}"

    def keep(self, solution: SplineSolution, solved: bool) -> None:
        self.betas, self._last, self.solved_before = solution.at.betas, None, solved

    def _predicted(self, problem: CollocationProblem, theta: np.ndarray) -> list[np.ndarray]:
        """Return the last trajectories, extrapolated with the change of the unknowns."""
        last = self._last
        if (
            last is None
            or np.abs(problem.inner(theta) - problem.inner(last.theta)).max(initial=0.0) > MAX_PREDICTED_MOVE
        ):
            return self.betas
        try:
            moved = last.implicit_responses if problem.criterion == "smoothing" else last.responses
        except banded.NotPositiveDefinite:
            return self.betas
        return [b - V @ (theta - last.theta) for b, V in zip(self.betas, moved, strict=True)]

    def minimize(
        self, problem: CollocationProblem, theta: np.ndarray, wanted: np.ndarray, progress: Progress | None = None,
        near: bool = False,
    ) -> SplineSolution:  # fmt: skip
        """Return the joint minimum, with noise formulas that contain states evaluated on it until they stay."""
        journal = SearchJournal.of(progress)
        found = self._joint(problem, theta, wanted, journal, near)
        for _ in range(0 if near else 30):
            q = found.at
            frozen = [p.refrozen(b, g) for p, b, g in zip(self.programs, q.betas, q.given, strict=True)]
            self.programs = tuple(program for program, _ in frozen)
            if max(change for _, change in frozen) < SETTLED_NOISE_CHANGE:
                break
            found = self._joint(problem, q.theta, wanted, journal, near)
        return self._refused(found, problem, theta)

    def _refused(self, found: SplineSolution, problem: CollocationProblem, theta: np.ndarray) -> SplineSolution:
        """Return trajectories that were not found, or that nothing determines."""
        if not np.isfinite(found.objective):
            there = describe_start([u.starting_from(v) for u, v in zip(problem.unknowns, theta, strict=True)])
            raise EstimationError(
                f"The trajectories cannot be solved for at {there}: {found.reason}. Give another guess=, or start "
                f"values nearer to the data."
            )
        try:
            free = any(f.singular for f in found.factors)
        except banded.NotPositiveDefinite:
            free = True
        if free:
            raise EstimationError(
                "The trajectories are not determined: the data and the model leave some of their coefficients free. "
                "Take more quadrature points (quadrature='gauss'), fewer knots, or fix a start."
            )
        return found

    def _joint(
        self, problem: CollocationProblem, theta: np.ndarray, wanted: np.ndarray, journal: SearchJournal, near: bool
    ) -> SplineSolution:
        """Return unknowns and trajectories together; where that is slow, trajectories solved for at each step."""
        task, xi, most = self.task(problem), problem.inner(theta), self.method.max_iterations
        before = journal.evaluations
        if self.method.optimizer == "ipopt":
            from grisaille.collocation.spline_ipopt import minimize

            solved = minimize(
                task, xi, self.betas, wanted=wanted, tolerance=self.method.tolerance, most=most, better=journal.step
            )
        else:
            solved = arrow_descent.minimize(
                task, xi, self.betas, wanted=wanted, near=near or self.solved_before,
                tolerance=self.method.tolerance, most=min(MAX_JOINT_STEPS, most), progress=journal, better=journal.step,
            )  # fmt: skip
        found = SplineSolution.of(solved, placed=self.placed)
        journal.evaluations = before + solved.iterations
        journal.trace += solved.trace
        self.keep(found, found.converged)
        return found if found.converged else self._profiled(problem, theta, wanted, found, journal)

    def _profiled(
        self, problem: CollocationProblem, theta: np.ndarray, wanted: np.ndarray, found: SplineSolution,
        journal: SearchJournal,
    ) -> SplineSolution:  # fmt: skip
        """Minimise from the guess and from where the joint descent stopped; return the better of the two."""
        best = found
        for start in (found.theta, theta):
            held = np.where(wanted, start, theta)
            inner = problem.holding(held, ~wanted)
            try:
                search = Search(inner, journal, journal.evaluations + self.method.max_iterations)
                outcome = scoring.minimize(search, tolerance=self.method.tolerance)
            except EstimationError:
                continue
            at: Any = outcome.evaluation
            if outcome.stopped_well and at.objective <= best.objective:
                ended = SearchEnd(at.solution.at, True, outcome.reason, 0)
                best = self.polished(problem, wanted, SplineSolution.of(ended, placed=self.placed))
                break
        self.keep(best, best.converged)
        return best

    def polished(self, problem: CollocationProblem, wanted: np.ndarray, found: SplineSolution) -> SplineSolution:
        """Return the last digits, by Newton's method over everything."""
        q = found.at
        last = arrow_descent.minimize(
            self.task(problem), problem.inner(q.theta), q.betas, wanted=wanted, near=True,
            tolerance=self.method.tolerance, most=20,
        )  # fmt: skip
        return SplineSolution.of(last, placed=self.placed) if last.converged and last.at.cost <= q.cost else found

    def rounds(self, refine: int | str) -> int:
        if not isinstance(refine, str):
            return refine
        return AFTER if self.placed and self.method.quadrature == "gauss" else 0

    def prepared(self, problem: CollocationProblem) -> Splines:
        splines = self
        for _ in range(BEFORE if self.placed else 0):
            found = splines.follow(problem, problem.guess)
            if isinstance(found, str) or _left_over(found.at) <= MESH_ERROR_AT_GUESS * (1 + found.objective):
                break
            splines = splines.finer(found)
        return splines

    def with_tested_residuals(
        self, problem: CollocationProblem, solution: SplineSolution, covariance: np.ndarray,
        before: np.ndarray | None, most: int,
    ) -> MeshJudgement:  # fmt: skip
        left, is_still = _left_over(solution.at), False
        if before is not None:
            errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
            moved = np.abs(solution.theta - before) / np.where(errors > 0, errors, np.inf)
            is_still = moved.max(initial=0.0) < SETTLED_ESTIMATES and (not self.placed or left < COARSE)
        if is_still or left <= COARSE:
            # what no point of the quadrature meets does not bend
            passed = features_skipped_by_cells(solution) if self.placed and most else []
            is_met = not any(b.more <= 2**most for _, b in passed)
            return MeshJudgement(
                (is_still or left <= NEGLIGIBLE) and is_met, "" if is_met else self._passed_notes(passed)[0]
            )
        further = f"gr.Collocation(refine={max(2 * most, 10)})"
        advice = f"use {further}, or knots=times of your own"
        advice = advice if self.placed else f"use knots='auto', more of them, or {further}"
        note = f"knots: about {left:.2g} of the criterion is due to knots that are too far apart; {advice}."
        counts = self.placed and before is not None
        return MeshJudgement(False, note, "estimates still move as knots are added" if counts else "")

    def finer(self, solution: SplineSolution) -> Splines:
        """Return splines with more knots in the cells with the largest share of the criterion."""
        at, errors = solution.at, _errors_of(solution.at)
        every = np.sort(np.concatenate(errors))[::-1]
        least = every[int(np.searchsorted(np.cumsum(every), REFINED_SHARE * every.sum()))]
        made = []
        passed = features_skipped_by_cells(solution)
        for k, (program, beta, error) in enumerate(zip(at.task.programs, at.betas, errors, strict=True)):
            where = program.cells.t.reshape(len(error), -1).mean(axis=1)[error >= least]
            where = np.union1d(where, [bump.time for j, bump in passed if j == k])
            made.append(program.moved_to(halve_intervals(program.mesh, where), beta))
        programs, betas = zip(*made, strict=True)
        return Splines(programs, betas, self.method)

    def distances(self, problem: CollocationProblem, scales: Sequence[int]) -> np.ndarray:
        """Return distances as numbers of integrations."""
        models = list({id(p.record.stochastic): p.record.stochastic for p in self.programs}.values())
        targets = [problem.unknowns[k].target for k in scales]
        found = [[min(_distance(m, t, o) for m in models) for o in problem.outputs] for t in targets]
        return np.array(found, dtype=float).reshape(len(scales), len(problem.outputs))

    def renewed(self, cases: Sequence[ExperimentTerm]) -> Splines:
        programs = [p.with_experiment(c.trial) for p, c in zip(self.programs, cases, strict=True)]
        return Splines(programs, self.first_betas, self.method)

    def restored(self, meshes: Sequence[Discretisation | None], fit: Fitted) -> Splines:
        programs = [p.on(d if isinstance(d, SplineKnots) else _older(p, k, fit.kept))
                    for k, (p, d) in enumerate(zip(self.programs, meshes, strict=True))]  # fmt: skip
        return Splines(programs, [fit.kept[f"coefficients_{k}"] for k in range(len(programs))], self.method)

    def mesh(self, solution: SplineSolution) -> MeshResult:
        return MeshResult(
            knots=sum(len(p.mesh.bounds) for p in self.programs),
            coefficients=sum(p.mesh.count for p in self.programs),
        )

    def notes(self, solution: SplineSolution) -> list[str]:
        return self._passed_notes(features_skipped_by_cells(solution))

    def _passed_notes(self, passed: Sequence[tuple[int, SkippedBump]]) -> list[str]:
        named = [(self.programs[k].record.name, bump) for k, bump in passed]
        return describe_skipped_features(named, "knots", "gr.KalmanML() cuts its steps there; or make it wider")


def _errors_of(q: ArrowQuadratic) -> list[np.ndarray]:
    return [program.cell_errors(part) for program, part in zip(q.task.programs, q.parts, strict=True)]


def _left_over(q: ArrowQuadratic) -> float:
    """Return the part of the criterion that more knots would take away, roughly."""
    return float(sum(errors.sum() for errors in _errors_of(q)))


def _older(program: SplineProgram, k: int, kept: Mapping[str, np.ndarray]) -> SplineKnots:
    """Read the knots of experiment k from a file that stored them as arrays."""
    splines = tuple(spline_of(kept[f"knots_{k}_{i}"]) for i in range(len(program.mesh.splines)))
    return SplineKnots.on(SplineMesh(splines), program.knots.quadrature, kept[f"noise_states_{k}"])


def _distance(model: StochasticModel, disturbance: str, output: str) -> float:
    """Return how many integrations lie between a disturbance's noise and an output."""
    if output not in model.outputs or f"scale({disturbance})" not in model.quantities:
        return UNSEEN_DISTANCE
    level = model.q[model.quantities.index(f"scale({disturbance})")]
    driven = {
        i
        for i in range(model.n)
        if ca.depends_on(ca.densify(ca.vertcat(ca.vec(model.noise[i, :]), model.drift[i])), level)
    }
    reach = np.array(ca.DM(ca.jacobian_sparsity(model.drift, model.X)).full()) != 0
    seen = set(ca.jacobian_sparsity(model.measured[model.outputs.index(output)], model.X).get_col())
    for steps in range(model.n + 1):
        if driven & seen:
            return float(steps)
        driven |= {i for i in range(model.n) if any(reach[i, j] for j in driven)}
    return UNSEEN_DISTANCE
