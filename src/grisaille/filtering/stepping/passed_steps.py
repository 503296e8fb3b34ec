"""Bumps and short conditions that the steps of a nonlinear filter pass along its mean (``trial.passed_bends``).

The mean is followed through every step: a cubic with the slopes of the drift at both ends. Where a bump would move it
by a hundredth of its standard deviation or more, the step is cut so that it meets the bump, as far as the work allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.experiment.cells import Cells
from grisaille.filtering.kalman import Whole
from grisaille.filtering.passes import Passes
from grisaille.trial.passed_bends import Bends, PassedBump, Path

NODES, WEIGHTS = np.array([0.0, 0.5, 1.0]), np.array([1.0, 4.0, 1.0]) / 6.0
POINTS = 24
"""Points of a cell at which its path is given, at least."""
LEAST = 6
"""The same of a step."""
MOST_POINTS = 2_000_000
MORE = 4.0
"""Steps that bumps may ask for, for each one that there is."""
FELT = 0.01
"""Of a state's standard deviation: bumps that matter."""
KNOWN = 1e-6
"""Part of a state's size that stands for its standard deviation where that is smaller."""


def passed_by(filter: Passes, q: Floats, x0: Floats, z0: Floats | None) -> list[tuple[int, PassedBump]]:
    """Return the cells with bumps that the steps of a filter pass, and these bumps.

    Nothing is done where the model does not bend with its states.
    """
    bends = bends_of_model(filter.model)
    if bends is None:
        return []
    path, spread, cell_of = _path(filter, q, x0, z0, bends)
    if path is None:
        return []
    found = bends.passed(path, q, spread, NODES, WEIGHTS)
    return [(int(cell_of[b.step]), b) for b in found]


def bends_of_model(model: StochasticModel) -> Bends | None:
    """Return what bends with the states of a model; found once."""
    arguments = [model.t, model.X, model.z, model.u, model.q]
    return model.kept("bends", lambda: Bends.of(arguments, model.drift, model.residual, model.symbol_names))


def cut_to_meet(filter: Passes, q: Floats, x0: Floats, z0: Floats | None, most: float) -> bool:
    """Shorten the steps of a filter of one's own so that they meet the bumps they pass; False where there are none.

    most : operations of a pass that are never too many; bumps that would ask for more are left
    """
    steps = filter.steps(q)
    wanted = steps.copy()
    room = MORE * steps.sum() + most / max(filter.program.instructions, 1)
    for cell, bump in sorted(passed_by(filter, q, x0, z0), key=lambda found: found[1].more):
        more = int(steps[cell]) * bump.more
        each = more - int(wanted[cell])
        cost = each * (len(steps) if filter.has_moving_cells else 1)
        if each > 0 and cost <= room:
            wanted[cell] = more
            room -= cost
    if (wanted == steps).all():
        return False
    if filter.has_moving_cells:
        filter.substeps, filter.finer = int(wanted.max()), None
        return True
    filter.substeps = int(np.gcd.reduce(wanted))
    filter.finer = wanted // filter.substeps
    return True


def _path(filter: Passes, q: Floats, x0: Floats, z0: Floats | None, bends: Bends) -> tuple[Path | None, Floats, Whole]:
    """The mean along every step, what each state may miss, and the cell of each step."""
    steps, cells, n = filter.steps(q), filter.cells(q), filter.model.n
    nothing = np.zeros((0, len(q)))
    cell_of = np.repeat(np.arange(len(steps)), steps)
    with np.errstate(all="ignore"):
        s = filter.start(filter.prepared(q), q, nothing, x0, z0)
        fine = _on_every_step(filter, cells, steps)
        kept = fine.carry(fine.prepared(q), q, s, nothing, keep=True).kept
    if kept is None or len(kept) <= len(cell_of):
        return None, np.zeros(n), cell_of
    x, P, z = filter.packing.split(kept)
    nz = filter.model.z.numel()
    left, right = x[:-1, 1], x[1:, 0]
    points = max(LEAST, int(np.ceil(POINTS / max(int(np.median(steps)), 1))))
    points = max(2, min(points, MOST_POINTS // max(len(cell_of), 1)))
    grid = np.linspace(0.0, 1.0, points + 1)
    t, u = fine.cells(q).at(grid)
    a, b = z[:-1, 1, None, :nz], z[1:, 0, None, :nz]
    algebraic = a + grid[:, None] * (b - a)
    straight = Path(t, left[:, None] + grid[:, None] * (right - left)[:, None], algebraic, u)
    path = replace(straight, states=_curved(straight, left, right, bends, q))
    deviation = np.sqrt(np.maximum(np.einsum("kii->ki", P[1:, 0]), 0.0))
    with np.errstate(all="ignore"):
        spread = np.nanmedian(deviation, axis=0) * FELT + KNOWN * np.nanmax(np.abs(x[:, 1]), axis=0, initial=0.0)
    return (path if np.isfinite(path.states).all() else None), np.maximum(np.nan_to_num(spread), 1e-300), cell_of


def _curved(path: Path, left: Floats, right: Floats, bends: Bends, q: Floats) -> Floats:
    """States on the cubics with the slopes of the drift at both ends; on straight lines where that is not finite."""
    every, h = np.arange(len(left)), path.lengths[:, None]
    da = h * bends.rates_at(path, every, np.zeros(len(left)), q)
    db = h * bends.rates_at(path, every, np.ones(len(left)), q)
    s = np.linspace(0.0, 1.0, path.times.shape[1])[:, None]
    a, b, da, db = (v[:, None] for v in (left, right, da, db))
    cubic = (1 - s) ** 2 * ((1 + 2 * s) * a + s * da) + s**2 * ((3 - 2 * s) * b - (1 - s) * db)
    # a slope that a bump gives at one end says nothing about the way
    wide = np.abs(da) + np.abs(db) > 4 * np.abs(b - a) + 1e-300
    bad = wide | ~np.isfinite(da) | ~np.isfinite(db)
    return np.asarray(np.where(bad, path.states, cubic))


def _on_every_step(filter: Passes, cells: Cells, steps: Whole) -> Passes:
    """The same filter with a cell for each step, so that its moments are known there."""
    cell, first = np.repeat(np.arange(len(steps)), steps), np.cumsum(steps) - steps
    number = np.arange(len(cell)) - first[cell]
    ends = cells.bounds[:-1][cell] + cells.lengths[cell] * number / steps[cell]
    times = np.union1d(np.append(ends, cells.bounds[-1]), filter.record.times)
    record, width = filter.record, filter.record.y.shape[1]
    y, weights = np.full((len(times), width), np.nan), np.ones((len(times), width))
    at = np.searchsorted(times, record.times)
    y[at], weights[at] = record.y, record.weights
    made = filter.on(
        replace(filter.discretisation, substeps=1, finer=(), restarts=()),
        replace(record, times=times, y=y, weights=weights),
    )
    made._cells = None
    return made
