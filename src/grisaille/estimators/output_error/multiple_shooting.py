"""Multiple shooting: the record is cut into pieces, the states at the cuts are unknowns, continuity is a constraint.

    minimise ½ Σ |r_k(θ, s_k)|²   subject to   x(t_{k+1}; θ, s_k) = s_{k+1}

Each piece is short, so an unstable model cannot run away before the data hold it. Solved by a Gauss–Newton iteration
that linearises both and steps inside the constraints' null space, with a line search on ½|r|² + μ|c|₁. At the solution
the pieces join, and the covariance is that of the joined problem, Z (ZᵀJᵀJZ)⁻¹ Zᵀ with Z a basis of the null space.

Reference: H. G. Bock, Recent advances in parameter identification techniques for ODE (1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np

from grisaille.bound_experiment import EstimatedQuantities
from grisaille.bound_experiment.unknown import describe_start
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.numerics.quadratic import SquaresQuadratic
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.search import LIMIT_STATUS, Search, SearchOutcome
from grisaille.simulation.runner import Prediction, Runner
from grisaille.simulation.simulation_steps import SimulationSteps

Arrays = Sequence[np.ndarray]
MAX_ITERATIONS = 100
JOINT_STATUS = "the step vanished and the pieces join"
MERIT_ROUNDING = 1e-12
"""Of the merit function: smaller gains are none."""
MAX_JOINED_GAP = 1e-9
"""Pieces are joined when the gaps are below this part of the states' size."""


@dataclass(frozen=True)
class ShootingInterval:
    """A stretch of one experiment between two cuts."""

    place: int
    """Among all pieces."""
    case: int
    runner: Runner
    first: int
    """Grid index of its first point."""
    last: int
    nodes: slice | None
    """Where the states at its beginning stand among the node unknowns; None for the first piece."""


@dataclass(frozen=True)
class ShootingResult:
    """All pieces at one point: residuals and gaps with their derivatives by (θ, nodes)."""

    residuals: np.ndarray
    jacobian: np.ndarray
    gaps: np.ndarray
    """In units of ``sizes``."""
    slopes: np.ndarray
    sizes: np.ndarray
    """Of the state that each gap belongs to, along its record."""
    evaluation: Evaluation

    @property
    def completed(self) -> bool:
        return self.evaluation.completed


