"""Many realizations of a disturbed model, kept or reduced to statistics while they are made.

Every realization is the same sequence of smooth steps on one grid (``grid``), with disturbances that are
functions of (seed, realization, name): results do not depend on how many realizations there are, in which order or on
how many threads they are made, and are smooth in parameters. Each cell of the grid is cut into as many steps as a pilot
of two realizations needs for the tolerance. Models that stay implicit are integrated one realization at a time.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.implicit_as_states import ALGEBRAIC_EFFORTS, ImplicitAsStates
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.compilation.stochastic_step import WhiteNoiseInfo
from grisaille.errors import DataError, SimulationError
from grisaille.simulation.dataset import as_ensemble
from grisaille.simulation.ensembles.devices import CPU, Device, choose_device
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.engine_choice import choose_engine, unsolved_sentence
from grisaille.simulation.ensembles.engines import (
    Engine,
    EngineAnswer,
    EnsembleSetup,
    FusedEngine,
)
from grisaille.simulation.ensembles.ensemble_discretisation import EnsembleGrid
from grisaille.simulation.ensembles.ensemble_memory import MAX_NUMBERS_IN_MEMORY, require_ensemble
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions, check_options, for_device
from grisaille.simulation.ensembles.ensemble_setup import make_setup
from grisaille.simulation.ensembles.graphics_engine import GraphicsEngine, on_graphics, run_together
from grisaille.simulation.ensembles.grid import EnsembleTimes
from grisaille.simulation.ensembles.pilot_runs import Pilot
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK, RealizationBlock, Statistic, make_reducers
from grisaille.simulation.ensembles.rough_signals import without_rough_signals
from grisaille.simulation.ensembles.task_engine import EngineMaker, TaskEngine
from grisaille.simulation.measurement_noise import with_noise
from grisaille.simulation.progress import progress_over

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.simulation.ensembles.reducers import Reducer

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What was computed: every realization, or statistics."""

    names: tuple[str, ...]
    y: Floats | None
    """(M, times, names)"""
    sy: Floats | None
    """(M, times, ns, names)"""
    statistics: dict[str, Statistic]
    """By suffix; under the empty suffix when a single one was asked for."""
    failed: dict[int, float]
    """Realization → time at which its state was first seen not finite."""
    grid: EnsembleTimes
    substeps: int
    error_estimate: float
    """Of the pilot, in units of the tolerance."""
    solver: str
    remark: str = ""
    scheme: str = ""
    """Of the steps with white noise."""
    inner_step: float | None = None
    """Where every realization was integrated by itself."""
    linear_loss: float = 0.0
    """Part of the variance of a disturbance that lines between grid points lose."""
    effort: int = 0
    """That was needed for algebraic unknowns under white noise."""
    device: str = "cpu"
    """Where it was made, and why there."""
    reason: str = ""
    """Why the first realization that failed did, where its integrator tells."""
    passed: str = ""
    """What steps may have gone over."""


def simulate_ensemble(
    posed: ExperimentPoint, options: EnsembleOptions, *, noise: bool, strict: bool, progress: bool
) -> xr.Dataset:
    """Return the ensemble as a labelled dataset; failures raise when ``strict``."""
    if noise and options.reduce is not None:
        raise DataError("noise=True adds measurement noise to trajectories; statistics are of the outputs themselves.")
    label = posed.structure.model.name
    check_options(options)
    require_ensemble(posed, options, noise)
    with progress_over(options.realizations, label, progress) as report:
        found = run_ensemble(posed, options, report)
    result = as_ensemble(posed, options, found)
    found = replace(found, y=None, sy=None)  # the names have arrays of their own
    if noise:
        result = with_noise(result, posed.structure.model, posed.known, options.seed, options.antithetic)
    if found.failed:
        sentence = failure_sentence(found, options.realizations)
        if strict:
            raise SimulationError(f"The simulation of {label} failed: {sentence}", result)
        warnings.warn(f"{label}: {sentence}", UserWarning, stacklevel=3)
    return result


def failure_sentence(found: Ensemble, count: int) -> str:
    """Return which realizations failed, when, and what became of them."""
    first = sorted(found.failed)[:8]
    named = ", ".join(f"{m} (at t = {found.failed[m]:.4g})" for m in first) + (", …" if len(found.failed) > 8 else "")
    left = "they are left out of the statistics" if found.statistics else "their values are NaN from there on"
    if found.reason:
        return (
            f"{len(found.failed)} of {count} realizations failed: {named}; {left}. In the first one {found.reason} Go "
            f"on without them by strict=False."
        )
    return (
        f"{len(found.failed)} of {count} realizations became infinite or undefined: {named}; {left}. Look for a "
        f"division by zero or a root of a negative number, give a smaller step=, or accept it with strict=False."
    )


