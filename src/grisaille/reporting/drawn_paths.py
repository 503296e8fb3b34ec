"""Paths that a model predicts across gaps in the measurements, instead of a chord between samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.experiment.filling import gaps_of
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.reporting.labels import experiment_of

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.experiment.experiment import Experiment

MAX_POINTS_PER_GAP = 200
"""Points drawn in one gap."""


@dataclass(frozen=True)
class DrawnPath:
    """The path of one output: predictions at samples and in gaps; NaN where a gap is not predicted."""

    times: np.ndarray
    predicted: np.ndarray
    spread: np.ndarray
    """Standard deviations in gaps, as the output would be measured; NaN elsewhere, and where they do not change."""


def break_at_gaps(times: np.ndarray, *values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return times and values with NaN in every gap between the times, so that no chord is drawn across it."""
    t = np.asarray(times, dtype=float)
    new = np.array([(a + b) / 2 for a, b in gaps_of(SampledSignal(t, np.zeros(len(t))))])
    at = np.searchsorted(t, new)
    return np.insert(t, at, new), *(np.insert(np.asarray(v, dtype=float), at, np.nan) for v in values)


def drawn_path(fit: Fitted, run: str, output: str, table: xr.Dataset) -> DrawnPath:
    """Return the path of one output through its gaps; ``table`` has its samples in order."""
    t, predicted = table["time"].to_numpy(), table["predicted"].to_numpy()
    experiment = experiment_of(fit, run)
    unknown = np.full(len(t), np.nan)
    if experiment.is_static:
        return DrawnPath(t, predicted, unknown)
    between = [
        _between(a, b, float(np.median(np.diff(t)))) for a, b in gaps_of(SampledSignal(t, table["measured"].to_numpy()))
    ]
    if not between:
        return DrawnPath(t, predicted, unknown)
    new = np.concatenate(between)
    values, spread = _predicted(fit, experiment, output, new)
    order = np.argsort(np.concatenate([t, new]), kind="stable")
    return DrawnPath(
        np.concatenate([t, new])[order], np.concatenate([predicted, values])[order],
        np.concatenate([unknown, spread])[order],
    )  # fmt: skip


def _between(a: float, b: float, usual: float) -> np.ndarray:
    count = int(np.clip(round((b - a) / usual) - 1, 2, MAX_POINTS_PER_GAP))
    return np.linspace(a, b, count + 2)[1:-1]


def _predicted(fit: Fitted, experiment: Experiment, output: str, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    samples = experiment.outputs[output]
    times = np.union1d(samples.times, new)
    values = np.full(len(times), np.nan)
    values[np.searchsorted(times, samples.times)] = samples.values
    outputs = {n: (y.times, y.values) for n, y in experiment.outputs.items()}
    record = experiment.replace(outputs={**outputs, output: (times, values)}, weights=None, skip=0)
    nothing = np.full(len(new), np.nan)
    try:
        found = fit.predict(record, horizon=1)[output].sel(time=new)
    except GrisailleError:
        return nothing, nothing
    if "statistic" not in found.dims:
        return found.to_numpy(), nothing
    return found.sel(statistic="mean").to_numpy(), found.sel(statistic="std").to_numpy()
