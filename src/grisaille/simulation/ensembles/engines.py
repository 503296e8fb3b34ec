"""How the trajectories of an ensemble are made: fused steps with disturbances inside them, or with sampled ones.

An engine runs all realizations slab by slab (a slab is a range of output times) and gives an ``EngineAnswer`` for each.
``FusedEngine`` goes on from the states at the end of the slab before; nothing of the disturbances is stored.
``SampledEngine`` takes their values at every half step from a spline or from the process's own bridge, for 32
realizations at a time, and begins each slab from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille import interrupts
from grisaille.cache import Cache, IdentityKey
from grisaille.compilation.batch import BatchArguments, BatchInput, BatchResult
from grisaille.compilation.coloured_noise_source import ColouredNoise, ColouredNoiseLayout
from grisaille.compilation.fused_step import FusedStep, build_step
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.compilation.step import StepFormula
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.experiment.projected_signals import projected_table
from grisaille.simulation.ensembles.disturbances import Disturbances, DisturbanceValues, Draw
from grisaille.simulation.ensembles.ensemble_starts import EnsembleStarts
from grisaille.simulation.ensembles.grid import EnsembleTimes, stage_table
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK
from grisaille.simulation.ensembles.sampled import sample_stages
from grisaille.structure.jumps import Jump
from grisaille.structure.system import System

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class EnsembleSetup:
    """Everything a run of an ensemble depends on, besides how it is run."""

    system: System
    p: Floats
    nominal: Floats
    table: SignalTable
    grid: EnsembleTimes
    starts: EnsembleStarts
    dp: Floats
    disturbances: Disturbances
    values: DisturbanceValues
    draw: Draw
    count: int
    observed: tuple[int, ...]
    between: str
    substeps: int
    threads: int | None
    white: WhiteStep | None = None
    noise_scale: float = 1.0
    """Factor of the white noise."""
    name: Callable[[ca.SX], str] = str
    """A formula of the system in the user's names."""
    crossed: tuple[Jump, ...] = ()
    """Relations of states across which the equations jump, where derivatives are to contain the share of the jumps."""


@dataclass(frozen=True, eq=False)
class WhiteStep:
    """The step of equations with white noise in them."""

    formula: StepFormula
    normals_per_noise: int


@dataclass(frozen=True, eq=False)
class EngineAnswer:
    """One slab: rows (M, instants, …) and moments as far as they were asked for."""

    y: Floats | None
    sy: Floats | None
    moments: SampleMoments | None
    failed: NDArray[np.int64]
    """(M,): grid index at which a realization was first seen not finite, or -1."""


class Engine(Protocol):
    ends: Floats
    """(M, nx): the states with which the realizations of the last run ended."""

    @property
    def name(self) -> str: ...
    def run(
        self, slabs: Sequence[slice], skip: Sequence[int], moments: bool, rows: bool, progress: Progress | None
    ) -> Iterator[EngineAnswer]: ...


class FusedEngine:
    name = "frozen fused"

    def __init__(self, setting: EnsembleSetup) -> None:
        self.setting, self.ends = setting, np.zeros((0, setting.system.nx))
        self.step = _build(setting, layout_of(setting))
        self.filters = setting.disturbances.filters(setting.values, setting.grid.points, setting.draw, setting.substeps)
        self.signals, self.hold = known_signals(setting)

    def run(
        self, slabs: Sequence[slice], skip: Sequence[int], moments: bool, rows: bool, progress: Progress | None
    ) -> Iterator[EngineAnswer]:
        begin, last = 0, None
        for slab in slabs:
            batch = self.batch(slab, skip, begin, last)
            found = self.execute(batch, moments, rows, _shared(progress, slab, slabs))
            yield EngineAnswer(found.y, found.sy, found.moments, np.where(found.failed >= 0, found.failed + begin, -1))
            begin, last, self.ends = int(self.setting.grid.kept[slab][-1]), found, found.x

    def execute(self, batch: BatchInput, moments: bool, rows: bool, progress: Progress | None) -> BatchResult:
        return self.step.execute(batch, moments, rows, self.setting.threads, progress)

    def batch(
        self, slab: slice, skip: Sequence[int] = (), begin: int = 0, last: BatchResult | None = None
    ) -> BatchInput:
        """Return the arrays of a slab that goes on from where the one before ended."""
        s, kept = self.setting, self.setting.grid.kept[slab]
        arguments = BatchArguments(
            s.starts.x if last is None else last.x,
            s.grid.points[begin : kept[-1] + 1],
            self._cut(begin, int(kept[-1])),
            extended_parameters(s),
            sx0=s.starts.sx if last is None else last.sx,
            keep=kept - begin,
            skip=skip,
            filters=self._from(begin, int(kept[-1]), last),
            **_options(s, self.hold),
        )
        return self._sized().batch(arguments)

    def _sized(self) -> FusedStep:
        return self.step

    def _from(self, begin: int, end: int, last: BatchResult | None) -> ColouredNoise:
        which = self.filters.which[begin:end]
        if last is None:
            return replace(self.filters, which=which)
        dw = last.dw if last.dw.shape[1] else None
        return replace(self.filters, which=which, first_point=begin, w=last.w, dw=dw)

    def _cut(self, begin: int, end: int) -> list[Floats]:
        width = 2 * self.setting.substeps + 1
        return [
            s[begin * width : end * width + 1] if h == "stages" else s[begin : end + 1]
            for s, h in zip(self.signals, self.hold, strict=True)
        ]


