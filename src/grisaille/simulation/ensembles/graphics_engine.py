"""Ensembles on a graphics processor: the fused engine whose batches are run there, at many parameter values at once.

Derivatives are dealt out to threads: where there are few realizations, every direction gets its own thread, which takes
the realization itself along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grisaille.compilation.batch import Batch, Frozen
from grisaille.compilation.cuda.batch_cuda import are_alike, run_batches
from grisaille.compilation.frozen import FusedStep, build_step
from grisaille.simulation.ensembles.engines import Answer, FusedEngine, Progress, Setting, known_signals, layout_of

FULL = 32_768
"""Threads that fill a large device."""


class GraphicsEngine(FusedEngine):
    """``device`` is ``"cuda"`` or ``"cuda-single"``; ``values`` parameter values will be run together."""

    def __init__(self, setting: Setting, device: str, values: int = 1) -> None:
        self.setting, self.device, self.name = setting, device, f"fused on {device}"
        each = directions_of_a_thread(len(setting.dp), values * setting.count)
        self.step = device_step(setting, each)
        self.filters = setting.disturbances.filters(setting.values, setting.grid.points, setting.draw, setting.substeps)
        self.signals, self.hold = known_signals(setting)

    def execute(self, batch: Batch, moments: bool, rows: bool, progress: Progress | None) -> Frozen:
        single = self.device == "cuda-single"
        return run_batches(self.step.source, self.step, [batch], moments, rows, single, progress)[0]

    def _sized(self) -> FusedStep:
        """The step with the sizes of all directions."""
        return replace(self.step, ns=len(self.setting.dp))


def directions_of_a_thread(count: int, realizations: int) -> int:
    """The smallest divisor of the number of directions with which a device is not more than full, or all of them."""
    if not count:
        return 0
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    return next((d for d in divisors if realizations * (count // d) <= FULL), count)


def device_step(setting: Setting, directions: int) -> FusedStep:
    """A step that is not compiled for the processor."""
    formula = None if setting.white is None else setting.white.formula
    return build_step(
        setting.system, observed=setting.observed, directions=directions, filters=layout_of(setting), formula=formula,
        compiled=False,
    )  # fmt: skip


def run_together(engines: Sequence[GraphicsEngine], slab: slice) -> list[Answer] | None:
    """Moments of ensembles that differ in parameter values alone, in one run; None where they differ in more."""
    batches = [e.batch(slab) for e in engines]
    first = engines[0]
    if any(e.step is not first.step for e in engines) or not are_alike(batches):
        return None
    found = run_batches(first.step.source, first.step, batches, True, False, first.device == "cuda-single")
    for engine, answer in zip(engines, found, strict=True):
        engine.ends = answer.x
    return [Answer(None, None, f.moments, f.failed) for f in found]
