"""The normal equations of a spline program, added up point by point by C, which is built once per machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grisaille.collocation.array_types import Floats, Integers, Mask
from grisaille.collocation.compiled_functions import compiled_function
from grisaille.collocation.spline_mesh import LocalBasis


@dataclass(frozen=True, eq=False)
class CollocationPoints:
    """Instants with their signals and basis; ``group`` consecutive ones share their coefficients."""

    t: Floats
    u: Floats
    local: LocalBasis
    group: int

    @cached_property
    def offsets(self) -> tuple[Mask, Integers, Integers]:
        """Entries (groups, m, m) on and below the diagonal of the whole matrix, their distances from it and columns."""
        index = self.local.index[:: self.group]
        i, j = np.broadcast_arrays(index[:, :, None], index[:, None, :])
        lower = np.asarray(i >= j)
        return lower, (i - j)[lower], j[lower]

    def add_to_band(self, band: Floats, blocks: Floats) -> None:
        """Add symmetric blocks (groups, m, m)."""
        lower, distance, column = self.offsets
        band += np.bincount(distance * band.shape[1] + column, blocks[lower], band.size).reshape(band.shape)


@dataclass(frozen=True, eq=False)
class ResidualBlock:
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


class NormalEquations:
    """Gradient and curvature by coefficients (band), unknowns (corner) and both (border)."""

    def __init__(self, count: int, width: int, p: int) -> None:
        self.band, self.border = np.zeros((width + 1, count)), np.zeros((count, p))
        self.gradient, self.slope, self.corner = np.zeros(count), np.zeros(p), np.zeros((p, p))

    def add(
        self,
        points: CollocationPoints,
        U: Floats,
        r: Floats,
        by_state: Floats,
        by_theta: Floats,
        X: Floats,
        *,
        moving: bool,
        curved: tuple[Floats, Floats] | None = None,
    ) -> ResidualBlock:
        """Adds residuals r, whose formulas have the derivatives −by_state, −by_theta (and ẋ itself where ``moving``).

        curved : ∂²(λᵀv)/∂(X, q)² at every point, and dq: what Gauss–Newton leaves out
        """
        local = points.local
        P, n, m = local.phi.shape
        rows, p = r.shape[1], by_theta.shape[2]
        H, dq = curved if curved is not None else (np.zeros((1, 1)), np.zeros((p, 0)))
        sizes = [P, rows, n, m, p, dq.shape[1], len(self.gradient), int(curved is not None), int(moving)]
        part = ResidualBlock(np.zeros((P, rows)), U, np.zeros((P, rows, m)), np.zeros((P, rows, p)), X)
        given = [local.phi, local.slope, local.index, by_state, by_theta, U, r, H, dq]
        filled = [part.residuals, part.by_beta, part.by_theta]
        filled += [self.band, self.border, self.corner, self.gradient, self.slope]
        run = compiled_function("assembly.c", "gr_spline_sums", 19)
        run(
            np.array(sizes, dtype=np.int64), *(np.ascontiguousarray(a) for a in given), *filled,
            np.empty((2 * rows + m + p + n + dq.shape[1]) * (m + p)),
        )  # fmt: skip
        return part
