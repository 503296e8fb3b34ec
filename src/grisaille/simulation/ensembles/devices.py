"""Where an ensemble runs: on the processor, or on a graphics processor where that is asked for or pays.

A thread of a graphics processor takes a step some fifteen times as long as a core of a processor does, and tens of
thousands run at once: it pays from that many realizations for each core on, for runs that take a processor longer than
the kernel takes to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grisaille.compilation.batch_native import processors
from grisaille.compilation.cuda.device import DEVICES, find_device, require_graphics_device
from grisaille.compilation.derivatives import differentiate
from grisaille.errors import SimulationError
from grisaille.simulation.ensembles.engines import Engine, EnsembleSetup, FusedEngine, SampledEngine
from grisaille.simulation.ensembles.graphics_engine import device_step
from grisaille.simulation.ensembles.task_engine import EngineMaker

MIN_REALIZATIONS_PER_CORE = 16
"""Realizations for each core of the processor from which on a graphics processor is faster: a step takes one of its
threads 1 µs where it takes a core 77 ns (an H200, the pendulum of docs/speed.md)."""
MIN_PROCESSOR_SECONDS = 4.0
"""Seconds that a run must take on the processor, at least: kernels take that long to compile."""
PER_INSTRUCTION = 0.25e-9
"""Seconds of a core for one instruction of a step of one realization."""
PER_CELL, PER_NUMBER = 50e-9, 6e-9
"""The same for the draw and the filters of a cell, and for a number that is kept or averaged."""
MAX_DEVICE_INSTRUCTIONS = 100_000
"""Instructions of a step, or of what an integrator calls, that a run-time compiler is given, at most."""
MAX_DEVICE_UNKNOWNS = 32
"""Unknowns of implicit steps: a thread factors their matrices, which grow with the square."""


@dataclass(frozen=True)
class Device:
    """The device of a run, and the reason for it."""

    name: str
    why: str

    @property
    def is_graphics(self) -> bool:
        return self.name != "cpu"


CPU = Device("cpu", "cpu")


def choose_device(
    wanted: str, engine: Callable[[EnsembleSetup], Engine], setting: EnsembleSetup, values: int = 1
) -> Device:
    """Choose where an ensemble of ``values`` parameter values runs; raise where it cannot run on the requested
    device.
    """
    if wanted == "cpu":
        return CPU
    why = why_unfit(engine, setting, wanted)
    if wanted != "auto":
        if why:
            raise SimulationError(f"device={wanted!r}: {why}. Use device='cpu', or 'auto', which does so by itself.")
        return Device(wanted, f"{wanted}: {require_graphics_device()}")
    if not why:
        why = find_device().why or _sampled(engine, setting) or _too_small(setting, values)
    return Device("cpu", f"cpu: {why}") if why else Device("cuda", f"cuda: {find_device().name}")


def require_device(wanted: str) -> None:
    """Raise where a graphics processor is asked for by name and there is none."""
    if wanted not in ("cpu", "auto"):
        require_graphics_device()


def why_unfit(engine: Callable[[EnsembleSetup], Engine], setting: EnsembleSetup, wanted: str = "cuda") -> str:
    """Return why a graphics processor cannot run it, in words; empty where it can."""
    if setting.system.has.pasts:
        return f"{setting.system.signals[setting.system.has.pasts[0]].name} is kept on processors only"
    if setting.system.reactions is not None:
        return f"gr.when({setting.system.reactions.texts[0]}) is followed on processors only"
    if setting.crossed:
        return f"derivatives across '{setting.crossed[0].text}' are followed on processors only"
    if isinstance(engine, EngineMaker):
        return _unfit_for_integrators(setting, wanted)
    instructions = _instructions(setting)
    if instructions > MAX_DEVICE_INSTRUCTIONS:
        return f"a step has {instructions} instructions, and kernels are compiled up to {MAX_DEVICE_INSTRUCTIONS}"
    return ""


def _unfit_for_integrators(setting: EnsembleSetup, wanted: str) -> str:
    system, single = setting.system, wanted == "cuda-single"
    if system.nx + system.nz > MAX_DEVICE_UNKNOWNS:
        return f"{system.nx + system.nz} unknowns are too many for implicit steps there, {MAX_DEVICE_UNKNOWNS} would do"
    if single:
        return "implicit steps are made in double precision only, device='cuda' makes them"
    functions = differentiate(system, sensitive=bool(len(setting.dp)))
    instructions = sum(f.n_instructions() for f in functions.values())
    if instructions > MAX_DEVICE_INSTRUCTIONS:
        return (
            f"the equations and their derivatives have {instructions} instructions, and kernels are compiled up to "
            f"{MAX_DEVICE_INSTRUCTIONS}"
        )
    return ""


def _sampled(engine: Callable[[EnsembleSetup], Engine], setting: EnsembleSetup) -> str:
    """Return why the processor is as quick: it has most of the work in any case."""
    if engine is FusedEngine:
        return ""
    kind = f"between={setting.between!r}" if engine is SampledEngine else "an implicit integrator"
    return f"disturbances for {kind} are sampled on the processor, which takes most of the time; device='cuda' insists"


def _too_small(setting: EnsembleSetup, values: int) -> str:
    """Return why the processor is quicker; empty where it is not."""
    cores = setting.threads or processors()
    abreast = values * setting.count
    if abreast < MIN_REALIZATIONS_PER_CORE * cores:
        return (
            f"{abreast} realizations are too few to gain by a graphics processor here, "
            f"{MIN_REALIZATIONS_PER_CORE * cores} would do"
        )
    instructions = _instructions(setting) * max(1, len(setting.dp))
    cells, numbers = setting.grid.cells, setting.grid.kept.size * len(setting.observed) * (1 + len(setting.dp))
    each = cells * (PER_CELL + setting.substeps * instructions * PER_INSTRUCTION) + numbers * PER_NUMBER
    seconds = abreast * each / cores
    if seconds < MIN_PROCESSOR_SECONDS:
        return f"it takes about {seconds:.1g} s, and a kernel for a graphics processor some seconds to compile"
    return ""


def _instructions(setting: EnsembleSetup) -> int:
    """Return the instructions of a step with one direction, where there are any."""
    return device_step(setting, min(1, len(setting.dp))).instructions


def check_device(wanted: object) -> None:
    """Raise where it is none of the names."""
    if wanted not in DEVICES:
        raise SimulationError(f"device is {wanted!r}; it must be one of {', '.join(map(repr, DEVICES))}.")
