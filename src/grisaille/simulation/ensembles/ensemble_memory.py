"""How much memory an ensemble takes, asked for before anything is allocated.

Trajectories (M, times, names) with their derivatives are held once as they are computed and once more while each name
gets an array of its own, or while blocks of realizations are joined. Statistics take what does not depend on M, and the
states at the ends of the realizations.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grisaille.compilation.batch_native import MAX_DOUBLES_OF_MOMENTS, processors
from grisaille.memory import BYTES_PER_DOUBLE, SMALL_BYTES, in_words, largest_fitting, require_memory
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK, make_reducers
from grisaille.simulation.measurement_noise import bytes_of_noise

if TYPE_CHECKING:
    from grisaille.bound_experiment import ExperimentPoint
    from grisaille.simulation.ensembles.engines import EnsembleSetup
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.reducers import Reducer

MAX_NUMBERS_IN_MEMORY = 1 << 25
"""Numbers of trajectories held at a time when a statistic needs every realization (256 MB)."""
STATE_COPIES = 3
"""States of a realization that are held at the same time: its start, its end, and those of the slab before."""
ROW_COPIES_FOR_QUANTILES = 5
"""Copies of rows that quantiles are taken of: as made, in blocks, joined, and sorted along realizations."""
MAX_COEFFICIENTS_PER_PIECE = 4
"""Coefficients of a polynomial piece of a sampled disturbance, at most."""


def require_ensemble(
    posed: ExperimentPoint,
    options: EnsembleOptions,
    noise: bool = False,
    setting: EnsembleSetup | None = None,
    joined: bool = False,
) -> None:
    """Refuse an ensemble that does not fit into memory, with how many realizations would.

    noise : whether measurement noise is added
    setting : where it is known already, what engines are given
    joined : whether blocks of realizations are joined after they have been made
    """
    names = len(setting.observed if setting else options.observed or posed.structure.system.observed_names)
    fixed = _bytes_of_samples(setting) if setting is not None and joined else 0.0
    count, needs_rows = int(options.realizations), _needs_rows(options.reduce)

    def size(realizations: int) -> float:
        if options.reduce is None:
            return fixed + realizations * _bytes_of_rows(posed, names, noise, joined)
        return fixed + _bytes_of_statistics(posed, names, realizations, options.threads, needs_rows)

    if size(count) <= SMALL_BYTES:
        return

    def remedy(available: int) -> str:
        fitting = f"{largest_fitting(size, count, available)} realizations would fit."
        if options.reduce is not None or not options.may_reduce:
            return f"{fitting} Ask for fewer realizations, output times or sensitivities."
        reduced = in_words(_bytes_of_statistics(posed, names, count, options.threads, False))
        return (
            f"{fitting} Keep statistics instead of trajectories, reduce='mean' or reduce=['mean', 'variance'], which "
            f"take about {reduced}, or ask for fewer output times."
        )

    kept = "Trajectories" if options.reduce is None else "Statistics"
    sensitive = f", with derivatives by {len(posed.names)} names" if posed.names else ""
    require_memory(
        size(count),
        f"{kept} of {count} realizations of {posed.structure.model.name} ({posed.times.size} output times, {names} "
        f"variables{sensitive})",
        remedy,
    )


def _bytes_of_rows(posed: ExperimentPoint, names: int, noise: bool, joined: bool) -> float:
    """Return the bytes of one realization whose trajectory is kept."""
    row = float(BYTES_PER_DOUBLE * posed.times.size * names * (1 + len(posed.names)))
    # one name alone is not copied out of the rows
    rows = row * (2 if joined or names > 1 else 1)
    if noise:
        rows = max(rows, row + posed.times.size * bytes_of_noise(posed.structure.model))
    return rows + _bytes_of_states(posed)


def _bytes_of_states(posed: ExperimentPoint) -> float:
    """Return the bytes of the states of one realization; filters of disturbances have a few states each."""
    system = posed.structure.system
    filters = 2 * len(posed.structure.model.disturbances)
    return STATE_COPIES * BYTES_PER_DOUBLE * (1 + len(posed.names)) * (system.nx + filters) + 4 * BYTES_PER_DOUBLE


def _needs_rows(reduce: str | Reducer | Sequence[str | Reducer]) -> bool:
    return reduce is not None and any(r.needs_rows for r in make_reducers(copy.deepcopy(reduce))[0])


def _bytes_of_statistics(
    posed: ExperimentPoint, names: int, count: int, threads: int | None, needs_rows: bool
) -> float:
    """Return means and spreads of blocks under way, the result, states, and rows where quantiles need them."""
    instant = names * (1 + len(posed.names))
    one = 2 * BYTES_PER_DOUBLE * posed.times.size * instant
    blocks = max(
        threads or processors(),
        min(MAX_DOUBLES_OF_MOMENTS * BYTES_PER_DOUBLE // max(one, 1), -(-count // REALIZATIONS_PER_BLOCK)),
    )
    rows = min(max(MAX_NUMBERS_IN_MEMORY, count * instant), count * instant * posed.times.size) if needs_rows else 0
    return one * (3 + blocks) + count * _bytes_of_states(posed) + ROW_COPIES_FOR_QUANTILES * BYTES_PER_DOUBLE * rows


def _bytes_of_samples(setting: EnsembleSetup) -> float:
    """Return bytes of sampled disturbances of a block of realizations."""
    cells, signals = setting.grid.cells, setting.system.nu * (1 + len(setting.dp) * bool(setting.disturbances.groups))
    return (
        BYTES_PER_DOUBLE
        * REALIZATIONS_PER_BLOCK
        * cells
        * signals
        * max(MAX_COEFFICIENTS_PER_PIECE, 2 * setting.substeps + 1)
    )
