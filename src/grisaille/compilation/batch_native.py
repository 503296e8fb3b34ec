"""A batch run by compiled code: blocks of realizations in Python threads, the GIL released.

Moments are formed in blocks of ``REALIZATIONS_PER_BLOCK`` realizations, joined in order: their digits do not depend on
the number of
threads. An interrupt takes effect when the blocks under way are done.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grisaille import interrupts
from grisaille.compilation.batch import BatchInput, BatchResult, FusedStepDimensions, Progress, empty_answer, finish
from grisaille.compilation.coloured_noise_source import ColouredNoise
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.compilation.shared_library import SharedLibrary

REALIZATIONS_PER_BLOCK = 32
"""Realizations per call; part of what defines the digits of the moments."""

MAX_DOUBLES_OF_MOMENTS = 8_000_000
"""Doubles of block moments held at a time."""

_LONG = np.dtype(ctypes.c_long)
_POINTERS = frozenset(
    "member grid x0 x p nominal signal signal_stride held dp sx0 sx kept y sy mean spread smean scross failed stream "
    "which filter start reading dfilter dstart dreading w0 dw0 w dw mix".split()
)


class BatchStructure(ctypes.Structure):
    """The memory layout of ``gr_batch`` (kernels/gr_step.h)."""

    _fields_ = tuple(
        (name, ctypes.c_void_p if name in _POINTERS else ctypes.c_long)
        for name in (
            "n_members member n_cells substeps grid x0 x0_stride x p p_stride nominal signal signal_stride held dp sx0 "
            "sx0_stride sx n_kept kept y sy mean spread smean scross failed first_realization "
            "first_point stream which filter start reading dfilter dstart dreading w0 dw0 w dw mix"
        ).split()
    )


def run_native(
    library: SharedLibrary,
    fused: FusedStepDimensions,
    batch: BatchInput,
    reduce: bool,
    rows: bool,
    threads: int | None,
    progress: Progress | None,
) -> BatchResult:
    """Run the batch with ``gr_frozen``; ``threads=None`` uses every processor."""
    threads = threads or processors()
    entry = library.function("gr_frozen", ctypes.POINTER(BatchStructure))
    answer = empty_answer(fused, batch, rows)
    disturbances = packed_filters(batch.filters, fused)
    # an even number, because realizations go two abreast
    size = (
        REALIZATIONS_PER_BLOCK
        if reduce
        else max(2, min(REALIZATIONS_PER_BLOCK, 2 * -(-batch.members.size // (8 * threads))))
    )
    blocks = [batch.members[first : first + size] for first in range(0, batch.members.size, size)]
    wave = max(1, len(blocks))
    if reduce:
        wave = max(threads, MAX_DOUBLES_OF_MOMENTS // max(1, 2 * batch.kept.size * fused.ny * (1 + fused.ns)))
    total: SampleMoments | None = None
    # one list for all blocks, each of which writes its own entries: a list for each would make work of M² numbers
    failed = np.full(batch.count, -1, dtype=_LONG)

    def run(block: NDArray[np.int64]) -> SampleMoments | None:
        part = _run(entry, fused, batch, disturbances, answer, block, reduce, failed)
        answer.failed[block] = failed[block]
        return part

    if len(blocks) == 1 and progress is None:  # a thread would take longer to start than the block to run
        return finish(answer, batch, run(blocks[0]))
    with ThreadPoolExecutor(max_workers=threads) as pool:
        try:
            for start in range(0, len(blocks), wave):
                now = blocks[start : start + wave]
                each = map if threads == 1 else pool.map
                for block, part in zip(now, each(run, now), strict=True):
                    interrupts.check()
                    total = part if total is None or part is None else total.joined(part)
                    if progress is not None:
                        progress(int(block[-1]) + 1, batch.count)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return finish(answer, batch, total)


def packed_filters(filters: ColouredNoise, fused: FusedStepDimensions) -> dict[str, Any]:
    """Return filters and streams as C reads them, by the names of ``gr_batch``."""
    streams = [*(g.stream for g in filters.groups), *filters.white]
    nothing = (np.zeros(1),) * 3
    dfilter, dstart, dreading = filters.packed_derivatives() if fused.layout.sensitive else nothing
    return {
        "stream": np.array([(*s.key, int(s.antithetic)) for s in streams], dtype=np.uint32),
        "which": filters.which.astype(_LONG, copy=False),
        "filter": filters.packed_steps(), "start": filters.packed_start(), "reading": filters.packed_reading(),
        "dfilter": dfilter, "dstart": dstart, "dreading": dreading,
        "w0": None if filters.w is None else np.ascontiguousarray(filters.w),
        "dw0": None if filters.dw is None else np.ascontiguousarray(filters.dw),
        "mix": None if filters.mix is None else np.ascontiguousarray(filters.mix),
    }  # fmt: skip


def _run(
    entry: Callable[..., int],
    fused: FusedStepDimensions,
    batch: BatchInput,
    disturbances: dict[str, Any],
    answer: BatchResult,
    block: NDArray[np.int64],
    reduce: bool,
    failed: np.ndarray,
) -> SampleMoments | None:
    part = SampleMoments.empty(block.size, batch.kept.size, fused.ns, fused.ny) if reduce else None
    tables = np.array([s.ctypes.data for s in batch.signals], dtype=np.uintp)
    strides = np.array([s.shape[-1] if s.ndim == 2 else 0 for s in batch.signals], dtype=_LONG)
    kept, member = batch.kept.astype(_LONG), block.astype(_LONG)
    entry(
        ctypes.byref(
            BatchStructure(
                n_members=member.size, member=_at(member), n_cells=batch.grid.size - 1, substeps=batch.substeps,
                grid=_at(batch.grid), x0=_at(batch.x0), x0_stride=fused.nx if batch.x0.ndim == 2 else 0,
                x=_at(answer.x), p=_at(batch.p), p_stride=fused.np if batch.p.ndim == 2 else 0,
                nominal=_at(batch.nominal), signal=_at(tables), signal_stride=_at(strides), held=_at(batch.held),
                dp=_at(batch.dp), sx0=_at(batch.sx0), sx0_stride=fused.ns * fused.nx if batch.sx0.ndim == 3 else 0,
                sx=_at(answer.sx), n_kept=kept.size, kept=_at(kept), y=_at(answer.y), sy=_at(answer.sy),
                failed=_at(failed), w=_at(answer.w), dw=_at(answer.dw), **_moments_at(part),
                first_realization=batch.filters.first_realization, first_point=batch.filters.first_point,
                **{name: _at(array) for name, array in disturbances.items()},
            )
        )
    )  # fmt: skip
    return part


def _moments_at(part: SampleMoments | None) -> dict[str, int | None]:
    names = ("mean", "spread", "smean", "scross")
    return {name: None if part is None else _at(getattr(part, name)) for name in names}


def _at(array: NDArray[np.generic] | None) -> int | None:
    return None if array is None else int(array.ctypes.data)


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
