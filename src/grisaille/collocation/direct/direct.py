"""Direct collocation: parameters and paths of differential-algebraic models under disturbances.

    minimise  Σ (y − ŷ)² / 2σ²  +  ∫ |v|² / 2 dt        over θ, X, Z, v

under the reduced model's equations at Radau points, its hidden constraints at the first point only (elsewhere they
follow, and repeating them would make the conditions redundant). With white w = √Q v the second term is ∫ w²/2Q. Only
disturbed equations have freedom, so undisturbed ones hold exactly, and an index above one makes no difference.

The likelihood of θ with paths integrated out is in ``marginal``; it alone can tell scales of disturbances. References:
M. S. Varziri, K. B. McAuley, P. J. McLellan, Ind. Eng. Chem. Res. 47 (2008) 7274; L. T. Biegler, Nonlinear Programming
(2010), chapter 10.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

import casadi as ca
import numpy as np

from grisaille import bound_experiment
from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.dead_times import moving_dead_times
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.array_types import Better, Floats
from grisaille.collocation.direct.direct_functions import DirectFunctions
from grisaille.collocation.direct.direct_model import DirectModel, build_direct_model
from grisaille.collocation.direct.element_mesh import DirectRecord, RadauElements, make_mesh
from grisaille.collocation.direct.initial_path import first_points, simulated_point
from grisaille.collocation.direct.path_newton import PathPoint, place, solve_newton
from grisaille.collocation.direct.slots import make_slots
from grisaille.collocation.direct.start_conditions import choose_conditions
from grisaille.collocation.direct.state_bounds import state_limits, violated
from grisaille.collocation.direct.transcription import Transcription, TranscriptionPoint
from grisaille.collocation.trajectory_newton import SearchEnd
from grisaille.errors import EstimationError
from grisaille.experiment.projected_signals import longest_step

DEFAULT_ELEMENTS = RadauElements()
PATH_DECREMENT = 1e-12
"""Decrement at which a path is solved for at given θ: gradients of the likelihood are taken along it."""
IPOPT_AGREEMENT = 1e-6
"""Difference of two minima, in units of log-likelihood, that IPOPT's distance from bounds explains."""
MAX_KEPT_PROGRAMS = 4
"""Programs with the signals of other dead times that are kept."""
MIN_CURVATURE = 1e-7
"""Of the curvature to search with: what an unknown without any has all the same, so that it follows the slope."""
JUMP_ROUNDING = 1e-12
"""Change of an input, relative to its size, that is rounding and no jump."""


@dataclass(frozen=True)
class DirectOptions:
    """How a program is posed and solved.

    solver : ``"newton"``, ours; ``"ipopt"``; ``"auto"``: IPOPT where ours did not converge or a bound of a state is
        violated
    state_bounds : {variable: (lower, upper)} at all Radau points
    """

    solver: Literal["auto", "newton", "ipopt"] = "auto"
    state_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tolerance: float = 1e-9
    max_iterations: int = 100


class ThetaTerm(Protocol):
    """A term of −log L that depends on θ alone, as formulas of CasADi's θ."""

    @property
    def key(self) -> Hashable:
        """Return what the term depends on, by content."""

    def __call__(self, theta: ca.SX) -> ca.SX:
        """Return the term."""

    def curvature(self, theta: ca.SX) -> ca.SX:
        """Return the matrix to search with in place of its Hessian, far from a minimum."""


