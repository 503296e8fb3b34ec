"""Bands of predictions that also contain the uncertainty of what was estimated: ``fit.predict(bands="all")``.

A prediction m(θ) whose variance for given θ is V has, to first order, the variance

    V + J Σ Jᵀ,   J = dm/dθ,   Σ the covariance of the estimates,

V that of the measurement noise and, for filters, of the state. Simulations have exact sensitivities J. Of a filter's
predictions J is a central difference over a thousandth of a standard error on unchanged steps. Bands are by Student's t
where the noise was estimated: for output error of a model that is linear in its unknowns they are exact.

Outputs that declare laws have quantiles of these instead (``law_bands``).

Not in the bands: starts that were found from a new record's first samples, and what the model leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.predictions.band_kinds import Bands, with_kind
from grisaille.estimation.predictions.law_bands import law_bands
from grisaille.estimation.quantities import STATISTICS
from grisaille.estimation.uncertainty import half_width
from grisaille.simulation.measurement_noise import evaluate_along
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.horizons import Horizon
    from grisaille.experiment.experiment import Experiment

Predicted = Callable[[np.ndarray], "xr.Dataset"]

BAND_LEVEL = 0.95
DIFFERENCE_STEP = 1e-3
"""Of a standard error: the step of differences."""


def simulated_with_bands(fit: Fitted, experiment: Experiment, bands: Bands = "all") -> xr.Dataset:
    """Simulate every variable and output, with the band of noise and parameters, or of measurement noise alone."""
    import xarray as xr

    _refuse_means(fit, experiment, bands)
    if bands == "all":
        refuse_without_covariance(fit)
        path, slopes = sensitive(fit, experiment)
    else:
        path, slopes = fit.simulated(experiment), {}
    names = [str(n) for n in path.data_vars if path[n].dims == ("time",)]
    noise, by_law = _noise_along(fit, experiment, path), law_bands(fit, experiment, path, slopes, BAND_LEVEL)
    data: dict[str, tuple[Any, ...]] = {}
    for name in names:
        if name in by_law:
            data[name] = (("statistic", "time"), by_law[name], path[name].attrs)
            continue
        own = np.zeros(path.sizes["time"]) + noise.get(name, 0.0) ** 2
        if slopes:
            own += _variance(fit, slopes[name])
        data[name] = _band(path[name].values, np.sqrt(own), fit, path[name].attrs)
    coordinates = {"statistic": list(STATISTICS), "time": path["time"]}
    return with_kind(xr.Dataset(data, coordinates, {**path.attrs, "level": BAND_LEVEL}), bands)


def _refuse_means(fit: Fitted, experiment: Experiment, bands: Bands) -> None:
    """Refuse bands around the mean of an ensemble, which noise and unknowns alone do not make."""
    if "realizations" in fit.method.simulation_options(fit.estimate, experiment.name or ""):
        raise EstimationError(
            f"bands={bands!r} is not available for gr.{type(fit.method).__name__}, whose predictions are means of an "
            "ensemble: fit.simulate(times, inputs, realizations=1000) shows what disturbances do, fits of "
            "gr.monte_carlo(fit.model, fit.experiments, …) what the uncertainty of the estimates does."
        )


def ahead_with_bands(fit: Fitted, experiment: Experiment, horizon: Horizon, predicted: Predicted) -> xr.Dataset:
    """Return predictions of a filter with the uncertainty of its unknowns beside that of the state.

    predicted : at given values of the unknowns
    """
    refuse_without_covariance(fit)
    given = predicted(fit.estimate.theta)
    slopes = sensitive(fit, experiment)[1] if isinstance(horizon, float) else _differences(fit, predicted)
    found = given.copy()
    for name in given.data_vars:
        mean, std, lower, upper = given[name].values
        both = np.sqrt(std**2 + _variance(fit, slopes[str(name)]))
        with np.errstate(invalid="ignore", divide="ignore"):
            wider = np.where(std > 0, both / std, 1.0) * _student(fit)
        ends = (mean - wider * (mean - lower), mean + wider * (upper - mean))
        plain = _band(mean, both, fit, {})[1]
        block = np.where(std > 0, np.stack([mean, both, *ends]), plain)
        block = np.where(np.isinf(std), given[name].values, block)  # a flat prior that nothing has told yet
        found[name] = (given[name].dims, block, given[name].attrs)
    return with_kind(found, "all")


def refuse_without_covariance(fit: Fitted) -> None:
    """Refuse bands of a fit without standard errors."""
    free = fit.estimate.free
    if not np.isfinite(fit.estimate.covariance[np.ix_(free, free)]).all():
        raise EstimationError(
            "bands='all' needs standard errors, and some of this fit are infinite: the data do not determine "
            "every unknown. fit.parameters shows which; bands='noise' leaves them out."
        )


def sensitive(fit: Fitted, experiment: Experiment) -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """Return the simulation of a record, and by name the derivatives of its variables by the fit's unknowns, (times,
    p).
    """
    name = experiment.name or ""
    is_own = any(experiment is e for e in fit.experiments)
    moving = {
        k: f"start({u.target})" if u.kind == "start" else u.target
        for k, u in enumerate(fit.estimate.unknowns)
        if u.applies_to(name) and fit.estimate.free[k] and (u.kind == "parameter" or (u.kind == "start" and is_own))
    }
    path = fit.simulated(experiment, sensitivities=list(moving.values()))
    plain = [str(n) for n in path.data_vars if path[n].dims == ("time",)]
    slopes = {}
    for variable in plain:
        slopes[variable] = np.zeros((path.sizes["time"], len(fit.names)))
        if moving and f"d({variable})" in path:
            by = path[f"d({variable})"].transpose("time", "parameter")
            slopes[variable][:, list(moving)] = by.sel(parameter=list(moving.values())).values
    return path[plain], slopes


def _differences(fit: Fitted, predicted: Predicted) -> dict[str, np.ndarray]:
    """Return central differences of a filter's predictions by the unknowns, (times, p) by name."""
    theta, here = fit.estimate.theta, predicted(fit.estimate.theta)
    slopes = {str(n): np.zeros((here.sizes["time"], len(theta))) for n in here.data_vars}
    for k in np.flatnonzero(fit.std_errors > 0):
        step = np.zeros_like(theta)
        step[k] = DIFFERENCE_STEP * fit.std_errors[k]
        ahead, behind = (predicted(moved).sel(statistic="mean") for moved in (theta + step, theta - step))
        for name, slope in slopes.items():
            slope[:, k] = (ahead[name].values - behind[name].values) / (2 * step[k])
    return slopes


