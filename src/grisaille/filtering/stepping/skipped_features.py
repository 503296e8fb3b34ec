"""Bumps and short conditions that steps of a nonlinear filter skip (``bound_experiment.skipped_bends``).

The mean is followed through every step: a cubic with the slopes of the drift at both ends. Where a bump would move it
by a hundredth of its standard deviation or more, the step is cut so that it meets the bump, as far as the work allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.bound_experiment.skipped_bends import BendSearch, SkippedBump, SolutionPath
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.kalman import Whole
from grisaille.filtering.stepping.step_passes import StepPasses

NODES, WEIGHTS = np.array([0.0, 0.5, 1.0]), np.array([1.0, 4.0, 1.0]) / 6.0
MIN_POINTS_PER_CELL = 24
"""Points of a cell at which its path is given, at least."""
MIN_POINTS_PER_STEP = 6
"""The same of a step."""
MAX_POINTS = 2_000_000
MAX_STEP_FACTOR = 4.0
"""Steps that bumps may ask for, for each one that there is."""
MIN_BUMP_EFFECT = 0.01
"""Of a state's standard deviation: bumps that matter."""
MIN_RELATIVE_DEVIATION = 1e-6
"""Part of a state's size that stands for its standard deviation where that is smaller."""


def features_skipped_by(passes: StepPasses) -> list[tuple[int, SkippedBump]]:
    """Return the cells with bumps that the steps of a filter pass, and these bumps.

    Nothing is done where the model does not bend with its states.
    """
    bends = bends_of_model(passes.filter.model)
    if bends is None:
        return []
    path, spread, cell_of = _path(passes, bends)
    if path is None:
        return []
    found = bends.passed(path, passes.q, spread, NODES, WEIGHTS)
    return [(int(cell_of[b.step]), b) for b in found]


def bends_of_model(model: StochasticModel) -> BendSearch | None:
    """Return what bends with the states of a model; found once."""
    arguments = [model.t, model.X, model.z, model.u, model.q]
    return model.cached_value(
        "bends", lambda: BendSearch.of(arguments, model.drift, model.residual, model.symbol_names)
    )


def cut_to_meet(passes: StepPasses, most: float) -> bool:
    """Shorten the steps of a filter so that they meet the bumps that they skip; False where there are none.

    most : operations of a pass that are never too many; bumps that would ask for more are left
    """
    filter = passes.filter
    steps = filter.steps(passes.q)
    wanted = steps.copy()
    room = MAX_STEP_FACTOR * steps.sum() + most / max(filter.program.instructions, 1)
    for cell, bump in sorted(features_skipped_by(passes), key=lambda found: found[1].more):
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


def _path(passes: StepPasses, bends: BendSearch) -> tuple[SolutionPath | None, Floats, Whole]:
    """Return the mean along every step, what each state may miss, and the cell of each step."""
    filter, q, n = passes.filter, passes.q, passes.filter.model.n
    steps, cells, nz = filter.steps(q), filter.cells(q), filter.model.z.numel()
    cell_of = np.repeat(np.arange(len(steps)), steps)
    ends = passes.ends_of_steps()
    if ends is None:
        return None, np.zeros(n), cell_of
    begin, end = ends
    points = max(MIN_POINTS_PER_STEP, int(np.ceil(MIN_POINTS_PER_CELL / max(int(np.median(steps)), 1))))
    points = max(2, min(points, MAX_POINTS // max(len(cell_of), 1)))
    grid = np.linspace(0.0, 1.0, points + 1)
    number = np.arange(len(cell_of)) - np.repeat(np.cumsum(steps) - steps, steps)
    shares = (number[:, None] + grid) / steps[cell_of][:, None]
    powers = shares[:, :, None] ** np.arange(cells.coefficients.shape[2])
    t = cells.bounds[:-1][cell_of][:, None] + cells.lengths[cell_of][:, None] * shares
    u = np.einsum("kud,ksd->ksu", cells.coefficients[cell_of], powers)
    tail = n + n * (n + 1) // 2
    a, b = begin[:, None, tail : tail + nz], end[:, None, tail : tail + nz]
    straight = begin[:, None, :n] + grid[:, None] * (end - begin)[:, None, :n]
    path = SolutionPath(t, straight, a + grid[:, None] * (b - a), u)
    path = replace(path, states=_curved(path, begin[:, :n], end[:, :n], bends, q))
    variances = n + np.cumsum([0, *range(n, 1, -1)])
    with np.errstate(all="ignore"):
        deviation = np.sqrt(np.maximum(end[:, variances], 0.0))
        middle = np.median(deviation, axis=0)
        middle = middle if np.isfinite(middle).all() else np.nanmedian(deviation, axis=0)
        spread = middle * MIN_BUMP_EFFECT + MIN_RELATIVE_DEVIATION * np.nanmax(
            np.abs(begin[:, :n]), axis=0, initial=0.0
        )
    return (path if np.isfinite(path.states).all() else None), np.maximum(np.nan_to_num(spread), 1e-300), cell_of


def _curved(path: SolutionPath, left: Floats, right: Floats, bends: BendSearch, q: Floats) -> Floats:
    """Return states on the cubics with the slopes of the drift at both ends; on straight lines where that is not
    finite.
    """
    h, K = path.lengths[:, None], len(left)
    t, x, z, u = (np.concatenate([v[:, 0], v[:, -1]]) for v in (path.times, path.states, path.algebraic, path.signals))
    slopes = bends.rates_of(t, x, z, u, q)
    da, db = h * slopes[:K], h * slopes[K:]
    s = np.linspace(0.0, 1.0, path.times.shape[1])
    hermite = [(1 - s) ** 2 * (1 + 2 * s), (1 - s) ** 2 * s, s**2 * (3 - 2 * s), -(s**2) * (1 - s)]
    cubic = np.stack(hermite, axis=1) @ np.stack([left, da, right, db], axis=1)
    # a slope that a bump gives at one end says nothing about the way
    wide = np.abs(da) + np.abs(db) > 4 * np.abs(right - left) + 1e-300
    bad = wide | ~np.isfinite(da) | ~np.isfinite(db)
    return np.asarray(np.where(bad[:, None], path.states, cubic))
