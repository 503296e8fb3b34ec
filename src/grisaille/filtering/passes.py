"""Passes of nonlinear filters over one record, extended, iterated and unscented, with exact derivatives.

Between samples mean and covariance follow the step of ``moments`` or ``linearization``, at samples the update of
``measurement``, ``iterated`` or ``unscented``; both stay on the hidden constraints (``projection``), in redundant
coordinates with a singular P. Steps per cell are chosen once (``substeps``) and kept, so the likelihood is a smooth
function of the unknowns, and its derivatives are those of every formula. Noise factors that depend on states are taken
at the mean, or averaged over sigma points.

Reference: A. H. Jazwinski, Stochastic Processes and Filtering Theory (1970), section 8.3.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import IdentityKey, LastValues
from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_function
from grisaille.compilation.kalman.compiled_pass import PreparedPass, run_forward, run_reverse
from grisaille.compilation.kalman.directional_functions import with_directions
from grisaille.compilation.kalman.passing import DEGREE, FilterPass, PassResult
from grisaille.compilation.kalman.program import SETTLE_ARGUMENTS, FilterProgram, build_program
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.disturbance.unobservable_disturbance import refuse_hidden_disturbances
from grisaille.errors import EstimationError
from grisaille.experiment.record_cells import MeasuredRecord, RecordCells, cut_into_cells
from grisaille.filtering.algebraic_model import AlgebraicModel, packing_of
from grisaille.filtering.algebraic_roots import AlgebraicRoots, UnsolvedError, restarts, unsolved_message
from grisaille.filtering.constraint_projection import ConstraintProjection
from grisaille.filtering.filter_steps import FilterSteps
from grisaille.filtering.formulation import FilterKind, formulate
from grisaille.filtering.initial_moments import is_flat, start_covariance, start_mean
from grisaille.filtering.kalman import FilterMoments, LikelihoodSums
from grisaille.filtering.measurement import settle_function
from grisaille.filtering.sigma_points import first_singular
from grisaille.memory import BYTES_PER_DOUBLE, require_memory

MIN_DIRECTIONS_FOR_REVERSE = 5e7
"""Instructions of a pass with all directions, some 40 ms, above which reverse mode is worth its compilation."""


LINEARISED_REFUSAL = "an extended Kalman filter cannot see it"
HIDDEN_DISTURBANCE_EFFECT = {
    "unscented": "sigma points, drawn anew at every step from a covariance that is zero by symmetry, forget how the "
    "states follow it"
}
"""What becomes of a disturbance without a linear effect where it is zero."""
BYTES_PER_INTERVAL = 3000
"""Bytes of an interval beside signals at the halves of its steps: measurements, moments and innovations."""


class Passes:
    """Passes over one record again and again, at different values of q.

    How finely it steps is set by ``on``, on a filter of its own; running one changes nothing.
    """

    def __init__(
        self,
        model: StochasticModel,
        record: MeasuredRecord,
        nominal: Floats,
        initial_covariance: str | np.ndarray = "first-sample",
        substeps: int = 1,
        kind: FilterKind | None = None,
    ) -> None:
        if is_flat(initial_covariance):
            need = f"a linear model, but {model.nonlinear} is not linear:" if model.nonlinear else (
                "the exact filter: use filter='linear', or"
            )  # fmt: skip
            raise EstimationError(
                f"initial_covariance={initial_covariance!r} needs {need} give finite variances, {{state: variance}}."
            )
        self.kind = kind or FilterKind()
        if model.hidden:
            refuse_hidden_disturbances(model, HIDDEN_DISTURBANCE_EFFECT.get(self.kind.update, LINEARISED_REFUSAL))
        self.model, self.record, self.initial_covariance, self.substeps = model, record, initial_covariance, substeps
        self.doublings = 2
        self.nominal = np.concatenate([nominal, np.ones(model.n - model.nx)])
        self.packing = packing_of(model)
        self.finer: NDArray[np.int64] | None = None
        """(K,) by which factor the steps of each cell are shorter than ``substeps`` says."""
        self.roots = AlgebraicRoots(model) if model.z.numel() else None
        self.restarts: Floats | None = None
        """(K + 1, nz) algebraic unknowns after jumps of the inputs, NaN elsewhere (``roots``)."""
        self._cells: RecordCells | None = None
        self._passes: dict[tuple[Any, ...], PreparedPass] = {}
        self._seen = LastValues()
        """The record as passes read it, and where it begins, whatever their steps."""
        self._programs: dict[int, FilterProgram] = {}
        """By Newton steps; shared by all that were made of this one, as are functions."""

    @property
    def program(self) -> FilterProgram:
        """Step and update."""
        if self.newton not in self._programs:
            kind = replace(self.kind, constant=self._is_constant())
            self._programs[self.newton] = build_program(formulate(self.model, kind))
        return self._programs[self.newton]

    @property
    def newton(self) -> int:
        """Newton steps for algebraic unknowns, at every point."""
        return self.kind.newton

    @newton.setter
    def newton(self, steps: int) -> None:
        self.kind = replace(self.kind, newton=steps)

    @property
    def discretisation(self) -> FilterSteps:
        """Return how finely the filter steps and iterates."""
        kept = None if self.has_moving_cells else self.restarts
        again = () if kept is None else np.flatnonzero(np.isfinite(kept).all(axis=1)).tolist()
        return FilterSteps(
            int(self.substeps), () if self.finer is None else tuple(self.finer.tolist()), int(self.doublings),
            self.newton, () if self.roots is None else tuple(self.roots.sizes.tolist()),
            tuple((k, tuple(kept[k].tolist())) for k in again) if kept is not None else (),
        )  # fmt: skip

    def on(self, steps: FilterSteps, record: MeasuredRecord | None = None) -> Self:
        """Return the same filter with other steps, and perhaps on other measurements at the same instants."""
        other = copy.copy(self)
        other.record = record or self.record
        other.substeps, other.doublings, other._passes = steps.substeps, steps.doublings, {}
        other.finer = np.array(steps.finer, dtype=np.int64) if steps.finer else None
        other.newton = steps.newton or self.newton
        if self.roots is not None:
            other.roots = copy.copy(self.roots)
            other.roots.sizes = np.array(steps.sizes) if steps.sizes else np.zeros(self.roots.nz)
            other.restarts = self._restarts_of(steps)
        return other

    def _restarts_of(self, steps: FilterSteps) -> Floats | None:
        if not steps.restarts:
            return None
        assert self._cells is not None
        found = np.full((len(self._cells.bounds), len(steps.sizes)), np.nan)
        for k, z in steps.restarts:
            found[k] = z
        return found

    def steps(self, q: Floats) -> NDArray[np.int64]:
        """Return (K,) steps of every cell."""
        count = len(self.cells(q).lengths)
        return self.substeps * (np.ones(count, dtype=np.int64) if self.finer is None else self.finer)

    def operations(self, q: Floats) -> float:
        """Return instructions of one pass without derivatives: the same on every machine."""
        return float(self.steps(q).sum()) * self.program.instructions

    def effort(self, q: Floats) -> float:
        """Return the same with the matrix exponentials of linearised steps."""
        products = 2 * (DEGREE + 2 * self.doublings) * self.program.product
        return self.operations(q) + float(self.steps(q).sum()) * products

    def _is_constant(self) -> bool:
        m, cells = self.model, self._cells
        formulas = ca.vertcat(m.drift, ca.vec(m.noise), m.residual)
        if cells is None or ca.depends_on(formulas, m.t):
            return False
        used = sorted(set(ca.jacobian_sparsity(formulas, m.u).get_col()))
        return not (cells.coefficients[:, used, 1:] != 0).any()

    @property
    def has_moving_cells(self) -> bool:
        """Return whether cells end at instants that depend on parameters: they then have steps in common, as their
        order may change.
        """
        return self.model.structure.system.moving is not None

    def cells(self, q: Floats) -> RecordCells:
        """Return the cells, made once unless formulas of time switch at instants that depend on parameters."""
        system = self.model.structure.system
        if self._cells is None or system.has.instants:
            self._cells = cut_into_cells(self.record.times, self.record.signals(q[: system.np]))
            self._passes = {}
        return self._cells

    def run(
        self, q: Floats, dq: Floats, x0: Floats, *, robust: float = np.inf, condition: bool = False,
        states: list[FilterMoments] | None = None, z0: Floats | None = None, algebraic: list[Floats] | None = None,
    ) -> LikelihoodSums:  # fmt: skip
        """Return one pass over the data; x0, (1 + ns, nx), and z0, (1 + ns, nz), are the start of the plant.

        states, algebraic : lists that receive moments and what is carried of algebraic unknowns at every cell boundary
        """
        with np.errstate(all="ignore"):  # a model that runs away is a failure, not a warning
            given = self.prepared(q, robust, condition)
            s = self.start(given, q, dq, x0, z0)
            self.require_uncertainty(s[0])
            found = self.carry(given, q, s, dq, keep=states is not None)
            if not self.is_solved(found):
                found = self.run_again(q, s, dq, robust=robust, condition=condition, keep=states is not None)
        if states is not None and found.kept is not None and found.failed < 0:
            x, P, z = self.packing.split(found.kept)
            states.append(FilterMoments(x[:, 0], P[:, 0], x[:, 1], P[:, 1]))
            if algebraic is not None:
                algebraic.append(z[:, 1])
        return sums_of(found)

    def run_again(
        self, q: Floats, s: Floats, dq: Floats, *, keep: bool, robust: float = np.inf, condition: bool = False
    ) -> PassResult:  # fmt: skip
        """Return a pass with algebraic unknowns solved afresh after every jump of the inputs; raises where they are
        not.
        """
        again = self._restarted(q, s[0])
        given = again.prepared(q, robust, condition)
        found = again.carry(given, q, s, dq, keep=keep)
        again._require_solved(found, given, q, s[0])
        return found

    def run_for_gradient(
        self, q: Floats, dq: Floats, x0: Floats, *, robust: float = np.inf, condition: bool = False,
        z0: Floats | None = None,
    ) -> LikelihoodSums:  # fmt: skip
        """Return the same without the information and the derivatives of innovations: in reverse, where that pays."""
        if self.effort(q) * len(dq) <= MIN_DIRECTIONS_FOR_REVERSE:
            return self.run(q, dq, x0, robust=robust, condition=condition, z0=z0)
        library = self.program.reverse
        with np.errstate(all="ignore"):
            given = self.prepared(q, robust, condition)
            s = self.start(given, q, dq, x0, z0)
            self.require_uncertainty(s[0])
            found = run_reverse(library, given, q, s[0])
            if not self.is_solved(found):
                again = self._restarted(q, s[0])
                given = again.prepared(q, robust, condition)
                found = run_reverse(library, given, q, s[0])
                again._require_solved(found, given, q, s[0])
            assert found.lq is not None
            found.base = np.concatenate([found.base, s[1:] @ found.ds + dq @ found.lq])
        return sums_of(found)

    def prepared(self, q: Floats, robust: float = np.inf, condition: bool = False) -> PreparedPass:
        """Return the record as a pass; kept, because only q changes from call to call."""
        cells, m = self.cells(q), self.substeps
        finer = b"" if self.finer is None else self.finer.tobytes()
        key = (m, finer, self.doublings, robust, condition)
        found = self._passes.get(key)
        if found is None:
            steps = self.steps(q)
            if not self._passes:
                self._require(len(steps), int((2 * steps + 1).sum()) * cells.coefficients.shape[1])
            seen = (IdentityKey(self.record), IdentityKey(cells))
            signals, sample, y, mask, scale = self._seen.get("seen", seen, lambda: _seen(self.record, cells))
            given = FilterPass(
                cells.bounds, stages_of(cells, steps), signals, sample, y, mask, scale, q, self.nominal, steps, robust,
                condition, self.doublings, self._given(),
            )  # fmt: skip
            found = PreparedPass(given)
            self._passes = {**self._passes, key: found}
        return found

    def _require(self, intervals: int, numbers: int) -> None:
        """Refuse a record that does not fit into memory."""
        size = BYTES_PER_INTERVAL * intervals + BYTES_PER_DOUBLE * numbers
        require_memory(
            size,
            f"The filter of {self.model.structure.model.name} ({self.model.n} states, {intervals} intervals)",
            lambda available: (
                f"About {int(intervals * available / size)} intervals would fit: fit a part of the record, or resample "
                f"it."
            ),
        )

    def start(self, given: PreparedPass, q: Floats, dq: Floats, x0: Floats, z0: Floats | None) -> Floats:
        """Return s and its derivatives before the first sample, (1 + ns, size)."""
        n, nd, pack = self.model.n, 1 + len(dq), self.packing
        x, z = start_mean(self.model, self.initial_covariance, x0), np.zeros((nd, pack.nz))
        if z0 is not None and pack.nz:
            z[:, : self.model.z.numel()] = z0
        t, u = given.given.bounds[0], given.given.signals[0]
        nothing = pack.join(x, np.zeros((nd, n, n)), z)
        first = np.zeros((nd, n, n))
        if isinstance(self.initial_covariance, str) and self.initial_covariance == "first-sample":
            end = int(np.flatnonzero(self.cells(q).sample_at >= 0)[1])
            over = ("start", given.given.steps[:end].tobytes(), given.given.doublings)
            part = self._passes.get(over)
            if part is None:
                part = PreparedPass(replace(given.given.part(0, end), given=None))
                self._passes = {**self._passes, over: part}
            built = self.carry(part, q, nothing, dq, keep=False)
            first = pack.split(np.concatenate([built.s[None], built.ds]))[1]
            if not self.model.starts and not self.model.constraints.numel():
                return pack.join(x, first, z)
        is_given = not isinstance(self.initial_covariance, str) and not self.model.starts
        if is_given and not self.model.constraints.numel():
            A, W, C = np.zeros((nd, n, n)), np.zeros((nd, n, n)), np.zeros((nd, 0, n))  # not looked at
        else:
            A, W, C = self._linearized(t, u, q, dq, x, z)
        s = pack.join(x, start_covariance(self.model, self.initial_covariance, A, W, first, C)[0], z)
        # what built up over the first interval is tangent at its end: turn it to where the record begins
        return self.settled(t, u, q, dq, s) if self.model.constraints.numel() else s

    def require_uncertainty(self, s: Floats) -> None:
        """Require a positive definite start covariance where the root of the covariance is propagated."""
        if self.kind.propagation != "square-root":
            return
        at = first_singular(self.packing.split(s)[1])
        if at >= 0:
            raise EstimationError(
                f"propagation='square-root' divides by the square root of the covariance, which vanishes at the start: "
                f"'{self.model.names[at]}' has no uncertainty of its own there. Use propagation='moments', or give "
                f"every state a variance, initial_covariance={{state: variance}}."
            )

    def carry(self, given: PreparedPass, q: Floats, s: Floats, dq: Floats, keep: bool) -> PassResult:
        """Return a pass from s along directions, (1 + ns, size)."""
        return run_forward(self.program.forward, given, q, s[0], s[1:], dq, keep)

    def pass_with(self, q: Floats, steps: NDArray[np.int64]) -> FilterPass:
        """Return the record as a pass with other steps."""
        given = self.prepared(q).given
        return replace(given, steps=steps, stages=stages_of(self.cells(q), steps))

    def measure_roots(self, q: Floats, x0: Floats, z0: Floats | None) -> None:
        """Solve algebraic unknowns after jumps of the inputs, and see how large they are along the record."""
        assert self.roots is not None
        nothing = np.zeros((0, len(q)))
        with np.errstate(all="ignore"):
            s = self.start(self.prepared(q), q, nothing, x0, z0)
            self.roots.sizes = np.maximum(self.roots.sizes, np.abs(s[0, -2 * self.roots.nz : -self.roots.nz]))
            self._restart(q, s[0])
            given = self.prepared(q)
            kept = self.carry(given, q, s, nothing, keep=True).kept
            assert kept is not None
            self.roots.measure(given.given, kept, q, self.model.n)

    def _restarted(self, q: Floats, s: Floats) -> Self:
        """Return the same filter with algebraic unknowns solved afresh after every jump of the inputs."""
        other = self.on(self.discretisation)
        other._restart(q, s)
        return other

    def _restart(self, q: Floats, s: Floats) -> None:
        assert self.roots is not None
        self._passes = {}
        self.restarts = restarts(self, self.roots, self.prepared(q).given, q, s)
        self._passes = {}

    def _given(self) -> Floats | None:
        """Return what is carried at bounds where algebraic unknowns begin again."""
        if self.restarts is None:
            return None
        nz = self.restarts.shape[1]
        given = np.full((len(self.restarts), self.packing.size), np.nan)
        given[:, -2 * nz : -nz] = self.restarts
        return given

    def is_solved(self, found: PassResult) -> bool:
        """Return whether algebraic unknowns are solved all along a pass, and it ended."""
        return self.roots is None or (self.roots.is_solved(found.s) and found.failed < 0)

    def _require_solved(self, found: PassResult, given: PreparedPass, q: Floats, s: Floats) -> None:
        assert self.roots is not None
        if self.roots.is_solved(found.s):
            return
        again = self.carry(given, q, s[None], np.zeros((0, len(q))), keep=True)
        assert again.kept is not None
        raise UnsolvedError(unsolved_message(self.roots, given.given, again.kept, self.newton))

    def settled(self, t: float, u: Floats, q: Floats, dq: Floats, s: Floats) -> Floats:
        """Return s with its moments on the constraints and z solved, with derivatives."""
        function = self._known(
            "settle", len(dq),
            lambda: with_directions(
                settle_function(AlgebraicModel(self.model, self.newton), ConstraintProjection(self.model)), ("s", "q"),
                SETTLE_ARGUMENTS, len(dq)
            ),
        )  # fmt: skip
        return _with_value(function(t, s[0], u, q, self.nominal, *((s[1:], dq) if len(dq) else ())), len(dq))

    def _linearized(
        self, t: float, u: Floats, q: Floats, dq: Floats, x: Floats, z: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return A, W and the constraints' Jacobian at the start, as duals."""
        n, nd, ns = self.model.n, len(x), len(dq)

        def make() -> Floats:
            function = self._known("start", ns, lambda: _start_function(self.model, ns))
            return _with_value(function(t, x[0], z[0], u, q, *((x[1:], dq) if ns else ())), ns)

        # steps do not matter: a search for them asks again and again
        values = self._seen.get("start", tuple(a.tobytes() for a in (u, q, dq, x, z)), make)
        parts = np.split(values, [n * n, 2 * n * n], axis=1)
        A, W, C = (part.reshape(nd, n, -1).transpose(0, 2, 1) for part in parts)
        return A, W, C

    def first_slope(self, q: Floats, dq: Floats, x: Floats, z: Floats) -> Floats:
        """Return the Jacobian of the drift where the record begins, (n, n)."""
        given = self.prepared(q).given
        return np.asarray(self._linearized(float(given.bounds[0]), given.signals[0], q, dq, x, z)[0][0])

    def _known(self, name: str, ns: int, build: Callable[[], ca.Function]) -> FlatEvaluation:
        return self.model.cached_value(("filter", name, self.newton, ns), lambda: flat_function(build()))


