"""Trajectories as states at the Radau points of elements, the model's equations holding there exactly.

**Whether elements are short enough.** On elements half as long the same path leaves residuals in the equations. One
step of Newton's method over the path takes them away (for the marginal likelihood the path is solved for) and changes
the gradient of the criterion by θ, from g to g′; the estimates would move by

    Δθ ≈ −C (g′ − g),        C their covariance,

to first order. Where that is more than a twentieth of a standard error the problem is solved on the shorter elements. A
fit whose estimates would still move has not converged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.skipped_bends import SkippedBump
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.direct.direct import DEFAULT_ELEMENTS, DirectProgram
from grisaille.collocation.direct.element_elimination import IndefiniteError
from grisaille.collocation.direct.element_mesh import RadauElements
from grisaille.collocation.direct.marginal import marginal
from grisaille.collocation.direct.path_newton import PathPoint, linearize, place
from grisaille.collocation.direct.refinement import interpolated, step_errors
from grisaille.collocation.direct.solution_statistics import inside_bounds
from grisaille.collocation.direct.state_bounds import state_limits, violated
from grisaille.collocation.direct.transcription import TranscriptionPoint
from grisaille.collocation.trajectory_newton import SearchEnd
from grisaille.errors import INDEPENDENT_OF_VALUES, GrisailleError
from grisaille.estimation.findings.mesh import MeshResult
from grisaille.estimators.collocation.element_solution import ElementSolution
from grisaille.estimators.collocation.skipped_features import describe_skipped_features, features_skipped_by_elements
from grisaille.estimators.collocation.strides import Strides
from grisaille.estimators.collocation.trajectory_basis import SETTLED_ESTIMATES, MeshJudgement, TrajectoryBasis
from grisaille.optimization.journal import Progress, SearchJournal

if TYPE_CHECKING:
    from grisaille.estimation.experiment_terms import ExperimentTerm
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimators.collocation.collocation_problem import CollocationProblem

MAX_REFINEMENTS = 4
"""Halvings, at most."""
MAX_HALVINGS_AT_GUESS = 3
"""How often elements are halved at the guess."""
STEP_ERROR_AT_GUESS = 0.02
"""Error of a step, relative to the size of its state, at the guess: elements short enough to search on."""
BOUND_TOLERANCE = 1e-6
"""Relative distance from a bound at which a state lies on it."""
PATH_DECREMENT = 1e-10
"""Decrement at which paths count as solved for."""
MAX_SIGNAL_RENEWALS = 40
"""How often signals are made again at the dead times that a descent has found, at most."""
Bounds = tuple[np.ndarray, np.ndarray]
CONSTRAINT_DRIFT = 1e-3
"""Change of hidden constraints along a path, relative to their terms, from which on a fit says so."""


class Elements(TrajectoryBasis):
    """All experiments as one program; ``reason``: why splines are not used, ``last``: where a search continues from."""

    is_exact: ClassVar[bool] = True

    def __init__(
        self,
        program: DirectProgram,
        grid: RadauElements = DEFAULT_ELEMENTS,
        reason: str = "",
        last: PathPoint | None = None,
    ) -> None:
        self.program, self.grid, self.reason, self.last = program, grid, reason, last

    @property
    def text(self) -> str:
        return f"direct collocation at Radau points, {f'because {self.reason}' if self.reason else 'as asked'}"

    @property
    def meshes(self) -> tuple[RadauElements, ...]:
        return (self.grid,) * len(self.program.records)

    @property
    def is_biased(self) -> bool:  # type: ignore[override]
        """Return whether an estimated unknown decides how strongly noise acts: it is biased as a level would be."""
        return bool(self.program.functions.gain_slots)

    def inside_levels(self, unknowns: Sequence[Unknown]) -> np.ndarray:
        index = self.program.slots.index[:, sorted(self.program.functions.level_slots)]
        return np.isin(np.arange(len(unknowns)), index[index >= 0])

    def follow(self, problem: CollocationProblem, theta: np.ndarray) -> ElementSolution | str:
        """Follow the best path for given unknowns; it may leave the bounds of states, because the marginal likelihood
        integrates over all paths.
        """
        program, bounded = self.program.at(theta), problem.criterion != "laplace"
        for start in (self.last, None) if self.last is not None else (None,):
            try:
                found = program.solve(theta, start, bounds=(theta, theta), grid=self.grid, bounded=bounded)
            except INDEPENDENT_OF_VALUES:
                raise
            except GrisailleError as error:
                return str(error)
            if found.converged:
                return self._kept(found, self.program.bounds, problem.levels)
        return f"the path did not converge after {found.iterations} iterations: {found.reason}"

    def keep(self, solution: ElementSolution, solved: bool) -> None:
        self.last = solution.at if solved else None

    def _kept(self, found: SearchEnd[PathPoint], bounds: Bounds, levels: np.ndarray) -> ElementSolution:
        inside = inside_bounds(found.theta, bounds, self.program.slots.sizes)
        solution = ElementSolution.of(found, inside=inside, levels=levels)
        self.keep(solution, found.converged)
        return solution

    def minimize(
        self, problem: CollocationProblem, theta: np.ndarray, wanted: np.ndarray, progress: Progress | None = None,
        near: bool = False,
    ) -> ElementSolution:  # fmt: skip
        """Minimise from the last path where one is stored."""
        lower, upper = problem.bounds
        bounds, journal = (np.where(wanted, lower, theta), np.where(wanted, upper, theta)), SearchJournal.of(progress)
        solved = self._with_dead_times if self.program.dead_times.size else self._solved
        found = solved(self.program, theta, bounds, journal)
        if found.converged:
            journal.accept(problem.unknowns, found.theta, found.objective)
        return self._kept(found, bounds, problem.levels)

    def _solved(
        self, program: DirectProgram, theta: np.ndarray, bounds: Bounds, journal: SearchJournal
    ) -> SearchEnd[PathPoint]:
        before = journal.evaluations
        found = program.solve(theta, self.last, bounds=bounds, grid=self.grid, better=journal.step)
        if not found.converged and self.last is not None:
            found = program.solve(theta, bounds=bounds, grid=self.grid, better=journal.step)
        journal.evaluations = before + max(found.iterations, 1)
        return found

    def _with_dead_times(
        self, program: DirectProgram, theta: np.ndarray, bounds: Bounds, journal: SearchJournal
    ) -> SearchEnd[PathPoint]:
        """Solve again with the signals of the dead times that were found, until these do not change.

        Between, signals are linear in dead times, which therefore move by a sampling interval at most (``Strides``).
        """
        moving, strides = program.dead_times, Strides.first(program.reach(theta))
        lower, upper = bounds
        for _ in range(MAX_SIGNAL_RENEWALS):
            low, high = lower.copy(), upper.copy()
            low[moving] = np.maximum(lower[moving], theta[moving] - strides.within)
            high[moving] = np.minimum(upper[moving], theta[moving] + strides.within)
            found = self._solved(program.at(theta), theta, (low, high), journal)
            strides = strides.after(found.theta[moving] - theta[moving])
            if not found.converged or strides.have_settled:
                return found
            theta, self.last = found.theta, found.at
        return replace(found, converged=False, reason="a dead time does not settle")

    def rounds(self, refine: int | str) -> int:
        return MAX_REFINEMENTS if isinstance(refine, str) else refine

    def prepared(self, problem: CollocationProblem) -> Elements:
        grid = self.grid
        program = self.program.at(problem.guess)
        for _ in range(MAX_HALVINGS_AT_GUESS):
            coarse = program.transcribe(grid)
            simulated = program.simulated(coarse, problem.guess)
            if not step_errors(coarse, simulated).max(initial=0.0) > STEP_ERROR_AT_GUESS:
                break
            grid = grid.halved()
        return Elements(self.program, grid, self.reason)

    def with_tested_residuals(
        self, problem: CollocationProblem, solution: ElementSolution, covariance: np.ndarray,
        before: np.ndarray | None, most: int,
    ) -> MeshJudgement:  # fmt: skip
        moves = self._moves(problem, solution, covariance)
        if not moves.max(initial=0.0) > SETTLED_ESTIMATES:
            return self._meeting_bumps(solution, most)
        worst = int(np.argmax(moves))
        said = (
            f"shorter ones would move {problem.unknowns[worst].name} by about {moves[worst]:.2g} standard errors"
            if np.isfinite(moves[worst])
            else "there is no path with positive curvature on shorter ones"
        )
        note = f"elements: {said}; use gr.Collocation(refine={2 * max(most, MAX_REFINEMENTS // 2)})."
        return MeshJudgement(False, note, f"elements are too long: {said}")

    def _meeting_bumps(self, solution: ElementSolution, most: int) -> MeshJudgement:
        """Return whether elements meet the bumps on their way; those that they could not meet are listed in
        ``notes``.
        """
        found = self._passed(solution) if most else []
        is_enough = not any(b.more <= 2**most for _, b in found)
        return MeshJudgement(is_enough, "" if is_enough else self._passed_notes(found)[0])

    def _passed(self, solution: ElementSolution) -> list[tuple[str, SkippedBump]]:
        return features_skipped_by_elements(solution.at, solution.curvature_of_path)

    def _passed_notes(self, found: Sequence[tuple[str, SkippedBump]]) -> list[str]:
        return describe_skipped_features(found, "elements", "gr.KalmanML() cuts its steps there; or make it wider")

    def _moves(self, problem: CollocationProblem, solution: ElementSolution, covariance: np.ndarray) -> np.ndarray:
        """Return |Δθ| on elements half as long, in standard errors; zero without a prediction, infinite for no path."""
        known = np.where(np.isfinite(covariance), covariance, 0.0)
        if problem.criterion != "laplace":
            known = np.where(problem.levels[:, None] | problem.levels, 0.0, known)
        errors = np.sqrt(np.clip(np.diag(known), 0.0, None))
        if not solution.converged or not errors.any() or self._is_bounded(solution):
            return np.zeros(len(errors))
        finer = self.program.at(solution.theta).transcribe(self.grid.halved())
        start = place(finer, interpolated(solution.at.program, finer, solution.at.point))
        gradients = _of_likelihood if problem.criterion == "laplace" else _of_criterion
        change = gradients(solution.at, start)
        if change is None:
            return np.where(errors > 0, np.inf, 0.0)
        moved = np.abs(known @ change)
        return np.asarray(np.where(errors > 0, moved / np.where(errors > 0, errors, 1.0), 0.0))

    def _is_bounded(self, solution: ElementSolution) -> bool:
        """Return whether bounds of states decide the path, which then does not follow θ as the gradients say."""
        if not solution.kept_limits:
            return False
        low, high = self.program.limits
        with np.errstate(invalid="ignore"):  # no bound is touched that is infinite
            inner = [b + side * BOUND_TOLERANCE * np.maximum(1.0, np.abs(b)) for b, side in ((low, 1), (high, -1))]
        return bool(violated(solution.at, (inner[0], inner[1])).any())

    def finer(self, solution: ElementSolution) -> Elements:
        fine = self.program.at(solution.theta).transcribe(self.grid.halved())
        start = interpolated(solution.at.program, fine, solution.at.point)
        return Elements(self.program, self.grid.halved(), self.reason, place(fine, start))

    def renewed(self, cases: Sequence[ExperimentTerm]) -> Elements:
        return Elements(self.program.with_experiments([c.trial for c in cases]), self.grid, self.reason)

    def restored(self, meshes: Sequence[Discretisation | None], fit: Fitted) -> Elements:
        path = TranscriptionPoint(**{f.name: fit.kept[f"path_{f.name}"] for f in fields(TranscriptionPoint)})
        known = fit.estimate.mesh
        older = RadauElements(1 if known is None else max(known.pieces, 1))
        grid = meshes[0] if isinstance(meshes[0], RadauElements) else older
        # a file may have kept no algebraic unknowns after jumps of inputs
        is_whole = path.inner.shape[1] == self.program.functions.element.sizes.inner
        last = place(self.program.at(path.theta).transcribe(grid), path) if is_whole else None
        return Elements(self.program, grid, self.reason, last)

    def notes(self, solution: ElementSolution) -> list[str]:
        passed = self._passed_notes(self._passed(solution))
        return [*self._drift(solution.at), *self._beyond_bounds(solution.at), *passed]

    def _drift(self, at: PathPoint) -> list[str]:
        """Return whether hidden constraints, posed at the first point only, still hold at the end."""
        model, worst = self.program.model, 0.0
        for r in range(len(at.program.records) if model.structure.system.nc else 0):
            values = at.program.look("constraints", at.point, r)[0]
            states = at.program.seen_points(at.point, r)[:, : model.n]
            worst = max(worst, float(np.abs(values).max(initial=0.0)) / (1.0 + np.abs(states).max(initial=0.0)))
        if worst < CONSTRAINT_DRIFT:
            return []
        return [
            f"elements: hidden constraints drift by {worst:.1e} along the path; shorter elements are needed (refine=2)."
        ]

    def _beyond_bounds(self, at: PathPoint) -> list[str]:
        model, limits = self.program.model, self.program.options.state_bounds
        named = [*model.state_names, *model.structure.system.implicit_names]
        known = {n: b for n, b in limits.items() if n in named}
        beyond = violated(at, state_limits(model, known)) if known else ()
        broken = [n for n in known if beyond[named.index(n)]]
        if not broken:
            return []
        return [
            f"bounds: the path leaves the bounds of {', '.join(broken)}, which the marginal likelihood "
            f"(criterion='laplace', debias=True) of direct collocation does not keep; criterion='amle' does."
        ]

    def mesh(self, solution: ElementSolution) -> MeshResult:
        return MeshResult(elements=sum(len(m.lengths) for m in solution.at.program.meshes), pieces=self.grid.pieces)


def _of_criterion(at: PathPoint, finer: PathPoint) -> np.ndarray | None:
    """Return g′ − g, paths and θ together."""
    try:
        return np.asarray(linearize(finer, exact=False).gradient - linearize(at, exact=False).gradient)
    except (IndefiniteError, np.linalg.LinAlgError):
        return None


def _of_likelihood(at: PathPoint, finer: PathPoint) -> np.ndarray | None:
    """Return g′ of −log L, whose g is zero where no bound decides."""
    found = marginal(finer, PATH_DECREMENT)
    return None if found is None else found.slope
