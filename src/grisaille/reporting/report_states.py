"""The report's part on states: every quantity with its band, for estimators that have ``fit.states()``.

Disturbances come first: their course is what the model does not explain, and often why one fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from grisaille.drawing import labelled
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.predictions.band_kinds import band_label
from grisaille.markup import Html, joined, tag
from grisaille.reporting.calendar import calendar_of
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.drawn_paths import break_at_gaps
from grisaille.reporting.labels import experiment_of, time_label
from grisaille.reporting.page import bullets, card, choices
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr

MAX_QUANTITIES = 24
"""Quantities drawn per experiment."""
BAND_LEVEL = 0.95


def states(fit: Fitted, album: Album, runs: list[str]) -> Html | None:
    """Return a part per experiment; None where the estimator has no states to show."""
    parts, remarks, kinds = [], [], set()
    for k, run in enumerate(runs):
        found = _states(fit, run)
        if found is None:
            return None
        kinds.add(found.attrs.get("bands"))
        names = _ordered(fit, found)
        charts = [album.place(chart) for chart in _charts(fit, run, found, names[:MAX_QUANTITIES], f"states{k}")]
        parts.append((run, joined(charts)))
        remarks = _remarks(found, names)
    share = f"{100 * BAND_LEVEL:g} %"
    words = f"Given all data of the experiment; the band of {share} {_contents(kinds)}."
    return card(
        tag("p", words, class_="muted"), choices("Experiment", parts, "states"), bullets(remarks),
        title="Disturbances, states and outputs with bands",
    )  # fmt: skip


def _contents(kinds: set[str | None]) -> str:
    """Say what the bands contain."""
    if kinds == {"all"}:
        return "contains the uncertainty of parameters"
    left = "does not contain the uncertainty of parameters, so that it holds less often than it says"
    return f"{left}: fit.states(bands='all') has bands that do" if kinds == {"noise"} else left


def _states(fit: Fitted, run: str) -> xr.Dataset | None:
    if fit.method.states is None:
        return None
    try:
        found = fit.method.states.of(fit, run, None, BAND_LEVEL)
    except EstimationError:
        return None
    return found if {"given", "statistic"} <= set(found.dims) else None


def _ordered(fit: Fitted, found: xr.Dataset) -> list[str]:
    """Disturbances, then what else is declared, then outputs."""
    flat = structure_of(fit.initial_model).model
    names = list(map(str, found.data_vars))
    return sorted(names, key=lambda n: 0 if n in flat.disturbances else 2 if n in flat.outputs else 1)


def _remarks(found: xr.Dataset, names: list[str]) -> list[str]:
    said = [f"Not drawn: {found.attrs['left_out']}."] if "left_out" in found.attrs else []
    if len(names) > MAX_QUANTITIES:
        said.append(f"The first {MAX_QUANTITIES} of {len(names)} quantities; fit.states() has all.")
    return said


def _charts(fit: Fitted, run: str, found: xr.Dataset, names: list[str], link: str) -> Iterator[Chart]:
    given = [str(g) for g in found["given"].values]
    best = "smoothed" if "smoothed" in given else given[-1]
    experiment = experiment_of(fit, run)
    calendar = calendar_of(experiment)
    for name in names:
        part = found[name].sel(given=best)
        rows = [part.sel(statistic=s).to_numpy() for s in ("mean", "lower", "upper")]
        t, mean, lower, upper = break_at_gaps(found["time"].to_numpy(), *rows)
        label = band_label(BAND_LEVEL, found.attrs.get("bands"))
        series = [ChartSeries(label, "band", t, lower, upper=upper, color=1)]
        if name in experiment.outputs:
            measured = experiment.measurements(name)
            series.append(ChartSeries("measured", "points", measured.times, measured.values, color=0))
        if "filtered" in given and best != "filtered":
            filtered = found[name].sel(given="filtered", statistic="mean").to_numpy()
            t, filtered = break_at_gaps(found["time"].to_numpy(), filtered)
            series.append(ChartSeries("filtered: from earlier data only", "line", t, filtered, color=2))
        series.append(ChartSeries(best, "line", t, mean, color=1))
        words = f"The estimate of {name} over time with a {label}."
        unit, described = (str(found[name].attrs.get(key, "")) for key in ("units", "description"))
        title = f"{name}, {run}" + (f": {described}" if described else "")
        yield Chart(title, words, time_label(experiment), labelled(name, unit), series, 220, link, calendar=calendar)
