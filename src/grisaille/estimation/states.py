"""``fit.states()``: what the data say about every variable at every sample, with bands.

A quantity y = h(t, X, u, q) has the mean h(X̂) and the variance H P Hᵀ, H = ∂h/∂X at X̂: exact where h is linear.
Filtered values know the data up to their instant, smoothed ones all data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.fit import Fit, fit_method
from grisaille.filtering.runner import FilterRunner
from grisaille.filtering.stochastic import StochasticModel
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    import xarray as xr


@fit_method
def states(fit: Fit, experiment: Any = None, names: Iterable[str] | None = None, level: float = 0.95) -> xr.Dataset:
    """Filtered and smoothed values of model variables and outputs at the sample times.

    experiment : its name or the experiment itself; the first by default
    names : which quantities; by default every variable and output of finite variance
    level : of the two-sided normal band

    Every quantity has the dimensions ``given`` ("filtered", "smoothed"), ``statistic`` ("mean", "std", "lower",
    "upper") and ``time``. The uncertainty of the estimated parameters is not in the bands.
    """
    import xarray as xr
    from scipy.stats import norm

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    case = _case(fit, experiment)
    runner = case.runner
    if not isinstance(runner, FilterRunner):
        raise EstimationError(
            f"{type(fit.method).__name__} does not estimate states; use gr.KalmanML(), or simulate by fit.predict()."
        )
    values = {
        u.target if u.kind == "parameter" else f"{u.kind}({u.target})": float(fit.estimate.theta[k])
        for k, u in enumerate(fit.estimate.unknowns)
        if k in case.unknowns
    }
    filter, q, filtered, smoothed = runner.states(values)
    cells = filter.cells(q)
    at = np.flatnonzero(cells.sample_at >= 0)
    chosen = _chosen(filter.model, names)
    moments = ((filtered.x_filt[at], filtered.P_filt[at]), (smoothed[0][at], smoothed[1][at]))
    _, u = filter.at_samples(cells)
    parts = [
        _statistics(filter.model, chosen, case.grid, x, P, u, q, float(norm.ppf(0.5 + level / 2))) for x, P in moments
    ]
    block = np.stack(parts)
    coordinates = {"given": ["filtered", "smoothed"], "statistic": ["mean", "std", "lower", "upper"], "time": case.grid}
    data = {name: (("given", "statistic", "time"), block[..., k]) for k, name in enumerate(chosen)}
    return xr.Dataset(data, coordinates, {"experiment": case.name, "level": level})


def _case(fit: Fit, experiment: Any) -> Any:
    wanted = fit.estimate.cases[0].name if experiment is None else getattr(experiment, "name", experiment)
    for case in fit.estimate.cases:
        if case.name == wanted:
            return case
    raise EstimationError(
        f"No experiment of this fit is called '{wanted}'; there are {', '.join(c.name for c in fit.estimate.cases)}."
    )


def _chosen(model: StochasticModel, names: Iterable[str] | None) -> list[str]:
    flat = model.structure.model
    if names is None:
        return [
            n for n in model.observed_names if n not in model.infinite and (n in flat.variables or n in flat.outputs)
        ]
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in model.observed_names:
            raise EstimationError(f"{flat.name} has no quantity '{name}'. {suggestion(name, model.observed_names)}")
        if name in model.infinite:
            raise EstimationError(
                f"'{name}' contains white noise, so its variance is infinite and no band holds it; pass it through a "
                f"filter in the model, or give its disturbance a spectrum such as gr.spectra.lowpass(bandwidth=…)."
            )
    return listed


def _statistics(
    model: StochasticModel,
    names: list[str],
    t: np.ndarray,
    x: np.ndarray,
    P: np.ndarray,
    u: np.ndarray,
    q: np.ndarray,
    width: float,
) -> np.ndarray:
    """(4, times, names)"""
    N = len(t)
    rows = ca.densify(ca.vertcat(*(model.observed[model.observed_names.index(n)] for n in names)))
    function = ca.Function("seen", model.arguments, [rows, ca.densify(ca.jacobian(rows, model.X))])
    value, slope = function(t[None, :], x.T, u.T, np.repeat(q[:, None], N, axis=1))
    mean = np.array(value.full()).reshape(len(names), N).T
    H = np.array(slope.full()).reshape(len(names), N, model.n).transpose(1, 0, 2)
    std = np.sqrt(np.clip(np.einsum("tij,tjk,tik->ti", H, P, H), 0.0, None))
    return np.stack([mean, std, mean - width * std, mean + width * std])
