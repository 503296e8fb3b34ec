"""Values of a process between grid points: its own Gaussian bridge, at any instant, in any order.

Each cell [τ_k, τ_{k+1}] is the root of a tree of halvings. At the middle of an interval, given both ends,

    x = F x_left + K (x_right − F² x_left) + chol(C) z        K = Q Fᵀ (Q + F Q Fᵀ)⁻¹
    C = (I − K F) Q (I − K F)ᵀ + K Q Kᵀ

with F, Q over half of it and z drawn under the number of the node: values do not depend on what was asked before, and
all components share a node, so correlations are kept. The matrices depend on the level only. In a leaf of length h the
conditional mean is taken, with polynomials of the fraction f,

    x = F(fh) x_left + K(f) (x_right − F(h) x_left)           K(f) = S(fh) F(h)ᵀ Q(h)⁻¹

where S(s) = Q(s) e^{−Aᵀs} solves S' = A S + W e^{−Aᵀs}: never a last draw, because two instants in one leaf would
disagree. Gains act on differences from the prediction: those are small where gains are large and known to few digits
(long chains of filters). Twin of kernels/gr_bridge.h, operation for operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from grisaille.disturbance.discretization import balanced_norm, discretize, distinct_steps
from grisaille.disturbance.factorization import factorize, pivots
from grisaille.disturbance.normal import Stream, index_list
from grisaille.disturbance.paths import multiply, sample_path
from grisaille.disturbance.philox import Purpose
from grisaille.disturbance.process import Process
from grisaille.errors import DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEEPEST = 31
"""Levels below which node numbers would not fit 32 bits; there a rough path has 2e-5 of the cell's deviation left."""

TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Bridge:
    """The matrices for cells of one length."""

    transition: Floats
    """(depth + 1, n, n): F over intervals of each level, from the cell to the leaf."""
    gain: Floats
    """(depth, n, n): K of each level."""
    root: Floats
    """(depth, n, n): chol(C), lower triangular."""
    leaf_transition: Floats
    """(degree + 1, n, n): F(fh) in the leaf, coefficients from the constant up."""
    leaf_gain: Floats
    """(degree + 1, n, n): K(f), likewise."""

    @property
    def depth(self) -> int:
        return len(self.gain)

    def states(
        self, stream: Stream, realization: ArrayLike, cell: ArrayLike, fraction: Floats, left: Floats, right: Floats
    ) -> Floats:
        """States at fractions (q,) of cells whose ends have the states ``left`` and ``right``, (q, n)."""
        f, node = np.array(fraction, dtype=float), np.ones(np.shape(fraction), dtype=np.int64)
        for level in range(self.depth):
            z = stream.normals(realization, cell, left.shape[-1], node)
            surprise = right - multiply(self.transition[level], left)
            middle = multiply(self.transition[level + 1], left) + multiply(self.gain[level], surprise)
            middle = middle + multiply(self.root[level], z)
            upper = f >= 0.5
            left, right = np.where(upper[:, None], middle, left), np.where(upper[:, None], right, middle)
            f = np.where(upper, 2 * f - 1, 2 * f)
            node = 2 * node + upper
        return self._mean(f[:, None], left, right)

    def _mean(self, f: Floats, left: Floats, right: Floats) -> Floats:
        surprise = right - multiply(self.transition[-1], left)
        value = np.zeros_like(left)
        for F, K in zip(self.leaf_transition[::-1], self.leaf_gain[::-1], strict=True):
            value = value * f + (multiply(F, left) + multiply(K, surprise))
        return value


def build_bridge(process: Process, step: float, tolerance: float = TOLERANCE, depth: int | None = None) -> Bridge:
    """The bridge over cells of length ``step``.

    tolerance : the last level is the first whose deviation is below this part of the disturbance's stationary deviation
                (of its deviation over one cell when it has none), in every component
    depth     : the number of levels instead, kept while parameters move so that criteria stay smooth
    """
    levels = choose_depth(process, step, tolerance) if depth is None else depth
    F, K, C = _middles(process, step, levels)
    return Bridge(F, K, factorize(C), *_leaf(process, step * 2.0**-levels))


def choose_depth(process: Process, step: float, tolerance: float = TOLERANCE) -> int:
    """The first level at which the bridge deviates from its mean by less than the tolerance."""
    if not tolerance > 0:
        raise DataError(f"tolerance={tolerance:g}: the bridge of a disturbance needs a tolerance above zero.")
    C = _middles(process, step, DEEPEST)[2]
    deviation = np.sqrt(np.einsum("im,lmn,in->li", process.C, C, process.C))
    fine = np.all(deviation <= tolerance * _reference_deviation(process, step), axis=1)
    first = int(np.argmax(fine)) if fine.any() else DEEPEST
    # the polynomials of the leaf are short because |A| times its length is at most one half
    return max(first, min(DEEPEST, int(np.ceil(np.log2(max(1.0, 2 * balanced_norm(process.A) * step))))))


