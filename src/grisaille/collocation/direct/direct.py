"""Direct collocation: parameters and paths of differential-algebraic models under disturbances.

    minimise  Σ (y − ŷ)² / 2σ²  +  ∫ |v|² / 2 dt        over θ, X, Z, v

under the reduced model's equations at Radau points, its hidden constraints at the first point only (elsewhere they
follow, and repeating them would make the conditions redundant). With white w = √Q v the second term is ∫ w²/2Q. Only
disturbed equations have freedom, so undisturbed ones hold exactly, and an index above one makes no difference.

``criterion="laplace"`` maximises the likelihood of θ with paths integrated out by Laplace's approximation; it is exact
for linear models, and it alone can tell scales of disturbances. References: M. S. Varziri, K. B. McAuley,
P. J. McLellan, Ind. Eng. Chem. Res. 47 (2008) 7274; L. T. Biegler, Nonlinear Programming (2010), chapter 10.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.direct.conditions import choose_conditions
from grisaille.collocation.direct.laplace import maximize_laplace
from grisaille.collocation.direct.mesh import TABLEAUX, DirectRecord, Floats, make_mesh
from grisaille.collocation.direct.model import DirectModel, build_direct_model
from grisaille.collocation.direct.newton import NewtonResult, solve_newton
from grisaille.collocation.direct.refinement import interpolated
from grisaille.collocation.direct.slots import make_slots
from grisaille.collocation.direct.start import first_points, simulated_point
from grisaille.collocation.direct.summary import DirectPath, inside_bounds, paths_of, theta_covariance
from grisaille.collocation.direct.transcription import Functions, Point, Transcription
from grisaille.errors import EstimationError
from grisaille.experiment.cells import cut_into_cells
from grisaille.structure.reduction import Structure
from grisaille.trial import Trial
from grisaille.trial.unknown import Unknown

__all__ = ["DirectOptions", "DirectProgram", "DirectRecord", "DirectSolution"]

CONTINUOUS = 1e-12
"""Change of an input, relative to its size, that is rounding and no jump."""


@dataclass(frozen=True)
class DirectOptions:
    """How a program is posed and solved.

    criterion : ``"amle"``, paths and θ together, or ``"laplace"``, θ with paths integrated out
    points : Radau points per element, 1 to 3
    pieces : elements between samples or jumps of inputs, or ``"auto"``: doubled until the estimates stop moving
    longest : of elements, as a part of the record
    solver : ``"newton"``, ours; ``"ipopt"``; ``"auto"``: IPOPT where ours did not converge or a bound of a state is
        violated
    state_bounds : {variable: (lower, upper)} at all Radau points
    settled : with ``"auto"``, the change of estimates in standard errors below which they have stopped moving
    """

    criterion: Literal["amle", "laplace"] = "amle"
    points: int = 3
    pieces: int | Literal["auto"] = 1
    longest: float = 1 / 40
    solver: Literal["auto", "newton", "ipopt"] = "auto"
    state_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tolerance: float = 1e-9
    max_iterations: int = 100
    settled: float = 0.02

    def __post_init__(self) -> None:
        if self.points not in TABLEAUX:
            raise EstimationError(f"points is {self.points!r}; Radau collocation has 1, 2 or 3 here.")
        if self.pieces != "auto" and not (isinstance(self.pieces, int) and self.pieces > 0):
            raise EstimationError(f"pieces is {self.pieces!r}; give a whole number from 1, or 'auto'.")
        if self.criterion not in ("amle", "laplace"):
            raise EstimationError(f"criterion is {self.criterion!r}; it must be 'amle' or 'laplace'.")


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """Estimates and paths."""

    theta: Floats
    objective: float
    """Σ (y − ŷ)²/2σ² + ∫ |v|²/2 dt, and what was known of θ."""
    residual_part: float
    noise_part: float
    log_likelihood: float | None
    """Laplace's approximation of log p(y | θ), constants included; None where θ was not estimated by it."""
    covariance: Floats
    """Of θ, from the reduced Hessian; NaN for entries at a bound, or where there is none."""
    inside: NDArray[np.bool_]
    """Which entries of θ no bound decided."""
    converged: bool
    status: str
    iterations: int
    pieces: int
    point: Point
    """All unknowns: what another solve may start from."""
    result: NewtonResult
    program: Transcription

    @cached_property
    def paths(self) -> tuple[DirectPath, ...]:
        """One per record, with bands."""
        return paths_of(self.program, self.result, self.covariance)

    @property
    def times(self) -> tuple[Floats, ...]:
        return tuple(p.times for p in self.paths)

    @property
    def states(self) -> tuple[Floats, ...]:
        return tuple(p.states for p in self.paths)

    @property
    def algebraic(self) -> tuple[Floats, ...]:
        return tuple(p.algebraic for p in self.paths)

    @property
    def disturbances(self) -> tuple[Floats, ...]:
        return tuple(p.disturbances for p in self.paths)