def _seen(record: MeasuredRecord, cells: RecordCells) -> tuple[Floats, NDArray[np.int64], Floats, Floats, Floats]:
    """Return signals and samples at the bounds, measurements, where there are any, and factors of noise deviations."""
    mask = np.asarray(np.isfinite(record.y))
    sample = np.where(cells.sample_at >= 0, cells.sample_at, 0)
    sample = np.where((cells.sample_at >= 0) & np.asarray(mask.any(axis=1))[sample], cells.sample_at, -1)
    weights = np.where(record.weights > 0, record.weights, 1.0)
    signals = np.concatenate([cells.at(np.zeros(1))[1][:, 0], cells.end[None]])
    return signals, sample, np.where(mask, record.y, 0.0), mask.astype(float), 1 / weights


def stages_of(cells: RecordCells, steps: NDArray[np.int64]) -> Floats:
    """Return signals at halves of the steps, cell after cell."""
    edges = np.concatenate([[0], np.cumsum(2 * steps + 1)])
    stages = np.empty((edges[-1], cells.coefficients.shape[1]))
    for m in np.unique(steps).tolist():
        mine, s = np.flatnonzero(steps == m), np.arange(2 * m + 1)
        powers = (s[:, None] / (2 * m)) ** np.arange(cells.coefficients.shape[2])
        stages[edges[mine][:, None] + s] = np.einsum("kud,sd->ksu", cells.coefficients[mine], powers)
    return stages


def _start_function(model: StochasticModel, ns: int) -> ca.Function:
    closed = AlgebraicModel(model)
    t, *others = closed.symbols
    _, A, W, _ = closed.rates(t, 0, *others)
    C = ca.jacobian(model.constraints, model.X) if model.constraints.numel() else ca.SX(0, model.n)
    column = ca.densify(ca.vertcat(*(ca.vec(ca.densify(o)) for o in (A, W, C))))
    function = ca.Function("start", closed.symbols, [column])
    return with_directions(function, ("X", "q"), ("t", "X", "z", "u", "q"), ns)


def _with_value(found: list[Floats], ns: int) -> Floats:
    """Return outputs and derivatives as one array, the value first."""
    value = found[0][None]
    return np.concatenate([value, found[1].reshape(ns, value.shape[1])]) if ns else value


def sums_of(found: PassResult) -> LikelihoodSums:
    """Return what a pass adds up."""
    nd = len(found.base)
    return LikelihoodSums(
        found.count, found.base, np.zeros((nd, 1, 1)), found.information, np.zeros((nd - 1, 1)), found.innovations,
        found.variances, found.slopes, found.failed,
    )  # fmt: skip
