"""Trajectories as pictures: simulations, predictions with bands, and states as the data tell them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.drawing import abscissae, label_time, labelled, panels
from grisaille.errors import DataError
from grisaille.estimation.predictions.band_kinds import band_label
from grisaille.experiment.times.clock import Clock
from grisaille.experiment.times.dating import clock_in
from grisaille.reporting.drawn_paths import break_at_gaps

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PANELS = 16
DRAWN_FIRST = ("smoothed", "simulated", "filtered")
"""Of the values of ``given``, which one is drawn with its band."""


def trajectories(
    result: xr.Dataset,
    variables: str | Iterable[str] | None = None,
    *,
    ax: Axes | Iterable[Axes] | np.ndarray | None = None,
) -> Figure:
    """Return one panel per variable over time, in the order of declaration; sensitivities are left out unless named.

    variables : names; the first sixteen by default
    ax : axes to draw on instead of a new figure, one per variable
    """
    chosen = _chosen(result, variables)
    figure, column = panels(ax, len(chosen), size=(8, 1.6 * len(chosen) + 0.8), title=_title(result), sharex=True)
    clock = clock_in(result)
    times = result["time"].values
    for axes, name in zip(column[:, 0], chosen, strict=True):
        data = result[name]
        if "statistic" in data.dims:
            words = band_label(float(result.attrs.get("level", 0.95)), result.attrs.get("bands"))
            _draw_band(axes, clock, data, words)
        else:
            for label, line in _lines(data):
                axes.plot(abscissae(clock, times), line, linewidth=1.2, label=label)
        axes.set_ylabel(labelled(name, data.attrs.get("units", "")))
        axes.grid(alpha=0.3)
        label_time(axes, clock, name=axes is column[-1, 0])
        if len(axes.get_legend_handles_labels()[0]) > 1 and (axes is column[0, 0] or "statistic" not in data.dims):
            axes.legend(fontsize="small")
    figure.align_ylabels(list(column[:, 0]))
    return figure


def _title(result: xr.Dataset) -> str:
    told = result.attrs.get("model", ""), result.attrs.get("experiment", "")
    return ", ".join(str(word) for word in told if word)


def _chosen(result: xr.Dataset, variables: str | Iterable[str] | None) -> list[str]:
    if variables is not None:
        wanted = [variables] if isinstance(variables, str) else list(variables)
        missing = [v for v in wanted if v not in result.data_vars]
        if missing:
            raise DataError(
                f"The result has no variable {missing[0]!r}; it has {', '.join(map(str, result.data_vars))}."
            )
        return wanted
    drawn = {"time", "given", "statistic"}
    plain = [str(n) for n, data in result.data_vars.items() if "time" in data.dims and set(data.dims) <= drawn]
    if not plain:
        raise DataError("The result has nothing to draw over time; name variables, as in plot(['x']).")
    return plain[:MAX_PANELS]


def _draw_band(axes: Any, clock: Clock, data: xr.DataArray, words: str) -> None:
    """Draw the mean with its band; of filtered and smoothed values the band of the smoothed, and both means.

    words : what the legend calls the band

    Nothing is drawn across gaps between the instants: what lies there was not asked for.
    """
    given = [str(g) for g in np.atleast_1d(data["given"].values)] if "given" in data.dims else [""]
    best = next((g for g in DRAWN_FIRST if g in given), given[-1])
    for g in sorted(given, key=lambda g: g != best):
        part = data.sel(given=g) if g else data
        statistics = {str(s): part.sel(statistic=s).values for s in np.atleast_1d(part["statistic"].values)}
        t, *values = break_at_gaps(data["time"].values, *statistics.values())
        times, statistics = abscissae(clock, t), dict(zip(statistics, values, strict=True))
        color, width = ("C0", 1.2) if g == best else ("C1", 0.8)
        if g == best and {"lower", "upper"} <= set(statistics):
            low, high = statistics["lower"], statistics["upper"]
            known = np.isfinite(low) & np.isfinite(high)
            band = {"color": "C0", "alpha": 0.2, "linewidth": 0, "label": words}
            axes.fill_between(times, low, high, where=known, **band)
        line = statistics.get("mean", next(iter(statistics.values())))
        axes.plot(times, line, linewidth=width, color=color, label=g or "predicted", zorder=2 if g == best else 1.9)


def _lines(data: xr.DataArray) -> list[tuple[str, object]]:
    if data.ndim == 1:
        return [("", data.values)]
    other = next(d for d in data.dims if d != "time")
    return [(str(label), data.sel({other: label}).values) for label in data[other].values]
