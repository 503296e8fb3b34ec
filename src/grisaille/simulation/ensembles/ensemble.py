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
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.cache import IdentityKey
from grisaille.compilation.coloured_noise_source import ColouredNoiseLayout
from grisaille.compilation.implicit_as_states import ALGEBRAIC_EFFORTS, ImplicitAsStates
from grisaille.compilation.kalman.coloured_noise_numpy import ColouredNoiseStates
from grisaille.compilation.sample_moments import SampleMoments
from grisaille.compilation.schemes import FROZEN_IMPLICIT
from grisaille.compilation.stochastic_step import WhiteNoiseInfo, fused_step, white_step
from grisaille.disturbance import Purpose, Stream, factorize
from grisaille.disturbance.bridge import BRIDGE_TOLERANCE
from grisaille.errors import DataError, ModelError, SimulationError
from grisaille.experiment.projected_signals import longest_step
from grisaille.simulation.dataset import as_ensemble
from grisaille.simulation.ensembles.devices import CPU, Device, check_device, choose_device
from grisaille.simulation.ensembles.disturbances import RESOLUTION, Disturbances, DisturbanceValues, Draw
from grisaille.simulation.ensembles.engines import (
    Engine,
    EngineAnswer,
    EnsembleSetup,
    FusedEngine,
    SampledEngine,
    WhiteStep,
    make_white_step,
)
from grisaille.simulation.ensembles.ensemble_discretisation import EnsembleGrid
from grisaille.simulation.ensembles.ensemble_memory import MAX_NUMBERS_IN_MEMORY, require_ensemble
from grisaille.simulation.ensembles.ensemble_methods import AUTO, FUSED, GENERAL, METHODS, WHITE, EnsembleMethod
from grisaille.simulation.ensembles.ensemble_starts import EnsembleStarts, onto_constraints, solve_starts
from grisaille.simulation.ensembles.graphics_engine import GraphicsEngine, on_graphics, run_together
from grisaille.simulation.ensembles.grid import EnsembleTimes, make_grid, ticks_of
from grisaille.simulation.ensembles.past_engine import PastEngine
from grisaille.simulation.ensembles.pilot_runs import (
    MAX_SUBSTEPS,
    Pilot,
    choose_substeps,
    describe_passed,
    has_no_nominal,
    nominal_of,
    say_passed,
    slopes_differ,
)
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK, RealizationBlock, Statistic, make_reducers
from grisaille.simulation.ensembles.rough_signals import without_rough_signals
from grisaille.simulation.ensembles.skipped_features import narrowest_skipped_feature
from grisaille.simulation.ensembles.task_engine import EngineMaker, TaskEngine, refuse_crossings_between_steps
from grisaille.simulation.ensembles.white_pilot import (
    MAX_COMPARED_TIMES,
    TRUSTED_SUBSTEPS,
    ComparisonScale,
    WhitePilot,
    choose_halvings,
    paths_of,
)
from grisaille.simulation.measurement_noise import with_noise
from grisaille.simulation.progress import progress_over
from grisaille.simulation.simulation_arguments import as_positive
from grisaille.structure.stochastic import lamperti

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
BETWEEN_CHOICES = ("linear", "spline", "exact")
STIFF_SUBSTEPS = 24
"""Explicit steps per cell from which on an implicit method is cheaper."""
MIN_LATTICE_CELLS = 128
"""Cells of a span, at least, on which bridges rest."""
TOO_FAR = 5.0
"""Errors of steps under white noise, in units of their tolerance, from which on a run is refused."""
PASSED_UNDER_NOISE = 1e-3
"""Relative tolerance by which bumps that steps pass are judged there."""
SINGLE_THREAD_STEPS = 1 << 18
"""Steps of a pilot that are made on one thread."""


