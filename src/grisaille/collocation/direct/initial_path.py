"""Where a search begins: the trajectory without disturbances at the guess, element by element.

Elements that Newton's method does not solve there keep the last values: the program itself does not need a trajectory.
Where that trajectory is far from the data, and data measure states, a second search begins with these in the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.collocation.array_types import Floats, Mask
from grisaille.collocation.direct.element_mesh import RADAU_POINTS
from grisaille.collocation.direct.transcription import Transcription, TranscriptionPoint
from grisaille.collocation.trial_record import outputs_that_are_states
from grisaille.structure.starts.initialization import ConsistentStart

MAX_FOLLOWED_RESIDUAL = 12.5
"""Half the squared residual of a sample, in standard deviations, from which on a trajectory is far from the data."""
MAX_NEWTON_ITERATIONS = 12
SOLVED, NEARLY = 1e-9, 1e-4
"""Relative steps of Newton's method at which it ends, and up to which an element counts as solved."""


def first_points(program: Transcription, simulated: TranscriptionPoint) -> list[TranscriptionPoint]:
    """Return the points to begin with at a guess: the simulation and, where that is far from the data, the data."""
    count = sum(int(r.measured.sum()) for r in program.records)
    costs = program.evaluate(simulated)
    if costs.is_finite and costs.residuals < MAX_FOLLOWED_RESIDUAL * count:
        return [simulated]
    measured = measured_point(program, simulated)
    return [simulated] if measured is None else [simulated, measured]


def measured_point(program: Transcription, point: TranscriptionPoint) -> TranscriptionPoint | None:
    """Return the same with measured states on lines through their measurements; None where no output is a state."""
    model = program.model
    seen = outputs_that_are_states(model.X, model.measured)
    inner, width, s = point.inner.copy(), model.n + model.nz, RADAU_POINTS
    found = False
    for r, record in enumerate(program.records):
        first, last = program.span(r)
        for column, state in seen.items():
            there = record.measured[:, column]
            if there.sum() < 2:
                continue
            found = True
            values = np.interp(program.meshes[r].nodes, record.times[there], record.y[there, column])
            inner[first:last, program.functions.after + state + width * np.arange(s)] = values
    return replace(point, inner=inner) if found else None


def simulated_point(program: Transcription, theta: Floats, starts: list[ConsistentStart]) -> TranscriptionPoint:
    """Return the first point of a search."""
    n, nz = program.model.n, program.model.nz
    values = program.slots.values(theta)
    first = np.zeros((len(starts), n + nz))
    zeta = np.zeros((len(starts), n - program.model.nx))
    inner = np.zeros((len(program.record_of), program.functions.element.sizes.inner))
    noise = np.zeros((len(program.record_of), program.functions.element.sizes.noise))
    for r, start in enumerate(starts):
        first[r] = np.concatenate([start.x, np.zeros(n - program.model.nx), start.z])
    _march(program, values, first, inner)
    return TranscriptionPoint(theta, first, zeta, inner, noise)


def _march(program: Transcription, slots: Floats, now: Floats, inner: Floats) -> None:
    """Fill the inner unknowns, element by element and all records abreast; records that end early repeat their last
    element.
    """
    n, s = program.model.n, RADAU_POINTS
    after = program.functions.after
    spans = np.array([program.span(r) for r in range(len(now))]).reshape(-1, 2)
    stuck = np.zeros(len(now), dtype=bool)
    for k in range(int(np.diff(spans, axis=1).max(initial=0))):
        live = spans[:, 0] + k < spans[:, 1]
        elements = np.minimum(spans[:, 0] + k, spans[:, 1] - 1)
        ahead = np.hstack([now[:, n : n + after], np.tile(now, s)])
        data = program.element_data[elements]
        found, solved = solve_elements(program, data, now[:, :n], ahead, slots, live & ~stuck)
        stuck |= live & ~solved
        ahead[solved & live] = found[solved & live]
        inner[elements[live]] = ahead[live]
        now = np.where(live[:, None], ahead[:, program.seen_columns], now)


def solve_elements(
    program: Transcription, data: Floats, past: Floats, guess: Floats, slots: Floats, moving: Mask
) -> tuple[Floats, Mask]:
    """Return inner unknowns of elements by Newton's method without disturbances, and where it converged."""
    element, found = program.functions.element, guess.copy()
    own = element.sizes.parts[1]
    v, nothing = np.zeros((len(past), element.sizes.noise)), np.zeros((len(past), element.sizes.inner))
    last, moving = np.where(moving, np.inf, np.nan), moving.copy()
    with np.errstate(all="ignore"):
        for _ in range(MAX_NEWTON_ITERATIONS):
            if not moving.any():
                break
            c, J, _ = element.slopes(np.hstack([past, found, v, slots]), data, nothing)
            step = _quotients(J[:, :, own], c)
            found[moving] -= step[moving]
            size, reach = np.abs(step).max(axis=1, initial=0.0), 1 + np.abs(found).max(axis=1, initial=0.0)
            last = np.where(moving, size / reach, last)
            moving &= last > SOLVED
    return found, np.asarray((last < NEARLY) & np.isfinite(found).all(axis=1))


def _quotients(J: Floats, c: Floats) -> Floats:
    """Return J⁻¹c of every element, NaN where J is singular."""
    try:
        return np.asarray(np.linalg.solve(J, c[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        if len(J) == 1:
            return np.full_like(c, np.nan)
        return np.vstack([_quotients(J[k : k + 1], c[k : k + 1]) for k in range(len(J))])
