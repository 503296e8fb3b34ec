"""Ensembles at all values of the unknown, and all data sets, each in one run where a graphics processor makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import grisaille as gr
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.disturbance import Purpose
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.ensemble import discretise, failure_sentence, run_ensembles
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.measurement_noise import with_noise
from grisaille.simulation.posing import pose
from grisaille_reproductions.abdalmoaty import SPACING, Settings, times

BATCH = 50
"""Data sets that share a seed."""


def simulate_together(
    settings: Settings, samples: int, thetas: np.ndarray, count: int, device: str, purpose: Purpose, rtol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of φ after the start, (values, samples)."""
    trial = BoundExperiment(
        settings.model(), times(samples), moves=EstimatedQuantities.named([settings.unknown]),
        inputs=settings.inputs(samples),
        hold="foh",
    )  # fmt: skip
    points = [trial.at(np.array([theta])).without_derivatives() for theta in thetas]
    disturbances = Disturbances(points[0].structure.model, points[0].structure.system)
    options = EnsembleOptions(
        count, seed=1, purpose=purpose, step=SPACING, rtol=rtol, observed=("phi",), reduce=["mean", "variance"],
        device=device,
    )  # fmt: skip
    steps = discretise(points[0], options, disturbances).substeps
    found = run_ensembles(points, replace(options, substeps=steps), disturbances)
    mean, variance = (np.array([f.statistics[n].values[1:, 0] for f in found]) for n in ("mean", "variance"))
    return mean, variance


def simulate_data(settings: Settings, count: int, samples: int, rtol: float, device: str = "cpu") -> np.ndarray:
    """Measurements of φ after the start, (data sets, samples); seeds other than the model's."""
    import xarray as xr

    point = pose(settings.model(), times(samples), settings.inputs(samples), None, None, hold="foh", sensitivities=())
    model, seeds = point.structure.model, [1000 + first for first in range(0, count, BATCH)]
    disturbances = Disturbances(model, point.structure.system)
    options = EnsembleOptions(
        min(BATCH, count), seed=seeds[0], step=SPACING, rtol=rtol, observed=("phi",), device=device
    )  # fmt: skip
    options = replace(options, substeps=discretise(point, options, disturbances).substeps)
    y = np.empty((count, samples))
    for k, found in enumerate(run_ensembles([point] * len(seeds), options, disturbances, seeds)):
        assert found.y is not None
        if found.failed:
            raise gr.SimulationError(f"Data with the seed {seeds[k]}: {failure_sentence(found, options.realizations)}")
        one = xr.Dataset({"phi": (("realization", "time"), found.y[: count - BATCH * k, :, 0])})
        y[BATCH * k : BATCH * (k + 1)] = with_noise(one, model, point.known, seeds[k]).phi.values[:, 1:]
    return y
