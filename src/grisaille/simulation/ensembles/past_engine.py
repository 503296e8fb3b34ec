"""Ensembles of models with delayed states: all realizations one stretch after the other.

A stretch ends where the next step would need what lies inside it: the shortest dead time later, about. On it delayed
states are known, a value for each realization and half step (``past_weights``), so that fused steps take them as they
take sampled disturbances. How the past moves with what is differentiated by is known in the same way, through
``moving_signals``; so are the derivatives by a dead time itself. Steps do not follow the kinks that come back, and stay
where they are while a dead time moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import IdentityKey
from grisaille.compilation.fused_step import FusedStep, build_step
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.errors import ModelError, SimulationError
from grisaille.simulation.ensembles.engines import (
    EngineAnswer,
    EnsembleSetup,
    Progress,
    fixed_table,
    in_blocks,
    joined,
    layout_of,
)
from grisaille.simulation.ensembles.grid import EnsembleTimes, stage_table
from grisaille.simulation.ensembles.moved_disturbances import moved_disturbances
from grisaille.simulation.ensembles.past_weights import NUMBERS_PER_PIECE, delayed_weights
from grisaille.simulation.ensembles.sampled import sample_pieces
from grisaille.structure.delays.delay import Delay
from grisaille.structure.delays.moving_breaks import RATE
from grisaille.structure.delays.moving_signals import with_moving_signals
from grisaille.structure.switching_pieces import jumps_of
from grisaille.structure.system import System

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
MAX_NUMBERS_IN_MEMORY = 1 << 23
"""Of disturbances that are held at a time (64 MB)."""
MAX_PIECES = 1 << 22


@dataclass(frozen=True)
class _Delayed:
    """One delayed signal of the system."""

    place: int
    order: int
    source: int
    """Which of the sources it repeats."""
    tau: float
    rate: int
    """The place of its rate in u; −1 where the dead time does not move."""


class PastEngine:
    name = "frozen fused, with a past"

    def __init__(self, setting: EnsembleSetup) -> None:
        self.setting, self.ends = setting, np.zeros((0, setting.system.nx))
        self.sources, self.delayed = _delayed(setting)
        self.shortest = min(d.tau for d in self.delayed)
        self.points = self._points()
        moved = layout_of(setting).places if layout_of(setting).sensitive else ()
        self.moved = tuple(moved)
        self.moving = (*moved, *(d.place for d in self.delayed)) if len(setting.dp) else ()
        self.step = self._step()
        fine = EnsembleTimes(self.points, np.zeros(0, dtype=np.int64), self.points)
        table = fixed_table(setting)
        self.known = [stage_table(table, fine, 1, i) for i in range(setting.system.nu)]

    def _points(self) -> Floats:
        """Return ends of steps: an even number in each cell, two of which are no longer than the shortest dead time."""
        s = self.setting
        cells = np.diff(s.grid.points)
        pieces = s.substeps * np.maximum(1, np.ceil(cells / self.shortest * (1 - 1e-9))).astype(np.int64)
        if pieces.sum() > MAX_PIECES:
            raise SimulationError(
                f"A dead time of {self.shortest:.3g} is repeated {np.ptp(s.grid.points) / self.shortest:.3g} times in "
                f"the run, which is followed one dead time after the other: leave the delay out, or simulate a shorter "
                f"time."
            )
        steps = 2 * pieces
        first = np.concatenate([[0], np.cumsum(steps)])
        inner = np.arange(first[-1]) - np.repeat(first[:-1], steps)
        self.first = first
        """The number of the point at which each cell begins."""
        at = np.repeat(s.grid.points[:-1], steps) + inner * np.repeat(cells / steps, steps)
        return np.append(at, s.grid.points[-1])

    def _step(self) -> FusedStep:
        """Return steps of the extended system, which observe the sources and their rates too."""
        s, ns = self.setting, len(self.setting.dp)
        key = (IdentityKey(s.system), s.observed, ns, self.moving, tuple(self.sources))

        def make() -> FusedStep:
            system = with_moving_signals(s.system, self.moving, ns, "disturbance")
            system = _with_rates(system, self.sources)
            rows = (*s.observed, *self.sources, *range(s.system.ny, system.ny))
            return build_step(system, observed=rows, directions=ns)

        return s.disturbances.last.get(("past step", ns), key, make)

    def run(
        self, slabs: Sequence[slice], skip: Sequence[int], moments: bool, rows: bool, progress: Progress | None
    ) -> Iterator[EngineAnswer]:
        s = self.setting
        drawn = 2 * s.grid.cells * max(1, s.disturbances.layout(s.values).nd)
        kept = len(self.points) * (len(s.observed) + NUMBERS_PER_PIECE * len(self.sources) // 2 + 1)
        size = int(np.clip(MAX_NUMBERS_IN_MEMORY // ((drawn + kept) * (1 + len(s.dp))), 1, 4096))
        for slab in slabs:
            blocks = in_blocks(s.count, size, progress)
            answer, self.ends = joined(self._block(members, slab, skip, moments, rows) for members in blocks)
            yield answer

    def _block(
        self, members: NDArray[np.int64], slab: slice, skip: Sequence[int], moments: bool, rows: bool
    ) -> tuple[EngineAnswer, Floats]:
        s = self.setting
        kept = s.grid.kept[slab]
        run = _DelayedEnsembleRun(self, members, int(self.first[kept[-1]]))
        run.go()
        at = self.first[kept]
        y = run.y[:, at]
        sy = run.sy[:, at]
        failed = np.where(run.failed < 0, -1, np.searchsorted(self.first, run.failed, side="left"))
        left = set(skip)
        good = [i for i, m in enumerate(members.tolist()) if failed[i] < 0 and m not in left]
        part = SampleMoments.of(y[good], sy[good]) if moments and good else None
        return EngineAnswer(y if rows else None, sy if rows else None, part, failed), run.x


class _DelayedEnsembleRun:
    """Some realizations, from the start to a point."""

    def __init__(self, engine: PastEngine, members: NDArray[np.int64], last: int) -> None:
        self.engine, self.members = engine, members
        s, self.last = engine.setting, last
        m, self.ns, self.ny = len(members), len(s.dp), len(s.observed)
        self.x = np.broadcast_to(s.starts.x[members] if s.starts.x.ndim == 2 else s.starts.x, (m, s.system.nx)).copy()
        sx = s.starts.sx[members] if s.starts.sx.ndim == 3 else s.starts.sx
        self.sx = np.broadcast_to(sx, (m, self.ns, s.system.nx)).copy()
        self.y, self.sy = np.full((m, last + 1, self.ny), np.nan), np.full((m, last + 1, self.ns, self.ny), np.nan)
        self.failed = np.full(m, -1, dtype=np.int64)
        self.pieces = np.zeros((len(engine.sources), NUMBERS_PER_PIECE * (len(engine.points) // 2) + 1, 1 + self.ns, m))
        """What is kept of the past of each source, in the order of the weights' columns."""
        self.own, self.polynomials = sample_pieces(s, members)
        self.moved = list(moved_disturbances(s, members)) if engine.moved else []
        self.weights = {(d.tau, d.order): self._weights(d.tau, d.order) for d in engine.delayed} | {
            (d.tau, d.order + 1): self._weights(d.tau, d.order + 1) for d in engine.delayed if d.rate >= 0
        }

    def _weights(self, tau: float, order: int) -> csr_array:
        s, points = self.engine.setting, self.engine.points
        key = (points.tobytes(), tau)
        return s.disturbances.last.get(("past", tau, order), key, lambda: delayed_weights(points, tau, order))

    def go(self) -> None:
        """Run all stretches."""
        points, begin = self.engine.points, 0
        first = self._advance(0, 0)
        self.pieces[:, -1] = np.moveaxis(first[:, 0], (0, 1, 2), (2, 1, 0))[: len(self.engine.sources)]
        while begin < self.last:
            # two steps of a piece need what lies before it, to rounding
            reach = points[begin] + self.engine.shortest + 1e-9 * (points[begin + 2] - points[begin])
            steps = int(np.searchsorted(points, reach, side="right")) - 1 - begin
            end = min(begin + max(steps // 2 * 2, 2), self.last)
            self._keep(begin, self._advance(begin, end))
            begin = end

    def _advance(self, begin: int, end: int) -> Floats:
        """Return sources and rates with derivatives after steps between two points, (realizations, points, 1 + ns,
        …).
        """
        e, s = self.engine, self.engine.setting
        signals, hold = self._signals(begin, end)
        extended = np.eye(self.ns) if e.moving else np.zeros((self.ns, 0))
        found = e.step.run(
            self.x, e.points[begin : end + 1], signals, np.concatenate([s.p, np.zeros(extended.shape[1])]), hold=hold,
            sx0=self.sx, nominal=s.nominal, keep=1, realizations=len(self.members), threads=s.threads,
            dp=np.column_stack([s.dp, extended]),
        )  # fmt: skip
        assert found.y is not None and found.sy is not None
        self.x, self.sx = found.x, found.sx
        self.failed = np.where((self.failed < 0) & (found.failed >= 0), found.failed + begin, self.failed)
        self.y[:, begin : end + 1], self.sy[:, begin : end + 1] = found.y[..., : self.ny], found.sy[..., : self.ny]
        return np.concatenate([found.y[:, :, None], found.sy], axis=2)[..., self.ny :]

    def _keep(self, begin: int, rows: Floats) -> None:
        """Store pieces of the past from sources and their rates at the points of a stretch."""
        n = len(self.engine.sources)
        rows = np.moveaxis(rows, (0, 1, 2, 3), (3, 1, 2, 0))  # what, point, direction, realization
        value, rate = rows[:n], rows[n:]
        kept = np.stack([value[:, :-1:2], rate[:, :-1:2], value[:, 1::2], rate[:, 1::2], value[:, 2::2]], axis=2)
        first = NUMBERS_PER_PIECE * (begin // 2)
        self.pieces[:, first : first + NUMBERS_PER_PIECE * kept.shape[1]] = kept.reshape(n, -1, *kept.shape[3:])

    def _signals(self, begin: int, end: int) -> tuple[list[Floats], list[str]]:
        """Return every signal at the half steps of a stretch."""
        e, s, m = self.engine, self.engine.setting, len(self.members)
        tables = [t[3 * begin : 3 * end + 1] if h == "stages" else t[begin : end + 1] for t, h in e.known]
        hold = [h for _, h in e.known]
        tables += [np.zeros(3 * (end - begin) + 1)] * (len(e.moving) * self.ns)
        hold += ["stages"] * (len(e.moving) * self.ns)

        def put(place: int, values: Floats) -> None:
            tables[place], hold[place] = values, "stages"

        for place, piece in self.polynomials.items():
            put(place, self._sampled(self.own, piece, begin, end))
        for k, piece in enumerate(self.moved):
            put(s.system.nu + k, self._sampled(s.grid.points, piece, begin, end))
        for i, d in enumerate(e.delayed):
            values = self._past(d, d.order, begin, end)
            put(d.place, values[0])
            for direction in range(self.ns):
                put(s.system.nu + (len(e.moved) + i) * self.ns + direction, values[1 + direction])
            if d.rate >= 0:
                put(d.rate, self._past(d, d.order + 1, begin, end)[0])
        assert all(t.shape[0] == m for t in tables if t.ndim == 2)
        return tables, hold

    def _past(self, delayed: _Delayed, order: int, begin: int, end: int) -> Floats:
        """Return a delayed signal and its derivatives at the half steps: (1 + ns, realizations, 3 steps + 1)."""
        weights = self.weights[delayed.tau, order][3 * begin : 3 * end]
        kept = self.pieces[delayed.source]
        values = np.asarray(weights @ kept.reshape(len(kept), -1)).reshape(-1, *kept.shape[1:])
        values = np.concatenate([values, values[-1:] if end > begin else kept[-1:]])
        return np.ascontiguousarray(np.moveaxis(values, 0, 2))

    def _sampled(self, breaks: Floats, pieces: Floats, begin: int, end: int) -> Floats:
        """Return polynomials of each realization at the half steps: (realizations, 3 steps + 1)."""
        points = self.engine.points
        left, right = points[begin:end], points[begin + 1 : end + 1]
        at = np.append(np.stack([left, 0.5 * (left + right), right], axis=1).ravel(), points[end])
        inside = np.append(np.repeat(0.5 * (left + right), 3), points[end])
        segment = np.clip(np.searchsorted(breaks, inside, side="right") - 1, 0, len(breaks) - 2)
        offset, c = at - breaks[segment], pieces[:, segment]
        value = c[..., -1]
        for k in range(c.shape[-1] - 2, -1, -1):
            value = value * offset + c[..., k]
        return np.ascontiguousarray(value)


def _delayed(s: EnsembleSetup) -> tuple[list[int], list[_Delayed]]:
    """Return rows of ``observed`` that are delayed, and every signal that repeats one."""
    system, places = s.system, s.system.has.pasts
    delays = {d.name: d for d in system.delays}
    used = [delays[system.signals[k].name] for k in places]
    taus = ca.Function("taus", [system.p], [ca.vertcat(*(d.tau for d in used))])(s.p).full().ravel()
    sources = list(dict.fromkeys(system.observed_names.index(d.source) for d in used))
    rates = {(r.name, r.order): k for k, r in enumerate(system.signals) if r.kind == RATE}
    found = []
    for place, delay, tau in zip(places, used, taus.tolist(), strict=True):
        signal = system.signals[place]
        _refuse(system, delay, signal.order)
        source = sources.index(system.observed_names.index(delay.source))
        found.append(_Delayed(place, signal.order, source, tau, rates.get((signal.name, signal.order), -1)))
    return sources, found


def _refuse(system: System, delay: Delay, order: int) -> None:
    """Refuse what is no formula of states, and what index reduction differentiates twice."""
    formula = system.observed[system.observed_names.index(delay.source)]
    if ca.depends_on(formula, ca.vertcat(system.z, system.u)) or jumps_of(formula, system.x):
        raise ModelError(
            f"Realizations are made where states are delayed; {delay.name} delays {delay.source}, which is no smooth "
            f"formula of states and may jump. Delay the states that it is made of, or let a state follow it, der(f) "
            f"== ({delay.source} - f) / T, and delay that."
        )
    if order > 1:
        raise ModelError(
            f"Index reduction differentiates {delay.name} {order} times, and what realizations keep of the past is not "
            f"as smooth: write the equation for its integral, or simulate without realizations."
        )


def _with_rates(system: System, sources: Sequence[int]) -> System:
    """Return the system that observes the rates of some of what it observes, too."""
    formulas = ca.vertcat(*(system.observed[i] for i in sources))
    rates = ca.jtimes(formulas, system.x, system.rhs) + ca.jacobian(formulas, system.t)
    names = tuple(f"der({system.observed_names[i]})" for i in sources)
    return replace(
        system, observed=ca.vertcat(system.observed, ca.densify(rates)), observed_names=(*system.observed_names, *names)
    )
