"""The same batch in CasADi's virtual machine, many realizations abreast, where models are interpreted.

Arrays are (M, …) in C order, which is what a mapped CasADi function reads as its columns side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille import interrupts
from grisaille.compilation.batch import HOLDS, Batch, Floats, Frozen, Progress, Sizes, empty_answer, finish
from grisaille.compilation.evaluation import FlatEvaluation, flat_function
from grisaille.compilation.kalman.twin import FilterStates, mix_chains
from grisaille.compilation.moments import Moments

BLOCK = 256
"""Realizations abreast."""


def run_interpreted(
    once: ca.Function,
    step: ca.Function,
    observe: ca.Function,
    fused: Sizes,
    batch: Batch,
    reduce: bool,
    rows: bool,
    progress: Progress | None,
) -> Frozen:
    """Runs the batch; the answer equals the compiled one up to the C library's elementary functions."""
    answer = empty_answer(fused, batch, rows)
    total: Moments | None = None
    for first in range(0, batch.members.size, BLOCK):
        members = batch.members[first : first + BLOCK]
        part = Moments.empty(members.size, batch.kept.size, fused.ns, fused.ny) if reduce else None
        functions = [flat_function(f.map(members.size)) for f in (once, step, observe)]
        _Block(fused, batch, members, *functions).run(answer, part, progress)
        total = part if total is None or part is None else total.joined(part)
    return finish(answer, batch, total)


@dataclass
class _Block:
    fused: Sizes
    batch: Batch
    members: NDArray[np.int64]
    once: FlatEvaluation
    step: FlatEvaluation
    observe: FlatEvaluation

    def run(self, answer: Frozen, part: Moments | None, progress: Progress | None) -> None:
        fused, batch, ns, m = self.fused, self.batch, self.fused.ns, self.members.size
        x, sx = self._of(batch.x0, 1), self._of(batch.sx0, 2)
        p, dp = self._of(batch.p, 1), np.broadcast_to(batch.dp, (m, ns, fused.np))
        slow = (p, np.broadcast_to(batch.nominal, (m, fused.nx)), *((dp,) if ns else ()))
        constants = self.once(*slow)[0]
        filters = FilterStates(batch.filters, fused.layout, self.members, ns)
        rows: dict[int, list[int]] = {}
        for row, kept in enumerate(batch.kept):
            rows.setdefault(int(kept), []).append(row)
        for k, now in enumerate(batch.grid):
            left, dleft = self._table(k, 0), filters.dsignals
            left[:, list(fused.layout.places)] = filters.signals
            if k in rows:
                seen = self.observe(now, x, left, p, *((sx, dleft, dp) if ns else ()))
                sy = seen[-1].reshape(m, ns, -1) if ns else np.zeros((m, 0, fused.ny))
                for row in rows[k]:
                    self._keep(answer, part, row, k, x, seen[0].reshape(m, -1), sy)
            if k + 1 == batch.grid.size:
                break
            filters.advance(k)
            right = filters.signals, filters.dsignals
            for j, (t, h, signals, du) in enumerate(self._steps(k, left, dleft, *right)):
                v = filters.white(k, j, batch.substeps)
                moved = self.step(t, h, x, *signals, v, *((sx, *du) if ns else ()), *slow, constants)
                x = moved[0].reshape(m, fused.nx)
                sx = moved[1].reshape(m, ns, fused.nx) if ns else sx
            interrupts.check()
            if progress is not None and k % 1000 == 0:
                progress(int(self.members[0]) + m * k // batch.grid.size, batch.count)
        answer.x[self.members], answer.sx[self.members], answer.w[self.members] = x, sx, filters.w
        if fused.layout.sensitive:
            answer.dw[self.members] = filters.dw
        if progress is not None:
            progress(int(self.members[-1]) + 1, batch.count)

    def _of(self, array: Floats, dimensions: int) -> Floats:
        chosen = array[self.members] if array.ndim > dimensions else array
        return np.broadcast_to(chosen, (self.members.size, *array.shape[-dimensions:]))

    def _table(self, k: int, half: int) -> Floats:
        """Signals of tables in cell k, by halves of a step where they are stages, else at its left or right end."""
        out = np.zeros((self.members.size, self.fused.nu))
        for i, table in enumerate(self.batch.signals):
            at = k
            if self.batch.held[i] == HOLDS.index("stages"):
                at = k * (2 * self.batch.substeps + 1) + half
            out[:, i] = table[self.members, at] if table.ndim == 2 else table[at]
        return out

    def _steps(
        self, k: int, left: Floats, dleft: Floats, driven: Floats, dright: Floats
    ) -> Iterator[tuple[float, float, list[Floats], list[Floats]]]:
        batch, n = self.batch, self.batch.substeps
        t, h = batch.grid[k], (batch.grid[k + 1] - batch.grid[k]) / n
        linear = batch.held == HOLDS.index("foh")
        right = np.where(linear, self._table(k + 1, 0), left)
        right[:, list(self.fused.layout.places)] = driven
        stages = np.flatnonzero(batch.held == HOLDS.index("stages"))
        ub, db = left, dleft
        for j in range(n):
            part = (j + 1) / n
            ua, ub = ub, right if j + 1 == n else left + part * (right - left)
            da, db = db, dright if j + 1 == n else dleft + part * (dright - dleft)
            um, dm = 0.5 * (ua + ub), 0.5 * (da + db)
            if self.fused.layout.chains:
                um, dm = self._mixed(k, 2 * j, (left, driven, um), (dleft, dright, dm))
                if j + 1 < n:
                    ub, db = self._mixed(k, 2 * j + 1, (left, driven, ub), (dleft, dright, db))
            signals = [ua.copy(), um, ub.copy()]
            if stages.size:
                for s, values in enumerate(signals):
                    values[:, stages] = self._table(k, 2 * j + s)[:, stages]
            yield t + j * h, h, signals, [da, dm, db]

    def _mixed(
        self, k: int, half: int, signals: tuple[Floats, Floats, Floats], slopes: tuple[Floats, Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Signals and their derivatives with disturbances mixed from both ends of the cell."""
        layout, places, filters = self.fused.layout, list(self.fused.layout.places), self.batch.filters
        assert filters.mix is not None
        b = filters.mix[filters.which[k], half]
        left, driven, u = signals
        mixed = u.copy()
        mixed[:, places] = mix_chains(layout, b, left[:, places], driven, u[:, places])
        return mixed, mix_chains(layout, b, *slopes) if layout.sensitive else slopes[2]

    def _keep(self, answer: Frozen, part: Moments | None, row: int, k: int, x: Floats, y: Floats, sy: Floats) -> None:
        bad = (answer.failed[self.members] < 0) & ~np.isfinite(x).all(axis=1)
        answer.failed[self.members[bad]] = k
        if answer.y is not None and answer.sy is not None:
            answer.y[self.members, row], answer.sy[self.members, row] = y, sy
        if part is not None:
            own = Moments.of(y[:, None], sy[:, None])
            for name in ("mean", "spread", "smean", "scross"):
                getattr(part, name)[row] = getattr(own, name)[0]
