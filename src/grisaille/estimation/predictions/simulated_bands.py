"""Bands of a simulation of a nonlinear model: quantiles of realizations instead of a Gaussian that is carried along.

Without data a filter's two moments drift away from those of the process they stand for: a Gaussian in one of two wells
stays there, one on a limit cycle keeps its phase. The law at horizon ∞ is that of the model itself, so it is simulated:
starts from N(x₀, P₀) of the filter, disturbances from their spectra, measurement noise added to outputs,

    mean, standard deviation, and the quantiles (1 ± level)/2 over ``BAND_REALIZATIONS``.

A band then covers its level to within √(0.05 · 0.95/M), 0.3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.bound_experiment.bound_experiment import known_starts
from grisaille.disturbance import Purpose
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted, with_levels
from grisaille.simulation.dataset import as_ensemble
from grisaille.simulation.ensembles.ensemble import failure_sentence, run_ensemble
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.measurement_noise import evaluate_along
from grisaille.simulation.posing import pose

BAND_REALIZATIONS = 4000
BAND_SEED = 0


def simulated_bands(
    fit: Fitted,
    case: ExperimentTerm,
    theta: np.ndarray,
    start_covariance: np.ndarray,
    names: Sequence[str],
    level: float,
) -> np.ndarray:
    """Return (4, times, names): mean, standard deviation, lower and upper end."""
    posed = _posed(fit, case, theta)
    options = EnsembleOptions(
        BAND_REALIZATIONS, seed=BAND_SEED, purpose=Purpose.MODEL, start_covariance=start_covariance
    )
    try:
        found = run_ensemble(posed, options)
    except GrisailleError as error:
        raise EstimationError(
            f"horizon=np.inf simulates {fit.model_name}, which was not possible: {error} Predictions over a number of "
            f"samples, horizon=k, need no realizations."
        ) from error
    if found.failed:
        raise EstimationError(f"horizon=np.inf: {failure_sentence(found, BAND_REALIZATIONS)}")
    paths = as_ensemble(posed, options, found)
    flat, random = posed.structure.model, np.random.default_rng(BAND_SEED)
    block = np.empty((4, len(case.grid), len(names)))
    tails = [(1 - level) / 2, (1 + level) / 2]
    for k, name in enumerate(names):
        y = paths[name].values
        noise = flat.outputs[name].noise if name in case.outputs else None
        if noise is not None:
            y = y + evaluate_along(paths, noise, posed.known) * random.standard_normal(y.shape)
        block[:, :, k] = y.mean(axis=0), y.std(axis=0, ddof=1), *np.quantile(y, tails, axis=0)
    return block


def _posed(fit: Fitted, case: ExperimentTerm, theta: np.ndarray) -> ExperimentPoint:
    experiment: Any = case.experiment
    signals, hold = experiment.input_signals()
    of: dict[str, dict[str, float]] = {"parameter": {}, "scale": {}, "noise": {}, "start": {}}
    for k, value in zip(case.unknowns, theta.tolist(), strict=True):
        of[fit.estimate.unknowns[k].kind][fit.estimate.unknowns[k].target] = value
    scales = {f"scale({n})": v for n, v in of["scale"].items()}
    return pose(
        with_levels(fit.initial_model, {}, of["noise"]), case.grid, signals,
        {**experiment.constants, **of["parameter"], **scales}, {**known_starts(experiment), **of["start"]},
        hold=hold, sensitivities=(),
    )  # fmt: skip
