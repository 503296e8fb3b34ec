"""A batch run by compiled code: blocks of realizations in Python threads, the GIL released.

Moments are formed in blocks of ``BLOCK`` realizations, joined in order: their digits do not depend on the number of
threads. An interrupt takes effect when the blocks under way are done.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.batch import Batch, Frozen, Progress, Sizes, empty_answer, finish
from grisaille.compilation.library import Library
from grisaille.compilation.moments import Moments

BLOCK = 32
"""Realizations per call; part of what defines the digits of the moments."""

WAVE = 8_000_000
"""Doubles of block moments held at a time."""

_POINTERS = frozenset(
    "grid x0 x p nominal signal signal_stride held dp sx0 sx kept y sy mean spread smean scross failed".split()
)


class BatchStructure(ctypes.Structure):
    """The memory layout of ``gr_batch`` (kernels/gr_step.h)."""

    _fields_ = tuple(
        (name, ctypes.c_void_p if name in _POINTERS else ctypes.c_long)
        for name in (
            "first last n_cells substeps grid x0 x0_stride x p p_stride nominal signal signal_stride held dp sx0 "
            "sx0_stride sx n_kept kept y sy mean spread smean scross failed"
        ).split()
    )


def run_native(
    library: Library, fused: Sizes, batch: Batch, reduce: bool, threads: int | None, progress: Progress | None
) -> Frozen:
    """Runs the batch with ``gr_frozen``; ``threads=None`` uses every processor."""
    threads = threads or _processors()
    entry = library.function("gr_frozen", ctypes.POINTER(BatchStructure))
    answer = empty_answer(fused, batch, reduce)
    # an even number, because realizations go two abreast
    size = BLOCK if reduce else min(BLOCK, 2 * -(-batch.count // (8 * threads)))
    blocks = [(first, min(first + size, batch.count)) for first in range(0, batch.count, size)]
    wave = len(blocks)
    if reduce:
        wave = max(threads, WAVE // max(1, 2 * batch.kept.size * fused.ny * (1 + fused.ns)))
    total: Moments | None = None
    with ThreadPoolExecutor(max_workers=threads) as pool:
        try:
            for start in range(0, len(blocks), wave):
                now = blocks[start : start + wave]
                parts = pool.map(lambda block: _run(entry, fused, batch, answer, block), now)
                for (_, last), part in zip(now, parts, strict=True):
                    total = part if total is None or part is None else total.joined(part)
                    if progress is not None:
                        progress(last, batch.count)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return finish(answer, batch, total)


def _run(
    entry: Callable[..., int], fused: Sizes, batch: Batch, answer: Frozen, block: tuple[int, int]
) -> Moments | None:
    first, last = block
    part = Moments.empty(last - first, batch.kept.size, fused.ns, fused.ny) if answer.y is None else None
    tables = np.array([s.ctypes.data for s in batch.signals], dtype=np.uintp)
    long = np.dtype(ctypes.c_long)
    strides = np.array([s.shape[-1] if s.ndim == 2 else 0 for s in batch.signals], dtype=long)
    kept, failed = batch.kept.astype(long), np.full(batch.count, -1, dtype=long)
    entry(
        ctypes.byref(
            BatchStructure(
                first=first, last=last, n_cells=batch.grid.size - 1, substeps=batch.substeps, grid=_at(batch.grid),
                x0=_at(batch.x0), x0_stride=fused.nx if batch.x0.ndim == 2 else 0, x=_at(answer.x),
                p=_at(batch.p), p_stride=fused.np if batch.p.ndim == 2 else 0, nominal=_at(batch.nominal),
                signal=_at(tables), signal_stride=_at(strides), held=_at(batch.held), dp=_at(batch.dp),
                sx0=_at(batch.sx0), sx0_stride=fused.ns * fused.nx if batch.sx0.ndim == 3 else 0, sx=_at(answer.sx),
                n_kept=kept.size, kept=_at(kept), y=_at(answer.y), sy=_at(answer.sy),
                failed=_at(failed), **_moments_at(part),
            )
        )
    )  # fmt: skip
    answer.failed[first:last] = failed[first:last]
    return part


def _moments_at(part: Moments | None) -> dict[str, int | None]:
    names = ("mean", "spread", "smean", "scross")
    return {name: None if part is None else _at(getattr(part, name)) for name in names}


def _at(array: NDArray[np.generic] | None) -> int | None:
    return None if array is None else int(array.ctypes.data)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