@dataclass(frozen=True, eq=False)
class BridgedPath:
    """Paths on a grid together with everything between its points."""

    process: Process
    times: Floats
    states: Floats
    """(realizations, times, n)"""
    realizations: Integers
    stream: Stream
    bridges: Sequence[Bridge]
    which: Integers
    """(cells,): index into ``bridges``."""

    def states_at(self, instants: ArrayLike) -> Floats:
        """States at any instants inside the grid, in any order, (realizations, instants, n)."""
        t = np.asarray(instants, dtype=float)
        if t.size and not (t.min() >= self.times[0] and t.max() <= self.times[-1]):
            raise DataError(
                f"{self.process.label} was asked for at t = {t.min():g} … {t.max():g}, but its grid spans "
                f"{self.times[0]:g} … {self.times[-1]:g}. Extend the grid."
            )
        cell = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, self.times.size - 2)
        fraction = (t - self.times[cell]) / (self.times[cell + 1] - self.times[cell])
        out = np.empty((self.realizations.size, t.size, self.states.shape[-1]))
        for i, bridge in enumerate(self.bridges):
            here = np.flatnonzero(self.which[cell] == i)
            out[:, here] = self._in_cells(bridge, cell[here], fraction[here])
        return out

    def at(self, instants: ArrayLike, derivative: int = 0) -> Floats:
        """The disturbance, or a derivative that exists, (realizations, instants, m)."""
        return multiply(self.process.output_map(derivative), self.states_at(instants))

    def _in_cells(self, bridge: Bridge, cell: Integers, fraction: Floats) -> Floats:
        m, q, n = self.realizations.size, cell.size, self.states.shape[-1]
        ends = (self.states[:, cell].reshape(-1, n), self.states[:, cell + 1].reshape(-1, n))
        numbers = np.repeat(self.realizations, q), np.tile(cell, m)
        return bridge.states(self.stream, *numbers, np.tile(fraction, m), *ends).reshape(m, q, n)


def sample_bridged_path(
    process: Process, times: ArrayLike, seed: int, realizations: ArrayLike = 1, purpose: Purpose | str = Purpose.DATA,
    *, antithetic: bool = False, tolerance: float = TOLERANCE, depth: int | None = None,
) -> BridgedPath:  # fmt: skip
    """Paths that can be asked at any instant of the grid's span; on the grid they are those of ``sample_path``."""
    chosen = index_list(realizations)
    states = sample_path(process, times, seed, chosen, purpose, antithetic=antithetic)
    steps, which = distinct_steps(times)
    bridges = [build_bridge(process, float(h), tolerance, depth) for h in steps]
    stream = Stream.of(seed, purpose, process.names[0], antithetic)
    return BridgedPath(process, np.asarray(times, dtype=float), states, chosen, stream, bridges, which)


def _middles(process: Process, step: float, depth: int) -> tuple[Floats, Floats, Floats]:
    all_F, all_Q = discretize(process.A, process.intensity, step * 0.5 ** np.arange(depth + 1))
    F, Q = all_F[1:], all_Q[1:]
    K = _divide(Q @ _transposed(F), Q + F @ Q @ _transposed(F))
    J = np.eye(process.order) - K @ F
    return all_F, K, J @ Q @ _transposed(J) + K @ Q @ _transposed(K)


def _leaf(process: Process, h: float) -> tuple[Floats, Floats]:
    A, W, n = process.A * h, process.intensity * h, process.order
    if balanced_norm(A) > 2:
        raise DataError(
            f"{process.label}: cells of {h:g} are too long for the conditional mean between their ends (‖A‖h = "
            f"{balanced_norm(A):.3g}, at most 2). Use a deeper bridge, or leave depth= to the tolerance."
        )
    F, Q = discretize(A, W, 1.0)
    transition, S, backward = [np.eye(n)], [np.zeros((n, n))], W
    for k in range(1, 2 * n + 25):
        S.append((A @ S[-1] + backward) / k)
        backward = -backward @ A.T / k
        transition.append(A @ transition[-1] / k)
    gain = _divide(np.array(S) @ F.T, np.broadcast_to(Q, (len(S), n, n)))
    return _trimmed(np.array(transition), gain, Q)


def _trimmed(transition: Floats, gain: Floats, Q: Floats) -> tuple[Floats, Floats]:
    """Without the highest powers that change nothing, measured in units of the process over the leaf."""
    scale = np.sqrt(np.diag(Q))
    scale = np.where(scale > 0, scale, 1.0)
    size = np.max(np.abs(np.stack([transition, gain])) * scale / scale[:, None], axis=(0, 2, 3))
    degree = int(np.max(np.flatnonzero(size > 1e-17 * np.max(size)), initial=1))
    return transition[: degree + 1], gain[: degree + 1]


def _divide(X: Floats, Q: Floats) -> Floats:
    """X Q⁻¹ for stacks; where Q is singular, by a generalised inverse on its independent coordinates."""
    L = factorize(Q)
    out = np.zeros_like(X)
    for i in range(len(X)):
        kept = np.flatnonzero(pivots(L[i]))
        triangle = L[i][np.ix_(kept, kept)]
        half = solve_triangular(triangle, X[i][:, kept].T, lower=True)
        out[i][:, kept] = solve_triangular(triangle, half, lower=True, trans="T").T
    return out


def _transposed(X: Floats) -> Floats:
    return np.swapaxes(X, -1, -2)


def _reference_deviation(process: Process, step: float) -> Floats:
    if np.all(np.linalg.eigvals(process.A).real < 0):
        variance = process.stationary_variance()
    else:
        variance = process.C @ discretize(process.A, process.intensity, step)[1] @ process.C.T
    return np.sqrt(np.diag(variance))
