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

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.disturbance.discretization import balanced_norm, discretize
from grisaille.disturbance.factorization import factorize
from grisaille.disturbance.paths import multiply
from grisaille.disturbance.process import Process
from grisaille.disturbance.standard_normals import Stream
from grisaille.errors import DataError

Floats = NDArray[np.float64]

MAX_LEVELS = 31
"""Levels below which node numbers would not fit 32 bits; there a rough path has 2e-5 of the cell's deviation left."""

BRIDGE_TOLERANCE = 1e-3


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
        """Return states at fractions (q,) of cells whose ends have the states ``left`` and ``right``, (q, n)."""
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

    def mean_coefficients(self, left: Floats, right: Floats) -> Floats:
        """Return the conditional mean in leaves with these ends: coefficients of powers of f, (degree + 1, …, n)."""
        surprise = right - multiply(self.transition[-1], left)
        pairs = zip(self.leaf_transition, self.leaf_gain, strict=True)
        return np.stack([multiply(F, left) + multiply(K, surprise) for F, K in pairs])

    def _mean(self, f: Floats, left: Floats, right: Floats) -> Floats:
        value = np.zeros_like(left)
        for coefficient in self.mean_coefficients(left, right)[::-1]:
            value = value * f + coefficient
        return value


def build_bridge(
    process: Process, step: float, tolerance: float = BRIDGE_TOLERANCE, depth: int | None = None
) -> Bridge:
    """Return the bridge over cells of length ``step``.

    tolerance : the last level is the first whose deviation is below this part of the disturbance's stationary deviation
                (of its deviation over one cell when it has none), in every component
    depth     : the number of levels instead, kept while parameters move so that criteria stay smooth
    """
    levels = choose_depth(process, step, tolerance) if depth is None else depth
    F, K, C = _middles(process, step, levels)
    return Bridge(F, K, factorize(C), *_leaf(process, step * 2.0**-levels))


def choose_depth(process: Process, step: float, tolerance: float = BRIDGE_TOLERANCE) -> int:
    """Return the first level at which the bridge deviates from its mean by less than the tolerance."""
    if not tolerance > 0:
        raise DataError(f"tolerance={tolerance:g}: the bridge of a disturbance needs a tolerance above zero.")
    C = _middles(process, step, MAX_LEVELS)[2]
    deviation = np.sqrt(np.einsum("im,lmn,in->li", process.C, C, process.C))
    fine = np.all(deviation <= tolerance * _reference_deviation(process, step), axis=1)
    first = int(np.argmax(fine)) if fine.any() else MAX_LEVELS
    # the polynomials of the leaf are short because |A| times its length is at most one half
    return max(first, min(MAX_LEVELS, int(np.ceil(np.log2(max(1.0, 2 * balanced_norm(process.A) * step))))))


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
    """Return X Q⁻¹ for stacks; where Q is singular, by a generalised inverse on its independent coordinates."""
    L, n = factorize(Q), Q.shape[-1]
    pivot = np.diagonal(L, axis1=-2, axis2=-1)[:, None, :]
    inverse = np.divide(1.0, pivot, out=np.zeros_like(pivot), where=pivot > 0)
    Y, Z = np.zeros_like(X), np.zeros_like(X)
    for j in range(n):
        known = np.einsum("sik,sk->si", Y[..., :j], L[:, j, :j])
        Y[..., j] = (X[..., j] - known) * inverse[..., j]
    for j in reversed(range(n)):
        known = np.einsum("sik,sk->si", Z[..., j + 1 :], L[:, j + 1 :, j])
        Z[..., j] = (Y[..., j] - known) * inverse[..., j]
    return Z


def _transposed(X: Floats) -> Floats:
    return np.swapaxes(X, -1, -2)


def _reference_deviation(process: Process, step: float) -> Floats:
    if np.all(np.linalg.eigvals(process.A).real < 0):
        variance = process.stationary_variance()
    else:
        variance = process.C @ discretize(process.A, process.intensity, step)[1] @ process.C.T
    return np.sqrt(np.diag(variance))