class MultipleShooting:
    """A problem cut into pieces; it gains the formulas of σ that are frozen at the first shot."""

    def __init__(self, problem: EstimationProblem, pieces: int, journal: SearchJournal | None = None) -> None:
        self.problem, self.journal = problem, journal or SearchJournal()
        self.states: tuple[str, ...] = ()
        self.pieces: list[ShootingInterval] = []
        self.size = 0
        self.steps: dict[int, SimulationSteps] = {}
        """Of the pieces, by their place, from the first run of each that completes."""
        for k, case in enumerate(problem.cases):
            self._cut(k, case, pieces)

    def _cut(self, k: int, case: ExperimentTerm, count: int) -> None:
        runner = case.runner
        if not isinstance(runner, Runner):
            raise EstimationError(f"Experiment '{case.name}' is static: there is nothing to shoot at.")
        trial, system = case.trial, case.trial.structure.system
        if system.nc or any(n.startswith("der(") for n in system.state_names):
            raise EstimationError(
                f"shooting='multiple' needs independent first-order states, but {trial.flat.name} keeps "
                f"hidden constraints or higher derivatives; use shooting='single'."
            )
        if system.initial_texts:
            raise EstimationError(
                f"shooting='multiple' begins anew inside the record, where '{system.initial_texts[0]}' does not hold; "
                f"use shooting='single'."
            )
        self.states = system.state_names
        cuts = np.unique(np.linspace(0, len(case.grid) - 1, count + 1).round().astype(int))
        for piece, (a, b) in enumerate(pairwise(cuts)):
            parameters = tuple(e for e in trial.moves.entries if e[0] != "start")
            moves = EstimatedQuantities((*parameters, *(("start", n) for n in self.states))) if piece else trial.moves
            part = trial.part(int(a), int(b), moves, demands={} if piece else trial.demands)
            made = Runner(part, (*case.outputs, *self.states), rtol=runner.rtol)
            nodes = slice(self.size, self.size + len(self.states)) if piece else None
            self.size += len(self.states) if piece else 0
            self.pieces.append(ShootingInterval(len(self.pieces), k, made, int(a), int(b), nodes))

    def _is_start(self, j: int) -> bool:
        return self.problem.unknowns[j].kind == "start"

    def first_nodes(self, theta: np.ndarray) -> np.ndarray:
        """Return node states to begin with: those of a fit that was given as a guess, measured values where an output
        is a state, else the simulated course.
        """
        nodes = np.zeros(self.size)
        for piece in self.pieces:
            case = self.problem.cases[piece.case]
            if piece.nodes is None:
                prediction = self._predict(piece, theta, np.zeros(0), sensitive=False)
                course = prediction.y[-1, len(case.outputs) :] if prediction.completed else np.zeros(len(self.states))
                continue
            guess = np.where(np.isfinite(course), course, 0.0)
            for s in case.samples:
                column = self._state_of(case, s.output)
                near = int(np.argmin(np.abs(s.rows - piece.first)))
                if column is not None:
                    guess[column] = s.values[near]
            guess = self._as_in_courses(case, piece, self._slopes_from_data(case, piece, guess))
            nodes[piece.nodes] = guess
            prediction = self._predict(piece, theta, guess, sensitive=False)
            course = prediction.y[-1, len(case.outputs) :] if prediction.completed else guess
        return nodes

    def _as_in_courses(self, case: ExperimentTerm, piece: ShootingInterval, guess: np.ndarray) -> np.ndarray:
        times, values = self.problem.courses.get(case.name, (np.zeros(0), {}))
        for k, state in enumerate(self.states):
            if state in values:
                guess[k] = np.interp(case.grid[piece.first], times, values[state])
        return guess

    def _state_of(self, case: ExperimentTerm, output: str) -> int | None:
        """Return the state that an output measures directly."""
        system = self.pieces[0].runner.structure.system
        names = list(system.observed_names)
        formula = system.observed[names.index(output)]
        for k, state in enumerate(self.states):
            if str(formula) == str(system.observed[names.index(state)]):
                return k
        return None

    @cached_property
    def _rates(self) -> list[str]:
        """Return the derivatives of the states without disturbances, as texts."""
        system = self.pieces[0].runner.structure.system
        quiet = [system.u[k] if s.kind != "disturbance" else ca.SX(0) for k, s in enumerate(system.signals)]
        rates = ca.substitute(system.rhs, system.u, ca.vertcat(*quiet)) if quiet else system.rhs
        return [str(ca.simplify(rates[k])) for k in range(system.nx)]

    def _slopes_from_data(self, case: ExperimentTerm, piece: ShootingInterval, guess: np.ndarray) -> np.ndarray:
        """Return a node's guess with slopes of the data for states that are the rate of a measured one."""
        system, texts = piece.runner.structure.system, self._rates
        for s in case.samples:
            column = self._state_of(case, s.output)
            if column is None or len(s.rows) < 3:
                continue
            for k in range(system.nx):
                if texts[column] == str(system.x[k]):
                    near = np.argsort(np.abs(s.rows - piece.first))[:5]
                    guess[k] = np.polyfit(case.grid[s.rows[near]], s.values[near], 1)[0]
        return guess

    def _predict(self, piece: ShootingInterval, theta: np.ndarray, nodes: np.ndarray, *, sensitive: bool) -> Prediction:
        case = self.problem.cases[piece.case]
        own = case.own(theta)
        if piece.nodes is not None:
            own = np.concatenate([theta[[j for j in case.unknowns if not self._is_start(j)]], nodes])
        try:
            steps = self.steps.get(piece.place) or piece.runner.discretise(own)
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return piece.runner.failed(str(error), sensitive)
        found = piece.runner.predict(own, steps, sensitive=sensitive)
        if found.completed:
            self.steps[piece.place] = steps
        return found

    def shoot(self, theta: np.ndarray, nodes: np.ndarray) -> ShootingResult:
        """Simulate every piece at one point."""
        shot = self._shoot(theta, nodes)
        self.journal.count(shot.evaluation)
        return shot

    def _shoot(self, theta: np.ndarray, nodes: np.ndarray) -> ShootingResult:
        problem, n = self.problem, len(self.problem.unknowns)
        courses: list[np.ndarray] = [np.zeros((len(c.grid), len(c.outputs))) for c in problem.cases]
        slopes = [np.zeros((len(c.grid), len(c.outputs), n + self.size)) for c in problem.cases]
        gaps, gap_slopes, gap_sizes = [], [], []
        sizes = self._sizes(nodes)
        for k, piece in enumerate(self.pieces):
            case = problem.cases[piece.case]
            own = nodes[piece.nodes] if piece.nodes is not None else np.zeros(0)
            prediction = self._predict(piece, theta, own, sensitive=True)
            if not prediction.completed:
                return self._failed(theta, prediction.failure)
            columns = self._columns(case, piece)
            width = len(case.outputs)
            rows = slice(piece.first, piece.last + 1)
            courses[piece.case][rows] = prediction.y[:, :width]
            slopes[piece.case][rows] = 0.0
            slopes[piece.case][rows][:, :, columns] = prediction.sy[:, :width]
            following = self.pieces[k + 1] if k + 1 < len(self.pieces) else None
            if following is not None and following.nodes is not None:
                size = sizes[piece.case]
                if not size.all():
                    course = np.abs(prediction.y[:, width:]).max(axis=0)
                    size = np.where(size > 0, size, np.where(course > 0, course, 1.0))
                gap_sizes.append(size)
                gaps.append((prediction.y[-1, width:] - nodes[following.nodes]) / size)
                row = np.zeros((len(self.states), n + self.size))
                row[:, columns] = prediction.sy[-1, width:]
                row[:, n + np.arange(self.size)[following.nodes]] -= np.eye(len(self.states))
                gap_slopes.append(row / size[:, None])
        return self._assemble(theta, courses, slopes, gaps, gap_slopes, gap_sizes)

    def _sizes(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Return the largest value of each state at the nodes of each experiment."""
        sizes = [np.zeros(len(self.states)) for _ in self.problem.cases]
        for piece in self.pieces:
            if piece.nodes is not None:
                sizes[piece.case] = np.maximum(sizes[piece.case], np.abs(nodes[piece.nodes]))
        return sizes

    def _columns(self, case: ExperimentTerm, piece: ShootingInterval) -> np.ndarray:
        """Return the columns of the derivatives of a piece among (θ, nodes)."""
        n = len(self.problem.unknowns)
        if piece.nodes is None:
            return np.array(case.unknowns, dtype=int)
        parameters = [j for j in case.unknowns if not self._is_start(j)]
        return np.concatenate([np.array(parameters, dtype=int), n + np.arange(self.size)[piece.nodes]])

    def _assemble(
        self, theta: np.ndarray, courses: Arrays, slopes: Arrays, gaps: Arrays, gap_slopes: Arrays, sizes: Arrays
    ) -> ShootingResult:
        problem = self.problem
        errors, jacobians, scales = [], [], []
        predictions = tuple(Prediction(y, np.zeros((0, 0, 0))) for y in courses)
        named = {c.name: p for c, p in zip(problem.cases, predictions, strict=True)}
        self.problem = problem = problem.freeze(named, theta)
        for k, case in enumerate(problem.cases):
            for s in case.samples:
                column = case.column(s.output)
                errors.append(s.values - courses[k][s.rows, column])
                jacobians.append(-slopes[k][s.rows, column])
                scales.append(problem.deviations(case, s.output, s.rows, predictions[k], theta))
        e, factor = np.concatenate(errors), problem.weights / np.concatenate(scales)
        prior = problem.prior(theta)
        r = np.concatenate([factor * e, prior.residuals])
        width = len(problem.unknowns) + self.size
        padded = np.hstack([prior.slopes, np.zeros((len(prior.slopes), self.size))])
        J = np.vstack([np.concatenate(jacobians) * factor[:, None], padded])
        c = np.concatenate(gaps) if gaps else np.zeros(0)
        C = np.vstack(gap_slopes) if gap_slopes else np.zeros((0, width))
        units = np.concatenate(sizes) if sizes else np.zeros(0)
        return ShootingResult(r, J, c, C, units, Evaluation(theta, r, J[:, : len(theta)], e, predictions, prior=prior))

    def _failed(self, theta: np.ndarray, reason: str) -> ShootingResult:
        empty = np.zeros(0)
        return ShootingResult(
            empty, empty, empty, empty, empty, Evaluation(theta, empty, np.zeros((0, len(theta))), empty, (), reason)
        )


def solve(shooting: MultipleShooting, search: Search[Evaluation], tolerance: float) -> SearchOutcome[Evaluation]:
    """Minimise over θ and the node states; the Jacobian of the evaluation is that of the constrained problem."""
    problem, journal = shooting.problem, search.journal
    n = len(problem.unknowns)
    lower, upper = problem.bounds
    v = np.concatenate([search.guess, shooting.first_nodes(search.guess)])
    now = shooting.shoot(v[:n], v[n:])
    if not now.completed:
        there = describe_start(search.unknowns)
        raise EstimationError(f"The pieces cannot be simulated at {there}: {now.evaluation.failure}")
    search.learn_sizes(now.evaluation)
    norms = np.linalg.norm(now.jacobian, axis=0)
    errors = 1 / np.where(norms > 0, norms, 1.0)
    sizes = np.array([replace(u, reach=float(e)).size for u, e in zip(search.unknowns, errors[:n], strict=True)])
    weight = 1.0
    for _ in range(MAX_ITERATIONS):
        # of now: nodes may have begun where a simulation ran away
        scale = np.concatenate([sizes, np.maximum(np.abs(v[n:]), errors[n:])])
        journal.accept(search.unknowns, v[:n], now.evaluation.objective, gap=_gap(now))
        seen = _seen(now, np.minimum(sizes, np.abs(search.slopes(v[:n]))))
        dead = ~search.alive(seen)
        step, multipliers, held = _bounded_step(now, scale, v, lower, upper, dead)
        needed = 2 * float(np.abs(multipliers).max(initial=0.0))
        weight = max(needed, (weight + needed) / 2)
        if np.abs(step / scale).max() < max(tolerance, 1e-11) and _gap(now) < MAX_JOINED_GAP:
            return _joined(now, dead, True, JOINT_STATUS, held)
        if not search.left:
            return _joined(now, dead, False, LIMIT_STATUS, held)
        v, now, moved = _search(shooting, v, step, now, weight, lower, upper)
        if not moved:
            well = _gap(now) < MAX_JOINED_GAP and np.abs(step / scale).max() < 1e-6
            return _joined(now, dead, well, JOINT_STATUS if well else "no step lowers the merit function", held)
    return _joined(now, dead, False, f"{MAX_ITERATIONS} iterations were used up", held)


def _seen(shot: ShootingResult, sizes: np.ndarray) -> np.ndarray:
    """Return how strongly residuals depend on each unknown, the nodes following."""
    J = _along_pieces(shot, len(sizes), np.ones(len(sizes), dtype=bool))
    return SquaresQuadratic(J * sizes, shot.residuals, sizes).seen


def _bounded_step(
    shot: ShootingResult, scale: np.ndarray, v: np.ndarray, lower: np.ndarray, upper: np.ndarray, dead: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the constrained step with unknowns held that are dead or would leave a bound; also which these are."""
    n = len(lower)
    held = np.concatenate([dead, np.zeros(len(v) - n, dtype=bool)])
    while True:
        step, multipliers = _constrained_step(shot, scale, held)
        leaving = ((v[:n] <= lower) & (step[:n] < 0)) | ((v[:n] >= upper) & (step[:n] > 0))
        if not (leaving & ~held[:n]).any():
            return step, multipliers, held
        held[:n] |= leaving


def _with_held(slopes: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return continuity, and one further constraint for each held unknown: it does not change."""
    return np.vstack([slopes, np.eye(len(held))[held]]) if held.any() else slopes


def _constrained_step(shot: ShootingResult, scale: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve min ½|r + JΔ|² subject to c + CΔ = 0, in scaled unknowns; also return the multipliers of the gaps."""
    J, C = shot.jacobian * scale, _with_held(shot.slopes * scale, held)
    gaps = np.concatenate([shot.gaps, np.zeros(int(held.sum()))])
    particular = np.linalg.lstsq(C, -gaps, rcond=1e-13)[0] if len(C) else np.zeros(J.shape[1])
    Z = _null_space(C, J.shape[1])
    inside = np.linalg.lstsq(J @ Z, -(shot.residuals + J @ particular), rcond=1e-13)[0]
    step = particular + Z @ inside
    gradient = J.T @ (shot.residuals + J @ step)
    multipliers = np.linalg.lstsq(C.T, -gradient, rcond=1e-13)[0] if len(C) else np.zeros(0)
    step[held] = 0.0
    return step * scale, multipliers[: len(shot.gaps)]


def _null_space(C: np.ndarray, width: int) -> np.ndarray:
    if not len(C):
        return np.eye(width)
    q, _ = np.linalg.qr(C.T, mode="complete")
    return np.asarray(q[:, len(C) :])


def _gap(shot: ShootingResult) -> float:
    return float(np.abs(shot.gaps).max(initial=0.0))


def _search(
    shooting: MultipleShooting,
    v: np.ndarray,
    step: np.ndarray,
    now: ShootingResult,
    weight: float,
    lower: np.ndarray,
    upper: np.ndarray,
) -> tuple[np.ndarray, ShootingResult, bool]:
    n = len(lower)
    merit = now.evaluation.objective + weight * float(np.abs(now.gaps).sum())
    length = 1.0
    while length > 1e-6:
        trial = v + length * step
        trial[:n] = np.clip(trial[:n], lower, upper)
        shot = shooting.shoot(trial[:n], trial[n:])
        if shot.completed:
            gaps = shot.gaps * shot.sizes / now.sizes
            value = shot.evaluation.objective + weight * float(np.abs(gaps).sum())
            if value < merit * (1 - MERIT_ROUNDING) or (length == 1.0 and value <= merit):
                return trial, shot, True
        length /= 2
    return v, now, False


def _joined(
    shot: ShootingResult, dead: np.ndarray, well: bool, reason: str, held: np.ndarray
) -> SearchOutcome[Evaluation]:
    """Return covariance and Jacobian of the joined problem, from coordinates of the null space: θ = T c, ∂r/∂c = R."""
    n = len(dead)
    scale = np.maximum(np.abs(shot.jacobian).max(axis=0), 1e-300)
    Z = _null_space(_with_held(shot.slopes / scale, held), shot.jacobian.shape[1])
    R = (shot.jacobian / scale) @ Z
    T = (Z / scale[:, None])[:n]
    curved = R
    if shot.evaluation.prior is not None:
        rows = shot.evaluation.prior.rows
        curved = np.concatenate([R[: len(R) - len(rows)], rows @ T])
    _, s, vt = np.linalg.svd(curved, full_matrices=False)
    kept = s > 1e-13 * s.max(initial=0.0)
    root = T @ (vt[kept].T / s[kept])
    # for the diagnosis only: where a start hardly differs from its neighbours, T has no inverse to rounding
    units = np.linalg.norm(T, axis=1)
    units[units == 0] = 1.0
    jacobian = R @ np.linalg.pinv(T / units[:, None], rcond=1e-12) / units
    if held.any():
        jacobian[:, held[:n]] = np.where(dead[held[:n]], 0.0, _along_pieces(shot, n, held[:n]))
    evaluation = replace(shot.evaluation, jacobian=jacobian, covariance=root @ root.T)
    return SearchOutcome(evaluation, well, reason, _gap(shot) < MAX_JOINED_GAP)


def _along_pieces(shot: ShootingResult, n: int, held: np.ndarray) -> np.ndarray:
    """Return ∂r by some unknowns, the nodes following: where a bound pushes."""
    own, nodes = shot.jacobian[:, :n][:, held], shot.jacobian[:, n:]
    if not len(shot.slopes):
        return np.asarray(own)
    return np.asarray(own - nodes @ np.linalg.solve(shot.slopes[:, n:], shot.slopes[:, :n][:, held]))
