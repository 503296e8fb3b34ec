"""What a batch of frozen trajectories is given and gives: arrays checked, made contiguous, and counted.

Every array may be common to all realizations or have one more leading dimension, the realization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.compilation.coloured_noise_source import ColouredNoise, ColouredNoiseLayout
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.errors import DataError

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


class FusedStepDimensions(Protocol):
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
    @property
    def layout(self) -> ColouredNoiseLayout: ...


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The result of a batch; rows of ``y`` belong to the grid points ``kept``. What was not requested is None."""

    kept: NDArray[np.int64]
    x: Floats
    """(M, nx), at the last grid point."""
    sx: Floats
    """(M, ns, nx), likewise."""
    w: Floats
    """(M, nw), states of the filters, likewise."""
    dw: Floats
    """(M, ns, nw), likewise, where directions move the filters."""
    y: Floats | None
    """(M, n_kept, ny)"""
    sy: Floats | None
    """(M, n_kept, ns, ny)"""
    moments: SampleMoments | None
    failed: NDArray[np.int64]
    """(M,): the first kept (or last) grid index at which a state was not finite; -1 if all were."""


@dataclass(frozen=True, eq=False)
class BatchInput:
    """The arrays of one run; ``held[i]`` is the place of signal i's hold in ``BATCH_HOLDS``."""

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
    members: NDArray[np.int64]
    """The realizations to run, in order."""
    filters: ColouredNoise


BATCH_HOLDS = ("foh", "zoh", "stages")
MAX_STEPS_PER_CELL = 1 << 24
"""Steps of a cell under white noise, at most (``GR_DEEPEST`` halvings)."""


@dataclass(frozen=True, eq=False)
class BatchArguments:
    """What a batch is asked for, before it is checked.

    x0 : (nx,) or (M, nx); on the constraints to the accuracy of one Gauss–Newton correction
    grid : (K + 1,) increasing times; every cell is cut into ``substeps`` equal steps
    signals : per signal a number, (K + 1,) for all realizations, or (M, K + 1); anything where a filter drives it
    p : (np,) or (M, np)
    hold : ``"foh"`` (linear) or ``"zoh"`` (constant over a cell, from its left end), for all signals or each; or
        ``"stages"``: K (2 substeps + 1) + 1 values instead of K + 1, for each cell at every half of a step, both
        ends included, and one for the last grid point
    keep : observe every ``keep``-th grid point, or at these grid indices
    skip : realizations to leave out
    filters : the disturbances, laid out as the step was built for
    dp, sx0 : (ns, np) and (ns, nx) or (M, ns, nx), the seeds of the sensitivity directions
    """

    x0: ArrayLike
    grid: ArrayLike
    signals: Sequence[ArrayLike] = ()
    p: ArrayLike = ()
    hold: str | Sequence[str] = "foh"
    nominal: ArrayLike = 1.0
    substeps: int = 1
    keep: int | ArrayLike = 1
    realizations: int | None = None
    skip: ArrayLike = ()
    filters: ColouredNoise | None = None
    dp: ArrayLike | None = None
    sx0: ArrayLike | None = None


