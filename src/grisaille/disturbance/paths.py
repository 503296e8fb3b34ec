"""Paths of a process on a grid: states by forward recursion, the same for every number and order of realizations.

::

    x₀ = chol(P) z₀        x_k = F x_{k−1} + chol(Q) z_k        z_k = normals(seed, purpose, name; realization, k)

F and Q belong to the step, so a grid has one pair for each distinct step. The innovations z do not depend on
parameters: paths at other parameter values are smooth deformations of each other (common random numbers). Sums run in a
fixed order, the one of kernels/gr_bridge.h, so that digits do not depend on how many paths are made together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.disturbance.discretization import discretize, distinct_steps
from grisaille.disturbance.factorization import factorize
from grisaille.disturbance.process import Process
from grisaille.disturbance.standard_normals import Stream, index_list
from grisaille.errors import DataError
from grisaille.numerics.philox import Purpose

Floats = NDArray[np.float64]

NORMALS_PER_SLAB = 1 << 20
"""Normals drawn at a time."""
MAX_SCALAR_REALIZATIONS = 3
"""Realizations up to which Python's own numbers are quicker than arrays."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """One step of the recursion for each distinct step of a grid."""

    steps: Floats
    which: NDArray[np.int64]
    """(cells,): index into ``steps``."""
    F: Floats
    """(steps, n, n)"""
    L: Floats
    """(steps, n, n), lower triangular, L Lᵀ = Q."""


def make_transitions(
    process: Process, times: ArrayLike, distinct: tuple[Floats, NDArray[np.int64]] | None = None
) -> Transitions:
    """Return F and chol(Q) for each distinct step of ``times``, where these are known already: of ``distinct``."""
    steps, which = distinct_steps(times) if distinct is None else distinct
    F, Q = discretize(process.A, process.intensity, steps)
    return Transitions(steps, which, F, factorize(Q))


def sample_path(
    process: Process, times: ArrayLike, seed: int, realizations: ArrayLike = 1, purpose: Purpose | str = Purpose.DATA,
    *, antithetic: bool = False, start: ArrayLike | None = None, first: int = 0,
) -> Floats:  # fmt: skip
    """Return states at the grid times, (realizations, times, n); the disturbance is ``states @ process.C.T``.

    realizations : which ones; a number n stands for 0, …, n − 1
    start        : (n,) or (realizations, n) state at times[0] instead of the process's own start
    first        : number of the grid point times[0]: with ``start``, goes on from a state kept earlier
    """
    if process.is_white:
        raise DataError(
            f"{process.label}: white noise has no value at an instant, only increments (sample_increments)."
        )
    chosen = index_list(realizations)
    stream = Stream.of(seed, purpose, process.names[0], antithetic)
    grid = np.asarray(times, dtype=float)
    steps = make_transitions(process, grid)
    x = np.empty((chosen.size, grid.size, process.order))
    x[:, 0] = _start(process, stream, chosen, start, first)
    (_one_by_one if chosen.size <= MAX_SCALAR_REALIZATIONS else _side_by_side)(stream, chosen, first, steps, x)
    return x


def sample_increments(
    process: Process, times: ArrayLike, seed: int, realizations: ArrayLike = 1, purpose: Purpose | str = Purpose.DATA,
    *, antithetic: bool = False,
) -> Floats:  # fmt: skip
    """Return ∫ w dt over each cell of the grid for white noise w, (realizations, cells, m): D √h z."""
    if not process.is_white:
        raise DataError(f"{process.label} is not white: it has values at instants (sample_path).")
    distinct_steps(times)
    chosen, steps = index_list(realizations), np.diff(np.asarray(times, dtype=float))
    stream = Stream.of(seed, purpose, process.names[0], antithetic)
    z = stream.normals(chosen[:, None], np.arange(1, steps.size + 1), len(process.names))
    return multiply(process.D, z) * np.sqrt(steps)[:, None]


def multiply(M: Floats, x: Floats) -> Floats:
    """Return M x for vectors in the last dimension of x, summed from the first column to the last."""
    total = M[:, 0] * x[..., 0, None]
    for j in range(1, M.shape[1]):
        total = total + M[:, j] * x[..., j, None]
    return total


def _one_by_one(stream: Stream, chosen: NDArray[np.int64], first: int, transitions: Transitions, x: Floats) -> None:
    """The recursion in numbers, one path after the other: the same sums in the same order, digit for digit."""
    n = x.shape[2]
    matrices, slab = transitions.F.tolist(), max(1, NORMALS_PER_SLAB // n)
    for m in range(chosen.size):
        state = x[m, 0].tolist()
        for begin in range(0, x.shape[1] - 1, slab):
            which = transitions.which[begin : begin + slab]
            z = stream.normals(chosen[m], first + 1 + begin + np.arange(which.size), n)
            kicks = _products(transitions.L[which] if len(matrices) > 1 else transitions.L, z)
            path = []
            for F, kick in zip((matrices[i] for i in which.tolist()), kicks.tolist(), strict=True):
                state = [_row_times(row, state) + e for row, e in zip(F, kick, strict=True)]
                path.append(state)
            x[m, begin + 1 : begin + 1 + which.size] = path


def _side_by_side(stream: Stream, chosen: NDArray[np.int64], first: int, transitions: Transitions, x: Floats) -> None:
    """All paths at once, realizations last: a step is the products of one column of F after the other."""
    n, count = x.shape[2], chosen.size
    slab = max(1, NORMALS_PER_SLAB // (count * n))
    columns = [[np.ascontiguousarray(F[:, j, None]) for j in range(n)] for F in transitions.F]
    state, product = np.ascontiguousarray(x[:, 0].T), np.empty((n, count))
    for begin in range(0, x.shape[1] - 1, slab):
        which = transitions.which[begin : begin + slab]
        z = stream.normals(chosen, first + 1 + begin + np.arange(which.size)[:, None], n)
        path = np.ascontiguousarray(np.moveaxis(_products(transitions.L[which][:, None], z), 2, 1))
        for k, i in enumerate(which.tolist()):
            total = columns[i][0] * state[0]
            for j in range(1, n):
                np.multiply(columns[i][j], state[j], out=product)
                total += product
            state = np.add(total, path[k], out=path[k])
        x[:, begin + 1 : begin + 1 + which.size] = np.moveaxis(path, 2, 0)


def _row_times(row: list[float], state: list[float]) -> float:
    total = row[0] * state[0]
    for j in range(1, len(row)):
        total = total + row[j] * state[j]
    return total


def _products(M: Floats, x: Floats) -> Floats:
    """Return M_k x_k for a stack of matrices, or one for all, in the order of ``multiply``."""
    total = M[..., 0] * x[..., 0, None]
    for j in range(1, M.shape[-1]):
        total = total + M[..., j] * x[..., j, None]
    return np.asarray(total)


def _start(process: Process, stream: Stream, chosen: NDArray[np.int64], start: ArrayLike | None, first: int) -> Floats:
    if start is not None:
        given = np.asarray(start, dtype=float)
        if given.shape not in ((process.order,), (chosen.size, process.order)):
            raise DataError(
                f"{process.label}: the start has shape {given.shape}; expected {(process.order,)}, or one row for "
                f"each of {chosen.size} realizations."
            )
        return np.broadcast_to(given, (chosen.size, process.order))
    if first:
        raise DataError(f"{process.label}: continuing from grid point {first} needs the state there: start=.")
    return multiply(factorize(process.start_covariance()), stream.normals(chosen, 0, process.order))
