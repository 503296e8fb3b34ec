"""Direct collocation as a problem with an estimate: the criterion over the unknowns, paths solved for at each θ.

    amle      f(θ) = min over paths of Σ (y − ŷ)²/2σ² + ∫ |v|²/2 dt
    laplace   f(θ) = −log p(y | θ), paths integrated out

both with priors. Residuals are those of the data against the path.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct import DirectOptions, DirectProgram, DirectSolution
from grisaille.collocation.direct_ipopt import violates
from grisaille.collocation.direct_marginal import marginal
from grisaille.collocation.direct_summary import curvature_at, output_slopes
from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case, compared_samples
from grisaille.estimation.collocation_bias import describe_lean, is_believed, lean, without_lean
from grisaille.estimation.collocation_refusals import (
    level_parameters,
    refuse_levels,
    refuse_open_noise,
    refuse_zero_noise,
)
from grisaille.estimation.determination import describe_determination
from grisaille.estimation.direct_cases import pose_direct
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import Problem
from grisaille.estimation.uncertainty import without_undetermined
from grisaille.estimation.unknowns import Unknown
from grisaille.model.classes import Model
from grisaille.model.priors import LogNormal, MultivariateNormal, Normal
from grisaille.simulation.runner import Prediction
from grisaille.structure.parameters import ParameterFormulas
from grisaille.structure.reduction import Structure

DRIFT = 1e-3
"""Change of hidden constraints along a path, relative to their terms, from which on a fit says so."""


@dataclass(frozen=True, eq=False)
class DirectRunner:
    """What a case keeps of its experiment."""

    model: Model
    structure: Structure
    formulas: ParameterFormulas
    constants: dict[str, float]


@dataclass(frozen=True)
class DirectEvaluation(LikelihoodEvaluation):
    """An evaluation with the paths it was made at."""

    solution: DirectSolution | None = field(default=None, compare=False)
    program: DirectProgram | None = field(default=None, compare=False)


SPLINES_ONLY = {"order": 4, "knots": "auto", "kinks": "auto", "quadrature": "gauss", "trajectories": None}
"""Options that direct collocation does not read, and what they are when not given."""


class DirectProblem(Problem):
    """Unknowns, experiments and the program of one estimation."""

    def __init__(
        self, unknowns: Sequence[Unknown], cases: Sequence[Case], program: DirectProgram, reason: str = ""
    ) -> None:
        super().__init__(unknowns, cases)
        self.program, self.reason = program, reason

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
            ends = np.empty(len(case.grid), dtype=int)
            there = program.meshes[r].sample_at >= 0
            ends[program.meshes[r].sample_at[there]] = np.flatnonzero(there)
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
        given = iter(values if values is not None else [s.values for c in self.cases for s in c.samples])
        cases, measured = [], []
        for case, record in zip(self.cases, self.program.records, strict=True):
            samples = tuple(replace(s, values=next(given)) for s in case.samples)
            y = np.full_like(record.y, np.nan)
            for s in samples:
                y[s.rows, self.program.model.outputs.index(s.output)] = s.values
            cases.append(replace(case, samples=samples))
            measured.append(y)
        problem = DirectProblem(self.unknowns, cases, self.program.with_measurements(measured), self.reason)
        if guess is not None:
            problem.with_guess(guess)
        return problem


def evaluated_program(program: DirectProgram) -> DirectProgram:
    """The program that has the paths of a fit: the marginal likelihood does not keep bounds of states."""
    if program.options.criterion != "laplace" or not program.options.state_bounds:
        return program
    other = copy.copy(program)
    other.options = replace(program.options, state_bounds={})
    return other


def on_elements(program: DirectProgram, pieces: int) -> DirectProgram:
    """The same program, on the elements that a solution with so many pieces ended with."""
    if program.options.pieces != "auto":
        return program
    other = copy.copy(program)
    other.options = replace(program.options, pieces=pieces, longest=program.options.longest / pieces)
    return other


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
    program = pose_direct(structure, data, unknowns, chosen, _priors(unknowns))
    refuse_zero_noise(program, [e.name for e in data])
    posed = tuple(replace(u, guess=float(g)) for u, g in zip(unknowns, program.guess, strict=True))
    cases = [_case(model, structure, e, posed) for e in data]
    return DirectProblem(posed, cases, program, reason)


def estimate_direct(
    problem: DirectProblem, progress: Callable[[int, float], None] | None = None, debias: bool = False
) -> Estimate:
    """Solve a problem."""
    begin = time.perf_counter()
    scales = [k for k, u in enumerate(problem.unknowns) if u.kind == "scale"]
    solution, found = _solved(problem, scales)
    solution, leaning = _told_of_lean(problem, solution, debias)
    evaluation = problem.at(solution)
    problem.evaluations += max(solution.iterations, 1)
    if progress is not None:
        progress(problem.evaluations, evaluation.objective)
    free = solution.inside.copy()
    covariance = without_undetermined(np.nan_to_num(solution.covariance), free & np.isnan(np.diag(solution.covariance)))
    if problem.program.options.criterion == "amle":
        free[scales] = True
        _add_scale_variances(solution, scales, covariance)
    is_likelihood = problem.program.options.criterion == "laplace"
    word = "converged" if solution.converged else "NOT converged"
    hint = "" if solution.converged else ". Try another guess=, bounds, or gr.multistart"
    return Estimate(
        unknowns=problem.unknowns,
        theta=np.where(_vanished(problem, solution.theta, free), 0.0, solution.theta),
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=evaluation.log_likelihood,
        is_likelihood=is_likelihood,
        count=problem.count,
        objective=evaluation.objective,
        evaluation=evaluation,
        cases=problem.cases,
        converged=solution.converged,
        status=f"{word}: {solution.result.message}, {solution.iterations} iterations{hint}",
        notes=(*_notes(problem, evaluation, covariance, free), *found, *leaning),
        trace=({"evaluation": float(problem.evaluations), "objective": evaluation.objective},),
        evaluations=problem.evaluations,
        failures=tuple(problem.failures),
        seconds=time.perf_counter() - begin,
        extra={
            "elements": float(sum(len(m.lengths) for m in solution.program.meshes)),
            "pieces": float(solution.pieces),
        },
    )


def _solved(problem: DirectProblem, scales: list[int]) -> tuple[DirectSolution, list[str]]:
    """The solution, with scales as roots around it where the criterion cannot have them as unknowns."""
    if not scales or problem.program.options.criterion != "amle":
        return problem.program.solve(problem.guess), []
    from grisaille.estimation.direct_intensities import find_direct_intensities, with_held

    theta, notes = find_direct_intensities(problem)
    return with_held(problem.program, theta, scales).solve(theta), notes


def _add_scale_variances(solution: DirectSolution, scales: list[int], covariance: np.ndarray) -> None:
    """A scale has the information of its own freedom γ: var(log σ) = 1/(2γ)."""
    found = marginal(solution.program, solution.point, 1e-10, solution.result.multipliers) if scales else None
    if found is None:
        return
    for k in scales:
        freedom = max(abs(found.freedom[k]) * solution.theta[k], 0.5)
        covariance[k, k] = solution.theta[k] ** 2 / (2 * freedom)


def _told_of_lean(problem: DirectProblem, solution: DirectSolution, debias: bool) -> tuple[DirectSolution, list[str]]:
    """A note on how far approximate maximum likelihood leans, or the solution without that (``collocation_bias``)."""
    if problem.program.options.criterion != "amle" or not solution.converged:
        return solution, []
    found = marginal(solution.program, solution.point, 1e-10, solution.result.multipliers)
    if found is None:
        return solution, []
    covariance = np.nan_to_num(solution.covariance)
    leaning = lean(covariance, found.freedom)
    if not debias or not is_believed(leaning, covariance):
        return solution, describe_lean(problem.unknowns, leaning, covariance, False)
    theta, leaning = without_lean(problem.bounds, solution.theta, leaning, ~solution.inside)
    there = on_elements(problem.program, solution.pieces).solve(theta, free=False)
    if not there.converged:
        return solution, [f"bias: it could not be taken off, as the path without it {there.status}."]
    moved = replace(
        there, covariance=solution.covariance, inside=solution.inside, iterations=solution.iterations + there.iterations
    )
    return moved, describe_lean(problem.unknowns, leaning, covariance, True)


def _case(model: Model, structure: Structure, experiment: Any, unknowns: Sequence[Unknown]) -> Case:
    mine = tuple(k for k, u in enumerate(unknowns) if u.applies_to(experiment.name))
    given = {*experiment.constants, *(unknowns[k].target for k in mine if unknowns[k].kind == "parameter")}
    runner: Any = DirectRunner(model, structure, ParameterFormulas(structure.model, given), dict(experiment.constants))
    grid = experiment.grid()
    return Case(
        experiment.name, experiment, runner, grid, compared_samples(experiment, grid), tuple(experiment.outputs), mine
    )


def _notes(problem: DirectProblem, evaluation: DirectEvaluation, covariance: np.ndarray, free: np.ndarray) -> list[str]:
    H = evaluation.curvature
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    values, vectors = np.linalg.eigh(H / np.outer(size, size)) if len(H) else (np.zeros(0), np.zeros((0, 0)))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size
    level = np.array([u.kind in ("scale", "noise", "start") for u in problem.unknowns], dtype=bool)
    notes = describe_determination(problem.unknowns, evaluation.theta, root, covariance, free)
    skipped = tuple(f"dead: no output moves with {u.name};" for u, k in zip(problem.unknowns, level, strict=True) if k)
    notes = [n for n in notes if not (skipped and n.startswith(skipped))]
    for u, zero in zip(problem.unknowns, _vanished(problem, evaluation.theta, free), strict=True):
        if zero:
            notes = [n for n in notes if not n.startswith(f"at bound: {u.name} ")]
            notes.append(f"zero: {u.name} is zero to all digits that the data have.")
    return [*notes, *_drift(problem, evaluation), *_beyond_bounds(problem, evaluation)]


def _beyond_bounds(problem: DirectProblem, evaluation: DirectEvaluation) -> list[str]:
    """The marginal likelihood integrates over all paths, so that the best one may leave its bounds."""
    solution, bounds = evaluation.solution, problem.program.options.state_bounds
    if problem.program.options.criterion != "laplace" or solution is None or not bounds:
        return []
    named = {*solution.program.model.state_names, *solution.program.model.structure.system.implicit_names}
    broken = [n for n, b in bounds.items() if n in named and violates(solution.program, solution.point, {n: b})]
    if not broken:
        return []
    return [
        f"bounds: the path leaves the bounds of {', '.join(broken)}, which criterion='laplace' of direct collocation "
        f"does not keep; criterion='amle' does."
    ]


def _vanished(problem: DirectProblem, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Levels that ran to the lower end of their range."""
    low = [u.kind in ("scale", "noise") and v < 1e-2 * u.guess for u, v in zip(problem.unknowns, theta, strict=True)]
    return np.asarray(np.array(low, dtype=bool) & ~free)


def _drift(problem: DirectProblem, evaluation: DirectEvaluation) -> list[str]:
    """Whether hidden constraints, posed at the first point only, still hold at the end."""
    solution = evaluation.solution
    system = problem.program.model.structure.system
    if solution is None or not system.nc:
        return []
    worst = 0.0
    for r in range(len(problem.cases)):
        values = solution.program.observe(solution.point, problem.program.model.constraints, r)
        scale = 1.0 + np.abs(solution.paths[r].states).max(initial=0.0)
        worst = max(worst, float(np.abs(values).max(initial=0.0)) / scale)
    if worst < DRIFT:
        return []
    return [
        f"elements: hidden constraints drift by {worst:.1e} along the path; shorter elements are needed (refine=2)."
    ]


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
            f"out; refine=1 makes elements shorter until the estimates stop moving."
        )
    solver: Any = "ipopt" if method.optimizer == "ipopt" else "auto"
    pieces: Any = "auto" if method.refine not in (0, "auto") else 1
    return DirectOptions(criterion=method.criterion, solver=solver, pieces=pieces, max_iterations=method.max_iterations)
