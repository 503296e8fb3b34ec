"""``fit.plot()``: measured and predicted outputs, with the residuals below, a column per experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.drawing import abscissae, label_time, labelled, panels
from grisaille.errors import EstimationError
from grisaille.estimation.estimator import SIMULATION
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import laws_of
from grisaille.estimation.predictions.band_kinds import band_label
from grisaille.estimation.predictions.horizons import Horizon, horizon_text
from grisaille.experiment.times.clock import Clock
from grisaille.experiment.times.dating import clock_of
from grisaille.reporting.drawn_paths import break_at_gaps, drawn_path
from grisaille.reporting.labels import experiment_of, output_unit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

MAX_COLUMNS = 6


@dataclass(frozen=True)
class DrawnOutput:
    """The curves of one output: a path with its band, samples, and residuals with theirs; NaN where none is."""

    times: np.ndarray
    predicted: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sampled: np.ndarray
    measured: np.ndarray
    residuals: np.ndarray
    expected: np.ndarray
    """Twice the standard deviation of residuals, all along the path."""


def plot(
    fit: Fitted,
    experiments: str | Iterable[str] | None,
    outputs: str | Iterable[str] | None,
    ax: Canvas | None,
    horizon: Horizon | None = None,
    beside: Mapping[str, pd.DataFrame] = MappingProxyType({}),
) -> Figure:
    """Plot measured against predicted for each experiment and output, residuals below with twice the noise as a band.

    Of outputs with laws residuals are randomised quantile residuals, which are standard normal if the law holds.

    beside : other predictions of the same samples by their name, as tables of residuals; drawn as dashed lines
    """
    table = fit.residuals()
    runs = _chosen("experiment", experiments, list(dict.fromkeys(table["experiment"])))[:MAX_COLUMNS]
    names = _chosen("output", outputs, list(dict.fromkeys(table["output"])))
    found = {
        run: _as_fitted(fit, run, names, table) if horizon is None else _ahead(fit, run, names, table, horizon)
        for run in runs
    }
    far = "" if horizon is None else f", predicted {horizon_text(horizon)}"
    figure, grid = panels(
        ax, 2 * len(names), len(runs), size=(max(8.0, 4.0 * len(runs)), 3.2 * len(names) + 0.6),
        title=f"{fit.model_name}, fitted by {type(fit.method).__name__}{far}", sharex="col",
        gridspec_kw={"height_ratios": [3, 1] * len(names)},
    )  # fmt: skip
    for column, run in enumerate(runs):
        clock = clock_of(experiment_of(fit, run))
        for row, name in enumerate(names):
            above, below, unit = grid[2 * row, column], grid[2 * row + 1, column], output_unit(fit, run, name)
            _draw_output(above, found[run][name], clock, _labelled(fit) if horizon is None else "predicted")
            _draw_residuals(below, found[run][name], clock)
            for k, (label, other) in enumerate(beside.items()):
                mine = other[(other["experiment"] == run) & (other["output"] == name)].sort_values("time")
                at, values = break_at_gaps(mine["time"].to_numpy(), mine["predicted"].to_numpy())
                above.plot(abscissae(clock, at), values, "--", color=f"C{2 + k}", linewidth=1.2, label=label)
            above.set_ylabel(labelled(name, unit))
            by_law = horizon is None and name in laws_of(fit.estimate)
            below.set_ylabel("quantile residual" if by_law else labelled("residual", unit), fontsize="small")
            for axes in (above, below):
                label_time(axes, clock, name=axes is grid[-1, column])
        grid[0, column].set_title(run, fontsize="medium")
    grid[0, 0].legend(fontsize="small")
    figure.align_ylabels(grid[:, 0])
    return figure


def _chosen(what: str, wanted: str | Iterable[str] | None, known: Sequence[str]) -> list[str]:
    names = list(known) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise EstimationError(f"The fit has no {what} '{name}'; it has {', '.join(known)}.")
    return names or list(known)


def _as_fitted(fit: Fitted, run: str, names: Sequence[str], table: xr.Dataset) -> dict[str, DrawnOutput]:
    """Return predictions as the criterion has them; bands in gaps, where they widen."""
    standardized, laws = fit.residuals(standardized=True)["residual"], laws_of(fit.estimate)
    found = {}
    for name in names:
        mine = table[(table["experiment"] == run) & (table["output"] == name)]
        path = drawn_path(fit, run, name, mine.sort_values("time", kind="stable"))
        e = mine["residual"].to_numpy()
        if name in laws:
            unknown, two = np.full(len(path.times), np.nan), np.full(len(path.times), 2.0)
            r = standardized[mine.index].to_numpy()
            t, y = mine["time"].to_numpy(), mine["measured"].to_numpy()
            found[name] = DrawnOutput(path.times, path.predicted, unknown, unknown, t, y, r, two)
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(e / standardized[mine.index].to_numpy())
        usual = np.median(size) if len(size) and np.isfinite(size).all() else np.nan
        found[name] = DrawnOutput(
            path.times, path.predicted, path.predicted - 2 * path.spread, path.predicted + 2 * path.spread,
            mine["time"].to_numpy(), mine["measured"].to_numpy(), e, np.full(len(path.times), 2 * usual),
        )  # fmt: skip
    return found


def _ahead(fit: Fitted, run: str, names: Sequence[str], table: xr.Dataset, horizon: Horizon) -> dict[str, DrawnOutput]:
    """Return predictions over a horizon, with the bands that they have."""
    ahead = fit.predict(run, horizon)
    times, found = ahead["time"].to_numpy(), {}
    for name in names:
        mine = table[(table["experiment"] == run) & (table["output"] == name)]
        path = ahead[name]
        nothing = np.full(len(times), np.nan)
        if "statistic" in path.dims:
            mean, std, lower, upper = (path.sel(statistic=s).to_numpy() for s in ("mean", "std", "lower", "upper"))
        else:
            mean, std, lower, upper = path.to_numpy(), nothing, nothing, nothing
        t, y = mine["time"].to_numpy(), mine["measured"].to_numpy()
        e = y - mean[np.searchsorted(times, t)]
        at, middle, low, high, band = break_at_gaps(times, mean, lower, upper, 2 * std)
        found[name] = DrawnOutput(at, middle, low, high, t, y, e, band)
    return found


def _labelled(fit: Fitted) -> str:
    """Of the predictions that were fitted."""
    return "predicted" if fit.method.predictions_are == SIMULATION else f"predicted, {fit.method.predictions_are}"


def _draw_output(axes: Any, shown: DrawnOutput, clock: Clock | None, label: str) -> None:
    times = abscissae(clock, shown.times)
    axes.plot(abscissae(clock, shown.sampled), shown.measured, ".", color="0.5", markersize=4, label="measured")
    axes.plot(times, shown.predicted, color="C0", linewidth=1.2, label=label)
    known = np.isfinite(shown.lower) & np.isfinite(shown.upper)
    if known.any():
        band = {"color": "C0", "alpha": 0.2, "linewidth": 0, "label": band_label(0.95, "noise")}
        axes.fill_between(times, shown.lower, shown.upper, where=known, **band)
    axes.grid(alpha=0.3)


def _draw_residuals(axes: Axes, shown: DrawnOutput, clock: Clock | None) -> None:
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.plot(abscissae(clock, shown.sampled), shown.residuals, ".", color="C1", markersize=3)
    band, known = shown.expected, np.isfinite(shown.expected)
    if len(band) and known.all() and np.ptp(band) == 0:
        axes.axhspan(-band[0], band[0], color="C1", alpha=0.12, linewidth=0)
    elif known.any():
        times = abscissae(clock, shown.times)
        axes.fill_between(times, -band, band, where=known, color="C1", alpha=0.12, linewidth=0)
    axes.grid(alpha=0.3)
