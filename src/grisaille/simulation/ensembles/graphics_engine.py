"""Ensembles on a graphics processor: the fused engine whose batches are run there, at many parameter values at once.

Derivatives are dealt out to threads: where there are few realizations, every direction gets its own thread, which takes
the realization itself along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from grisaille import interrupts
from grisaille.compilation.batch import BatchInput, BatchResult
from grisaille.compilation.coloured_noise_source import ColouredNoiseLayout
from grisaille.compilation.cuda.batch_cuda import are_alike, run_batches
from grisaille.compilation.fused_step import FusedStep, build_step
from grisaille.simulation.ensembles.engines import (
    Engine,
    EngineAnswer,
    EnsembleSetup,
    FusedEngine,
    Progress,
    SampledEngine,
    known_signals,
    layout_of,
    layout_of_white,
)
from grisaille.simulation.ensembles.graphics_tasks import GraphicsTaskEngine
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK
from grisaille.simulation.ensembles.task_engine import EngineMaker

FULL_DEVICE_THREADS = 32_768
"""Threads that fill a large device."""
MAX_SAMPLED_BYTES = 1 << 30
"""Bytes of sampled disturbances of one run."""


class GraphicsEngine(FusedEngine):
    """``device`` is ``"cuda"`` or ``"cuda-single"``; ``values`` parameter values will be run together."""

    def __init__(self, setting: EnsembleSetup, device: str, values: int = 1) -> None:
        self.setting, self.device, self.name = setting, device, f"frozen fused on {device}"
        each = directions_of_a_thread(len(setting.dp), values * setting.count)
        self.step = device_step(setting, each)
        self.filters = setting.disturbances.filters(setting.values, setting.grid.points, setting.draw, setting.substeps)
        self.signals, self.hold = known_signals(setting)

    def execute(self, batch: BatchInput, moments: bool, rows: bool, progress: Progress | None) -> BatchResult:
        single = self.device == "cuda-single"

        def told(done: int, count: int) -> None:
            interrupts.check()
            if progress is not None:
                progress(done, count)

        return run_batches(self.step.source, self.step, [batch], moments, rows, single, told)[0]

    def _sized(self) -> FusedStep:
        """Return the step with the sizes of all directions."""
        return replace(self.step, ns=len(self.setting.dp))


class GraphicsSampledEngine(SampledEngine):
    """Steps on a device, disturbances sampled on the processor."""

    def __init__(self, setting: EnsembleSetup, device: str) -> None:
        self.setting, self.ends, self.device = setting, np.zeros((0, setting.system.nx)), device
        self.name = f"frozen fused on {device}"
        each = directions_of_a_thread(len(setting.dp), setting.count)
        self.step = device_step(setting, each, layout_of_white(setting))
        self.signals, self.hold = known_signals(setting)
        self.white = setting.disturbances.filters(setting.values, setting.grid.points, setting.draw).white
        row = 8 * setting.system.nu * (setting.grid.cells * (2 * setting.substeps + 1) + 1)
        self.abreast = max(
            REALIZATIONS_PER_BLOCK, MAX_SAMPLED_BYTES // row // REALIZATIONS_PER_BLOCK * REALIZATIONS_PER_BLOCK
        )

    def execute(self, batch: BatchInput, moments: bool, rows: bool) -> BatchResult:
        return run_batches(self.step.source, self.step, [batch], moments, rows, self.device == "cuda-single")[0]

    def _sized(self) -> FusedStep:
        return replace(self.step, ns=len(self.setting.dp))


def on_graphics(engine: Callable[[EnsembleSetup], Engine], setting: EnsembleSetup, device: str) -> Engine:
    """Return the engine that does on a device what ``engine`` does on the processor."""
    if isinstance(engine, EngineMaker):
        return GraphicsTaskEngine(setting, engine.solver, device)
    return GraphicsSampledEngine(setting, device) if engine is SampledEngine else GraphicsEngine(setting, device)


def directions_of_a_thread(count: int, realizations: int) -> int:
    """Return the smallest divisor of the number of directions with which a device is not more than full, or all of
    them.
    """
    if not count:
        return 0
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    return next((d for d in divisors if realizations * (count // d) <= FULL_DEVICE_THREADS), count)


def device_step(setting: EnsembleSetup, directions: int, layout: ColouredNoiseLayout | None = None) -> FusedStep:
    """Return the step that a device runs."""
    formula = None if setting.white is None else setting.white.formula
    return build_step(
        setting.system, observed=setting.observed, directions=directions, filters=layout or layout_of(setting),
        formula=formula,
    )  # fmt: skip


def run_together(engines: Sequence[GraphicsEngine], slab: slice, rows: bool = False) -> list[EngineAnswer] | None:
    """Return moments, or rows, of ensembles that differ in parameter values and seeds alone, in one run; None where
    they differ in more.
    """
    batches = [e.batch(slab) for e in engines]
    first = engines[0]
    if any(e.step is not first.step for e in engines) or not are_alike(batches):
        return None
    found = run_batches(first.step.source, first.step, batches, not rows, rows, first.device == "cuda-single")
    for engine, answer in zip(engines, found, strict=True):
        engine.ends = answer.x
    return [EngineAnswer(f.y, f.sy, f.moments, f.failed) for f in found]