@dataclass(frozen=True)
class EnsembleOptions:
    """How an ensemble is made; see ``simulate`` for what the options mean."""

    realizations: int
    seed: int = 0
    purpose: Purpose = Purpose.DATA
    first: int = 0
    """Number of the first realization: others than those of an earlier ensemble have no random number in common."""
    reduce: Any = None
    antithetic: bool = False
    between: str = "linear"
    step: float | None = None
    substeps: int | None = None
    """Steps per cell; found by a pilot when not given."""
    inner_step: float | None = None
    """Of models that stay implicit, or are stiff; found with the first realization when not given."""
    rtol: float = 1e-6
    enough_across_jumps: float = 0.0
    """Relative error of a path that will do where steps cross jumps of the equations and cannot meet ``rtol``."""
    method: str = AUTO.name
    threads: int | None = None
    strict: bool = True
    """Refuse statistics that the steps get wrong by more than ``TOO_FAR`` tolerances."""
    observed: tuple[str, ...] | None = None
    """Names to keep or reduce; everything that has a value when not given."""
    effort: int = 0
    """How hard algebraic unknowns are solved under white noise, at least (``carried``)."""
    start_covariance: Floats | None = None
    """(nx, nx) of the states at the start, tangent to hidden constraints; none when not given."""
    device: str = "cpu"
    """Where realizations run; pilots always run on the processor."""
    may_reduce: bool = False
    """Whether who asks can ask for statistics instead: what is advised where trajectories do not fit into memory."""

    @property
    def made(self) -> EnsembleMethod:
        return METHODS[self.method]


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
    _check(options)
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
    _check(options)
    require_ensemble(posed, options)
    options = _for_device(posed, options) if options.device != "cpu" else options
    posed = without_rough_signals(posed) if posed.structure.system.has.stepped_around else posed
    disturbances = disturbances or Disturbances(posed.structure.model, posed.structure.system)
    for effort in range(options.effort, len(ALGEBRAIC_EFFORTS)):
        found, unsolved = _run(posed, replace(options, effort=effort), progress, disturbances)
        if not unsolved:
            return found
    raise SimulationError(_unsolved_sentence(posed, found.grid, found.substeps, unsolved))


def _for_device(posed: ExperimentPoint, options: EnsembleOptions) -> EnsembleOptions:
    """Return the options for a graphics processor, which solves implicit unknowns inside its steps."""
    is_implicit = posed.structure.system.nz and not any(
        d.spectrum.is_white for d in posed.structure.model.disturbances.values()
    )
    wanted = options.device.startswith("cuda") and options.made.is_open and options.inner_step is None
    return replace(options, method=FUSED.name) if wanted and is_implicit else options


def _run(
    posed: ExperimentPoint, options: EnsembleOptions, progress: Progress | None, disturbances: Disturbances
) -> tuple[Ensemble, str]:
    """Return an ensemble, and which of the algebraic unknowns that it carries along was not solved."""
    setting, noise = _setting(posed, options, disturbances)
    engine_of, pilot = _choose(posed, options, setting, noise)
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
    _check(options)
    options = _for_device(points[0], options)
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
    _check(options)
    options = _for_device(posed, options)
    setting, noise = _setting(posed, options, disturbances)
    engine, pilot = _choose(posed, options, setting, noise)
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
    made = [_setting(p, own, disturbances) for p, own in zip(points, each, strict=True)]
    settings, noise = [replace(s, substeps=options.substeps) for s, _ in made], made[0][1]
    engine_of, pilot = _choose(points[0], options, settings[0], noise)
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


def _unsolved_sentence(posed: ExperimentPoint, grid: EnsembleTimes, substeps: int, unsolved: str) -> str:
    h = float(np.diff(grid.points).max()) / substeps
    return (
        f"{posed.structure.model.name}: under white noise, with steps of {h:.3g}, {unsolved}. Give a shorter step=, or "
        f"look whether the equations have one solution wherever the noise takes the states."
    )


