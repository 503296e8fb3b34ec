"""The matrices of the exact filter of a linear model on one record: from formulas and data to those of ``kalman``.

Forcing and intensity may vary inside a cell (inputs joined by lines, formulas of time), as polynomials
(``transition``), and so may A (``varying``); cells on which polynomials do not describe the formulas to nine digits
are cut. Cells of the same constant A and length share their matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance import distinct_steps
from grisaille.disturbance.discretization import balanced_norm
from grisaille.disturbance.duals import Floats, times, transpose
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.experiment.record_cells import MeasuredRecord, RecordCells, cut_into_cells
from grisaille.filtering.exact.linear_formulas import Formula
from grisaille.filtering.exact.transition import both, many, noise_covariance, state_transition, varying_transitions
from grisaille.filtering.exact.varying import (
    MAX_PIECE_NORM,
    MAX_PIECES,
    cut_cells,
    max_pieces,
    rough_cells,
    with_forcing,
)
from grisaille.filtering.initial_moments import start_covariance, start_mean
from grisaille.filtering.kalman import DiscreteModel
from grisaille.memory import BYTES_PER_DOUBLE, require_memory

MIN_BATCHED_INTERVALS = 512
"""Intervals of different lengths from which on their transitions are made side by side, so many at a time."""
BYTES_PER_INTERVAL = 1500
"""Bytes of an interval beside its matrices: signals, their pieces, measurements and innovations."""


class Matrices:
    """Discretises one model on one record again and again, at different values of q."""

    def __init__(
        self, model: StochasticModel, record: MeasuredRecord, initial_covariance: str | np.ndarray = "first-sample"
    ) -> None:
        if model.nonlinear:
            jumps = [j for j in model.jumps if j.place == model.nonlinear]
            what = f" (it jumps with {jumps[0].text})" if jumps else ""
            raise EstimationError(
                f"filter='linear' needs a model that is linear in its states, but {model.nonlinear} is not{what}: use "
                f"filter='{'unscented' if model.jumps else 'extended'}'."
            )
        self.model, self.record, self.initial_covariance = model, record, initial_covariance
        self.A, self.b, self.W, self.H, self.d, self.R, self.C = model.cached_value(
            "matrices", lambda: _formulas(model)
        )
        self._cells: RecordCells | None = None
        self._pieces: NDArray[np.int64] = np.ones(0, dtype=np.int64)
        """Of every cell between samples and breaks."""
        self._is_resolved = True
        """Whether polynomials describe all formulas; not where inputs joined by lines pass a switch inside a cell."""
        self._required = 0.0
        """Bytes up to which memory has been asked for."""
        self._kept: tuple[RecordCells | None, dict[str, Any]] = (None, {})

    def cells(self, q: Floats) -> RecordCells:
        """Return the cells, made once unless formulas of time switch at instants that depend on parameters."""
        system = self.model.structure.system
        if self._cells is None or system.has.instants:
            whole = cut_into_cells(self.record.times, self.record.signals(q[: system.np]))
            self._pieces = np.ones(len(whole.lengths), dtype=np.int64)
            self._cells = self._cut(whole, q)
        return self._cells

    def varies_too_fast(self, q: Floats) -> bool:
        """Return whether A changes so fast inside cells that they would have to be cut too often."""
        try:
            self.cells(q)
        except EstimationError:
            return True
        return False

    def _cut(self, whole: RecordCells, q: Floats) -> RecordCells:
        """Return the cells of a record, cut where polynomials do not describe the formulas; never coarser than
        before.
        """
        varies, none = bool(self.A.degree(whole)), np.zeros((0, len(q)))
        pieces, most = self._pieces, max_pieces(len(whole.lengths), self.model.n)
        if varies:
            t, u = whole.at(np.linspace(0.0, 1.0, 9))
            A = self.A.at(t.ravel(), u.reshape(t.size, u.shape[-1]), q, none)[:, 0]
            sizes = balanced_norm(np.abs(A).max(axis=0)) * whole.lengths / MAX_PIECE_NORM
            pieces = np.maximum(pieces, 2 ** np.ceil(np.log2(np.clip(sizes, 1.0, most + 1.0))).astype(np.int64))
        while pieces.sum() <= most:
            cells = cut_cells(whole, pieces)
            rough = self._rough(cells, [f.shared_on_cells(cells, q, none) for f in self._curved(cells)])
            if not rough.any():
                self._pieces = pieces
                return cells
            pieces = np.where(np.bitwise_or.reduceat(rough, np.cumsum(pieces) - pieces), 2 * pieces, pieces)
        if varies:
            raise EstimationError(varying_message(self.model, self.A))
        self._is_resolved, self._pieces = False, np.minimum(pieces, MAX_PIECES)
        return cut_cells(whole, self._pieces)

    def _curved(self, cells: RecordCells) -> list[Formula]:
        """Return the formulas that polynomials only approximate."""
        return [f for f in (self.A, self.b, self.W) if f.power > 2 and f.degree(cells)]

    def _rough(self, cells: RecordCells, coefficients: Sequence[Floats]) -> NDArray[np.bool_]:
        rough = np.zeros(len(cells.lengths), dtype=bool)
        for found in coefficients:
            rough |= rough_cells(found[:, :, 0])
        return rough

    def _fine_cells(self, q: Floats, dq: Floats) -> tuple[RecordCells, Floats, Floats | None, Floats]:
        """Return cells that are fine enough at q, and A, b (None where it is a polynomial itself) and W on them."""
        cells = self.cells(q)
        while True:
            curved = self._once(cells, "curved", partial(self._curved, cells))
            A, W = (f.shared_on_cells(cells, q, dq) for f in (self.A, self.W))
            b = self.b.shared_on_cells(cells, q, dq) if self.b in curved else None
            found = [x for f, x in ((self.A, A), (self.b, b), (self.W, W)) if f in curved and x is not None]
            if not (self._is_resolved and self._rough(cells, found).any()):
                return cells, A, b, W
            before = self._pieces
            whole = cut_into_cells(self.record.times, self.record.signals(q[: self.model.structure.system.np]))
            self._cells = self._cut(whole, q)
            if np.array_equal(before, self._pieces):
                return cells, A, b, W
            cells = self._cells

    def discretise(self, q: Floats, dq: Floats, x0: Floats) -> DiscreteModel:
        """Return the matrices at q; dq, (ns, nq), are directions and x0, (1 + ns, nx), the start of the plant's
        states.
        """
        nd = 1 + len(dq)
        cells, A, b, W = self._fine_cells(q, dq)
        F, F_of, c, Q, Q_of = self._transitions(cells, q, dq, A, b, W)
        H, H_of, d, R, R_of = self._measurement(cells, q, dq)
        mean = start_mean(self.model, self.initial_covariance, x0)
        first = _built_up(cells, F, F_of, Q, Q_of)
        signals = self._once(cells, "start", lambda: cells.at(np.zeros(1))[1][0])
        # a polynomial on the first cell is, where that begins, its first coefficient
        C = self.C.at(cells.bounds[:1], signals, q, dq)[0] if self.C.shape[0] else np.zeros((nd, 0, self.model.n))
        P0, X0 = start_covariance(self.model, self.initial_covariance, A[0, 0], W[0, 0], first, C)
        return DiscreteModel(F, F_of, c, Q, Q_of, H, H_of, d, R, R_of, self.record.y, cells.sample_at, mean, P0, X0)

    def _once(self, cells: RecordCells, what: str, compute: Callable[[], Any]) -> Any:
        """Return what depends on the cells only."""
        of, found = self._kept
        if of is not cells:
            found = {}
            self._kept = (cells, found)
        if what not in found:
            found[what] = compute()
        return found[what]

    def _require(self, matrices: int, cells: int, directions: int) -> None:
        """Refuse transitions that do not fit into memory; once, because later ones take the place of the first."""
        n = self.model.n
        size = BYTES_PER_DOUBLE * directions * (matrices * n * n + 2 * cells * n) + BYTES_PER_INTERVAL * cells
        if size <= self._required:
            return
        self._required = 2 * size
        require_memory(
            size,
            f"The exact filter of {self.model.structure.model.name} ({n} states, {cells} intervals, derivatives in "
            f"{directions - 1} directions)",
            lambda available: (
                f"About {int(cells * available / size)} intervals would fit: fit a part of the record, resample it at "
                f"equal intervals, which share their matrices, or estimate fewer unknowns."
            ),
        )

    def _transitions(
        self, cells: RecordCells, q: Floats, dq: Floats, A: Floats, b: Floats | None, W: Floats
    ) -> tuple[Floats, Any, Floats, Floats, Any]:
        if A.shape[1] > 1:
            return self._varying_transitions(cells, q, dq, A, b, W)
        groups, of, members = self._once(cells, "groups", lambda: self._groups(cells))
        if len(groups) > MIN_BATCHED_INTERVALS and len(A) == 1 and len(W) == 1:
            return self._many_transitions(cells, q, dq, A[0, 0], b, W[0])
        n, nd, K = self.model.n, 1 + len(dq), len(cells.lengths)
        forcing = _Forcing(self.b, cells, q, dq, b)
        still = len(W) == 1
        self._require(len(groups) + (len(groups) if still else K), K, nd)
        F, c = np.empty((len(groups), nd, n, n)), np.empty((K, nd, n))
        Q = np.empty((len(groups) if still else K, nd, n, n))
        for g, (k, h) in enumerate(groups):
            mine, drift = members[g], A[k % len(A), 0]
            if still:
                F[g], Psi, Q[g] = both(drift, h, forcing.degree, W[0])
            else:
                F[g], Psi = state_transition(drift, h, forcing.degree)
                Q[mine] = self._noise_of_cells(cells, drift, h, W, mine)
            forced = forcing.carried(Psi, mine)
            if len(groups) == 1:
                c = forced
            else:
                c[mine] = forced
        return F, of, c, Q, of if still else np.arange(K)

    def _varying_transitions(
        self, cells: RecordCells, q: Floats, dq: Floats, A: Floats, b: Floats | None, W: Floats
    ) -> tuple[Floats, Any, Floats, Floats, Any]:
        """Return the same where A changes inside cells."""
        n, every = self.model.n, np.arange(len(cells.lengths))
        self._require(2 * len(every), len(every), 1 + len(dq))
        b = self.b.on_cells(cells, self.b.degree(cells), q, dq) if b is None else b
        F, Q = varying_transitions(*with_forcing(A, b, W), cells.lengths)
        return F[..., :n, :n], every, F[..., :n, n], Q[..., :n, :n], every

    def _many_transitions(
        self, cells: RecordCells, q: Floats, dq: Floats, A: Floats, b: Floats | None, W: Floats
    ) -> tuple[Floats, Any, Floats, Floats, Any]:
        """Return the same where nearly every interval has a length of its own; a part of them at a time, for memory."""
        groups, of, members = self._once(cells, "groups", lambda: self._groups(cells))
        n, nd, K, G = self.model.n, 1 + len(dq), len(cells.lengths), len(groups)
        forcing, lengths = _Forcing(self.b, cells, q, dq, b), np.array([h for _, h in groups])
        self._require(2 * G, K, nd)
        F, Q, c = np.empty((G, nd, n, n)), np.empty((G, nd, n, n)), np.empty((K, nd, n))
        for first in range(0, G, MIN_BATCHED_INTERVALS):
            own = slice(first, first + MIN_BATCHED_INTERVALS)
            F[own], Psi, Q[own] = many(A, lengths[own], forcing.degree, W)
            mine = np.concatenate(members[own])
            c[mine] = forcing.carried_each(Psi[of[mine] - first], mine)
        return F, of, c, Q, of

    def _noise_of_cells(self, cells: RecordCells, A: Floats, h: float, W: Floats, mine: np.ndarray) -> Floats:
        """Return Q of every cell of a group; those with the same signals are integrated once."""
        keys = cells.coefficients[mine][:, self.W.signals].reshape(len(mine), -1)
        if self.W.depends_on_time:
            keys = np.column_stack([keys, cells.bounds[mine]])
        _, at, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return np.asarray(noise_covariance(A, h, W[mine[at]])[of.ravel()])

    def _groups(self, cells: RecordCells) -> tuple[list[tuple[int, float]], Any, list[Any]]:
        """Return cells that share A and length: (a cell, its length) of each group, the group of each cell, and
        members.
        """
        steps, of = distinct_steps(cells.bounds)
        if not self.A.is_fixed:
            rows = np.column_stack([steps[of], cells.coefficients[:, self.A.signals, 0]])
            _, group = np.unique(rows, axis=0, return_inverse=True)
            steps, of = steps[of][np.unique(group.ravel(), return_index=True)[1]], group.ravel()
        members = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of, minlength=len(steps)))[:-1])
        return [(int(m[0]), float(h)) for m, h in zip(members, steps, strict=True)], of, members

    def _measurement(self, cells: RecordCells, q: Floats, dq: Floats) -> tuple[Floats, Any, Floats, Floats, Any]:
        record, N = self.record, len(self.record.times)
        t, u = self._once(cells, "samples", lambda: (record.times, cells.at_samples))
        H, H_of = self._shared(self.H, t, u, q, dq)
        d = np.repeat(self.d.at(t[:1], u[:1], q, dq), N, axis=0) if self.d.is_fixed else self.d.at(t, u, q, dq)
        R, R_of = self._shared(self.R, t, u, q, dq)
        if self._once(cells, "weighted", lambda: bool((record.weights != 1).any())):
            scale = 1 / np.where(record.weights > 0, record.weights, 1.0)
            R = R[R_of] * scale[:, None, :, None] * scale[:, None, None, :]
            R_of = np.arange(N)
        return H, H_of, d[..., 0], R, R_of

    def _shared(self, formula: Formula, t: Floats, u: Floats, q: Floats, dq: Floats) -> tuple[np.ndarray, np.ndarray]:
        if formula.is_fixed:
            return formula.at(t[:1], u[:1], q, dq), np.zeros(len(t), dtype=np.int64)
        return formula.at(t, u, q, dq), np.arange(len(t))


def _formulas(model: StochasticModel) -> tuple[Formula, ...]:
    """Return A, b, W, H, d, R and C of dX = (A X + b) dt + dV, cov dV = W dt, y = H X + d + e, cov e = R, C dX = 0."""

    def at_zero(formula: ca.SX) -> ca.SX:
        return ca.substitute([ca.densify(formula)], [model.X], [ca.SX.zeros(model.n)])[0]

    rows = (
        at_zero(ca.jacobian(model.drift, model.X)), at_zero(model.drift), ca.mtimes(model.noise, model.noise.T),
        at_zero(ca.jacobian(model.measured, model.X)), at_zero(model.measured), model.variance,
        at_zero(ca.jacobian(model.constraints, model.X)),
    )  # fmt: skip
    return tuple(Formula(model, row) for row in rows)


def varying_message(model: StochasticModel, A: Formula) -> str:
    """Return why the exact filter does not apply."""
    names = [model.structure.system.signals[k].name for k in A.signals]
    what = ", ".join(["time"] * A.depends_on_time + names)
    return (
        f"filter='linear' cuts intervals between samples into at most {MAX_PIECES} pieces, on average, but the "
        f"coefficients of {model.structure.model.name} vary too fast with {what} for that, or its states are too fast: "
        f"hold these inputs (hold='zoh'), or use filter='extended'."
    )


class _Forcing:
    """b on every cell, as polynomials of s; where b is affine in the inputs the matrices are shared by all cells."""

    def __init__(self, b: Formula, cells: RecordCells, q: Floats, dq: Floats, known: Floats | None) -> None:
        self.affine, self.degree = b.is_affine, b.degree(cells)
        if self.affine:
            self.inputs = cells.coefficients[:, b.signals, : self.degree + 1]
            self.shared = b.coefficients(q, dq)[..., 0]
        else:
            self.b = (b.shared_on_cells(cells, q, dq) if known is None else known)[..., 0]

    def carried(self, Psi: Floats, mine: np.ndarray) -> Floats:
        """Return h Σ_k Ψ_k b_k of some cells with derivatives: (cells, 1 + ns, n)."""
        if not self.affine:
            return _apply(Psi, self.b[mine % len(self.b)])
        matrix = np.moveaxis(self.shared, 0, -1)
        moved = [times(block, matrix) for block in Psi]
        # one product for all cells: what is constant, then the inputs' coefficients of every power of s
        columns = [moved[0][..., :1], *(m[..., 1:] for m in moved[: self.inputs.shape[2]])]
        inputs = self.inputs[mine].transpose(0, 2, 1).reshape(len(mine), -1)
        given = np.concatenate([np.ones((len(mine), 1)), inputs], axis=1)
        stacked = np.concatenate(columns, axis=-1).reshape(-1, given.shape[1])
        return np.asarray((given @ stacked.T).reshape(len(mine), *matrix.shape[:2]))

    def carried_each(self, Psi: Floats, mine: np.ndarray) -> Floats:
        """Return the same with Ψ of every cell, (cells, degree + 1, 1 + ns, n, n)."""
        if not self.affine:
            b = self.b[mine % len(self.b)]
            out = np.einsum("kdij,kdsj->ksi", Psi[:, :, 0], b)
            out[:, 1:] += np.einsum("kdsij,kdj->ksi", Psi[:, :, 1:], b[:, :, 0])
            return np.asarray(out)
        matrix, powers = np.moveaxis(self.shared, 0, -1), self.inputs.shape[2]
        given = np.zeros((len(mine), powers, matrix.shape[-1]))
        given[:, 0, 0], given[:, :, 1:] = 1.0, self.inputs[mine].transpose(0, 2, 1)
        b = np.einsum("sjm,kdm->kdsj", matrix, given)
        out = np.einsum("kdij,kdsj->ksi", Psi[:, :powers, 0], b)
        out[:, 1:] += np.einsum("kdsij,kdj->ksi", Psi[:, :powers, 1:], b[:, :, 0])
        return np.asarray(out)


def _apply(Psi: Floats, b: Floats) -> Floats:
    """Return Σ_k Ψ_k b_k with derivatives: (cells, 1 + ns, n)."""
    out = np.einsum("dij,kdsj->ksi", Psi[:, 0], b)
    out[:, 1:] += np.einsum("dsij,kdj->ksi", Psi[:, 1:], b[:, :, 0])
    return np.asarray(out)


def _built_up(cells: RecordCells, F: Floats, F_of: np.ndarray, Q: Floats, Q_of: np.ndarray) -> Floats:
    """Return the covariance after the first sampling interval, from zero."""
    P: Floats = np.zeros_like(Q[0])
    for k in range(int(np.flatnonzero(cells.sample_at >= 0)[1])):
        P = times(times(F[F_of[k]], P), transpose(F[F_of[k]])) + Q[Q_of[k]]
    return P