def check_batch(fused: FusedStepDimensions, given: BatchArguments) -> BatchInput:
    """Return the arrays of one run, checked."""
    times = np.ascontiguousarray(given.grid, dtype=np.float64)
    if times.ndim != 1 or times.size < 1 or not np.all(np.diff(times) > 0):
        raise DataError("The grid of a frozen run must be a list of increasing times.")
    if int(given.substeps) < 1:
        raise DataError(f"substeps={given.substeps}: at least one step per grid cell is needed.")
    if len(given.signals) != fused.nu:
        raise DataError(f"{len(given.signals)} signals given, {fused.nu} needed.")
    held = _held(given.hold, fused.nu)
    lengths = [
        (times.size - 1) * (2 * int(given.substeps) + 1) + 1 if h == BATCH_HOLDS.index("stages") else times.size
        for h in held
    ]
    places = fused.layout.places
    tables = tuple(
        np.zeros(n) if i in places else _table(s, n)
        for i, (s, n) in enumerate(zip(given.signals, lengths, strict=True))
    )
    start, values = _array(given.x0), _array(given.p)
    seeds = np.zeros((fused.ns, fused.np)) if given.dp is None else _array(given.dp)
    starts = np.zeros((fused.ns, fused.nx)) if given.sx0 is None else _array(given.sx0)
    count = _count(given.realizations, [(start, 2), (values, 2), (starts, 3), *((s, 2) for s in tables)])
    expected = [
        ("x0", start, (fused.nx,)), ("p", values, (fused.np,)), ("sx0", starts, (fused.ns, fused.nx)),
        *((f"signal {i}", s, (n,)) for i, (s, n) in enumerate(zip(tables, lengths, strict=True))),
    ]  # fmt: skip
    for name, array, shape in expected:
        if array.shape not in (shape, (count, *shape)):
            raise DataError(f"{name} has shape {array.shape}; expected {shape} or {(count, *shape)}.")
    if seeds.shape != (fused.ns, fused.np):
        raise DataError(f"dp has shape {seeds.shape}; expected {(fused.ns, fused.np)}.")
    members = np.setdiff1d(np.arange(count), np.asarray(given.skip, dtype=int))
    return BatchInput(
        times, int(given.substeps), start, values, np.broadcast_to(_array(given.nominal), fused.nx).copy(), tables,
        held, seeds, starts, _kept(given.keep, times.size), count, members,
        _filters(fused, given.filters, times.size - 1, count, int(given.substeps)),
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
    if len(holds) != nu or not set(holds) <= set(BATCH_HOLDS):
        raise DataError(f'hold={hold!r}: "zoh" or "foh" (or "stages") is needed for each of {nu} signals.')
    return np.array([BATCH_HOLDS.index(h) for h in holds], dtype=np.uint8)


def _filters(
    fused: FusedStepDimensions, filters: ColouredNoise | None, cells: int, count: int, substeps: int
) -> ColouredNoise:
    layout = fused.layout
    given = ColouredNoise(np.zeros(cells, dtype=np.int64)) if filters is None else filters
    orders = tuple(g.R.shape[0] for g in given.groups)
    if orders != layout.orders or len(given.white) != len(layout.white):
        raise DataError(f"Filters with {orders} states were given to a step built for {layout.orders}.")
    if given.which.shape != (cells,):
        raise DataError(f"The filters' steps are given for {given.which.size} cells; the grid has {cells}.")
    if layout.white and (substeps & (substeps - 1) or substeps > MAX_STEPS_PER_CELL):
        raise DataError(
            f"substeps={substeps}: under white noise a cell is cut into a power of two, {MAX_STEPS_PER_CELL} at most."
        )
    expected = (2 * substeps - 1, layout.nb)
    if layout.chains and (given.mix is None or given.mix.shape[1:] != expected):
        raise DataError(f"{2 * substeps - 1} rows of {layout.nb} numbers are needed to mix derivatives inside a cell.")
    if given.w is not None and given.w.shape != (count, layout.nw):
        raise DataError(f"Filter states have shape {given.w.shape}; expected {(count, layout.nw)}.")
    return given


def _kept(keep: int | ArrayLike, n: int) -> NDArray[np.int64]:
    kept = np.arange(0, n, int(keep)) if isinstance(keep, int | np.integer) else np.array(keep, dtype=np.int64)
    if kept.ndim != 1 or np.any(np.diff(kept) < 0) or (kept.size and not 0 <= kept[0] <= kept[-1] < n):
        raise DataError(f"keep must be a stride or grid indices that do not decrease, all below {n}.")
    return kept.astype(np.int64)


def empty_answer(fused: FusedStepDimensions, batch: BatchInput, rows: bool) -> BatchResult:
    m, k, ns, ny = batch.count, batch.kept.size, fused.ns, fused.ny
    moving = ns if fused.layout.sensitive else 0
    return BatchResult(
        kept=batch.kept,
        x=np.zeros((m, fused.nx)),
        sx=np.zeros((m, ns, fused.nx)),
        w=np.zeros((m, fused.layout.nw)),
        dw=np.zeros((m, moving, fused.layout.nw)),
        y=np.zeros((m, k, ny)) if rows else None,
        sy=np.zeros((m, k, ns, ny)) if rows else None,
        moments=None,
        failed=np.full(m, -1, dtype=np.int64),
    )


def finish(answer: BatchResult, batch: BatchInput, moments: SampleMoments | None) -> BatchResult:
    """Adds the moments, and marks realizations whose end is not finite although every kept point was."""
    bad = (answer.failed < 0) & ~np.isfinite(answer.x).all(axis=1)
    answer.failed[bad] = batch.grid.size - 1
    return replace(answer, moments=moments)
