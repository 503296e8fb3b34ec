"""What a batch of frozen trajectories is given and gives: arrays checked, made contiguous, and counted.

Every array may be common to all realizations or have one more leading dimension, the realization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.compilation.moments import Moments
from grisaille.errors import DataError

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


class Sizes(Protocol):
    """The dimensions of a fused step; ``ny`` counts what it observes, ``ns`` its sensitivity directions."""

    @property
    def nx(self) -> int: ...
    @property
    def nu(self) -> int: ...
    @property
    def np(self) -> int: ...
    @property
    def ny(self) -> int: ...
    @property
    def ns(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Frozen:
    """What a batch gave. Rows of ``y`` belong to the grid points ``kept``; without them there are ``moments``."""

    kept: NDArray[np.int64]
    x: Floats
    """(M, nx), at the last grid point."""
    sx: Floats
    """(M, ns, nx), likewise."""
    y: Floats | None
    """(M, n_kept, ny)"""
    sy: Floats | None
    """(M, n_kept, ns, ny)"""
    moments: Moments | None
    failed: NDArray[np.int64]
    """(M,): the first kept (or last) grid index at which a state was not finite; -1 if all were."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The arrays of one run; ``held[i]`` is 1 where signal i is constant over a cell."""

    grid: Floats
    substeps: int
    x0: Floats
    p: Floats
    nominal: Floats
    signals: tuple[Floats, ...]
    held: NDArray[np.uint8]
    dp: Floats
    sx0: Floats
    kept: NDArray[np.int64]
    count: int


def check_batch(
    fused: Sizes, x0: ArrayLike, grid: ArrayLike, signals: Sequence[ArrayLike], p: ArrayLike,
    hold: str | Sequence[str], nominal: ArrayLike, substeps: int, keep: int | ArrayLike, realizations: int | None,
    dp: ArrayLike | None, sx0: ArrayLike | None,
) -> Batch:  # fmt: skip
    times = _array(grid)
    if times.ndim != 1 or times.size < 1 or not np.all(np.diff(times) > 0):
        raise DataError("The grid of a frozen run must be a list of increasing times.")
    if int(substeps) < 1:
        raise DataError(f"substeps={substeps}: at least one step per grid cell is needed.")
    if len(signals) != fused.nu:
        raise DataError(f"{len(signals)} signals given, {fused.nu} needed.")
    tables = tuple(_table(s, times.size) for s in signals)
    start, values = _array(x0), _array(p)
    seeds = np.zeros((fused.ns, fused.np)) if dp is None else _array(dp)
    starts = np.zeros((fused.ns, fused.nx)) if sx0 is None else _array(sx0)
    count = _count(realizations, [(start, 2), (values, 2), (starts, 3), *((s, 2) for s in tables)])
    expected = [
        ("x0", start, (fused.nx,)), ("p", values, (fused.np,)), ("sx0", starts, (fused.ns, fused.nx)),
        *((f"signal {i}", s, (times.size,)) for i, s in enumerate(tables)),
    ]  # fmt: skip
    for name, array, shape in expected:
        if array.shape not in (shape, (count, *shape)):
            raise DataError(f"{name} has shape {array.shape}; expected {shape} or {(count, *shape)}.")
    if seeds.shape != (fused.ns, fused.np):
        raise DataError(f"dp has shape {seeds.shape}; expected {(fused.ns, fused.np)}.")
    return Batch(
        times, int(substeps), start, values, np.broadcast_to(_array(nominal), fused.nx).copy(), tables,
        _held(hold, fused.nu), seeds, starts, _kept(keep, times.size), count,
    )  # fmt: skip


def _array(value: ArrayLike) -> Floats:
    return np.array(value, dtype=np.float64, order="C")


def _table(signal: ArrayLike, n: int) -> Floats:
    # not copied when it fits already: tables are the one large thing here
    table = np.ascontiguousarray(signal, dtype=np.float64)
    return np.full(n, float(table.ravel()[0])) if np.ndim(signal) == 0 else table


def _count(realizations: int | None, arrays: list[tuple[Floats, int]]) -> int:
    counts = {array.shape[0] for array, dimensions in arrays if array.ndim == dimensions}
    counts |= {realizations} if realizations is not None else set()
    if len(counts) > 1:
        raise DataError(f"Arrays for different numbers of realizations: {sorted(counts)}.")
    return int(next(iter(counts), 1))


def _held(hold: str | Sequence[str], nu: int) -> NDArray[np.uint8]:
    holds = [hold] * nu if isinstance(hold, str) else list(hold)
    if len(holds) != nu or not set(holds) <= {"zoh", "foh"}:
        raise DataError(f'hold={hold!r}: "zoh" or "foh" is needed for each of {nu} signals.')
    return np.array([h == "zoh" for h in holds], dtype=np.uint8)


def _kept(keep: int | ArrayLike, n: int) -> NDArray[np.int64]:
    kept = np.arange(0, n, int(keep)) if isinstance(keep, int | np.integer) else np.array(keep, dtype=np.int64)
    if kept.ndim != 1 or np.any(np.diff(kept) <= 0) or (kept.size and not 0 <= kept[0] <= kept[-1] < n):
        raise DataError(f"keep must be a stride or increasing grid indices below {n}.")
    return kept.astype(np.int64)


def empty_answer(fused: Sizes, batch: Batch, reduce: bool) -> Frozen:
    m, k, ns, ny = batch.count, batch.kept.size, fused.ns, fused.ny
    return Frozen(
        kept=batch.kept,
        x=np.zeros((m, fused.nx)),
        sx=np.zeros((m, ns, fused.nx)),
        y=None if reduce else np.zeros((m, k, ny)),
        sy=None if reduce else np.zeros((m, k, ns, ny)),
        moments=None,
        failed=np.full(m, -1, dtype=np.int64),
    )


def finish(answer: Frozen, batch: Batch, moments: Moments | None) -> Frozen:
    """Adds the moments, and marks realizations whose end is not finite although every kept point was."""
    bad = (answer.failed < 0) & ~np.isfinite(answer.x).all(axis=1)
    answer.failed[bad] = batch.grid.size - 1
    return replace(answer, moments=moments)