class DirectProgram:
    """The nonlinear program of a model and its records, solved repeatedly.

    points : trials at the guess, where ranks, units and starts are decided; unknowns : what θ holds
    information : further −log p(θ) as a formula of θ (priors, measurements that depend on θ alone)
    places : for each point, which entries of θ move its trial; needed where dead times move
    """

    def __init__(
        self, points: Sequence[bound_experiment.ExperimentPoint], unknowns: Sequence[Unknown],
        options: DirectOptions | None = None,
        information: ThetaTerm | None = None, places: Sequence[Sequence[int]] = (),
    ) -> None:  # fmt: skip
        points = [p.on_standing_steps() for p in points]
        self.options, self.unknowns = options or DirectOptions(), tuple(unknowns)
        self.guess = np.array([u.guess for u in unknowns])
        self._refuse(self.guess, (self.guess, self.guess))
        outputs = tuple(dict.fromkeys(o for p in points for o in p.trial.data.outputs))
        systems = [p.structure.system for p in points]
        self.records = tuple(
            DirectRecord(p.trial, outputs, p.table, None if system.moving is None else system)
            for p, system in zip(points, systems, strict=True)
        )
        self._places = tuple(map(list, places))
        moving = [(r, mine) for r, mine in zip(self.records, self._places, strict=False) if r.moving is not None]
        moved = {mine[k] for r, mine in moving for k in moving_dead_times(r.trial)}
        self.dead_times = np.array(sorted(moved), dtype=np.int64)
        """Entries of θ that move dead times."""
        self.bounds = (np.array([u.lower for u in unknowns]), np.array([u.upper for u in unknowns]))
        if moved:
            self.records = tuple(replace(r, longest=self._longest(k)) for k, r in enumerate(self.records))
        self.slots = slots = make_slots(points, unknowns)
        values = points[0].known | dict(zip(slots.names, slots.values(self.guess)[0].tolist(), strict=True))
        self.model = build_direct_model(points[0].structure, outputs, slots.levels, values)
        self.starts = [p.start for p in points]
        jumps = any(algebraic_jumps(self.model, r) for r in self.records)
        self.functions = DirectFunctions(self.model, slots, choose_conditions(self.model, points), jumps)
        self.information = None if information is None else self._information(information)
        self._simulated: dict[bytes, tuple[int, TranscriptionPoint]] = {}
        self._transcribed: dict[RadauElements, Transcription] = {}
        self._at: dict[bytes, DirectProgram] = {}

    def _information(self, formula: ThetaTerm) -> ca.Function:
        """Return the term as a function, made once for each content."""
        count = len(self.unknowns)
        return self.model.cached_value(("information", formula.key, count), lambda: _theta_function(formula, count))

    def _refuse(self, theta: Floats, bounds: tuple[Floats, Floats]) -> None:
        """Refuse unknowns without a finite value, and scales that would be estimated together with the path."""
        for unknown, value in zip(self.unknowns, theta, strict=True):
            if not np.isfinite(value):
                raise EstimationError(
                    f"'{unknown.name}' starts from {value}; give a finite number: guess={{'{unknown.name}': …}}."
                )
        is_open = bounds[0] < bounds[1]
        scales = [u.name for u, k in zip(self.unknowns, is_open, strict=True) if u.kind == "scale" and k]
        if scales:
            raise EstimationError(
                f"{', '.join(scales)} cannot be estimated together with the path, which fits the better the larger "
                "they are: use criterion='laplace'."
            )

    def with_experiments(self, trials: Sequence[BoundExperiment]) -> DirectProgram:
        """Return the same program with other measurements."""
        other, same = copy.copy(self), all(r.trial is t for r, t in zip(self.records, trials, strict=True))
        other._simulated, other._transcribed = dict(self._simulated), dict(self._transcribed) if same else {}
        other._at = {}
        if not same:
            other.records = tuple(replace(r, trial=t) for r, t in zip(self.records, trials, strict=True))
        return other

    def _longest(self, number: int) -> float:
        """Return the longest element in which each jump occurs once only, at all dead times: the jumps of a record
        depend on them.
        """
        record = self.records[number]
        if record.moving is None:
            return np.inf
        gaps = []
        for limits in (self.guess, *self.bounds):
            theta = self.guess.copy()
            theta[self.dead_times] = limits[self.dead_times]
            gaps.append(longest_step(record.trial.at(theta[self._places[number]]).table, record.moving))
        return min(gaps)

    def reach(self, theta: Floats) -> Floats:
        """Return by how much each entry of θ that moves dead times may change so that they move by one sampling
        interval.
        """
        slopes = np.zeros(len(theta))
        for record, mine in zip(self.records, self._places, strict=True):
            if record.moving is not None:
                point = record.trial.at(theta[mine])
                by_p = np.reshape(point.form.tau_slopes(point.p), (len(point.p), -1))
                moved = np.abs(point.dp @ by_p).max(axis=1) / float(np.median(np.diff(record.times)))
                slopes[mine] = np.maximum(slopes[mine], moved)
        return 1 / np.maximum(slopes[self.dead_times], 1e-300)

    def at(self, theta: Floats) -> DirectProgram:
        """Return the program with the signals of θ; itself where no dead time is estimated.

        Signals of a program are linear in the dead times around those that they were made at.
        """
        if not self.dead_times.size:
            return self
        key = theta[self.dead_times].tobytes()
        if key not in self._at:
            while len(self._at) >= MAX_KEPT_PROGRAMS:
                del self._at[next(iter(self._at))]
            other = copy.copy(self)
            other.records = tuple(
                replace(r, signals=r.trial.at(theta[mine]).table)
                for r, mine in zip(self.records, self._places, strict=True)
            )
            other._simulated, other._transcribed, other._at = {}, {}, {key: other}
            self._at[key] = other
        return self._at[key]

    def transcribe(self, grid: RadauElements) -> Transcription:
        """Return the program on its elements; kept."""
        if grid not in self._transcribed:
            meshes = [make_mesh(r, grid) for r in self.records]
            self._transcribed[grid] = Transcription(self.functions, self.records, meshes, self.information)
        return self._transcribed[grid]

    def simulated(self, program: Transcription, theta: Floats) -> TranscriptionPoint:
        """Return the trajectory without disturbances on a mesh, kept: it does not depend on measurements."""
        key, size = theta.tobytes(), len(program.record_of)
        if key not in self._simulated or self._simulated[key][0] != size:
            self._simulated.clear()
            self._simulated[key] = size, simulated_point(program, theta, self.starts)
        return self._simulated[key][1]

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Bounds of states and algebraic unknowns, at every Radau point."""
        return state_limits(self.model, self.options.state_bounds)

    def solve(
        self, theta0: Floats | Sequence[float] | None = None, start: PathPoint | None = None, *,
        bounds: tuple[Floats, Floats] | None = None, grid: RadauElements = DEFAULT_ELEMENTS, bounded: bool = True,
        better: Better = None,
    ) -> SearchEnd[PathPoint]:  # fmt: skip
        """Minimise over θ and the path.

        bounds : of θ, equal for what is held; by default those of the unknowns
        start : a path on the elements of the grid
        bounded : whether bounds of states are kept; better : called with θ on the way
        """
        bounds = self.bounds if bounds is None else bounds
        theta = np.clip(self.guess if theta0 is None else np.asarray(theta0, dtype=float), *bounds)
        self._refuse(theta, bounds)
        program = self.transcribe(grid)
        points = [start.point] if start else first_points(program, self.simulated(program, theta))
        places = [place(program, replace(p, theta=theta), start.multipliers if start else None) for p in points]
        results = [self._minimise(p, bounds, bounded, better) for p in places]
        return min(results, key=lambda r: r.at.cost if r.converged else np.inf)

    def _minimise(
        self, start: PathPoint, bounds: tuple[Floats, Floats], bounded: bool, better: Better
    ) -> SearchEnd[PathPoint]:
        """Minimise from one starting point."""
        from grisaille.collocation.direct.ipopt import solve_ipopt

        o, free = self.options, bool(np.any(bounds[0] < bounds[1]))

        def ipopt(point: TranscriptionPoint) -> SearchEnd[PathPoint]:
            return solve_ipopt(
                start.program, point, bounds, limits=self.limits if bounded and o.state_bounds else None, better=better
            )

        if o.solver == "ipopt":
            return ipopt(start.point)
        result = solve_newton(
            start, bounds, tolerance=o.tolerance if free else min(o.tolerance, PATH_DECREMENT),
            max_iterations=o.max_iterations, better=better,
        )  # fmt: skip
        if o.solver == "newton":
            return result
        if self.functions.laws:
            return self._by_laws(result, bounded)
        if not result.converged:
            # no slope leads across a jump, whoever follows it
            return result if self.model.structure.jumps.of_states else ipopt(start.point)
        if bounded and o.state_bounds and violated(result.at, self.limits).any():
            return ipopt(result.at.point)
        if not result.lost:
            return result
        other = ipopt(start.point)
        return other if other.converged and other.at.cost < result.at.cost - IPOPT_AGREEMENT else result

    def _by_laws(self, result: SearchEnd[PathPoint], bounded: bool) -> SearchEnd[PathPoint]:
        """Say that bounds of states decide a path: laws have no formulas that IPOPT could take."""
        if not (bounded and result.converged and self.options.state_bounds):
            return result
        if not violated(result.at, self.limits).any():
            return result
        reason = (
            f"the best path leaves the bounds of {', '.join(self.options.state_bounds)}, not kept beside laws of "
            f"measurements: use criterion='laplace', or leave bounds= of variables out"
        )
        return replace(result, converged=False, reason=reason)


def algebraic_jumps(model: DirectModel, record: DirectRecord) -> bool:
    """Return whether an input jumps that algebraic equations contain."""
    inside = sorted(set(ca.jacobian_sparsity(model.residual, model.u).get_col())) if model.nz else []
    if not inside or len(record.times) < 2:
        return False
    cells = record.cells()
    before = cells.coefficients.sum(axis=2)[:, inside]
    after = np.stack([record.signals.at(float(t)) for t in cells.bounds[1:]])[:, inside]
    size = np.abs(before).max(axis=0, initial=0.0) + np.abs(after).max(axis=0, initial=0.0)
    return bool(np.any(np.abs(after - before) > JUMP_ROUNDING * size))


def _theta_function(formula: ThetaTerm, count: int) -> ca.Function:
    """Return value, gradient, Hessian and curvature of a term as one function."""
    theta = ca.SX.sym("theta", count)
    value = formula(theta)
    H, g = ca.hessian(value, theta)
    search = formula.curvature(theta)
    for k in range(count):
        H[k, k] = ca.if_else(H[k, k] == 0, MIN_CURVATURE * search[k, k], H[k, k])
    return ca.Function("information", [theta], [value, ca.densify(g), ca.densify(H), ca.densify(search)])
