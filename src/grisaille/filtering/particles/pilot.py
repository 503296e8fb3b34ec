"""Steps, proposals and what proposals add to the noise of measurements, found by short runs with few particles.

Steps: every particle of a short run takes each interval between samples once more with steps twice as long and the same
noise. What that changes in an output is compared with the output's own uncertainty before the sample, and steps are
halved in intervals where it is more than ``TOLERANCE`` of it (``BIAS_TOLERANCE`` in the mean). Proposals: those with the
smaller variance of log L̂ times the instructions of a run. Added variance: the mean square of what the linearised
prediction misses. All is chosen where a search begins and kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.compilation.particles import ParticleAnswer
from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.filter import FilterPoint
from grisaille.filtering.particles.particle_steps import ParticleSteps

if TYPE_CHECKING:
    from grisaille.filtering.particles.particle_filter import ParticleFilter

PILOT_PARTICLES = 64
PILOT_REPEATS = 6
TOLERANCE = 0.1
"""Of an output's deviation before its sample: root mean square change by halved steps."""
BIAS_TOLERANCE = 0.02
"""The same of the mean change."""
MAX_STEPS = 4096
"""Between two samples."""
GUIDED_COST = 4.0
"""Steps that a guided one takes as long as: one that is linearised, its adjoint for each output, and its own."""


def choose_particle_steps(
    filter: ParticleFilter, at: FilterPoint, count: int | str, known: Discretisation | None
) -> ParticleSteps:
    """Return the discretisation of a record; ``count`` steps between samples, or ``"auto"``."""
    guided = filter.can_guide and filter.options.proposal != "bootstrap"
    cells = len(filter.cells(at.q).lengths)
    particles = filter.options.particles
    if isinstance(count, int):
        found = ParticleSteps((count,) * cells, PILOT_PARTICLES, guided)
    else:
        found = _fine_enough(filter, at, ParticleSteps((2,) * cells, PILOT_PARTICLES, guided))
    if guided:
        found = _inflated(filter, at, found)
        if filter.options.proposal == "auto" and not _pays(filter, at, found):
            found = replace(found, guided=False, inflation=())
    return replace(found, particles=particles)


def _pilot(filter: ParticleFilter, at: FilterPoint, steps: ParticleSteps, repeat: int = 0) -> ParticleAnswer:
    run = filter.with_steps(steps, lambda: at).with_seed(filter.seed + 1_000_003 + repeat)
    return run.run(at, frozenset({"errors"}))


def _fine_enough(filter: ParticleFilter, at: FilterPoint, steps: ParticleSteps) -> ParticleSteps:
    """Return steps that are fine enough, from coarse ones."""
    sample_of = _interval_of_cells(filter, at)
    if not filter.formulas.normals_per_noise and filter.can_guide:
        return replace(steps, substeps=tuple(16 for _ in steps.substeps))
    while True:
        answer = _pilot(filter, at, steps)
        assert answer.error is not None and answer.bias is not None
        deviation = np.sqrt(np.maximum(answer.variance, 1e-300))
        with np.errstate(all="ignore"):
            ratio = np.maximum(np.sqrt(answer.error) / deviation / TOLERANCE, np.abs(answer.bias) / deviation / BIAS_TOLERANCE)
        bad = ~np.isfinite(ratio) | (ratio > 1)
        bad &= np.isfinite(filter.record.y)
        if answer.failed >= 0:
            bad[answer.failed :] = False
            bad[answer.failed] = True
        coarse = bad.any(axis=1)
        counts = np.array(steps.substeps)
        finer = coarse[np.minimum(sample_of, len(coarse) - 1)] & (counts < MAX_STEPS)
        if not finer.any():
            # what was compared are steps of twice the length: those are enough where they agree
            return replace(steps, substeps=tuple(counts.tolist()))
        if answer.failed >= 0 and counts[finer].max() >= 64:
            return replace(steps, substeps=tuple(counts.tolist()))
        steps = replace(steps, substeps=tuple(np.where(finer, 2 * counts, counts).tolist()))


def _interval_of_cells(filter: ParticleFilter, at: FilterPoint) -> Floats:
    """Return the next measured sample of every cell."""
    sample_at, y = filter.cells(at.q).sample_at, filter.record.y
    measured = np.isfinite(y).any(axis=1)
    found, following = np.zeros(len(sample_at) - 1, dtype=np.int64), len(y) - 1
    for k in range(len(sample_at) - 1, 0, -1):
        if sample_at[k] >= 0 and measured[sample_at[k]]:
            following = int(sample_at[k])
        found[k - 1] = following
    return found


def _inflated(filter: ParticleFilter, at: FilterPoint, steps: ParticleSteps) -> ParticleSteps:
    """Return the steps with the variance that linearised predictions miss."""
    answer = _pilot(filter, at, steps)
    if answer.failed != -1 or answer.excess is None or not np.isfinite(answer.excess).all():
        return steps
    return replace(steps, inflation=tuple(map(tuple, answer.excess.tolist())))


def _pays(filter: ParticleFilter, at: FilterPoint, steps: ParticleSteps) -> bool:
    """Return whether guided proposals give a smaller variance for the same work."""
    spread = {}
    for guided in (True, False):
        tried = replace(steps, guided=guided, inflation=steps.inflation if guided else ())
        values = []
        for repeat in range(PILOT_REPEATS):
            answer = _pilot(filter, at, tried, repeat)
            values.append(float(answer.terms.sum()) if answer.failed == -1 else -np.inf)
        spread[guided] = float(np.var(values)) if np.isfinite(values).all() else np.inf
    return not spread[True] * GUIDED_COST > spread[False]


def require_followed(answer: ParticleAnswer, filter: ParticleFilter) -> None:
    """Raise where no particle explains a measurement."""
    if answer.failed >= 0:
        raise EstimationError(
            f"no particle explains the measurements of {', '.join(filter.model.outputs)} at "
            f"t = {filter.record.times[answer.failed]:g}"
        )