class SampledEngine:
    name = "frozen fused"
    abreast = REALIZATIONS_PER_BLOCK
    """Realizations of one run of the step."""

    def __init__(self, setting: EnsembleSetup) -> None:
        self.setting, self.ends = setting, np.zeros((0, setting.system.nx))
        self.step = _build(setting, layout_of_white(setting))
        self.signals, self.hold = known_signals(setting)
        self.white = setting.disturbances.filters(setting.values, setting.grid.points, setting.draw).white

    def run(
        self, slabs: Sequence[slice], skip: Sequence[int], moments: bool, rows: bool, progress: Progress | None
    ) -> Iterator[EngineAnswer]:
        for slab in slabs:
            blocks = in_blocks(self.setting.count, self.abreast, progress)
            answer, self.ends = joined(self._block(members, slab, skip, moments, rows) for members in blocks)
            yield answer

    def _block(
        self, members: NDArray[np.int64], slab: slice, skip: Sequence[int], moments: bool, rows: bool
    ) -> tuple[EngineAnswer, Floats]:
        s = self.setting
        kept = s.grid.kept[slab]
        end, width = int(kept[-1]), 2 * s.substeps + 1
        pairs = zip(self.signals, self.hold, strict=True)
        signals = [t[: end * width + 1] if h == "stages" else t[: end + 1] for t, h in pairs]
        hold = list(self.hold)
        blocks = [
            sample_stages(s, members[k : k + REALIZATIONS_PER_BLOCK], end)
            for k in range(0, members.size, REALIZATIONS_PER_BLOCK)
        ]
        for place in blocks[0]:
            signals[place], hold[place] = np.concatenate([block[place] for block in blocks]), "stages"
        first = int(members[0]) + s.draw.first
        filters = ColouredNoise(np.zeros(end, dtype=np.int64), (), self.white, first_realization=first)
        own = [i - members[0] for i in skip if i in members]
        arguments = BatchArguments(
            s.starts.x[members] if s.starts.x.ndim == 2 else s.starts.x,
            s.grid.points[: end + 1],
            signals,
            extended_parameters(s),
            sx0=s.starts.sx[members] if s.starts.sx.ndim == 3 else s.starts.sx,
            keep=kept,
            skip=own,
            filters=filters,
            **(_options(s, hold) | {"realizations": members.size}),
        )
        batch = self._sized().batch(arguments)
        found = self.execute(batch, moments, rows)
        return EngineAnswer(found.y, found.sy, found.moments, found.failed), found.x

    def execute(self, batch: BatchInput, moments: bool, rows: bool) -> BatchResult:
        return self.step.execute(batch, moments, rows, self.setting.threads, None)

    def _sized(self) -> FusedStep:
        return self.step


def known_signals(s: EnsembleSetup) -> tuple[list[Floats], list[str]]:
    """Return tables and holds of all signals; zeros where a disturbance comes in."""

    def make() -> tuple[list[Floats], list[str]]:
        table = fixed_table(s)
        pairs = [stage_table(table, s.grid, s.substeps, i) for i in range(s.system.nu)]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    return s.disturbances.last.get(
        "signals", (IdentityKey(s.table), IdentityKey(s.grid), s.substeps, s.system.nu), make
    )


