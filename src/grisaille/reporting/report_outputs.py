"""Measured and predicted outputs of each experiment, the residuals below them, then the inputs; all zoom together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.drawing import labelled
from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import laws_of, leaves_residuals
from grisaille.estimation.quantities import estimated_names
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.markup import Html, joined, tag
from grisaille.reporting.calendar import calendar_of
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.drawn_paths import DrawnPath, drawn_path
from grisaille.reporting.labels import count, experiment_of, output_unit, quantity_unit, short_number, time_label
from grisaille.reporting.page import card, choices
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from grisaille.experiment.experiment import Experiment

PREDICTED = {
    "OutputError": "simulated",
    "SimulatedPEM": "mean of realizations",
    "KalmanML": "predicted from the samples before",
    "ParticleML": "predicted from the samples before",
    "Collocation": "smoothed",
}
MAX_SIMULATED = 12
"""Quantities beside the outputs that are drawn per experiment."""
MAX_CURVES = 3
"""Outputs of the first experiment that stand on the first tab."""
HINT = "Drag across a plot to zoom, double-click to see everything again; point at it to read values."


def first_curves(fit: Fitted, album: Album, runs: list[str]) -> Html:
    """Return measured and predicted curves of the first experiment, and where the others are."""
    residuals, standardized = fit.residuals(), fit.residuals(standardized=True)["residual"]
    run = runs[0]
    mine = residuals[residuals["experiment"] == run]
    compared = [chart for chart, _ in _output_charts(fit, run, mine, standardized, "summary")]
    calendar = calendar_of(experiment_of(fit, run))
    places = [album.place(replace(chart, calendar=calendar)) for chart in compared[:MAX_CURVES]]
    others = [
        *([count(len(compared) - MAX_CURVES, "more output")] if len(compared) > MAX_CURVES else []),
        *([count(len(runs) - 1, "more experiment")] if len(runs) > 1 else []),
    ]
    rest = f"{' and '.join(others)} in the tab Outputs." if others else ""
    return joined((*places, tag("p", rest, class_="muted hint") if rest else ""))


def outputs(fit: Fitted, album: Album, runs: list[str]) -> Html:
    """Return a part per experiment."""
    residuals, standardized = fit.residuals(), fit.residuals(standardized=True)["residual"]
    parts = []
    for k, run in enumerate(runs):
        mine = residuals[residuals["experiment"] == run]
        charts = [
            *chain.from_iterable(_output_charts(fit, run, mine, standardized, f"run{k}")),
            *_input_charts(fit, run, f"run{k}"), *_simulated_charts(fit, run, f"run{k}"),
        ]  # fmt: skip
        calendar = calendar_of(experiment_of(fit, run))
        parts.append((run, joined(album.place(replace(chart, calendar=calendar)) for chart in charts)))
    hint = tag("p", HINT, class_="muted hint")
    return card(hint, choices("Experiment", parts, "outputs"), title="Measured and predicted")


def _output_charts(
    fit: Fitted, run: str, mine: pd.DataFrame, standardized: pd.DataFrame, link: str
) -> Iterator[tuple[Chart, Chart]]:
    """For each output its curves and its residuals."""
    simulated, laws = _simulation(fit, run), laws_of(fit.estimate)
    experiment = experiment_of(fit, run)
    time, mine = abscissa(fit, experiment, mine)
    for output, table in mine.groupby("output", sort=False):
        ordered = table.sort_values("time", kind="stable")
        t, unit = ordered["time"].to_numpy(), output_unit(fit, run, str(output))
        path = drawn_path(fit, run, str(output), ordered)
        series = [
            ChartSeries("measured", "points", t, ordered["measured"].to_numpy(), color=0),
            ChartSeries(
                PREDICTED.get(type(fit.method).__name__, "predicted"), "points" if experiment.is_static else "line",
                path.times, path.predicted, color=1,
            ),
        ]  # fmt: skip
        if simulated is not None and output in simulated:
            at = simulated["time"].to_numpy()
            series.append(
                ChartSeries("simulated without looking at data", "line", at, simulated[output].to_numpy(), color=3)
            )
        r = standardized[ordered.index].to_numpy()
        if np.isfinite(path.spread).any() and str(output) not in laws:
            series.insert(0, _band_around(path, ordered, r))
        rms = float(np.sqrt(np.mean(ordered["residual"] ** 2)))
        words = (
            f"Measured and predicted values at {len(t)} samples; rms residual {short_number(rms, 3)} {unit}".rstrip()
            + "."
        )
        curves = Chart(f"{output}, {run}", words, time, labelled(str(output), unit), series, 260, link)
        if str(output) in laws:
            yield curves, _quantile_chart(str(output), t, r, time, link)
        else:
            yield curves, _residual_chart(str(output), path, ordered, r, time, unit, link)


def abscissa(fit: Fitted, experiment: Any, table: Any) -> tuple[str, Any]:
    """Return the abscissa: time, the only input of a static model, or the number of the row."""
    name = _only_input(experiment)
    if name is None:
        return time_label(experiment), table
    signal = experiment.inputs[name]
    values = np.interp(table["time"], signal.times, signal.values)
    return labelled(name, _input_unit(fit, experiment, name)), table.assign(time=values)


def _only_input(experiment: Experiment) -> str | None:
    """Return the input of a static experiment that has just one."""
    sampled = [name for name, signal in experiment.inputs.items() if isinstance(signal, SampledSignal)]
    return sampled[0] if experiment.is_static and len(sampled) == 1 else None


def _input_unit(fit: Fitted, experiment: Experiment, name: str) -> str:
    return quantity_unit(fit, name) or str(experiment.units.get(name, ""))


def _quantile_chart(output: str, t: np.ndarray, r: np.ndarray, time: str, link: str) -> Chart:
    """Of outputs with laws, whose scatter differs from sample to sample."""
    words = "Randomised quantile residuals, which are standard normal if the law holds; 95 % lie within ± 1.96 then."
    ends = np.array([np.min(t, initial=0.0), np.max(t, initial=0.0)])
    band = ChartSeries("95 % of the law", "band", ends, np.full(2, -1.96), upper=np.full(2, 1.96), color=0)
    shown = [band, ChartSeries("quantile residual", "points", t, r, color=2)]
    return Chart(f"Residuals of {output}", words, time, "quantile residual", shown, 170, link, levels=(0.0,))


def _residual_chart(
    output: str, path: DrawnPath, table: pd.DataFrame, r: np.ndarray, time: str, unit: str, link: str
) -> Chart:
    t, e = table["time"].to_numpy(), table["residual"].to_numpy()
    series = [ChartSeries("residual", "points", t, e, color=2)]
    at, band = _banded(path, t, e, r)
    if np.isfinite(band).any():
        series.insert(0, ChartSeries("± 2 standard deviations", "band", at, -band, upper=band, color=0))
    words = "Measured minus predicted, with a band of twice the standard deviation that the model expects."
    return Chart(f"Residuals of {output}", words, time, labelled("residual", unit), series, 170, link, levels=(0.0,))


def _banded(path: DrawnPath, t: np.ndarray, e: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two standard deviations at the samples, and in gaps where they grow; NaN where nothing is known of
    them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma = np.abs(e / r)
    known = np.isfinite(sigma) & (sigma > 0)
    band = 2 * np.where(known, sigma, np.median(sigma[known]) if known.any() else np.nan)
    wide = np.isfinite(path.spread)
    at = np.concatenate([t, path.times[wide]])
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate([band, 2 * path.spread[wide]])[order]


def _band_around(path: DrawnPath, table: xr.Dataset, r: np.ndarray) -> ChartSeries:
    """Return two standard deviations to both sides of the predictions."""
    at, band = _banded(path, table["time"].to_numpy(), table["residual"].to_numpy(), r)
    middle = np.interp(at, path.times, path.predicted)
    return ChartSeries("± 2 standard deviations", "band", at, middle - band, upper=middle + band, color=1)


def _input_charts(fit: Fitted, run: str, link: str) -> Iterator[Chart]:
    experiment = experiment_of(fit, run)
    for name, signal in experiment.inputs.items():
        if not isinstance(signal, SampledSignal) or name == _only_input(experiment):
            continue
        kind: Any = "points" if experiment.is_static else "steps" if experiment.hold[name] == "zoh" else "line"
        unit = _input_unit(fit, experiment, name)
        series = [ChartSeries(name, kind, signal.times, signal.values, color=5)]
        low, high = short_number(signal.values.min(), 3), short_number(signal.values.max(), 3)
        words = f"The known input {name}, {len(signal.values)} samples from {low} to {high}."
        yield Chart(f"Input {name}", words, time_label(experiment), labelled(name, unit), series, 150, link)


def _simulated_charts(fit: Fitted, run: str, link: str) -> Iterator[Chart]:
    """Yield variables and named quantities that no output shows, of estimators that have no states to show."""
    experiment = experiment_of(fit, run)
    if fit.method.states is not None or experiment.is_static:
        return
    names = _unmeasured(fit)[:MAX_SIMULATED]
    try:
        found = fit.predict(run) if names else None
    except GrisailleError:
        return
    for name in names:
        assert found is not None
        series = [ChartSeries(name, "line", found["time"].to_numpy(), found[name].to_numpy(), color=3)]
        words = f"{name} as the fitted model simulates it; {type(fit.method).__name__} does not estimate it from data."
        y = labelled(name, quantity_unit(fit, name))
        yield Chart(f"{name}, simulated", words, time_label(experiment), y, series, 170, link)


def _unmeasured(fit: Fitted) -> list[str]:
    """Return names with a course that differ from all measured ones."""
    structure = structure_of(fit.initial_model)
    system, flat = structure.system, structure.model
    rows = dict(zip(system.observed_names, ca.vertsplit(system.observed), strict=True))
    seen = {rows[o].element_hash() for case in fit.estimate.cases for o in case.outputs}
    known = (*flat.outputs, *flat.disturbances)
    return [n for n in estimated_names(structure) if n not in known and rows[n].element_hash() not in seen]


def _simulation(fit: Fitted, run: str) -> xr.Dataset | None:
    """Return what the model does alone, for estimators whose predictions follow the data."""
    if leaves_residuals(fit.estimate) or experiment_of(fit, run).is_static:
        return None
    try:
        return fit.predict(run)
    except GrisailleError:
        return None
