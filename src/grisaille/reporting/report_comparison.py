"""``gr.compare({…}).report("comparison.html")``: fits side by side, in one page that needs nothing but itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.comparison import ComparedFits
from grisaille.drawing import labelled
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.printing.printed_value import with_error
from grisaille.markup import Html, joined, table, tag
from grisaille.model.notation.mathml import symbol
from grisaille.reporting.calendar import calendar_of
from grisaille.reporting.charts import Album, Chart, ChartSeries, Kind
from grisaille.reporting.labels import count, experiment_of, output_unit, short_number
from grisaille.reporting.page import Chip, Tab, build_page, bullets, card, choices, scrolling, write_page
from grisaille.reporting.report import MAX_RUNS, footer
from grisaille.reporting.report_outputs import abscissa

if TYPE_CHECKING:
    import xarray as xr

NAMES = {"log_likelihood": "log-likelihood", "aic": "AIC", "bic": "BIC", "delta_aic": "AIC − best"}
COLORS = (1, 2, 3, 4, 5)


def comparison_report(comparison: ComparedFits, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write the comparison as one HTML page that needs no network; gives its path."""
    return write_page(path, comparison_page(comparison, title=title))


def comparison_page(comparison: ComparedFits, *, title: str | None = None) -> str:
    """Return the page as text."""
    album, fits = Album(), comparison.fits
    tabs = [
        Tab("Summary", joined((card(scrolling(_table(comparison)), title="Criteria"), *_tests(comparison)))),
        Tab("Parameters", card(scrolling(_parameters(fits)), title="Estimates with standard errors")),
        Tab(
            "Outputs", card(choices("Experiment", list(_runs(fits, album)), "outputs"), title="Measured and predicted")
        ),
    ]
    models = list(dict.fromkeys(fit.model_name for fit in fits.values()))
    chips = [Chip(f"least AIC: {comparison.best}" if comparison.best else "AIC cannot be compared")]
    return build_page(
        title or "Comparison of fits",
        [f"{count(len(fits), 'fit')} of {', '.join(models)}"],
        chips,
        tabs,
        album,
        footer(),
    )


def _table(comparison: ComparedFits) -> Html:
    frame = comparison.table
    rows = [(label, *(_cell(c, v) for c, v in row.items())) for label, row in frame.iterrows()]
    return table(("fit", *(NAMES.get(c, c) for c in frame.columns)), rows, numbers=range(1, len(frame.columns) + 1))


def _cell(column: str, value: float) -> str:
    return f"{int(value)}" if column in ("parameters", "samples") else short_number(value, 6)


def _tests(comparison: ComparedFits) -> Iterator[Html]:
    rows = [
        (
            label, short_number(r.ratio, 4), f"{int(r.degrees_of_freedom)}", short_number(r.p, 3),
            "the larger fits better" if r.p < 0.05 else "the smaller suffices",
        )
        for label, r in comparison.tests.iterrows()
    ]  # fmt: skip
    if rows:
        head = ("pair", "likelihood ratio", "degrees of freedom", "p", "verdict")
        yield card(scrolling(table(head, rows, numbers=(1, 2, 3))), title="Likelihood-ratio tests")
    if comparison.notes:
        yield card(bullets(comparison.notes), title="Remarks")


def _parameters(fits: Mapping[str, Fitted]) -> Html:
    names = list(dict.fromkeys(str(n) for fit in fits.values() for n in fit.estimates))
    rows = [(symbol(n), *(_value(fit, n) for fit in fits.values())) for n in names]
    return table(("", *fits), rows, numbers=range(1, len(fits) + 1))


def _value(fit: Fitted, name: str) -> str:
    if name not in fit.estimates:
        return "—"
    return with_error(fit.estimates[name], fit[name].std_error).replace("-", "−")


def _runs(fits: Mapping[str, Fitted], album: Album) -> Iterator[tuple[str, Html]]:
    """Per experiment and output, the measurements with the predictions of every fit that has them."""
    tables = {label: fit.residuals() for label, fit in fits.items()}
    pairs = dict.fromkeys((r, o) for t in tables.values() for r, o in zip(t["experiment"], t["output"], strict=True))
    runs = list(dict.fromkeys(run for run, _ in pairs))[:MAX_RUNS]
    for k, run in enumerate(runs):
        charts = [album.place(_chart(fits, tables, run, o, f"run{k}")) for r, o in pairs if r == run]
        yield run, tag("div", *charts)


def _chart(fits: Mapping[str, Fitted], tables: Mapping[str, xr.Dataset], run: str, output: str, link: str) -> Chart:
    series: list[ChartSeries] = []
    x = unit = ""
    calendar = None
    for color, (label, fit) in zip(np.resize(COLORS, len(fits)).tolist(), fits.items(), strict=True):
        mine = tables[label]
        mine = mine[(mine["experiment"] == run) & (mine["output"] == output)]
        if not len(mine):
            continue
        experiment = experiment_of(fit, run)
        calendar = calendar_of(experiment)
        x, mine = abscissa(fit, experiment, mine)
        mine, unit = mine.sort_values("time", kind="stable"), output_unit(fit, run, output)
        t = mine["time"].to_numpy()
        if not series:
            series.append(ChartSeries("measured", "points", t, mine["measured"].to_numpy(), color=0))
        kind: Kind = "points" if experiment.is_static else "line"
        series.append(ChartSeries(label, kind, t, mine["predicted"].to_numpy(), color=color))
    words = f"Measured values and the predictions of {count(len(series) - 1, 'fit')}."
    return Chart(f"{output}, {run}", words, x, labelled(output, unit), series, 280, link, calendar=calendar)