def _variance(fit: Fitted, slopes: np.ndarray) -> np.ndarray:
    covariance = np.where(np.isfinite(fit.estimate.covariance), fit.estimate.covariance, 0.0)
    return np.asarray(np.einsum("ti,ij,tj->t", slopes, covariance, slopes))


def _noise_along(fit: Fitted, experiment: Experiment, path: xr.Dataset) -> dict[str, np.ndarray]:
    """Return standard deviations of the noise of outputs, where they are known."""
    flat = structure_of(fit.settled_model).model
    values, _ = fit._values_for(experiment.name or "")
    found = evaluate_parameters(flat, {**experiment.constants, **values})
    known = dict(zip(found.names, found.values.tolist(), strict=True))
    return {
        name: evaluate_along(path, output.noise, known)
        for name, output in flat.outputs.items()
        if output.noise is not None
    }


def _student(fit: Fitted) -> float:
    """Return Student's quantile by that of the normal law."""
    one = np.ones(1)
    return float(half_width(one, BAND_LEVEL, np.min(fit.student))[0] / half_width(one, BAND_LEVEL, np.inf)[0])


def _band(mean: np.ndarray, std: np.ndarray, fit: Fitted, attributes: Any) -> tuple[Any, ...]:
    half = half_width(std, BAND_LEVEL, np.min(fit.student))
    return ("statistic", "time"), np.stack([mean, std, mean - half, mean + half]), attributes
