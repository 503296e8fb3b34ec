"""Disturbances sampled beforehand, for a few realizations at a time: splines and bridges between grid points.

Values at grid points are those of the filters (``sample_path``) in every case. Between them, ``"linear"`` joins them by
lines (by ``hermite`` polynomials where derivatives are needed too), ``"spline"`` by a cubic spline through all of them,
and ``"exact"`` draws from the process's own bridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance import Process, interpolate, piece_coefficients, sample_bridged_path, sample_path
from grisaille.disturbance.paths import multiply
from grisaille.simulation.ensembles.hermite import piece_polynomials

if TYPE_CHECKING:
    from grisaille.simulation.ensembles.disturbances import DrivenComponent
    from grisaille.simulation.ensembles.engines import EnsembleSetup

Floats = NDArray[np.float64]


def sample_stages(s: EnsembleSetup, members: NDArray[np.int64], end: int) -> dict[int, Floats]:
    """Return place in u → (realizations, end · (2 substeps + 1) + 1): at every half step of each cell up to grid point
    end.
    """
    points = s.grid.points
    halves = half_steps(points[: end + 1], s.substeps)
    n = 2 * s.substeps
    found: dict[int, Floats] = {}
    for process, signals in zip(s.disturbances.processes(s.values), s.disturbances.driven, strict=True):
        for signal, at in zip(signals, _values(s, process, signals, members, halves), strict=True):
            cells = np.stack([at[:, j : at.shape[1] - n + j : n] for j in range(n + 1)], axis=2)
            found[signal.place] = np.column_stack([cells.reshape(len(members), -1), at[:, -1]])
    return found


def sample_pieces(s: EnsembleSetup, members: NDArray[np.int64]) -> tuple[Floats, dict[int, Floats]]:
    """Return breaks, and place in u → polynomials between them, (realizations, pieces, degree + 1).

    Bridges are handed over as lines between quarters of the cells.
    """
    breaks = half_steps(s.grid.points, 2) if s.between == "exact" else s.grid.points
    found: dict[int, Floats] = {}
    for process, signals in zip(s.disturbances.processes(s.values), s.disturbances.driven, strict=True):
        at = _values(s, process, signals, members, breaks)
        for signal in signals:
            chain = [at[i] for i, other in enumerate(signals) if other.component == signal.component]
            found[signal.place] = _pieces(s, breaks, np.stack(chain, axis=-1), signal.order)
    return breaks, found


def _pieces(s: EnsembleSetup, breaks: Floats, chain: Floats, order: int) -> Floats:
    """Return polynomials of one signal from its disturbance and the derivatives in u, (realizations, times, orders)."""
    if s.between != "linear":
        kind: Literal["linear", "spline"] = "spline" if s.between == "spline" else "linear"
        return piece_coefficients(breaks, chain[..., order, None], kind)[:, :, 0]
    return piece_polynomials(chain[:, :-1], chain[:, 1:], np.diff(breaks), order)


def half_steps(points: Floats, substeps: int) -> Floats:
    """Return grid points and the halves of all steps between them."""
    fractions = np.arange(2 * substeps) / (2 * substeps)
    inner = points[:-1, None] + np.diff(points)[:, None] * fractions
    return np.append(inner.ravel(), points[-1])


def _values(
    s: EnsembleSetup,
    process: Process,
    signals: tuple[DrivenComponent, ...],
    members: NDArray[np.int64],
    instants: Floats,
) -> list[Floats]:
    """Return each signal at the instants, (realizations, instants)."""
    roots = s.grid.roots
    given = (process, roots, s.draw.seed, members + s.draw.first, s.draw.purpose)
    rows = np.array([process.output_map(d.order)[d.component] for d in signals])
    if s.between == "exact":
        path = sample_bridged_path(*given, antithetic=s.draw.antithetic)
        on_grid, at = multiply(rows, path.states), multiply(rows, path.states_at(instants))
    else:
        on_grid = multiply(rows, sample_path(*given, antithetic=s.draw.antithetic))
        if instants.size == roots.size:
            return [on_grid[..., i] for i in range(len(signals))]
        at = interpolate(roots, on_grid, instants, "spline")
    # to the last bit, where interpolation would be right to rounding
    at[:, np.isin(instants, roots)] = on_grid[:, np.isin(roots, instants)]
    return [at[..., i] for i in range(len(signals))]