def run_ensemble(
    posed: ExperimentPoint,
    options: EnsembleOptions,
    progress: Progress | None = None,
    disturbances: Disturbances | None = None,
) -> Ensemble:
    """Run the pilot, then all realizations; ``disturbances`` of the same model save work in repeated calls."""
    check_options(options)
    require_ensemble(posed, options)
    options = for_device(posed, options) if options.device != "cpu" else options
    posed = without_rough_signals(posed) if posed.structure.system.has.stepped_around else posed
    disturbances = disturbances or Disturbances(posed.structure.model, posed.structure.system)
    for effort in range(options.effort, len(ALGEBRAIC_EFFORTS)):
        found, unsolved = _run(posed, replace(options, effort=effort), progress, disturbances)
        if not unsolved:
            return found
    raise SimulationError(unsolved_sentence(posed, found.grid, found.substeps, unsolved))


def _run(
    posed: ExperimentPoint, options: EnsembleOptions, progress: Progress | None, disturbances: Disturbances
) -> tuple[Ensemble, str]:
    """Return an ensemble, and which of the algebraic unknowns that it carries along was not solved."""
    setting, noise = make_setup(posed, options, disturbances)
    engine_of, pilot = choose_engine(posed, options, setting, noise)
    setting = replace(setting, substeps=pilot.substeps)
    require_ensemble(posed, options, setting=setting, joined=engine_of is not FusedEngine)
    device = choose_device(options.device, engine_of, setting) if options.device != "cpu" else CPU
    engine = on_graphics(engine_of, setting, device.name) if device.is_graphics else engine_of(setting)
    y = sy = None
    statistics: dict[str, Statistic] = {}
    if options.reduce is None:
        (answer,) = engine.run([slice(0, posed.times.size)], (), False, True, progress)
        y, sy, failed = answer.y, answer.sy, answer.failed
        _blank(y, sy, failed, setting.grid)
    else:
        statistics, failed = _reduce(engine, setting, options.reduce, progress)
    found = _ensemble(posed, options, setting, noise, pilot, engine, device, statistics, failed)
    carried = noise.carried if noise else None
    return replace(found, y=y, sy=sy), "" if carried is None else carried.unsolved(engine.ends)


def run_ensembles(
    points: Sequence[ExperimentPoint],
    options: EnsembleOptions,
    disturbances: Disturbances,
    seeds: Sequence[int] | None = None,
) -> list[Ensemble]:
    """Call ``run_ensemble`` for each point; all of them at once where a graphics processor makes them.

    points : of one model and record at several parameter values; the grid and its steps are fixed by the options
    seeds : one for each point; that of the options when not given
    """
    check_options(options)
    options = for_device(points[0], options)
    each = [replace(options, seed=seed) for seed in seeds or [options.seed] * len(points)]
    together = _together(points, each, disturbances)
    return [
        run_ensemble(point, own, None, disturbances) if found is None else found
        for point, own, found in zip(points, each, together, strict=True)
    ]


def prepare(
    posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances
) -> tuple[Callable[[EnsembleSetup], Engine], EnsembleSetup, ImplicitAsStates | None]:
    """Return what makes the engine of an ensemble, what it is given, steps included, and how it solves implicit
    unknowns.
    """
    check_options(options)
    options = for_device(posed, options)
    setting, noise = make_setup(posed, options, disturbances)
    engine, pilot = choose_engine(posed, options, setting, noise)
    return engine, replace(setting, substeps=pilot.substeps), noise.carried if noise else None


def _together(
    points: Sequence[ExperimentPoint], each: Sequence[EnsembleOptions], disturbances: Disturbances
) -> list[Ensemble | None]:
    """Return ensembles made in one run; None where one has to be made by itself: on the processor, or again without
    realizations that failed, or with more iterations for implicit unknowns.

    each : options that differ in their seeds alone
    """
    nothing: list[Ensemble | None] = [None] * len(points)
    options, rows = each[0], each[0].reduce is None
    if options.device == "cpu" or options.substeps is None:
        return nothing
    if not rows and any(r.needs_rows for r in make_reducers(copy.deepcopy(options.reduce))[0]):
        return nothing
    made = [make_setup(p, own, disturbances) for p, own in zip(points, each, strict=True)]
    settings, noise = [replace(s, substeps=options.substeps) for s, _ in made], made[0][1]
    engine_of, pilot = choose_engine(points[0], options, settings[0], noise)
    device = choose_device(options.device, engine_of, settings[0], len(points))
    if not device.is_graphics or engine_of is not FusedEngine:
        return nothing
    engines = [GraphicsEngine(s, device.name, len(points)) for s in settings]
    answers = run_together(engines, slice(0, points[0].times.size), rows)
    found, carried = nothing, noise.carried if noise else None
    for k, answer in enumerate(answers or ()):
        is_solved = carried is None or not carried.unsolved(engines[k].ends)
        if is_solved and not (answer.failed >= 0).any():
            slab = slice(0, points[k].times.size)
            statistics = {} if rows else _statistics(options.reduce, answer.moments, slab)
            one = _ensemble(
                points[k], each[k], settings[k], noise, pilot, engines[k], device, statistics, answer.failed
            )
            found[k] = replace(one, y=answer.y, sy=answer.sy)
    return found


def _statistics(wanted: Sequence[str], moments: SampleMoments | None, slab: slice) -> dict[str, Statistic]:
    reducers, single = make_reducers(copy.deepcopy(wanted))
    for reducer in reducers:
        reducer.update(RealizationBlock(slab, moments))
    return {"" if single else r.suffix: r.result() for r in reducers}


