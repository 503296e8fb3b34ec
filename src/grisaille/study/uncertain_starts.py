"""Simulates records of a fit by a nonlinear filter, with starts as uncertain as the filter takes them to be.

    x₀ ~ N(x̂₀, P₀),   then disturbances and measurement noise as the model declares them

Disturbances begin in their stationary law, independent of the plant: a P₀ that ties the two together is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import own_theta_and_steps
from grisaille.study.filter_records import start_note
from grisaille.study.simulated_data import Simulated

CORRELATION_ROUNDING = 1e-9
"""Of a correlation: what rounding leaves."""


def simulated_records(fit: Fitted, theta: np.ndarray, rtol: float = 1e-7) -> Simulated:
    """Return the records that are simulated from the model at θ."""
    own = [u.name for u in fit.estimate.unknowns if u.experiment is not None and len(fit.experiments) > 1]
    if own:
        raise EstimationError(
            f"Records cannot be drawn: a nonlinear filter has no one model where '{own[0]}' is per experiment. Use "
            f"gr.bootstrap on a fit of shared unknowns, or gr.monte_carlo."
        )
    model = Fitted(fit.initial_model, fit.experiments, fit.method, replace(fit.estimate, theta=theta)).model
    starts = tuple(_plant_covariance(fit, k, theta) for k in range(len(fit.experiments)))
    note = start_note(fit.method.options["initial_covariance"])
    variation = Simulated(model, {}, rtol, start_covariances=starts, about=(note,))
    variation.prepare(list(fit.experiments))
    return variation


def _plant_covariance(fit: Fitted, k: int, theta: np.ndarray) -> np.ndarray:
    """Return P₀ of the states of the plant in one experiment."""
    case = fit.estimate.cases[k]
    P, model = case.runner.start_covariance(*own_theta_and_steps(case, theta)), case.runner.filter.model
    nx, size = model.nx, np.sqrt(np.clip(np.diag(P), 0.0, None))
    if np.any(np.abs(P[:nx, nx:]) > CORRELATION_ROUNDING * np.outer(size[:nx], size[nx:])):
        raise EstimationError(
            f"Records cannot be drawn: initial_covariance={fit.method.options['initial_covariance']!r} ties states of "
            f"the plant to disturbances, which are drawn by themselves. Fit with initial_covariance={{state: "
            f"variance}}, or use gr.monte_carlo."
        )
    return np.asarray(P[:nx, :nx])
