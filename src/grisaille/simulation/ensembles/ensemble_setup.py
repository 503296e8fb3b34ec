"""What engines are given to make an ensemble: starts, grid, disturbances and steps under white noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.cache import IdentityKey
from grisaille.compilation.coloured_noise_source import ColouredNoiseLayout
from grisaille.compilation.implicit_as_states import ALGEBRAIC_EFFORTS
from grisaille.compilation.kalman.coloured_noise_numpy import ColouredNoiseStates
from grisaille.compilation.stochastic_step import WhiteNoiseInfo, fused_step, white_step
from grisaille.disturbance import Stream, factorize
from grisaille.errors import DataError, ModelError
from grisaille.experiment.projected_signals import longest_step
from grisaille.simulation.ensembles.disturbances import RESOLUTION, Disturbances, DisturbanceValues, Draw
from grisaille.simulation.ensembles.engines import (
    EnsembleSetup,
    WhiteStep,
    make_white_step,
)
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_starts import EnsembleStarts, onto_constraints, solve_starts
from grisaille.simulation.ensembles.grid import EnsembleTimes, make_grid, ticks_of
from grisaille.structure.stochastic import lamperti

Floats = NDArray[np.float64]
MIN_LATTICE_CELLS = 128
"""Cells of a span, at least, on which bridges rest."""


def make_setup(
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


def start_slopes(posed: ExperimentPoint) -> Floats:
    """Return ∂rhs/∂x at the start; empty where it is not finite."""
    functions, w = posed.structure.start_functions, np.concatenate([posed.start.x, posed.start.z])
    slopes = functions.linearized("rates", posed.t0, w, posed.u, posed.p)[1]
    square = slopes[:, : len(slopes)]
    return square if np.isfinite(square).all() else np.zeros((0, 0))


def _cell(
    posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances, values: DisturbanceValues
) -> float:
    """Return the longest cell: given, or from the fastest filter (for white noise, from the model's own rates) and
    outputs.
    """
    if options.step is not None:
        return float(options.step)
    rate = disturbances.fastest_rate(values)
    slopes = start_slopes(posed)
    if disturbances.white and slopes.size:
        rate = max(rate, float(np.abs(np.linalg.eigvals(slopes)).max()))
    # with the mean interval, cells that are cut into equal numbers of steps waste at most every second one
    interval = float(np.diff(posed.times).mean()) if posed.times.size > 1 else 1.0
    if options.between == "exact":
        # other output times must see the same paths
        interval = float(np.ptp(posed.times)) / MIN_LATTICE_CELLS or 1.0
    return min(interval, RESOLUTION / rate if rate > 0 else np.inf, longest_step(posed.table, posed.structure.system))