def _ensemble(
    posed: ExperimentPoint, options: EnsembleOptions, setting: EnsembleSetup, noise: WhiteNoiseInfo | None,
    pilot: Pilot,
    engine: Engine, device: Device, statistics: dict[str, Statistic], failed: NDArray[np.int64],
) -> Ensemble:  # fmt: skip
    """Return what was made, with what is to be said about it."""
    names = tuple(posed.structure.system.observed_names[i] for i in setting.observed)
    bad = {int(m): float(setting.grid.points[failed[m]]) for m in np.flatnonzero(failed >= 0)}
    solver = f"{engine.name}, {pilot.substeps} steps per cell" if pilot.substeps else engine.name
    remark, scheme = (noise.status + pilot.remark, noise.choice.name) if noise else ("", "")
    longest = float(np.diff(setting.grid.points).max(initial=0.0))
    loss = setting.disturbances.linear_loss(setting.values, longest) if options.between == "linear" else 0.0
    inner, reasons = (engine.solver.step, engine.reasons) if isinstance(engine, TaskEngine) else (None, {})
    return Ensemble(
        names, None, None, statistics, bad, setting.grid, pilot.substeps, pilot.error, solver, remark, scheme, inner,
        loss, options.effort, device.why, reasons.get(min(bad, default=-1), ""), pilot.passed,
    )  # fmt: skip


def discretise(posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances) -> EnsembleGrid:
    """Return grid and steps that suit a point, as far as the options leave them open; a pilot of two realizations
    decides.
    """
    options = replace(options, realizations=min(2, options.realizations))
    check_options(options)
    options = for_device(posed, options) if options.device != "cpu" else options
    setting, noise = make_setup(posed, options, disturbances)
    engine, pilot = choose_engine(posed, options, setting, noise)
    longest = float(np.diff(setting.grid.roots).max(initial=0.0)) * (1 + 1e-9)
    inner, method = options.inner_step, noise.choice.name if noise else options.method
    if isinstance(engine, EngineMaker):
        inner, method = engine.solver.step, engine.solver.scheme.name
    effort = options.effort
    if noise and noise.carried is not None:
        tried = replace(options, substeps=pilot.substeps, reduce=["mean"])
        effort = run_ensemble(posed, tried, None, setting.disturbances).effort
    return EnsembleGrid(longest or None, options.substeps or pilot.substeps or None, inner, method, effort)


def _blank(y: Floats | None, sy: Floats | None, failed: NDArray[np.int64], grid: EnsembleTimes) -> None:
    """Set values to NaN from the instant on at which a realization failed."""
    for m in np.flatnonzero(failed >= 0):
        for rows in (y, sy):
            if rows is not None:
                rows[m, grid.kept >= failed[m]] = np.nan


def _reduce(
    engine: Engine, setting: EnsembleSetup, wanted: str | Reducer | Sequence[str | Reducer], progress: Progress | None
) -> tuple[dict[str, Statistic], NDArray[np.int64]]:
    """Return statistics over the realizations that did not fail; begun again without those that did."""
    failed = np.full(setting.count, -1, dtype=np.int64)
    while True:
        reducers, single = make_reducers(copy.deepcopy(wanted))
        rows, skip = any(r.needs_rows for r in reducers), np.flatnonzero(failed >= 0)
        if skip.size == setting.count:
            raise SimulationError("Every realization became infinite or undefined; nothing is left to average.")
        slabs, again = _slabs(setting, rows), False
        for slab, answer in zip(slabs, engine.run(slabs, skip.tolist(), True, rows, progress), strict=True):
            new = (answer.failed >= 0) & (failed < 0)
            failed[new] = answer.failed[new]
            if again := bool(new.any()):
                break
            for block in _blocks(answer, slab, np.setdiff1d(np.arange(setting.count), skip)):
                for reducer in reducers:
                    reducer.update(block)
        if not again:
            return {"" if single else r.suffix: r.result() for r in reducers}, failed


def _slabs(setting: EnsembleSetup, rows: bool) -> list[slice]:
    """Return all output times at once, unless every realization's rows are needed and would be too many."""
    n = setting.grid.kept.size
    length = (
        max(1, MAX_NUMBERS_IN_MEMORY // max(1, setting.count * len(setting.observed) * (1 + len(setting.dp))))
        if rows
        else n
    )
    return [slice(first, min(first + length, n)) for first in range(0, n, length)]


def _blocks(answer: EngineAnswer, slab: slice, members: NDArray[np.int64]) -> Iterator[RealizationBlock]:
    y, sy = answer.y, answer.sy
    if y is None:
        yield RealizationBlock(slab, answer.moments)
        return
    for i in range(0, members.size, REALIZATIONS_PER_BLOCK):
        part, is_last = members[i : i + REALIZATIONS_PER_BLOCK], i + REALIZATIONS_PER_BLOCK >= members.size
        yield RealizationBlock(
            slab, answer.moments if is_last else None, y[part], is_last, None if sy is None else sy[part]
        )