class DirectProgram:
    """A model with records: solved again and again.

    structure : of the model; outputs : the columns of the records' y
    unknowns : what θ holds; guess : θ where ranks, units and starts are decided
    information : further −log p(θ) as a formula of θ (priors, measurements that depend on θ alone)
    """

    def __init__(
        self, structure: Structure, records: Sequence[DirectRecord], unknowns: Sequence[Unknown],
        outputs: Sequence[str], options: DirectOptions | None = None, *, guess: Floats | Sequence[float],
        information: Callable[[ca.SX], ca.SX] | None = None,
    ) -> None:  # fmt: skip
        self.options, self.records, self.unknowns = options or DirectOptions(), tuple(records), tuple(unknowns)
        theta = np.asarray(guess, dtype=float)
        self._refuse(theta)
        slots = make_slots(structure, records, unknowns, theta)
        parameters = slots.parameters(theta)
        values = dict(zip(slots.formulas.names, parameters[0].tolist(), strict=True))
        values |= dict(zip(slots.names, slots.values(theta)[0].tolist(), strict=True))
        self.model = build_direct_model(structure, outputs, slots.levels, values)
        conditions, self.starts = choose_conditions(self.model, records, parameters, slots.values(theta), slots.names)
        jumps = any(algebraic_jumps(self.model, r) for r in records)
        self.functions = Functions(self.model, slots, conditions, self.options.points, jumps)
        self.bounds = (np.array([u.lower for u in unknowns]), np.array([u.upper for u in unknowns]))
        self.information = _information(information, len(unknowns))
        self.slots, self.guess = slots, theta
        self._simulated: dict[bytes, tuple[int, Point]] = {}

    def _refuse(self, theta: Floats) -> None:
        if len(theta) != len(self.unknowns):
            raise EstimationError(f"{len(self.unknowns)} unknowns, but {len(theta)} numbers to start from.")
        for unknown, value in zip(self.unknowns, theta, strict=True):
            if not np.isfinite(value):
                raise EstimationError(f"'{unknown.name}' starts from {value}; give a finite number.")

    def _refuse_open_scales(self) -> None:
        is_open = self.bounds[0] < self.bounds[1]
        scales = [u.name for u, k in zip(self.unknowns, is_open, strict=True) if u.kind == "scale" and k]
        if scales and self.options.criterion == "amle":
            raise EstimationError(
                f"{', '.join(scales)} cannot be estimated together with the path, which fits the better the larger "
                "they are: use criterion='laplace'."
            )

    def with_trials(self, trials: Sequence[Trial]) -> DirectProgram:
        """The same program with other measurements."""
        other = copy.copy(self)
        other.records = tuple(replace(r, trial=t) for r, t in zip(self.records, trials, strict=True))
        return other

    def transcribe(self, pieces: int) -> Transcription:
        """The program on a mesh with so many elements between samples."""
        o, meshes = self.options, []
        for r in self.records:
            longest = o.longest * float(r.times[-1] - r.times[0]) / (pieces if o.pieces == "auto" else 1)
            meshes.append(make_mesh(r, o.points, pieces, longest))
        return Transcription(self.functions, self.records, meshes, self.information)

    def simulated(self, program: Transcription, theta: Floats) -> Point:
        """The trajectory without disturbances on a mesh, kept: it does not depend on measurements."""
        key, size = theta.tobytes(), len(program.record_of)
        if key not in self._simulated or self._simulated[key][0] != size:
            self._simulated.clear()
            self._simulated[key] = size, simulated_point(program, theta, self.starts)
        return self._simulated[key][1]

    def solve(
        self, theta0: Floats | Sequence[float] | None = None, start: Point | None = None, *, free: bool = True
    ) -> DirectSolution:
        """Minimise; ``free=False`` finds the path at θ₀ only."""
        theta = np.clip(self.guess if theta0 is None else np.asarray(theta0, dtype=float), *self.bounds)
        self._refuse(theta)
        if free:
            self._refuse_open_scales()
        if self.options.pieces != "auto":
            return self._solve_on(self.transcribe(self.options.pieces), theta, start, free, self.options.pieces)
        return self._refine(theta, free)

    def _refine(self, theta: Floats, free: bool) -> DirectSolution:
        """Meshes doubled until the estimates stop moving."""
        program = self.transcribe(1)
        solution = self._solve_on(program, theta, None, free, 1)
        for pieces in (2, 4, 8):
            finer = self.transcribe(pieces)
            start = interpolated(program, finer, solution.point)
            after = self._solve_on(finer, solution.theta, start, free, pieces)
            error = np.sqrt(np.diag(after.covariance))
            moved = np.abs(after.theta - solution.theta) / np.where(error > 0, error, np.inf)
            settled = np.nanmax(moved, initial=0.0) < self.options.settled
            settled &= abs(after.objective - solution.objective) < self.options.settled
            program, solution = finer, after
            if settled:
                return solution
        return replace(solution, status=f"{solution.status}; estimates still move as elements get shorter")

    def _solve_on(
        self, program: Transcription, theta: Floats, start: Point | None, free: bool, pieces: int
    ) -> DirectSolution:
        o = self.options
        if start is None:
            points = first_points(program, self.simulated(program, theta))
        else:
            points = [replace(start, theta=theta)]
        if o.criterion == "laplace" and free:
            paths = self._before_laplace(program, points) if start is None else iter(points)
            found = maximize_laplace(program, next(paths), self.bounds, o.tolerance, o.max_iterations)
            for path in paths if not found[0].converged else ():
                other = maximize_laplace(program, path, self.bounds, o.tolerance, o.max_iterations)
                found = other if other[0].converged else found
            return self._conclude(program, found[0], pieces, *found[1:])
        result = self._best(program, points, self.bounds if free else (theta, theta))
        inside = inside_bounds(result.point.theta, self.bounds, program.slots.sizes)
        covariance = theta_covariance(program, result, inside) if free else np.zeros((len(theta), len(theta)))
        return self._conclude(program, result, pieces, None, covariance, inside)

    def _before_laplace(self, program: Transcription, points: Sequence[Point]) -> Iterator[Point]:
        """Paths from which the likelihood is searched: the best one for free θ, levels held; that of the guess.

        At a guess that is far from the data the best path may leave what the model means, and the search would end
        there.
        """
        theta, (lower, upper) = points[0].theta, self.bounds
        index = program.slots.index[:, sorted(self.functions.level_slots)]
        held = np.isin(np.arange(len(theta)), index[index >= 0])
        bounds = np.where(held, theta, lower), np.where(held, theta, upper)
        if np.any(bounds[0] < bounds[1]):
            joint = self._best(program, points, bounds)
            if joint.converged:
                yield joint.point
        yield self._best(program, points, (theta, theta)).point if len(points) > 1 else points[0]

    def _best(self, program: Transcription, points: Sequence[Point], bounds: tuple[Floats, Floats]) -> NewtonResult:
        """The lowest minimum that the points lead to; with equal bounds, θ stays."""
        results = [self._minimise(program, p, bounds) for p in points]
        return min(results, key=lambda r: r.costs.total if r.converged else np.inf)

    def _minimise(self, program: Transcription, point: Point, bounds: tuple[Floats, Floats]) -> NewtonResult:
        from grisaille.collocation.direct.ipopt import solve_ipopt, violates

        o, free = self.options, bool(np.any(bounds[0] < bounds[1]))
        if o.solver != "ipopt":
            result = solve_newton(
                program, point, bounds, free=free, tolerance=o.tolerance, max_iterations=o.max_iterations
            )
            if o.solver == "newton" or (result.converged and not violates(program, result.point, o.state_bounds)):
                return result
            if not result.converged and self.model.structure.jumps.of_states:
                return result  # no slope leads across a jump, whoever follows it
            point = result.point if result.converged else point
        return solve_ipopt(program, point, bounds, free=free, state_bounds=o.state_bounds)

    def _conclude(
        self, program: Transcription, result: NewtonResult, pieces: int, likelihood: float | None, covariance: Floats,
        inside: NDArray[np.bool_],
    ) -> DirectSolution:  # fmt: skip
        word = "converged" if result.converged else "did not converge"
        return DirectSolution(
            theta=result.point.theta,
            objective=result.costs.objective,
            residual_part=result.costs.residuals,
            noise_part=result.costs.noise,
            log_likelihood=likelihood,
            covariance=covariance,
            inside=inside,
            converged=result.converged,
            status=f"{word} after {result.iterations} iterations: {result.message}",
            iterations=result.iterations,
            pieces=pieces,
            point=result.point,
            result=result,
            program=program,
        )


def algebraic_jumps(model: DirectModel, record: DirectRecord) -> bool:
    """Whether an input jumps that algebraic equations contain."""
    inside = sorted(set(ca.jacobian_sparsity(model.residual, model.u).get_col())) if model.nz else []
    if not inside or len(record.times) < 2:
        return False
    cells = cut_into_cells(record.times, record.signals)
    before = cells.coefficients.sum(axis=2)[:, inside]
    after = np.stack([record.signals.at(float(t)) for t in cells.bounds[1:]])[:, inside]
    size = np.abs(before).max(axis=0, initial=0.0) + np.abs(after).max(axis=0, initial=0.0)
    return bool(np.any(np.abs(after - before) > CONTINUOUS * size))


def _information(formula: Callable[[ca.SX], ca.SX] | None, count: int) -> ca.Function | None:
    """Value, gradient and Hessian."""
    if formula is None:
        return None
    theta = ca.SX.sym("theta", count)
    value = formula(theta)
    H, g = ca.hessian(value, theta)
    return ca.Function("information", [theta], [value, ca.densify(g), ca.densify(H)])
