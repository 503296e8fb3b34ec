"""Which engine makes an ensemble, and into how many steps it cuts each cell of the grid.

A pilot of two realizations decides, under white noise of more; where explicit steps do not suit, realizations are
integrated implicitly, one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.schemes import FROZEN_IMPLICIT
from grisaille.compilation.stochastic_step import WhiteNoiseInfo
from grisaille.disturbance.bridge import BRIDGE_TOLERANCE
from grisaille.errors import DataError, ModelError, SimulationError
from grisaille.simulation.ensembles.engines import (
    Engine,
    EnsembleSetup,
    FusedEngine,
    SampledEngine,
)
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_setup import make_setup, start_slopes
from grisaille.simulation.ensembles.grid import EnsembleTimes
from grisaille.simulation.ensembles.past_engine import PastEngine
from grisaille.simulation.ensembles.pilot_runs import (
    Pilot,
    choose_substeps,
    has_no_nominal,
    nominal_of,
    say_passed,
    slopes_differ,
)
from grisaille.simulation.ensembles.skipped_features import narrowest_skipped_feature
from grisaille.simulation.ensembles.task_engine import TaskEngine, refuse_crossings_between_steps
from grisaille.simulation.ensembles.white_pilot import (
    MAX_COMPARED_TIMES,
    TRUSTED_SUBSTEPS,
    ComparisonScale,
    WhitePilot,
    choose_halvings,
    paths_of,
)

Floats = NDArray[np.float64]
STIFF_SUBSTEPS = 24
"""Explicit steps per cell from which on an implicit method is cheaper."""
TOO_FAR = 5.0
"""Errors of steps under white noise, in units of their tolerance, from which on a run is refused."""
PASSED_UNDER_NOISE = 1e-3
"""Relative tolerance by which bumps that steps pass are judged there."""
SINGLE_THREAD_STEPS = 1 << 18
"""Steps of a pilot that are made on one thread."""


def choose_engine(
    posed: ExperimentPoint, options: EnsembleOptions, setting: EnsembleSetup, noise: WhiteNoiseInfo | None
) -> tuple[Callable[[EnsembleSetup], Engine], Pilot]:
    """Return the engine, and how many steps each cell needs."""
    system = posed.structure.system
    if system.nx == 0 and system.nz:
        raise ModelError(
            f"{posed.structure.model.name} has no derivatives, and {', '.join(system.implicit_names)} must be found by "
            f"iteration at every instant; realizations are made of models that move in time, or of plain formulas."
        )
    if options.made.is_implicit and setting.white is not None:
        raise DataError("White noise needs method='auto': implicit steps would see infinite values.")
    if system.reactions is not None and setting.white is not None:
        raise ModelError(
            f"{posed.structure.model.name} has events of its own, gr.when({system.reactions.texts[0]}), and white "
            f"noise in its equations, between whose kicks no instant can be located: give the disturbance a bandwidth, "
            f"gr.spectra.lowpass(…), which is fast beside the model's own motion."
        )
    if setting.crossed:
        refuse_crossings_between_steps(setting, posed)
    if system.has.pasts:
        return _choose_past(posed, options, setting)
    is_one_by_one = options.made.is_implicit or options.inner_step is not None or bool(setting.crossed)
    if (system.nz and setting.white is None) or system.reactions is not None or is_one_by_one:
        engine = TaskEngine.prepared(setting, posed, options.rtol, options.made.among, options.inner_step)
        return engine, Pilot(0, engine.error_estimate)
    fused = FusedEngine if options.between == "linear" else SampledEngine
    if options.substeps is not None:
        return fused, Pilot(options.substeps, float("nan"))
    if noise is not None and noise.names:
        return fused, _white_pilot(posed, options, setting, noise, fused)
    if options.made.may_turn_implicit and _is_stiff(posed, setting):
        engine = TaskEngine.prepared(setting, posed, options.rtol, (FROZEN_IMPLICIT,), options.inner_step)
        return engine, Pilot(0, engine.error_estimate)
    # a bridge is resolved to its own tolerance: what is finer than that is not worth a step
    rtol = max(options.rtol, BRIDGE_TOLERANCE) if options.between == "exact" else options.rtol
    enough = options.enough_across_jumps if posed.structure.jumps.of_states else 0.0
    pilot = choose_substeps(fused, setting, posed.structure.model, rtol, enough)
    if pilot.is_unstable and options.made.may_turn_implicit:
        engine = TaskEngine.prepared(setting, posed, options.rtol, (FROZEN_IMPLICIT,), options.inner_step)
        return engine, Pilot(0, engine.error_estimate)
    if options.device == "cpu" and slopes_differ(fused, setting, pilot, _enough_of_slopes(options)):
        engine = TaskEngine.prepared(setting, posed, options.rtol, options.made.among)
        return engine, Pilot(0, engine.error_estimate)
    return fused, pilot


def _is_stiff(posed: ExperimentPoint, setting: EnsembleSetup) -> bool:
    """Return whether the fastest decay would need very short explicit steps (Runge–Kutta: rate times step below
    2.78).
    """
    slopes = start_slopes(posed)
    longest = float(np.diff(setting.grid.points).max(initial=0.0))
    return bool(slopes.size) and float(-np.linalg.eigvals(slopes).real.min()) * longest > 2.5 * STIFF_SUBSTEPS


def _enough_of_slopes(options: EnsembleOptions) -> float:
    """Return relative error of derivatives that will do where equations bend."""
    return max(float(np.sqrt(options.rtol)), 10 * options.enough_across_jumps)


def _choose_past(
    posed: ExperimentPoint, options: EnsembleOptions, setting: EnsembleSetup
) -> tuple[Callable[[EnsembleSetup], Engine], Pilot]:
    """Return the engine of models with delayed states; refuses what it cannot follow."""
    model, system = posed.structure.model, posed.structure.system
    if not options.made.takes_past:
        raise DataError(f"method={options.method!r}: realizations of models with delayed states are explicit steps.")
    if setting.white is not None and setting.white.formula.noise.numel():
        _refuse_past(posed, "white noise in its equations: give it a bandwidth, gr.spectra.lowpass(…), fast beside tau")
    if system.nz:
        names = ", ".join(system.implicit_names[:3])
        _refuse_past(posed, f"algebraic unknowns that stay implicit, {names}: write them as formulas of the states")
    if options.made.may_turn_implicit and _is_stiff(posed, setting):
        _refuse_past(posed, "decays too fast for such steps: replace the fastest by its equilibrium")
    if options.substeps is not None:
        return PastEngine, Pilot(options.substeps, float("nan"))
    pilot = choose_substeps(PastEngine, setting, model, options.rtol)
    if pilot.is_unstable:
        _refuse_past(posed, "paths that do not stay finite, however short the steps: look for what grows")
    return PastEngine, pilot


def _refuse_past(posed: ExperimentPoint, why: str) -> NoReturn:
    system = posed.structure.system
    raise ModelError(
        f"{posed.structure.model.name} contains {system.signals[system.has.pasts[0]].name}, the past of an unknown; "
        f"its realizations are made with explicit steps, and it has {why}. Or simulate it without disturbances, as "
        f"gr.OutputError() does."
    )


def _white_pilot(
    posed: ExperimentPoint,
    options: EnsembleOptions,
    setting: EnsembleSetup,
    noise: WhiteNoiseInfo,
    engine: Callable[[EnsembleSetup], Engine],
) -> Pilot:
    """Return steps per cell under white noise; the first realizations decide, whichever are asked for."""
    kept = np.unique(setting.grid.kept)
    kept = kept[np.unique(np.linspace(0, kept.size - 1, MAX_COMPARED_TIMES).round().astype(int))]
    choice = noise.choice
    own = replace(options, realizations=paths_of(setting.grid.cells, choice.strong_order), first=0)
    still = posed.without_derivatives()
    threads = 1 if setting.grid.cells * own.realizations < SINGLE_THREAD_STEPS else setting.threads
    small = replace(
        make_setup(still, own, setting.disturbances)[0], grid=replace(setting.grid, kept=kept), threads=threads
    )  # fmt: skip

    lost = 0

    def rows(substeps: int, louder: float) -> Floats:
        nonlocal lost
        made = engine(replace(small, substeps=substeps, noise_scale=louder))
        (answer,) = made.run([slice(0, kept.size)], (), False, True, None)
        if noise.carried is not None and louder == 1.0:
            before, lost = lost, noise.carried.lost(made.ends)
            # one that long steps went over is not met by shorter ones
            if substeps > TRUSTED_SUBSTEPS and 2 * lost > before:
                raise SimulationError(unsolved_sentence(posed, setting.grid, substeps, noise.carried.fold(made.ends)))
        return np.asarray(answer.y)

    model, names = posed.structure.model, [setting.system.observed_names[i] for i in setting.observed]
    nominal = np.array([nominal_of(model, n) for n in names])
    times = setting.grid.points[kept]
    free = has_no_nominal(model, names)
    scale = ComparisonScale(tuple(names), nominal, times, options.rtol, choice.weak_order, choice.strong_order, free)
    has_tails = not noise.is_decoupled and choice.strong_order >= 1
    found = choose_halvings(rows, scale, setting.grid.cells, has_tails)
    _say_white(found, posed, setting, options)
    passed = None
    if noise.carried is None:
        two = replace(make_setup(still, replace(own, realizations=2), setting.disturbances)[0], substeps=found.substeps)
        passed = narrowest_skipped_feature(engine, two, max(options.rtol, PASSED_UNDER_NOISE))
    told = (
        ""
        if passed is None or passed.substeps <= 2 * found.substeps
        else (say_passed(passed, found.substeps, setting, model))
    )
    return Pilot(found.substeps, found.error, remark=f" Steps: {found.sentence}.", passed=told)


def _say_white(found: WhitePilot, posed: ExperimentPoint, setting: EnsembleSetup, options: EnsembleOptions) -> None:
    """Raise or warns where steps within the limit of work are too long."""
    if found.error <= 1.0:
        return
    h = float(np.diff(setting.grid.points).max()) / found.substeps
    told = "do not stay finite" if not np.isfinite(found.error) else f"are {found.error:.2g} times the tolerance off"
    sentence = (
        f"{posed.structure.model.name}: under white noise, steps of {h:.3g} ({found.substeps} in a cell, the limit of "
        f"work) {told} at {found.where}: {found.sentence}. Give a shorter step= or span, or a noise with a "
        f"bandwidth; method= takes another scheme."
    )
    if found.error > TOO_FAR and options.strict:
        raise SimulationError(sentence)
    warnings.warn(sentence, UserWarning, stacklevel=6)


def unsolved_sentence(posed: ExperimentPoint, grid: EnsembleTimes, substeps: int, unsolved: str) -> str:
    h = float(np.diff(grid.points).max()) / substeps
    return (
        f"{posed.structure.model.name}: under white noise, with steps of {h:.3g}, {unsolved}. Give a shorter step=, or "
        f"look whether the equations have one solution wherever the noise takes the states."
    )
