"""Steps, proposals and what proposals add to the noise of measurements, found by short runs with few particles.

Steps: every particle of a short run takes each interval between samples once more with steps twice as long and the same
noise. What that changes in an output is compared with the output's own uncertainty before the sample, and steps are
halved in intervals where it is more than ``TOLERANCE`` of it (``BIAS_TOLERANCE`` in the mean). Proposals: those with
the smaller variance of log L̂ times the instructions of a run. Added variance: the mean square of what the linearised
prediction misses. All is chosen where a search begins and kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.compilation.particles import ParticleAnswer
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
GUIDED_TIMES = (1, 2)
"""How often a prediction may be linearised."""
ADJOINT_COST = 2.0
"""Steps that the adjoint of one takes as long as, for each output."""


def choose_particle_steps(
    filter: ParticleFilter, at: FilterPoint, count: int | str, known: Discretisation | None
) -> ParticleSteps:
    """Return the discretisation of a record; ``count`` steps between samples, or ``"auto"``."""
    guided = int(filter.can_guide and filter.options.proposal != "bootstrap")
    cells = len(filter.cells(at.q).lengths)
    if isinstance(count, int):
        found = ParticleSteps((count,) * cells, PILOT_PARTICLES, guided)
    else:
        found = _fine_enough(filter, at, ParticleSteps((2,) * cells, PILOT_PARTICLES, guided))
    if guided:
        tried = [_inflated(filter, at, replace(found, guided=times)) for times in GUIDED_TIMES]
        if filter.options.proposal == "auto":
            tried.append(replace(found, guided=0))
        found = min(tried, key=lambda steps: _cost(filter, at, steps))
    return replace(found, particles=filter.options.particles)


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
        assert answer.error is not None and answer.bias is not None and answer.variance is not None
        deviation = np.sqrt(np.maximum(answer.variance, 1e-300))
        with np.errstate(all="ignore"):
            scatter, shift = np.sqrt(answer.error) / TOLERANCE, np.abs(answer.bias) / BIAS_TOLERANCE
            ratio = np.maximum(scatter, shift) / deviation
        bad: NDArray[np.bool_] = np.asarray((~np.isfinite(ratio) | (ratio > 1)) & np.isfinite(filter.record.y))
        if answer.failed >= 0:
            bad[answer.failed :] = False
            bad[answer.failed] = True
        coarse: NDArray[np.bool_] = np.asarray(bad.any(axis=1))
        counts = np.array(steps.substeps)
        finer = coarse[np.minimum(sample_of, len(coarse) - 1)] & (counts < MAX_STEPS)
        if not finer.any():
            # what was compared are steps of twice the length: those are enough where they agree
            return replace(steps, substeps=tuple(counts.tolist()))
        if answer.failed >= 0 and counts[finer].max() >= 64:
            return replace(steps, substeps=tuple(counts.tolist()))
        steps = replace(steps, substeps=tuple(np.where(finer, 2 * counts, counts).tolist()))


def _interval_of_cells(filter: ParticleFilter, at: FilterPoint) -> NDArray[np.int64]:
    """Return the next measured sample of every cell."""
    sample_at, y = filter.cells(at.q).sample_at, filter.record.y
    measured: NDArray[np.bool_] = np.asarray(np.isfinite(y).any(axis=1))
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


def _cost(filter: ParticleFilter, at: FilterPoint, steps: ParticleSteps) -> float:
    """Return the variance of log L̂ times the work of a run; infinite where a measurement is not explained."""
    values = []
    for repeat in range(PILOT_REPEATS):
        answer = _pilot(filter, at, steps, repeat)
        if answer.failed != -1:
            return float("inf")
        values.append(float(answer.terms.sum()))
    outputs = filter.record.y.shape[1]
    work: float = 1.0 + steps.guided * (1.0 + ADJOINT_COST * outputs)
    spread: float = np.var(values).item()
    return spread * work
