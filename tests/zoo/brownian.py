"""Paths of stochastic differential equations on a grid, and Brownian paths that can be made coarser.

A Brownian path is kept as ΔW = W(b) − W(a) and ΔZ = ∫(W − W(a)) dt for each cell [a, b]. Joining cells,

    ΔW = Σ ΔW_i        ΔZ = Σ (ΔZ_i + h_i (W(a_i) − W(a))),

gives the same path on a coarser grid, exactly: how fast a scheme converges on one path can then be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.compilation import StepFormula
from grisaille.disturbance import Stream, build_symbolic_process, correlation_matrix, group_correlated
from grisaille.errors import DataError
from grisaille.model import FlatModel
from grisaille.numerics import Purpose
from grisaille.structure import ParameterValues

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BrownianPath:
    """Independent Wiener processes on a grid, several realizations."""

    grid: Floats
    dW: Floats
    """(M, cells, components)"""
    dZ: Floats
    """(M, cells, components)"""

    @property
    def value(self) -> Floats:
        """W at the grid points, (M, cells + 1, components)."""
        return np.concatenate([np.zeros_like(self.dW[:, :1]), np.cumsum(self.dW, axis=1)], axis=1)

    def coarsen(self, factor: int) -> BrownianPath:
        """The same path with ``factor`` cells joined to one."""
        m, cells, n = self.dW.shape
        if cells % factor:
            raise DataError(f"{cells} cells cannot be joined in groups of {factor}.")
        h = np.diff(self.grid)[:, None]
        start = self.value[:, :-1]
        area = (self.dZ + h * start).reshape(m, -1, factor, n).sum(axis=2)
        length = h.reshape(-1, factor).sum(axis=1)[:, None]
        return BrownianPath(
            self.grid[::factor], self.dW.reshape(m, -1, factor, n).sum(axis=2), area - length * start[:, ::factor]
        )

    def normals(self) -> Floats:
        """The standard normals of the stochastic steps: ΔW/√h, then (ΔZ/h − ΔW/2) √(12/h); (M, cells, 2n)."""
        h = np.diff(self.grid)[:, None]
        return np.concatenate([self.dW / np.sqrt(h), (self.dZ / h - 0.5 * self.dW) * np.sqrt(12.0 / h)], axis=2)


def draw_brownian(
    grid: ArrayLike, components: int, seed: int, realizations: int, name: str = "w", purpose: Purpose = Purpose.DATA
) -> BrownianPath:
    """Paths that are functions of (seed, purpose, name; realization, cell)."""
    times = np.asarray(grid, dtype=float)
    stream = Stream.of(seed, purpose, name)
    z = stream.normals(np.arange(realizations)[:, None], np.arange(1, times.size), 2 * components)
    h = np.diff(times)[:, None]
    dW = np.sqrt(h) * z[..., :components]
    return BrownianPath(times, dW, h * (0.5 * dW + np.sqrt(h / 12.0) * z[..., components:]))


def simulate_sde(
    step: StepFormula,
    x0: ArrayLike,
    grid: ArrayLike,
    normals: ArrayLike,
    p: ArrayLike = (),
    signals: ArrayLike | None = None,
    nominal: ArrayLike = 1.0,
) -> Floats:
    """States at the grid points, (M, cells + 1, nx); one step per cell.

    x0      : (nx,) or (M, nx)
    normals : (M, cells, ≥ nv) standard normals; each step reads its first nv
    p       : parameters followed by the entries of D, column by column
    signals : (cells + 1, nu) or (M, cells + 1, nu), linear between grid points; zero when not given
    """
    times, z = np.asarray(grid, dtype=float), np.asarray(normals, dtype=float)
    m, nx, nu, nv = z.shape[0], step.x.numel(), step.signals[0].numel(), step.noise.numel()
    given = np.zeros((1, times.size, nu)) if signals is None else np.atleast_3d(np.asarray(signals, dtype=float))
    u = np.broadcast_to(given, (m, times.size, nu))
    advance = ca.Function(
        "advance", [step.x, *step.signals, step.noise, step.t, step.h, step.p, step.nominal], [step.after]
    )
    x = np.empty((m, times.size, nx))
    x[:, 0] = np.asarray(x0, dtype=float)
    values, scale = np.asarray(p, dtype=float), np.broadcast_to(np.asarray(nominal, dtype=float), nx)
    many = advance.map("many", "serial", m, [5, 6, 7, 8], [])
    for k, (t, h) in enumerate(zip(times[:-1], np.diff(times), strict=True)):
        ua, ub = u[:, k].T, u[:, k + 1].T
        x[:, k + 1] = many(x[:, k].T, ua, 0.5 * (ua + ub), ub, z[:, k, :nv].T, t, h, values, scale).full().T
    return x


def noise_root(model: FlatModel, names: Sequence[str], values: ParameterValues) -> tuple[Floats, Floats]:
    """D of the white disturbances ``names``, (nw, nw), and ∂D/∂p, (nw, nw, np); p are all parameters of the model."""
    known: Mapping[str, float] = dict(zip(values.names, values.values.tolist(), strict=True))
    symbols = {n: ca.SX.sym(f"p{k}") for k, n in enumerate(values.names)}
    root = ca.SX(len(names), len(names))
    place = {n: i for i, n in enumerate(names)}
    for group in group_correlated({n: d for n, d in model.disturbances.items()}):
        if not group[0].spectrum.is_white:
            continue
        process = build_symbolic_process(
            [d.name for d in group], [d.spectrum for d in group], [1.0 if d.scale is None else d.scale for d in group],
            correlation_matrix(group), symbols.__getitem__, known,
        )  # fmt: skip
        rows = [place[d.name] for d in group]
        root[rows, rows] = process.D
    p = ca.vertcat(*symbols.values()) if symbols else ca.SX(0, 1)
    slopes = ca.jacobian(ca.densify(ca.vec(root)), p)
    D, dD = ca.Function("root", [p], [ca.densify(root), ca.densify(slopes)])(values.values)
    nw = len(names)
    return np.array(D.full()).reshape(nw, nw), np.array(dD.full()).reshape(nw, nw, len(values.names), order="F")
