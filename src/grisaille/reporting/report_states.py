"""States and outputs as the data tell them, with bands; for estimators that have them (``fit.states()``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grisaille.drawing import labelled
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.markup import Html, joined, tag
from grisaille.reporting.charts import Album, Chart, Series
from grisaille.reporting.labels import experiment_of, quantity_unit, time_label
from grisaille.reporting.page import card, choices

MOST = 16
"""Quantities drawn per experiment."""
LEVEL = 0.95


def states(fit: Fitted, album: Album, runs: list[str]) -> Html | None:
    """A part per experiment; None where the estimator has no states to show."""
    parts = []
    for k, run in enumerate(runs):
        found = _states(fit, run)
        if found is None:
            return None
        charts = [album.place(chart) for chart in _charts(fit, run, found, f"states{k}")]
        parts.append((run, joined(charts)))
    holds = "contains" if fit.method.smooths else "does not contain"
    share = f"{100 * LEVEL:g} %"
    words = f"Given all data of the experiment; the band holds {share} and {holds} the uncertainty of parameters."
    return card(tag("p", words, class_="muted"), choices("Experiment", parts, "states"), title="States with bands")


def _states(fit: Fitted, run: str) -> Any:
    try:
        found = fit.method.states(fit, run, None, LEVEL)
    except EstimationError:
        return None
    return found if {"given", "statistic"} <= set(found.dims) else None


def _charts(fit: Fitted, run: str, found: Any, link: str) -> Iterator[Chart]:
    t = found["time"].to_numpy()
    given = [str(g) for g in found["given"].values]
    best = "smoothed" if "smoothed" in given else given[-1]
    experiment = experiment_of(fit, run)
    for name in list(map(str, found.data_vars))[:MOST]:
        part = found[name].sel(given=best)
        lower, upper = (part.sel(statistic=s).to_numpy() for s in ("lower", "upper"))
        series = [Series("95 % band", "band", t, lower, upper=upper, color=1)]
        if name in experiment.outputs:
            measured = experiment.measurements(name)
            series.append(Series("measured", "points", measured.times, measured.values, color=0))
        if "filtered" in given and best != "filtered":
            filtered = found[name].sel(given="filtered", statistic="mean").to_numpy()
            series.append(Series("filtered: from earlier data only", "line", t, filtered, color=2))
        series.append(Series(best, "line", t, part.sel(statistic="mean").to_numpy(), color=1))
        words = f"The estimate of {name} over time with a band that holds it with 95 % probability."
        y = labelled(name, quantity_unit(fit, name))
        yield Chart(f"{name}, {run}", words, time_label(experiment), y, series, 220, link)
