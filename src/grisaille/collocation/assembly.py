"""The normal equations of a spline program, added up point by point: by compiled C, or by NumPy.

The C code depends on no model and is built once per machine. Where models are interpreted NumPy gives the
same sums, some ten times slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grisaille.collocation.arrays import Floats, Integers, Mask
from grisaille.collocation.mesh import Local
from grisaille.collocation.native import native


@dataclass(frozen=True, eq=False)
class Points:
    """Instants with their signals and basis; ``group`` consecutive ones share their coefficients."""

    t: Floats
    u: Floats
    local: Local
    group: int

    @cached_property
    def index(self) -> Integers:
        """(groups, m) coefficients of each group."""
        return self.local.index[:: self.group]

    @cached_property
    def lower(self) -> Mask:
        """(groups, m, m): entries on and below the diagonal of the whole matrix."""
        return np.asarray(self.index[:, :, None] >= self.index[:, None, :])

    @cached_property
    def offsets(self) -> tuple[Integers, Integers]:
        """Distances from the diagonal and columns of those entries."""
        i, j = np.broadcast_arrays(self.index[:, :, None], self.index[:, None, :])
        return (i - j)[self.lower], j[self.lower]

    def add_to_band(self, band: Floats, blocks: Floats) -> None:
        """Adds symmetric blocks (groups, m, m)."""
        distance, column = self.offsets
        band += np.bincount(distance * band.shape[1] + column, blocks[self.lower], band.size).reshape(band.shape)

    def add_up(self, rows: Floats, count: int) -> Floats:
        """Σ of (groups, m, …) at the coefficients they belong to, (count, …)."""
        flat = rows.reshape(len(rows) * rows.shape[1], -1)
        where = self.index.ravel()
        return np.column_stack([np.bincount(where, column, count) for column in flat.T])


@dataclass(frozen=True, eq=False)
class Part:
    """Residuals ρ = U r at points, with U = (weight W⁻¹)^{1/2}, and their Jacobians."""

    residuals: Floats
    """(P, r) ρ"""
    root: Floats
    """(P, r, r) U"""
    by_beta: Floats
    """(P, r, m) ∂ρ/∂β of the coefficients that act"""
    by_theta: Floats
    """(P, r, p)"""
    X: Floats


class Sums:
    """Gradient and curvature by coefficients (band), unknowns (corner) and both (border)."""

    def __init__(self, count: int, width: int, p: int) -> None:
        self.band, self.border = np.zeros((width + 1, count)), np.zeros((count, p))
        self.gradient, self.slope, self.corner = np.zeros(count), np.zeros(p), np.zeros((p, p))

    def add(
        self,
        points: Points,
        U: Floats,
        r: Floats,
        by_state: Floats,
        by_theta: Floats,
        X: Floats,
        *,
        moving: bool,
        curved: tuple[Floats, Floats] | None = None,
    ) -> Part:
        """Adds residuals r, whose formulas have the derivatives −by_state, −by_theta (and ẋ itself where ``moving``).

        curved : ∂²(λᵀv)/∂(X, q)² at every point, and dq: what Gauss–Newton leaves out
        """
        run = native("assembly.c", "gr_spline_sums", 19)
        add = _add_compiled if run is not None else _add_interpreted
        return add(self, run, points, U, r, by_state, by_theta, X, moving, curved)


def _add_interpreted(
    sums: Sums, _: Any, points: Points, U: Floats, r: Floats, by_state: Floats, by_theta: Floats, X: Floats,
    moving: bool, curved: tuple[Floats, Floats] | None,
) -> Part:  # fmt: skip
    local, m = points.local, points.local.index.shape[1]
    by_beta = (local.slope if moving else 0.0) - by_state @ local.phi
    part = Part((U @ r[:, :, None])[:, :, 0], U, U @ by_beta, -U @ by_theta, X)
    J = np.concatenate([part.by_beta, part.by_theta], axis=2)
    J, rho = J.reshape(len(J) // points.group, -1, J.shape[2]), part.residuals.reshape(len(J) // points.group, -1)
    A, g = np.swapaxes(J, 1, 2) @ J, (rho[:, None, :] @ J)[:, 0]
    if curved is not None:
        H, dq = curved
        n = local.phi.shape[1]
        by = np.zeros((len(H), H.shape[1], m + len(dq)))
        by[:, :n, :m], by[:, n:, m:] = local.phi, dq.T
        bent = np.swapaxes(by, 1, 2) @ H @ by
        A = A + bent.reshape(-1, points.group, *bent.shape[1:]).sum(axis=1)
    points.add_to_band(sums.band, A[:, :m, :m])
    added = points.add_up(np.concatenate([A[:, :m, m:], g[:, :m, None]], axis=2), len(sums.gradient))
    sums.border += added[:, :-1]
    sums.gradient += added[:, -1]
    sums.slope += g[:, m:].sum(axis=0)
    sums.corner += A[:, m:, m:].sum(axis=0)
    return part


def _add_compiled(
    sums: Sums, run: Any, points: Points, U: Floats, r: Floats, by_state: Floats, by_theta: Floats, X: Floats,
    moving: bool, curved: tuple[Floats, Floats] | None,
) -> Part:  # fmt: skip
    local = points.local
    P, n, m = local.phi.shape
    rows, p = r.shape[1], by_theta.shape[2]
    H, dq = curved if curved is not None else (np.zeros((1, 1)), np.zeros((p, 0)))
    sizes = [P, rows, n, m, p, dq.shape[1], len(sums.gradient), int(curved is not None), int(moving)]
    size = np.array(sizes, dtype=np.int64)
    part = Part(np.zeros((P, rows)), U, np.zeros((P, rows, m)), np.zeros((P, rows, p)), X)
    given = [local.phi, local.slope, local.index, by_state, by_theta, U, r, H, dq]
    arrays = [np.ascontiguousarray(a) for a in given]
    filled = [part.residuals, part.by_beta, part.by_theta]
    filled += [sums.band, sums.border, sums.corner, sums.gradient, sums.slope]
    run(size, *arrays, *filled, np.empty((2 * rows + m + p + n + dq.shape[1]) * (m + p)))
    return part