def discretise(posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances) -> EnsembleGrid:
    """Return grid and steps that suit a point, as far as the options leave them open; a pilot of two realizations
    decides.
    """
    options = replace(options, realizations=min(2, options.realizations))
    _check(options)
    options = _for_device(posed, options) if options.device != "cpu" else options
    setting, noise = _setting(posed, options, disturbances)
    engine, pilot = _choose(posed, options, setting, noise)
    longest = float(np.diff(setting.grid.roots).max(initial=0.0)) * (1 + 1e-9)
    inner, method = options.inner_step, noise.choice.name if noise else options.method
    if isinstance(engine, EngineMaker):
        inner, method = engine.solver.step, engine.solver.scheme.name
    effort = options.effort
    if noise and noise.carried is not None:
        tried = replace(options, substeps=pilot.substeps, reduce=["mean"])
        effort = run_ensemble(posed, tried, None, setting.disturbances).effort
    return EnsembleGrid(longest or None, options.substeps or pilot.substeps or None, inner, method, effort)


def describe_skipped(posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances) -> str:
    """Return what steps that are fixed pass without meeting it, in words; empty where they meet everything."""
    if options.substeps is None:
        return ""
    own = replace(options, realizations=min(2, options.realizations))
    setting, noise = _setting(posed, own, disturbances)
    if setting.crossed or posed.structure.system.has.pasts or (noise and noise.carried is not None):
        return ""
    engine = FusedEngine if options.between == "linear" else SampledEngine
    rtol = max(options.rtol, PASSED_UNDER_NOISE) if noise and noise.names else options.rtol
    passed = narrowest_skipped_feature(engine, replace(setting, substeps=options.substeps), rtol)
    if passed is None or passed.substeps <= 2 * options.substeps:
        return ""
    longest = float(np.diff(setting.grid.points).max())
    step = 0.5 * longest * MAX_SUBSTEPS / passed.substeps
    return f"{describe_passed(passed, options.substeps, setting)}; step={step:.1g} would meet it"


def _check(options: EnsembleOptions) -> None:
    count = options.realizations
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise DataError(f"realizations is {count!r}; give a whole number above zero, or None for no disturbances.")
    check_device(options.device)
    if options.between not in BETWEEN_CHOICES:
        raise DataError(f"between is {options.between!r}; it must be one of {', '.join(map(repr, BETWEEN_CHOICES))}.")
    if options.method not in METHODS:
        raise DataError(
            f"method is {options.method!r}; realizations are made with fixed steps: {', '.join(map(repr, GENERAL))}; "
            f"with white noise also {', '.join(map(repr, WHITE))}."
        )
    as_positive("rtol", options.rtol, "a number between 0 and 1, such as 1e-6")
    if options.step is not None:
        as_positive("step", options.step)
    if options.threads is not None:
        as_positive("threads", options.threads, "a whole number above zero")
    make_reducers(copy.deepcopy(options.reduce) if options.reduce is not None else [])


def _setting(
    posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances
) -> tuple[EnsembleSetup, WhiteNoiseInfo | None]:
    """Return what the engines are given, and what is to be said about white noise."""
    system, p = posed.structure.system, posed.p
    values = DisturbanceValues(posed.known, posed.scales, posed.dp, posed.dscales)
    white, noise = _white(posed, options, disturbances, values)
    cell = _cell(posed, options, disturbances, values)
    grid = _grid(posed, cell, options.between == "exact", disturbances)
    draw = Draw(options.seed, options.purpose, options.antithetic, options.first)
    layout = disturbances.layout(values)
    _refuse_interpolation(layout, options.between)

    def first() -> ColouredNoiseStates:
        filters = disturbances.filters(values, grid.points, draw)
        return ColouredNoiseStates(filters, layout, np.arange(options.realizations), len(values.dp))

    nominal = posed.initializer.nominal[: system.nx]
    began = posed.with_past() if system.has.pasts else posed
    starts = solve_starts(began, layout.places, first, disturbances.last)
    if options.start_covariance is not None:
        starts = _spread(began, starts, options, options.start_covariance)
    carried = noise.carried if noise else None
    if carried is not None:
        system, nominal = carried.system, carried.nominal(nominal)
        starts = replace(starts, x=carried.start(starts.x, starts.z), sx=carried.start(starts.sx, starts.sz))
    setting = EnsembleSetup(
        system=system, p=p, nominal=nominal, table=posed.table, grid=grid, starts=starts,
        dp=posed.dp, disturbances=disturbances, values=values, draw=draw,
        count=int(options.realizations), between=options.between, substeps=1, white=white,
        observed=_observed(posed, (*(noise.infinite if noise else ()), *disturbances.infinite), options.observed),
        threads=options.threads, name=posed.structure.jumps.name,
        crossed=posed.structure.jumps.of_states if posed.names else (),
    )  # fmt: skip
    return setting, noise


