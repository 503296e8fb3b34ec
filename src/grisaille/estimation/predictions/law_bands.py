"""Bands of outputs that are measured by laws: quantiles of the law instead of multiples of a standard deviation.

    bands="noise"    quantiles of p(y; η(θ̂)), η the location and the other numbers of the law
    bands="all"      quantiles of the mixture (1/M) Σ_d p(y; η(θ_d)),   θ_d ~ N(θ̂, Σ)

θ_d are drawn in the coordinates in which unknowns are searched, with the mean and the covariance of the estimates
exactly. Locations and variables move with θ_d to first order, by their exact sensitivities, and not beyond the support
of the law; other numbers of the law are evaluated at θ_d. ``mean`` and ``std`` are those of the law, or of the mixture;
the standard deviation is infinite where the law has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.estimation.measurements.output_law import OutputLaw
from grisaille.estimation.uncertainty import root_of_covariance
from grisaille.laws import Law
from grisaille.laws.random import uniforms
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.distributions import innermost
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.experiment.experiment import Experiment

DRAWS, SEED = 100, 0
"""Of the unknowns, always the same."""
BAND_BISECTIONS = 14
"""Of the range of quantiles among the draws: the end of a band is known to 1e-4 of it."""
MAX_BISECTIONS = 64
MIN_SUPPORT_DISTANCE = 1e-3
"""Of the way from the prediction to the end of the support: how near to this end a location moves."""


@dataclass(frozen=True, eq=False)
class ParameterDraws:
    """Values of unknowns.

    moved : (draws, unknowns) θ_d − θ̂
    parameters : (draws, parameters of the model)
    """

    moved: np.ndarray
    parameters: np.ndarray


def law_bands(
    fit: Fitted, experiment: Experiment, path: xr.Dataset, slopes: Mapping[str, np.ndarray], level: float
) -> dict[str, np.ndarray]:
    """Return (4, times) of each output with a law: mean, standard deviation, and both ends of the band.

    slopes : derivatives of trajectories by the unknowns, (times, unknowns); empty where estimates count as exact
    """
    flat = structure_of(fit.settled_model).model
    named = [n for n, o in flat.outputs.items() if o.distribution is not None and n in path]
    if not named:
        return {}
    draws = _draws(fit, experiment, flat) if slopes else _at_estimates(fit, experiment, flat)
    tails = (1 - level) / 2, (1 + level) / 2
    found = {}
    for name in named:
        law: OutputLaw = flat.cached_value(("law", name), partial(OutputLaw.of, flat, name))
        mixture = _filled(law, path, slopes, draws)
        shape = len(draws.parameters), path.sizes["time"]
        mean, std = (np.broadcast_to(np.ravel(v), (shape[0] * shape[1],)) for v in (mixture.mean, mixture.deviation))
        mean, variance = mean.reshape(shape), std.reshape(shape) ** 2
        ends = [mixture_quantile(mixture, shape, p) for p in tails]
        total = np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
        found[name] = np.stack([mean.mean(axis=0), total, *ends])
    return found


def mixture_quantile(law: Law, shape: tuple[int, int], p: float) -> np.ndarray:
    """Return the values (times,) below which a mixture of laws has the probability p; of counts whole numbers.

    law : filled for draws × times
    shape : draws and times
    """
    each = np.broadcast_to(law.quantile(p), (shape[0] * shape[1],)).reshape(shape)
    low, high = each.min(axis=0), each.max(axis=0)
    if shape[0] == 1:
        return np.asarray(high)
    for _ in range(MAX_BISECTIONS if law.is_discrete else BAND_BISECTIONS):
        if not (high > low).any():
            break
        middle = np.floor((low + high) / 2) if law.is_discrete else (low + high) / 2
        below = np.asarray(law.distribution(np.tile(middle, shape[0]))).reshape(shape).mean(axis=0) < p
        low = np.where(below, np.minimum(middle + 1, high) if law.is_discrete else middle, low)
        high = np.where(below, high, middle)
    return np.asarray(high)


def _filled(law: OutputLaw, path: xr.Dataset, slopes: Mapping[str, np.ndarray], draws: ParameterDraws) -> Law:
    """Return the law at all draws × times."""
    count, times = len(draws.parameters), path["time"].values

    def moved(name: str) -> np.ndarray:
        value = np.broadcast_to(path[name].values, (count, len(times)))
        return value + draws.moved @ slopes[name].T if slopes else value

    p, t = np.repeat(draws.parameters, len(times), axis=0).T, np.tile(times, count)
    numbers = {
        at: formula.values(p, np.stack([moved(n).ravel() for n in formula.needs], axis=1) if formula.needs else
                           np.zeros((len(t), 0)), t)
        for at, formula in law.formulas.items()
    }  # fmt: skip
    here = np.tile(path[law.output].values, count)
    filled = law.filled(here, numbers)
    return law.filled(_inside(filled, here, moved(law.output).ravel()), numbers) if slopes else filled


def _inside(law: Law, here: np.ndarray, location: np.ndarray) -> np.ndarray:
    """Return locations that stay between the ends of the support."""
    inner: Any = innermost(law)
    low, high = (np.broadcast_to(end, here.shape) for end in inner.support)
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(low), low + MIN_SUPPORT_DISTANCE * (here - low), low)
        high = np.where(np.isfinite(high), high - MIN_SUPPORT_DISTANCE * (high - here), high)
    return np.asarray(np.clip(location, low, high))


def _at_estimates(fit: Fitted, experiment: Experiment, flat: FlatModel) -> ParameterDraws:
    return ParameterDraws(np.zeros((1, len(fit.names))), _parameters(fit, experiment, flat, fit.estimate.theta)[None])


def _draws(fit: Fitted, experiment: Experiment, flat: FlatModel) -> ParameterDraws:
    e, name = fit.estimate, experiment.name or ""
    uncertain = [k for k, u in enumerate(e.unknowns) if u.applies_to(name) and e.free[k] and e.covariance[k, k] > 0]
    if not uncertain:
        return _at_estimates(fit, experiment, flat)
    slope = np.array([e.unknowns[k].slope(float(e.theta[k])) for k in uncertain])
    root = root_of_covariance(e.covariance[np.ix_(uncertain, uncertain)] / np.outer(slope, slope))
    theta = np.repeat(e.theta[None], DRAWS, axis=0)
    steps = _standard(DRAWS, root.shape[1]) @ root.T
    for column, k in enumerate(uncertain):
        u = e.unknowns[k]
        begin = u.inner(float(e.theta[k]))
        theta[:, k] = np.clip([u.outer(begin + s) for s in steps[:, column]], u.lower, u.upper)
    return ParameterDraws(theta - e.theta, np.array([_parameters(fit, experiment, flat, one) for one in theta]))


def _standard(count: int, dimension: int) -> np.ndarray:
    """Return (count, dimension) standard normal numbers in pairs of opposite sign, whose covariance is the identity."""
    from scipy.special import ndtri

    half = ndtri(np.stack([uniforms(count // 2, SEED, f"bands {k}") for k in range(dimension)], axis=1))
    if count // 2 > dimension:
        values, axes = np.linalg.eigh(half.T @ half / len(half))
        half = half @ (axes / np.sqrt(values)) @ axes.T
    return np.concatenate([half, -half])


def _parameters(fit: Fitted, experiment: Experiment, flat: FlatModel, theta: np.ndarray) -> np.ndarray:
    name = experiment.name or ""
    moved = {
        u.target: float(v)
        for u, v in zip(fit.estimate.unknowns, theta, strict=True)
        if u.kind == "parameter" and u.applies_to(name)
    }
    found = evaluate_parameters(flat, {**experiment.constants, **moved})
    known = dict(zip(found.names, found.values.tolist(), strict=True))
    return np.array([known[n] for n in flat.parameters])