def fixed_table(s: EnsembleSetup) -> SignalTable:
    """Return the table of signals; where breaks move, on the cells of the grid."""
    return s.table if s.system.moving is None else projected_table(s.table, s.system, s.grid.points)


def extended_parameters(s: EnsembleSetup) -> Floats:
    """Return p, followed by the gains of white noise where there is any."""
    return np.concatenate([s.p, s.noise_scale * s.disturbances.white_gains(s.values)])


def in_blocks(count: int, size: int, progress: Progress | None) -> Iterator[NDArray[np.int64]]:
    """Yield numbers of realizations, ``size`` at a time; tells how many are done when it goes on."""
    for first in range(0, count, size):
        members = np.arange(first, min(first + size, count))
        yield members
        interrupts.check()
        if progress is not None:
            progress(int(members[-1]) + 1, count)


def joined(blocks: Iterable[tuple[EngineAnswer, Floats]]) -> tuple[EngineAnswer, Floats]:
    """Return the answers of blocks one after the other, and the states at their ends."""
    parts, ends = zip(*blocks, strict=True)
    return join_answers(parts), np.concatenate(ends)


def join_answers(parts: Sequence[EngineAnswer]) -> EngineAnswer:
    """Return blocks of realizations one after the other."""
    total: SampleMoments | None = None
    for part in parts:
        if part.moments is not None and part.moments.count:
            total = part.moments if total is None else total.joined(part.moments)
    y, sy = (
        np.concatenate([getattr(p, n) for p in parts]) if getattr(parts[0], n) is not None else None
        for n in ("y", "sy")
    )
    return EngineAnswer(y, sy, total, np.concatenate([p.failed for p in parts]))


def layout_of(s: EnsembleSetup) -> ColouredNoiseLayout:
    return s.disturbances.layout(s.values, s.white.normals_per_noise if s.white is not None else 1)


def layout_of_white(s: EnsembleSetup) -> ColouredNoiseLayout:
    """Return the layout of white noise where filters are sampled beforehand."""
    return ColouredNoiseLayout(white=layout_of(s).white, paired=layout_of(s).paired)


def make_white_step(
    formula: StepFormula, names: Sequence[str], groups: Sequence[Sequence[str]], each: int
) -> WhiteStep:
    """Return the formula with its normals in the order of drawing: group by group, in each the first ones, then the
    second.
    """
    key = IdentityKey(formula), tuple(names), tuple(map(tuple, groups)), each
    return _WHITE_STEPS.get(key, lambda: _white_step(formula, names, groups, each))


_WHITE_STEPS: Cache[WhiteStep] = Cache()


def _white_step(formula: StepFormula, names: Sequence[str], groups: Sequence[Sequence[str]], each: int) -> WhiteStep:
    if not names:
        return WhiteStep(formula, each)
    order = [k * len(names) + names.index(n) for group in groups for k in range(each) for n in group]
    drawn = ca.SX.sym("v", len(order))
    sorted_back = ca.vertcat(*(drawn[order.index(i)] for i in range(len(order))))
    return WhiteStep(
        replace(formula, noise=drawn, after=ca.substitute(formula.after, formula.noise, sorted_back)), each
    )


def _build(s: EnsembleSetup, layout: ColouredNoiseLayout) -> FusedStep:
    formula = None if s.white is None else s.white.formula
    key = (IdentityKey(s.system), IdentityKey(formula), s.observed, len(s.dp), layout)

    def make() -> FusedStep:
        return build_step(s.system, observed=s.observed, directions=len(s.dp), filters=layout, formula=formula)

    return s.disturbances.last.get(("step", len(s.dp)), key, make)


def _options(s: EnsembleSetup, hold: Sequence[str]) -> dict[str, Any]:
    dp = np.column_stack([s.dp, s.disturbances.white_gain_directions(s.values)])
    return {
        "hold": hold, "nominal": s.nominal, "substeps": s.substeps, "realizations": s.count, "dp": dp,
    }  # fmt: skip


def _shared(progress: Progress | None, slab: slice, slabs: Sequence[slice]) -> Progress | None:
    """Return progress over realizations as if all slabs were one run."""
    if progress is None:
        return None
    number, count = list(slabs).index(slab), len(slabs)
    return lambda done, total: progress((number * total + done) // count, total)