def _grid(posed: ExperimentPoint, cell: float, has_lattice: bool, disturbances: Disturbances) -> EnsembleTimes:
    """Return the same one as long as signals and cells are the same."""

    def make() -> EnsembleTimes:
        kinks = posed.table.breaks[posed.table.kink == 1]  # steps do not follow those that move
        ticks = ticks_of(posed.table, posed.structure.system)
        return make_grid(posed.times, np.setdiff1d(kinks, ticks), cell, has_lattice=has_lattice)

    return disturbances.last.get("grid", (IdentityKey(posed.table), cell, has_lattice), make)


def _spread(point: ExperimentPoint, starts: EnsembleStarts, options: EnsembleOptions, P: Floats) -> EnsembleStarts:
    """Return starts that differ between realizations by the given covariance; each is a function of its number.

    What lies beside hidden constraints, to which the covariance is tangent, is moved onto them.
    """
    if not P.any():
        return starts
    members = options.first + np.arange(options.realizations)[:, None]
    stream = Stream.of(options.seed, options.purpose, "start", options.antithetic)
    normals = stream.normals(members, np.zeros(1, dtype=np.int64), len(P)).reshape(len(members), len(P))
    x = onto_constraints(point, starts.x + normals @ factorize(P).T, starts.z)
    z, sx, sz = (
        np.broadcast_to(part, (len(x), *part.shape[part.ndim - kept :])).copy()
        for part, kept in ((starts.z, 1), (starts.sx, 2), (starts.sz, 2))
    )
    return EnsembleStarts(x, z, sx, sz)


def _white(
    posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances, values: DisturbanceValues
) -> tuple[WhiteStep | None, WhiteNoiseInfo | None]:
    """Return the step with white noise, where there is any, and what was chosen."""
    if not disturbances.white:
        if options.made.solves_inside and posed.structure.system.nz:
            formula, info = fused_step(posed.structure, ALGEBRAIC_EFFORTS[options.effort])
            return make_white_step(formula, (), (), 1), info
        if options.made.white is not None:
            raise DataError(f"method={options.method!r} is for white noise in the equations; this model has none.")
        return None, None
    scheme = options.made.white or "auto"
    start, effort = _beginning(posed, disturbances, values), ALGEBRAIC_EFFORTS[options.effort]
    formula, info = white_step(posed.structure, scheme, start, effort)
    groups = [[d.name for d in g] for g in disturbances.white]
    return make_white_step(formula, info.names, groups, info.choice.scheme.normals_per_noise), info


def _beginning(posed: ExperimentPoint, disturbances: Disturbances, values: DisturbanceValues) -> lamperti.ChartPoint:
    """Return where trajectories begin, with the gains of the white noises."""
    n = len(disturbances.white_names)
    root = disturbances.white_gains(values).reshape(n, n, order="F")
    return lamperti.ChartPoint(float(posed.times[0]), posed.start.x, posed.u, posed.p, root)


def _observed(posed: ExperimentPoint, infinite: Sequence[str], wanted: Sequence[str] | None) -> tuple[int, ...]:
    names, flat = posed.structure.system.observed_names, posed.structure.model
    measured = [name for name in infinite if name in flat.outputs and wanted is None]
    if measured:
        raise ModelError(
            f"Output {measured[0]} of {flat.name} has infinite variance: a disturbance is differentiated more often on "
            f"its way than its spectrum allows. print(gr.well_posedness(model)) says which one, and what helps."
        )
    for name in wanted or ():
        if name not in names or name in infinite:
            raise DataError(
                f"'{name}' has no value on a trajectory; there are {', '.join(set(names) - set(infinite))}."
            )
    return tuple(names.index(n) for n in (wanted or names) if n not in infinite)


