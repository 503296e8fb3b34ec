"""Batches of one fused step, at one or many parameter values, as one job of a graphics processor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.cache import Cache
from grisaille.compilation.batch import BatchInput, BatchResult, FusedStepDimensions, Progress, finish
from grisaille.compilation.batch_native import BatchStructure, packed_filters
from grisaille.compilation.cuda.cuda_source import one_text
from grisaille.compilation.cuda.device_directions import join_directions, split_directions
from grisaille.compilation.cuda.launch import (
    DeviceJob,
    DeviceResult,
    Graphics,
    Machine,
    OutOfDeviceMemory,
    fixed_branches,
    run,
)
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.errors import SimulationError

_machines: Cache[Machine] = Cache(16)


def machine_for(source: str, job: DeviceJob, single: bool = False) -> Machine:
    """Return the device with the kernels of a fused step; compiled when they are first asked for."""
    beginning = fixed_branches(job)
    return _machines.get((source, beginning, single), lambda: Graphics(beginning + one_text(source), single=single))


def run_batches(
    source: str, fused: FusedStepDimensions, batches: Sequence[BatchInput], reduce: bool, rows: bool, single: bool,
    progress: Progress | None = None,
) -> list[BatchResult]:  # fmt: skip
    """Return answers of batches that ``are_alike``; they may have several times as many directions as the step was
    built for, which then go to as many threads.
    """
    parts = [part for batch in batches for part in split_directions(batch, fused.ns)]
    job = make_job(fused, parts)
    machine = machine_for(source, job, single)
    try:
        found = run(job, machine, BatchStructure, moments=reduce, rows=rows, progress=progress)
    except OutOfDeviceMemory as error:
        raise SimulationError(str(error)) from error
    answers = [_answer(part, found, v) for v, part in enumerate(parts)]
    each = len(parts) // len(batches)
    return [join_directions(answers[k : k + each]) for k in range(0, len(parts), each)]


def are_alike(batches: Sequence[BatchInput]) -> bool:
    """Return whether batches differ in parameters, starts and filters alone."""
    a = batches[0]
    return all(
        _same(a.grid, b.grid) and a.substeps == b.substeps and a.count == b.count and _same(a.held, b.held)
        and _same(a.kept, b.kept) and _same(a.members, b.members) and _same(a.nominal, b.nominal)
        and all(_same(s, t) for s, t in zip(a.signals, b.signals, strict=True)) and a.x0.ndim == b.x0.ndim
        and a.sx0.ndim == b.sx0.ndim and _same_draws(a, b)
        for b in batches[1:]
    )  # fmt: skip


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)


def _same_draws(a: BatchInput, b: BatchInput) -> bool:
    f, g = a.filters, b.filters
    return (
        _same(f.which, g.which) and [x.stream.antithetic for x in f.groups] == [x.stream.antithetic for x in g.groups]
        and (f.first_realization, f.first_point) == (g.first_realization, g.first_point)
        and [x.F.shape for x in f.groups] == [x.F.shape for x in g.groups]
        and (f.mix is None or g.mix is None or _same(f.mix, g.mix)) and f.w is None and g.w is None
    )  # fmt: skip


def make_job(fused: FusedStepDimensions, batches: Sequence[BatchInput]) -> DeviceJob:
    """Return arrays side by side; ``batches`` are alike."""
    first, layout = batches[0], fused.layout
    if any(b.p.ndim > 1 for b in batches):
        raise SimulationError("Parameters that differ between realizations are not run on a graphics processor.")
    packed = [packed_filters(b.filters, fused) for b in batches]
    filters = {
        n: np.stack([np.atleast_1d(p[n]) for p in packed])
        for n in ("filter", "start", "reading", "dfilter", "dstart", "dreading")
    }
    filters["stream"] = np.stack([_some_stream(p["stream"]) for p in packed])
    shared = {n: packed[0][n] for n in ("which", "mix")}
    own = {n: np.stack([p[n] for p in packed]) for n in ("w0", "dw0") if packed[0][n] is not None}
    arrays = {
        "x0": np.stack([b.x0 for b in batches]), "p": np.stack([b.p for b in batches]),
        "dp": np.stack([b.dp for b in batches]), "sx0": np.stack([b.sx0 for b in batches]), "grid": first.grid,
        "nominal": first.nominal, "held": first.held, "kept": first.kept, "member": first.members,
        **filters, **own, **{n: np.zeros(1) if a is None else a for n, a in shared.items()},
    }  # fmt: skip
    sizes = {
        "nx": fused.nx, "nu": fused.nu, "np": fused.np, "ny": fused.ny, "ns": fused.ns, "nw": layout.nw,
        "moved": int(layout.sensitive), "values": len(batches), "count": first.count, "substeps": first.substeps,
        "first_realization": first.filters.first_realization, "first_point": first.filters.first_point,
    }  # fmt: skip
    return DeviceJob(sizes, arrays, first.signals)


def _some_stream(stream: np.ndarray | None) -> np.ndarray:
    return np.zeros((1, 3), dtype=np.uint32) if stream is None or not stream.size else stream


def _answer(batch: BatchInput, found: DeviceResult, v: int) -> BatchResult:
    y, sy = (None if a is None else a[v] for a in (found.y, found.sy))
    frozen = BatchResult(
        batch.kept, found.x[v], found.sx[v], found.w[v], found.dw[v], y, sy, None,
        np.where(np.isin(np.arange(batch.count), batch.members), found.failed[v], -1),
    )  # fmt: skip
    moments = None
    if found.moments:
        moments = SampleMoments(
            batch.members.size, *(found.moments[n][v] for n in ("mean", "spread", "smean", "scross"))
        )
    return finish(frozen, batch, moments)
