"""The ensembles of all values of the unknown in one run, where a graphics processor makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.disturbance import Purpose
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.ensemble import EnsembleOptions, discretise, run_ensembles
from grisaille.trial import Movement, Trial
from grisaille_reproductions.abdalmoaty import SPACING, Settings, times


def simulate_together(
    settings: Settings, samples: int, thetas: np.ndarray, count: int, device: str, purpose: Purpose, rtol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of φ after the start, (values, samples)."""
    trial = Trial(
        settings.model(), times(samples), moves=Movement.named([settings.unknown]), inputs=settings.inputs(samples),
        hold="foh",
    )  # fmt: skip
    points = [trial.at(np.array([theta])).still() for theta in thetas]
    disturbances = Disturbances(points[0].structure.model, points[0].structure.system)
    options = EnsembleOptions(
        count, seed=1, purpose=purpose, step=SPACING, rtol=rtol, observed=("phi",), reduce=["mean", "variance"],
        device=device,
    )  # fmt: skip
    steps = discretise(points[0], options, disturbances).substeps
    found = run_ensembles(points, replace(options, substeps=steps), disturbances)
    mean, variance = (np.array([f.statistics[n].values[1:, 0] for f in found]) for n in ("mean", "variance"))
    return mean, variance