def _refuse_interpolation(layout: ColouredNoiseLayout, between: str) -> None:
    if layout.sensitive and between != "linear":
        raise DataError(
            f"sensitivities= moves a disturbance, and between={between!r} has no derivative of its values between grid "
            f"points: use between='linear' with a smaller step=."
        )
    if layout.chains and between == "spline":
        raise DataError(
            "Index reduction differentiates a disturbance, and the derivatives of between='spline' are not those of "
            "the disturbance: use between='linear', which joins a disturbance and its derivatives by one polynomial, "
            "or between='exact'."
        )


def _slopes(posed: ExperimentPoint) -> Floats:
    """Return ∂rhs/∂x at the start; empty where it is not finite."""
    functions, w = posed.structure.start_functions, np.concatenate([posed.start.x, posed.start.z])
    slopes = functions.linearized("rates", posed.t0, w, posed.u, posed.p)[1]
    square = slopes[:, : len(slopes)]
    return square if np.isfinite(square).all() else np.zeros((0, 0))


def _is_stiff(posed: ExperimentPoint, setting: EnsembleSetup) -> bool:
    """Return whether the fastest decay would need very short explicit steps (Runge–Kutta: rate times step below
    2.78).
    """
    slopes = _slopes(posed)
    longest = float(np.diff(setting.grid.points).max(initial=0.0))
    return bool(slopes.size) and float(-np.linalg.eigvals(slopes).real.min()) * longest > 2.5 * STIFF_SUBSTEPS


def _cell(
    posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances, values: DisturbanceValues
) -> float:
    """Return the longest cell: given, or from the fastest filter (for white noise, from the model's own rates) and
    outputs.
    """
    if options.step is not None:
        return float(options.step)
    rate = disturbances.fastest_rate(values)
    slopes = _slopes(posed)
    if disturbances.white and slopes.size:
        rate = max(rate, float(np.abs(np.linalg.eigvals(slopes)).max()))
    # with the mean interval, cells that are cut into equal numbers of steps waste at most every second one
    interval = float(np.diff(posed.times).mean()) if posed.times.size > 1 else 1.0
    if options.between == "exact":
        # other output times must see the same paths
        interval = float(np.ptp(posed.times)) / MIN_LATTICE_CELLS or 1.0
    return min(interval, RESOLUTION / rate if rate > 0 else np.inf, longest_step(posed.table, posed.structure.system))


def _choose(
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
        _setting(still, own, setting.disturbances)[0], grid=replace(setting.grid, kept=kept), threads=threads
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
                raise SimulationError(_unsolved_sentence(posed, setting.grid, substeps, noise.carried.fold(made.ends)))
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
        two = replace(_setting(still, replace(own, realizations=2), setting.disturbances)[0], substeps=found.substeps)
        passed = narrowest_skipped_feature(engine, two, max(options.rtol, PASSED_UNDER_NOISE))
    told = (
        ""
        if passed is None or passed.substeps <= 2 * found.substeps
        else (say_passed(passed, found.substeps, setting, model))
    )
    return Pilot(found.substeps, found.error, remark=f" Steps: {found.sentence}.", passed=told)


def _say_white(found: WhitePilot, posed: ExperimentPoint, setting: EnsembleSetup, options: EnsembleOptions) -> None:
    """Raises or warns where steps within the limit of work are too long."""
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


def _blank(y: Floats | None, sy: Floats | None, failed: NDArray[np.int64], grid: EnsembleTimes) -> None:
    """Set values to NaN from the instant on at which a realization failed."""
    for m in np.flatnonzero(failed >= 0):
        for rows in (y, sy):
            if rows is not None:
                rows[m, grid.kept >= failed[m]] = np.nan


def _reduce(
    engine: Engine, setting: EnsembleSetup, wanted: Any, progress: Progress | None
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
