"""Posterior predictive distributions: what would be measured, over the draws of the unknowns.

    p(y | data) = (1/D) Σ_d p(y | θ_d),      θ_d draws from the posterior

For output error p(y | θ) is the simulation with the noise or the law of the output around it; for collocation, which
follows what disturbances did, a realization of them is drawn for each θ_d. For filters it is normal with the mean and
the variance that the filter gives for the horizon, its state included. Bands are quantiles of the
mixture, found by bisection; variables that are not measured have the spread of their simulations alone.

Not in the bands: starts of a new record that were found from its first samples, and what the model leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.bound_experiment import known_starts
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.predictions.band_kinds import with_kind
from grisaille.estimation.predictions.horizons import Horizon, check_horizon
from grisaille.estimation.predictions.law_bands import mixture_quantile
from grisaille.estimation.quantities import STATISTICS
from grisaille.experiment.times.dating import clock_of, with_dates
from grisaille.model.flat import FlatModel
from grisaille.simulation.assertions import without_assertions
from grisaille.simulation.measurement_noise import evaluate_along, law_along
from grisaille.simulation.simulate import simulate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of
from grisaille.study.seeds import run_seed

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.starts.record_starts import ContinuedRecord
    from grisaille.experiment.experiment import Experiment
    from grisaille.posteriors.posterior import SampledPosterior

BISECTIONS = 40
"""Of the range between the outermost quantiles of single draws."""


def posterior_predictive(
    posterior: SampledPosterior, experiment: Experiment | str | None, horizon: Horizon | None, draws: int, level: float
) -> xr.Dataset:
    """Return mean, standard deviation and band of every variable, quantity and output over time."""
    import xarray as xr

    fit = posterior.fit
    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    begun = fit.begun(experiment)
    if horizon is not None:
        check_horizon(horizon, clock_of(begun.experiment))
    chosen = spread_evenly(posterior._flat, draws)
    fits = [with_values(fit, dict(zip(posterior.names, row.tolist(), strict=True))) for row in chosen]
    if fit.method.ahead is not None:
        on = (begun if horizon is not None else replace(begun, carried=None)).following(fit)
        where, first, blocks = on.experiment, *_filtered(fits, on, np.inf if horizon is None else horizon, level)
    else:
        if horizon is not None and not (isinstance(horizon, float) and np.isposinf(horizon)):
            raise missing_ability_error(fit.method, "ahead")
        where, first, blocks = begun.experiment, *_simulated(fits, begun.experiment, level)
    data: dict[str, Any] = {n: (("statistic", "time"), block, first[n].attrs) for n, block in blocks.items()}
    about = {"experiment": where.name or "", "level": level, "draws": len(fits), "start": begun.how}
    found = xr.Dataset(data, {"statistic": list(STATISTICS), "time": first["time"]}, about)
    return with_dates(with_kind(found, "all"), where)


def _filtered(
    fits: Sequence[Fitted], on: ContinuedRecord, horizon: Horizon, level: float
) -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """Return one of the predictions of a filter, and the mixture of all of them, (4, times) by name."""
    ahead = on.method.ahead
    assert ahead is not None
    paths = [ahead.predict(f, on.experiment, horizon) for f in fits]
    moments = {str(n): np.stack([p[n].values for p in paths]) for n in paths[0].data_vars}
    return paths[0], {n: _of_normals(m, level) for n, m in moments.items()}


def _simulated(
    fits: Sequence[Fitted], experiment: Experiment, level: float
) -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """Return one of the simulations of an experiment, and the mixture of all of them, (4, times) by name.

    Disturbances are drawn where the method follows what they do; where it holds them at zero, so do its predictions.
    """
    method = fits[0].method
    follows = method.states is not None and method.states.follow_data
    is_disturbed = follows and bool(structure_of(fits[0].initial_model).model.disturbances)
    paths = [_disturbed(f, experiment, d) if is_disturbed else f.simulated(experiment) for d, f in enumerate(fits)]
    names = [str(n) for n in paths[0].data_vars if paths[0][n].dims == ("time",)]
    return paths[0], {n: _measured(fits, experiment, paths, n, level) for n in names}


def _disturbed(fit: Fitted, experiment: Experiment, number: int) -> xr.Dataset:
    """Return a simulation with one realization of the disturbances."""
    signals, hold = experiment.input_signals()
    values, starts = fit._values_for(experiment.name or "")
    scales = {f"scale({u.target})": v for u, v in fit._pairs() if u.kind == "scale"}
    path = simulate(
        without_assertions(fit.initial_model), experiment.grid(), signals,
        {**experiment.constants, **values, **scales}, {**known_starts(experiment), **starts}, hold=hold,
        realizations=1, seed=run_seed(0, number),
    )  # fmt: skip
    return path.isel(realization=0, drop=True)


def spread_evenly(flat: np.ndarray, count: int) -> np.ndarray:
    """Return so many rows, spread evenly over all of them."""
    return np.asarray(flat[np.linspace(0, len(flat) - 1, min(count, len(flat))).round().astype(int)])


def with_values(fit: Fitted, values: dict[str, float]) -> Fitted:
    """Return a fit whose estimates are other values, levels of noise among them."""
    e = fit.estimate
    theta = np.array([values[n] for n in fit.names])
    noise = {o: values.get(f"noise({o})", v) for o, v in e.noise.items()}
    made = Fitted(fit.initial_model, fit.experiments, fit.method, replace(e, theta=theta, noise=noise), fit.why)
    made.kept = fit.kept
    return made


def _measured(
    fits: Sequence[Fitted], experiment: Experiment, paths: Sequence[xr.Dataset], name: str, level: float
) -> np.ndarray:
    """Return (4, times) of a variable, or of an output as it would be measured."""
    locations = np.stack([p[name].values for p in paths])
    flat = structure_of(fits[0].initial_model).model
    output = flat.outputs.get(name)
    if output is not None and output.distribution is not None:
        return _of_laws(fits, experiment, paths, name, level)
    deviations = np.zeros_like(locations)
    if output is not None:
        for d, (fit, path) in enumerate(zip(fits, paths, strict=True)):
            deviations[d] = noise_along(fit, experiment, path, name, flat)
    return _of_normals(np.stack([locations, deviations], axis=1), level)


def noise_along(fit: Fitted, experiment: Experiment, path: xr.Dataset, name: str, flat: FlatModel) -> np.ndarray:
    """Return the standard deviation of the noise of an output along a simulation; zero where it has none."""
    known = {**fit.estimate.noise, **{u.target: v for u, v in fit._pairs() if u.kind == "noise"}}
    level, formula = known.get(name), flat.outputs[name].noise
    if level is not None:
        return np.full(path.sizes["time"], level)
    if formula is None:
        return np.zeros(path.sizes["time"])
    return np.asarray(evaluate_along(path, formula, _parameters(fit, experiment, flat)))


def _parameters(fit: Fitted, experiment: Experiment, flat: FlatModel) -> dict[str, float]:
    values, _ = fit._values_for(experiment.name or "")
    found = evaluate_parameters(flat, {**experiment.constants, **values})
    return dict(zip(found.names, found.values.tolist(), strict=True))


def _of_laws(
    fits: Sequence[Fitted], experiment: Experiment, paths: Sequence[xr.Dataset], name: str, level: float
) -> np.ndarray:
    """Return (4, times) of a mixture of the laws of an output."""
    flat = structure_of(fits[0].initial_model).model
    laws = [
        law_along(path, flat, name, _parameters(fit, experiment, flat)) for fit, path in zip(fits, paths, strict=True)
    ]
    times = paths[0].sizes["time"]
    mean, std = (
        np.stack([np.broadcast_to(np.ravel(getattr(law, what)), times) for law in laws])
        for what in ("mean", "deviation")
    )
    mixture: Any = _LawsInARow(laws, times)
    ends = [mixture_quantile(mixture, (len(laws), times), p) for p in ((1 - level) / 2, (1 + level) / 2)]
    return np.stack([mean.mean(axis=0), np.sqrt((std**2).mean(axis=0) + mean.var(axis=0)), *ends])


class _LawsInARow:
    """Laws along trajectories as one law of draws × times."""

    def __init__(self, laws: Sequence[Any], times: int) -> None:
        self.laws, self.times, self.is_discrete = laws, times, laws[0].is_discrete

    def quantile(self, p: float) -> np.ndarray:
        """Return that of every draw and time."""
        return np.concatenate([np.broadcast_to(np.ravel(law.quantile(p)), self.times) for law in self.laws])

    def distribution(self, values: np.ndarray) -> np.ndarray:
        """Return the probability of what is not larger, of every draw and time."""
        rows = values.reshape(len(self.laws), self.times)
        return np.concatenate([np.ravel(law.distribution(row)) for law, row in zip(self.laws, rows, strict=True)])


def _of_normals(moments: np.ndarray, level: float) -> np.ndarray:
    """Return (4, times) of a mixture of normal laws.

    moments : (draws, 2 or more, times), means and standard deviations first
    """
    from scipy.special import ndtr, ndtri

    mean, std = moments[:, 0], moments[:, 1]
    total = np.sqrt((std**2).mean(axis=0) + mean.var(axis=0))
    ends = []
    if not std.any():
        ends = list(np.quantile(mean, [(1 - level) / 2, (1 + level) / 2], axis=0))
        return np.stack([mean.mean(axis=0), total, *ends])
    spread = np.maximum(std, 1e-12 * np.maximum(np.abs(mean), total) + 1e-300)
    for p in ((1 - level) / 2, (1 + level) / 2):
        each = mean + ndtri(p) * spread
        low, high = each.min(axis=0), each.max(axis=0)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            below = ndtr((middle - mean) / spread).mean(axis=0) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append((low + high) / 2)
    return np.stack([mean.mean(axis=0), total, *ends])
