"""The same batch in CasADi's virtual machine, all realizations abreast, for machines without a compiler.

Arrays are (M, …) in C order, which is what a mapped CasADi function reads as its columns side by side.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from grisaille.compilation.batch import Batch, Floats, Frozen, Progress, Sizes, empty_answer, finish
from grisaille.compilation.evaluation import flat_function
from grisaille.compilation.moments import Moments


def run_interpreted(
    once: ca.Function,
    step: ca.Function,
    observe: ca.Function,
    fused: Sizes,
    batch: Batch,
    reduce: bool,
    progress: Progress | None,
) -> Frozen:
    """Runs the batch; the answer equals the compiled one up to the C library's elementary functions."""
    m, ns = batch.count, fused.ns
    advance, look = flat_function(step.map(m)), flat_function(observe.map(m))
    answer = empty_answer(fused, batch, reduce)
    total = Moments.empty(m, batch.kept.size, ns, fused.ny) if reduce else None
    x, sx = np.broadcast_to(batch.x0, (m, fused.nx)), np.broadcast_to(batch.sx0, (m, ns, fused.nx))
    p, dp = np.broadcast_to(batch.p, (m, fused.np)), np.broadcast_to(batch.dp, (m, ns, fused.np))
    nominal = np.broadcast_to(batch.nominal, (m, fused.nx))
    slow = (p, nominal, dp) if ns else (p, nominal)
    constants = flat_function(once.map(m))(*slow)[0]
    signals = np.zeros((batch.grid.size, m, fused.nu))
    for i, table in enumerate(batch.signals):
        signals[:, :, i] = np.broadcast_to(table, (m, batch.grid.size)).T
    rows = {int(k): row for row, k in enumerate(batch.kept)}
    for k, now in enumerate(batch.grid):
        if k in rows:
            seen = look(now, x, signals[k], p, *((sx, dp) if ns else ()))
            _keep(answer, total, rows[k], k, x, seen[0].reshape(m, -1), seen[-1].reshape(m, ns, -1) if ns else None)
        for t, h, ua, um, ub in _steps(batch, signals, k):
            moved = advance(t, h, x, ua, um, ub, *((sx,) if ns else ()), *slow, constants)
            x = moved[0].reshape(m, fused.nx)
            sx = moved[1].reshape(m, ns, fused.nx) if ns else sx
        if progress is not None and k % 1000 == 0:
            progress(m * k // batch.grid.size, m)
    answer.x[:], answer.sx[:] = x, sx
    return finish(answer, batch, total)


def _steps(batch: Batch, signals: Floats, k: int) -> Iterator[tuple[float, float, Floats, Floats, Floats]]:
    if k + 1 == batch.grid.size:
        return
    n = batch.substeps
    t, h = batch.grid[k], (batch.grid[k + 1] - batch.grid[k]) / n
    left, right = signals[k], np.where(batch.held, signals[k], signals[k + 1])
    ub = left
    for j in range(n):
        ua, ub = ub, right if j + 1 == n else left + ((j + 1) / n) * (right - left)
        yield t + j * h, h, ua, 0.5 * (ua + ub), ub


def _keep(answer: Frozen, total: Moments | None, row: int, k: int, x: Floats, y: Floats, sy: Floats | None) -> None:
    bad = (answer.failed < 0) & ~np.isfinite(x).all(axis=1)
    answer.failed[bad] = k
    sensitivities = np.zeros((len(y), 0, y.shape[1])) if sy is None else sy
    if answer.y is not None and answer.sy is not None:
        answer.y[:, row], answer.sy[:, row] = y, sensitivities
    if total is not None:
        total.mean[row], total.smean[row] = y.mean(axis=0), sensitivities.mean(axis=0)
        deviation = y - total.mean[row]
        total.spread[row] = (deviation**2).sum(axis=0)
        total.scross[row] = (deviation[:, None, :] * (sensitivities - total.smean[row])).sum(axis=0)
