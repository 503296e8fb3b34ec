"""Pictures of assessments: profiles, cost surfaces, residual diagnoses, sensitivities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from grisaille.drawing import abscissae, label_time, labelled, panels
from grisaille.errors import EstimationError
from grisaille.experiment.times.dating import clock_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.assessment.curve import Curve
    from grisaille.assessment.diagnosis import Diagnosis, ResidualSeries
    from grisaille.assessment.profile import Profile
    from grisaille.assessment.sensitivity import Sensitivity
    from grisaille.assessment.surface import CostSurface
    from grisaille.drawing import Canvas


def draw_profile(profile: Profile, ax: Canvas | None) -> Figure:
    """Draw the deviance along the unknown, its threshold, and the parabola of the standard error."""
    figure, ((axes,),) = panels(ax, 1, size=(6, 4))
    table = profile.table
    v = np.linspace(float(table["value"].min()), float(table["value"].max()), 300)
    axes.plot(table["value"], table["deviance"], ".", color="C0")
    axes.plot(v, np.interp(v, table["value"], table["root"]) ** 2, color="C0", label="profile")
    axes.axhline(profile.threshold, color="C3", linewidth=1, label=f"{100 * profile.level:g} %")
    if profile.std_error > 0:
        axes.plot(v, ((v - profile.estimate) / profile.std_error) ** 2, ":", color="0.5", label="by standard error")
    for limit in profile.interval:
        if limit is not None:
            axes.axvline(limit, color="C3", linewidth=0.8, linestyle="--")
    axes.plot([profile.estimate], [0.0], "o", color="C0")
    top = max(float(table["deviance"].max()), profile.threshold)
    axes.set_ylim(-0.03 * top, 1.1 * top)
    axes.set_xlabel(labelled(profile.name, profile.unit))
    axes.set_ylabel("deviance (−2 log L above its minimum)")
    axes.set_title(profile.shape, fontsize="medium")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def draw_curve(curve: Curve, ax: Canvas | None) -> Figure:
    """Draw a curve with its band, knots as dots; a surface as colours."""
    figure, ((axes,),) = panels(ax, 1, size=(6, 4))
    axes.set_xlabel(labelled(curve.arguments[0], curve.units[0]))
    if len(curve.arguments) == 2:
        first, second = (np.array(k[:n]) for k, n in zip(curve.source.knots, curve.source.shape, strict=True))
        heights = curve.table["value"].to_numpy().reshape(curve.source.shape)
        shown = axes.pcolormesh(first, second, heights.T, shading="nearest", cmap="Greys_r")
        figure.colorbar(shown, ax=axes, label=labelled(curve.name, curve.unit))
        axes.set_ylabel(labelled(curve.arguments[1], curve.units[1]))
        return figure
    line = curve.drawn()
    x, finite = line.iloc[:, 0], np.isfinite(line["std_error"])
    axes.fill_between(x, line["lower"], line["upper"], where=finite, color="C0", alpha=0.2, linewidth=0,
                      label=f"{100 * curve.level:g} % band")  # fmt: skip
    axes.plot(x, line["value"], color="C0", label=curve.name)
    axes.plot(curve.table["knot"], curve.table["value"], "o", color="C0", markersize=4)
    axes.set_ylabel(labelled(curve.name, curve.unit))
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def draw_surface(surface: CostSurface, ax: Canvas | None) -> Figure:
    """Draw contours of √deviance, the confidence region, and the ellipse of the linearised model."""
    figure, ((axes,),) = panels(ax, 1, size=(6.4, 5))
    a, b = surface.names
    x, y, deviance = surface.data[a].values, surface.data[b].values, surface.data["deviance"].values
    height = np.ma.masked_invalid(np.sqrt(np.clip(deviance, 0.0, None)).T)
    if height.count() and float(np.ptp(height.compressed())) > 0:
        filled = axes.contourf(x, y, height, levels=24, cmap="Greys_r")
        figure.colorbar(filled, ax=axes, label="√deviance")
        if float(height.min()) < np.sqrt(surface.threshold) < float(height.max()):
            axes.contour(x, y, height, levels=[np.sqrt(surface.threshold)], colors="C3", linewidths=1.2)
            axes.plot([], [], color="C3", linewidth=1.2, label=f"{100 * surface.level:g} % region")
    axes.plot(*surface.ellipse.T, "--", color="C0", linewidth=1.2, label=f"{100 * surface.level:g} % ellipse")
    axes.plot(*surface.estimate, "+", color="C0", markersize=10, label="estimate")
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.set_xlabel(labelled(a, surface.units[0]))
    axes.set_ylabel(labelled(b, surface.units[1]))
    axes.legend(fontsize="small")
    return figure


def draw_diagnosis(diagnosis: Diagnosis, ax: Canvas | None) -> Figure:
    """Draw a row per series: residuals, autocorrelation, cumulated periodogram, normal quantiles."""
    rows = len(diagnosis.series)
    figure, grid = panels(ax, rows, 4, size=(14, 2.6 * rows + 0.6))
    for axes, series in zip(grid, diagnosis.series, strict=True):
        _draw_series(axes[0], series)
        _draw_autocorrelation(axes[1], series, diagnosis.level)
        _draw_periodogram(axes[2], series, diagnosis.level)
        _draw_quantiles(axes[3], series)
    for panel, title in zip(grid[0], ("residuals", "autocorrelation", "periodogram", "quantiles"), strict=True):
        panel.set_title(title, fontsize="medium")
    return figure


def _draw_series(axes: Axes, series: ResidualSeries) -> None:
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    times = abscissae(series.clock, series.times)
    axes.plot(times, series.residuals, ".", color="C0", markersize=3)
    axes.plot(times[series.outliers], series.residuals[series.outliers], "o", color="C3", fillstyle="none")
    axes.set_ylabel(f"{series.output}, {series.experiment}")
    label_time(axes, series.clock)


def _draw_autocorrelation(axes: Axes, series: ResidualSeries, level: float) -> None:
    from scipy.stats import norm

    lags = np.arange(1, len(series.autocorrelation) + 1)
    band = float(norm.isf(level / 2)) / np.sqrt(max(len(series.residuals), 1))
    axes.axhspan(-band, band, color="0.85", linewidth=0)
    axes.vlines(lags, 0.0, series.autocorrelation, color="C0")
    for k, (name, correlation) in enumerate(series.inputs.items()):
        first = 1 if series.is_static else 0
        axes.plot(np.arange(first, first + len(correlation)), correlation, ".", color=f"C{k + 1}", label=f"with {name}")
    if series.inputs:
        axes.legend(fontsize="small")
    axes.set_xlabel("lag [samples]")


def _draw_periodogram(axes: Axes, series: ResidualSeries, level: float) -> None:
    from scipy.stats import kstwo

    found = series.periodogram
    if len(found.cumulated) < 2:
        return
    band = float(kstwo.isf(level, len(found.cumulated) - 1))
    axes.fill_between(found.frequency, found.uniform - band, found.uniform + band, color="0.85", linewidth=0)
    axes.plot(found.frequency, found.cumulated, color="C0")
    axes.set_ylim(0, 1)
    axes.set_xlabel("frequency [1/sample]")


def _draw_quantiles(axes: Axes, series: ResidualSeries) -> None:
    from scipy.stats import norm

    n = len(series.residuals)
    expected = norm.ppf((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    axes.plot(expected, expected, color="0.6", linewidth=0.8)
    axes.plot(expected, np.sort(series.residuals), ".", color="C0", markersize=3)
    axes.set_xlabel("normal quantile")


def draw_sensitivity(sensitivity: Sensitivity, parameters: Iterable[str] | None, ax: Canvas | None) -> Figure:
    """Draw a panel per output with a line per parameter, the most influential first."""
    names = list(sensitivity.parameters if parameters is None else parameters)
    for name in names:
        if name not in sensitivity.parameters:
            raise EstimationError(
                f"There is no sensitivity to '{name}'; there are {', '.join(sensitivity.parameters)}."
            )
    data = sensitivity.data
    title = f"sensitivity of {sensitivity.model_name}"
    figure, column = panels(
        ax, len(data.data_vars), size=(8, 2.6 * len(data.data_vars) + 0.6), title=title, sharex=True
    )
    column = column[:, 0]
    style = {"marker": ".", "linestyle": "none"} if data.attrs["static"] else {"linewidth": 1.2}
    clock = None if data.attrs["static"] else clock_in(data)
    for axes, (output, lines) in zip(column, data.data_vars.items(), strict=True):
        for name in names:
            axes.plot(abscissae(clock, data["time"].values), lines.sel(parameter=name), label=name, **style)
        axes.set_ylabel(labelled(f"∂{output}/∂log p", lines.attrs["units"]))
        axes.grid(alpha=0.3)
        label_time(axes, clock, name=axes is column[-1])
    column[0].legend(fontsize="small", ncols=min(len(names), 6))
    return figure
