"""How the residuals of several outputs at one instant are correlated if the model is right.

    filters            C_ij = S_ij / √(S_ii S_jj),   S = H P Hᵀ + R  of the innovations, P given all samples before
    least squares      C_ij = R_ij / √(R_ii R_jj),   R the declared covariance of the measurement noise

Outputs that share states have innovations that are correlated through S, whatever the noise is. What is left after
C^(−1/2) is white between outputs, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import own_theta_and_steps
from grisaille.filtering.filter_runner import FilterRunner
from grisaille.model.expression import Name
from grisaille.model.measurement.noise_covariances import covariance_formulas, level_name
from grisaille.simulation.measurement_noise import evaluate_along


def joint_correlations(fit: Fitted, case: ExperimentTerm) -> np.ndarray | None:
    """Return C, (times, outputs, outputs) in the order of ``case.trial.data.outputs``.

    None where outputs are independent of each other, or where it cannot be told what C is.
    """
    try:
        covariance = _of_innovations(fit, case) if fit.method.ahead is not None else _declared(fit, case)
    except GrisailleError:
        return None
    if covariance is None:
        return None
    size = np.sqrt(np.einsum("tii->ti", covariance))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(covariance / size[:, :, None] / size[:, None, :])


def _of_innovations(fit: Fitted, case: ExperimentTerm) -> np.ndarray | None:
    runner: FilterRunner = case.runner
    theta, steps = own_theta_and_steps(case, fit.estimate.theta)
    at = runner.posed(theta, False)
    return runner.filter_on(steps, theta).innovation_covariances(at)


def _declared(fit: Fitted, case: ExperimentTerm) -> np.ndarray | None:
    """Return R of a model that declares covariances between measured outputs; None where it declares none."""
    flat, outputs = case.trial.flat, case.trial.data.outputs
    levels = _levels(fit, case)
    pairs = covariance_formulas(flat, outputs, levels)
    if not pairs:
        return None
    along: Any = fit.simulated(case.experiment)
    if not case.experiment.is_static:
        along = along.sel(time=case.grid, method="nearest")
    values = dict(zip(flat.parameters, case.trial.at(case.own(fit.estimate.theta)).p.tolist(), strict=False)) | levels
    covariance = np.zeros((len(case.grid), len(outputs), len(outputs)))
    for k, name in enumerate(outputs):
        level = Name(level_name(name)) if level_name(name) in levels else flat.outputs[name].noise
        assert level is not None
        covariance[:, k, k] = evaluate_along(along, level, values) ** 2
    for (a, b), formula in pairs.items():
        i, j = outputs.index(a), outputs.index(b)
        covariance[:, i, j] = covariance[:, j, i] = evaluate_along(along, formula, values)
    return covariance


def _levels(fit: Fitted, case: ExperimentTerm) -> dict[str, float]:
    """Return the levels of noise that were estimated, by name, as they are in an experiment."""
    found = {level_name(n): float(v) for n, v in fit.estimate.noise.items()}
    for u, value in zip(fit.estimate.unknowns, fit.estimate.theta.tolist(), strict=True):
        if u.kind == "noise" and u.applies_to(case.name):
            found[level_name(u.target)] = value
    return found
