"""``fit.states()`` and ``fit.predict(horizon=k)``: estimates of every variable at every sample, with bands.

Filtered values know the data up to their instant, smoothed ones all data, predictions those up to k samples before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.estimated_quantities import UNKNOWN_KINDS, Kind
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import Filtered, LikelihoodProblem, own_theta_and_steps
from grisaille.estimation.predictions.band_kinds import Bands, with_kind
from grisaille.estimation.predictions.horizons import Horizon, last_used
from grisaille.estimation.predictions.over_unknowns import levels_at_zero, spread_over_unknowns
from grisaille.estimation.predictions.simulated_bands import simulated_bands
from grisaille.estimation.predictions.whole_bands import refuse_without_covariance
from grisaille.estimation.quantities import STATISTICS, Quantities, StateMoments, left_out, unit_and_description
from grisaille.estimation.uncertainty import half_width
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.times.dating import clock_of
from grisaille.model.classes import Model

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.abilities.states import Wanted

CaseOf = Callable[[Model, Experiment, Sequence[Unknown], Sequence[Kind]], ExperimentTerm]
"""How a filter's estimator makes the case of a new experiment."""


def filtered_states(
    fit: Fitted, experiment: Experiment | str | None, names: Wanted, level: float, case_of: CaseOf,
    bands: Bands | None = None,
) -> xr.Dataset:  # fmt: skip
    """Return what a filter and its smoother say; ``bands="all"`` puts the uncertainty of the unknowns into the
    bands.
    """
    case = _case(fit, experiment, case_of)
    if bands != "all":
        return states_of_case(case, fit.estimate.theta, names, level)
    refuse_without_covariance(fit)
    _width(level)
    steps = own_theta_and_steps(case, fit.estimate.theta)[1]

    def moments(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        block = _states(case, case.own(theta), steps, names, 1.0)[1]
        return block[:, 0], block[:, 1] ** 2

    problem = LikelihoodProblem(fit.estimate.unknowns, fit.estimate.cases)
    labels, block = _states(case, case.own(fit.estimate.theta), steps, names, 1.0)
    variance, freedom = spread_over_unknowns(
        fit.estimate, case.unknowns, moments, lambda theta: _information(problem, theta, fit.estimate.is_likelihood)
    )
    mean, std = block[:, 0], np.sqrt(variance)
    half = half_width(std, level, np.minimum(freedom, np.min(fit.student)))
    known = np.where(np.isinf(std), 0.0, mean)  # nothing is known where a flat prior is all there is
    whole = np.stack([mean, std, known - half, known + half], axis=1)
    zero = ", ".join(f"{name} at its one-sided limit {v:.3g}" for name, v in levels_at_zero(fit.estimate).items())
    found = _as_dataset(case, labels, whole, names, level, "all")
    return found.assign_attrs(levels_at_zero=f"bands are those with {zero}") if zero else found


def _information(problem: LikelihoodProblem, theta: np.ndarray, is_likelihood: bool) -> tuple[float, np.ndarray]:
    """Return −log L, priors included, and the expected information at θ; raises where there are none."""
    found = problem.evaluate(theta)
    if not found.completed:
        raise EstimationError(found.failure)
    return found.objective if is_likelihood else np.nan, found.curvature


def states_of_case(case: Filtered, theta: np.ndarray, names: Wanted = None, level: float = 0.95) -> xr.Dataset:
    """Return the filtered and smoothed states of one experiment at given values of all unknowns."""
    labels, block = _states(case, *own_theta_and_steps(case, theta), names, _width(level))
    return _as_dataset(case, labels, block, names, level, "noise")


def _states(
    case: Filtered, own: np.ndarray, steps: Discretisation, names: Wanted, width: float
) -> tuple[list[str], np.ndarray]:
    """Return labels, and (2, 4, times, labels): statistics of filtered and of smoothed values, for given unknowns.

    Of filtered values alone, (1, 4, times, labels), where the filter has no smoother.
    """
    runner = case.runner
    found, q, filter = runner.states(own, steps), runner.posed(own, False).q, runner.filter_on(steps, own)
    assert found.z is not None
    quantities = Quantities(filter.model, names)
    _, u = filter.at_samples(filter.cells(q))
    moments = [StateMoments(found.x_filt, found.P_filt, found.open_filtered)]
    if found.x_smooth is not None and found.P_smooth is not None:
        moments.append(StateMoments(found.x_smooth, found.P_smooth, found.open_smoothed))
    block = np.stack([quantities.statistics(case.grid, states, found.z, u, q, width) for states in moments])
    return list(quantities.rows), block


def _as_dataset(
    case: Filtered, labels: Sequence[str], block: np.ndarray, names: Wanted, level: float, bands: Bands
) -> xr.Dataset:
    import xarray as xr

    coordinates = {"given": ["filtered", "smoothed"][: len(block)], "statistic": list(STATISTICS), "time": case.grid}
    structure = case.trial.structure
    data = {
        name: (("given", "statistic", "time"), block[..., k], unit_and_description(structure, names, name))
        for k, name in enumerate(labels)
    }
    about = {"experiment": case.name, "level": level, **left_out(structure, names, data)}
    return with_kind(xr.Dataset(data, coordinates, about), bands)


def predictions(
    fit: Fitted, experiment: Experiment | str | None, horizon: Horizon, case_of: CaseOf, level: float = 0.95
) -> xr.Dataset:
    """Return every variable, quantity and output ``horizon`` after the last data used, with standard deviations and
    bands.

    Outputs are as they would be measured: their standard deviations contain the measurement noise. At horizon ∞ bands
    of nonlinear models are quantiles of realizations (``simulated_bands``).
    """
    return predictor(fit, experiment, horizon, case_of, level)(fit.estimate.theta)


def predictor(
    fit: Fitted, experiment: Experiment | str | None, horizon: Horizon, case_of: CaseOf, level: float = 0.95
) -> Callable[[np.ndarray], xr.Dataset]:
    """Return the same as a function of the unknowns, on steps that do not change with them."""
    _width(level)
    case = _case(fit, experiment, case_of)
    last_used(horizon, case.grid, clock_of(case.experiment))
    _, steps = own_theta_and_steps(case, fit.estimate.theta)
    return lambda theta: _predicted(fit, case, case.own(theta), steps, horizon, level)


def _predicted(
    fit: Fitted, case: Filtered, theta: np.ndarray, steps: Discretisation, horizon: Horizon, level: float
) -> xr.Dataset:
    import xarray as xr

    runner = case.runner
    at, filter = runner.posed(theta, False), runner.filter_on(steps, theta)
    quantities = Quantities(filter.model)
    if isinstance(horizon, float) and not filter.is_exact:
        nx = filter.model.nx  # disturbances begin in their stationary law
        P0 = runner.start_covariance(theta, steps)[:nx, :nx]
        block = simulated_bands(fit, case, theta, P0, list(quantities.rows), level)
    else:
        origins = last_used(horizon, case.grid, clock_of(case.experiment))
        known, z = filter.require_ahead().known(at, origins)
        _, u = filter.at_samples(filter.cells(at.q))
        states = StateMoments(known.x, known.P, known.D)
        block = quantities.statistics(case.grid, states, z, u, at.q, _width(level), noisy=True)
    coordinates = {"statistic": list(STATISTICS), "time": case.grid}
    structure = filter.model.structure
    data = {
        name: (("statistic", "time"), block[..., k], unit_and_description(structure, None, name))
        for k, name in enumerate(quantities.rows)
    }
    about = {"experiment": case.name, "level": level, "horizon": _kept(horizon)}
    return with_kind(xr.Dataset(data, coordinates, about), "noise")


def _kept(horizon: Horizon) -> float | str:
    """Return a horizon as an attribute: a number of samples, or a duration as text."""
    return float(horizon) if isinstance(horizon, int | float | np.integer) else str(horizon)


def _width(level: float) -> float:
    from scipy.stats import norm

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    return float(norm.ppf(0.5 + level / 2))


def _case(fit: Fitted, experiment: Experiment | str | None, case_of: CaseOf) -> ExperimentTerm:
    """Return the term of one of the fit's own experiments, by name or content; of a new experiment a new one."""
    if experiment is None:
        return fit.estimate.cases[0]
    found = fit.find_experiment(experiment)
    if any(found is own for own in fit.experiments):
        return next(case for case in fit.estimate.cases if case.name == found.name)
    found.check(fit.initial_model)
    named = found if found.name else found.replace(name="new experiment")
    made = case_of(fit.initial_model, named, fit.estimate.unknowns, [k for k in UNKNOWN_KINDS if k != "start"])
    _refuse_unknown_levels(fit, made)
    return made


def _refuse_unknown_levels(fit: Fitted, case: ExperimentTerm) -> None:
    """Refuse a new experiment whose outputs have no noise level: it cannot be filtered."""
    from grisaille.structure.structure_cache import structure_of

    flat = structure_of(fit.initial_model).model
    known = {u.target for u in fit.estimate.unknowns if u.kind == "noise"}
    for output in case.outputs:
        if flat.outputs[output].noise is None and output not in known:
            raise EstimationError(
                f"The noise of '{output}' was not estimated, so experiment '{case.name}' cannot be used."
            )
