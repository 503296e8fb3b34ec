"""``study.report("study.html")``: what many fits say together, in one page that needs nothing but itself.

Monte Carlo and bootstrap studies show where estimates lie, how they spread and whether intervals cover; multistarts
show which minima were found from where.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grisaille.drawing import labelled
from grisaille.estimation.persistence.saving import versions
from grisaille.markup import Html, joined, table, tag
from grisaille.model.notation.mathml import symbol
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.labels import count, p_text, short_number
from grisaille.reporting.page import Chip, Tab, build_page, bullets, card, facts, scrolling, write_page
from grisaille.reporting.report import MAX_RUNS, footer
from grisaille.reporting.report_computation import method_code
from grisaille.reporting.report_data import data_part
from grisaille.reporting.report_model import describe
from grisaille.study.bootstrap_task import BootstrapRuns
from grisaille.study.monte_carlo_task import MonteCarloRuns
from grisaille.study.multistart_task import MultistartRuns
from grisaille.study.result_rows import column
from grisaille.study.study import Study

MAX_UNKNOWNS = 24
MAX_FAILURES = 50
KINDS = {"monte_carlo": "Monte Carlo study", "bootstrap": "bootstrap", "multistart": "multistart"}


def study_report(study: Study, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write the study as one HTML page that needs no network; gives its path."""
    return write_page(path, study_page(study, title=title))


def study_page(study: Study, *, title: str | None = None) -> str:
    """Return the page as text."""
    album, task = Album(), study._prepared.task
    first = _minima(study, album) if isinstance(study, MultistartRuns) else _estimates(study, album)
    tabs = [
        Tab("Summary", first),
        Tab("Runs", _runs(study, album)),
        Tab("Model", describe(task.model)),
        Tab("Data", data_part(task.experiments, MAX_RUNS)),
        Tab("Computation", _computation(study)),
    ]
    subtitle = [
        f"{KINDS.get(task.kind, task.kind)}: {count(len(study), 'run')}, {count(len(study.names), 'unknown')}, "
        f"fitted by {type(task.method).__name__}"
    ]
    return build_page(title or study.model_name, subtitle, list(_chips(study)), tabs, album, footer())


def _chips(study: Study) -> Iterator[Chip]:
    counts = study.counts
    yield Chip(f"{counts['converged']} of {counts['runs']} converged", counts["converged"] == counts["runs"])
    if isinstance(study, MultistartRuns):
        yield Chip("one minimum" if len(study.basins) == 1 else f"{len(study.basins)} distinct minima")
    elif isinstance(study, MonteCarloRuns):
        verdicts = study.summary().table["verdict"]
        wrong = int(verdicts.str.startswith("too").sum())
        words = (
            f"{wrong} of {count(len(verdicts), 'interval')} cover wrongly" if wrong else "intervals cover as claimed"
        )
        yield Chip(words, not wrong)


def _estimates(study: Any, album: Album) -> Html:
    """Return location, spread and coverage, then a histogram of each unknown."""
    found = study.summary()
    truth = "fit" if isinstance(study, BootstrapRuns) else "truth"
    head = (
        "", truth, "mean", "median", "spread", "claimed std. error", "bias", "skewness", "at bound",
        f"coverage of {100 * found.level:g} %", "p", "coverage is",
    )  # fmt: skip
    rows = [_estimate_row(str(name), r) for name, r in found.table.iterrows()]
    parts = [card(scrolling(table(head, rows, numbers=range(1, 11))), title="Estimates")]
    if isinstance(study, BootstrapRuns):
        limits = study.intervals()
        shown = [(symbol(str(n)), short_number(r.lower), short_number(r.upper)) for n, r in limits.iterrows()]
        parts.append(
            card(scrolling(table(("", "2.5 %", "97.5 %"), shown, numbers=(1, 2))), title="Percentile intervals")
        )
    charts = [album.place(chart) for chart in _histograms(study, truth)]
    parts.append(card(tag("div", *charts, class_="grid-2"), title="Distributions"))
    return joined(parts)


def _estimate_row(name: str, r: Any) -> tuple[Any, ...]:
    coverage = f"{100 * r.coverage:.1f} %" if r.intervals else "—"
    return (
        symbol(name), short_number(r.truth), short_number(r["mean"]), short_number(r["median"]),
        short_number(r["std"], 3),
        short_number(r.mean_std_error, 3), short_number(r.bias, 3), short_number(r.skewness, 2), f"{r.at_bound}",
        coverage, p_text(r.p),
        _verdict(str(r.verdict)),
    )  # fmt: skip


def _verdict(words: str) -> Html | str:
    if words.startswith("too"):
        return tag("span", f"✗ {words}", class_="verdict bad")
    return tag("span", f"✓ {words}", class_="verdict good") if words == "as claimed" else words


def _histograms(study: Any, truth: str) -> Iterator[Chart]:
    used = study.estimates[study.table["converged"]]
    units = {u.name: u.unit for u in study._prepared.problem.unknowns}
    for name in list(study.names)[:MAX_UNKNOWNS]:
        values = used[name].to_numpy(dtype=float)
        if len(values) < 2 or not np.ptp(values) > 0:
            continue
        heights, edges = np.histogram(values, bins="auto" if len(values) < 20_000 else 120)
        series = [ChartSeries("runs", "bars", edges, np.append(heights, 0).astype(float), color=1)]
        words = (
            f"Histogram of {len(values)} estimates around {short_number(values.mean())}, spread "
            f"{short_number(values.std(ddof=1), 3)}; a line marks the {truth}."
        )
        yield Chart(
            name, words, labelled(name, units.get(name, "")), "runs", series, 220, marks=(float(study.truth[name]),)
        )


def _minima(study: MultistartRuns, album: Album) -> Html:
    """Return the minima and a waterfall."""
    basins = study.basins
    rows = [
        (
            f"{basin}", f"{int(r['count'])}", f"{100 * r['share']:.0f} %", short_number(r["above_best"], 4),
            *(short_number(r[n], 6) for n in study.names[:12]),
        )
        for basin, r in basins.head(40).iterrows()
    ]  # fmt: skip
    head = ("minimum", "starts", "share", "above the best", *map(symbol, study.names[:12]))
    listing = scrolling(table(head, rows, numbers=range(1, len(head)))) if rows else tag("p", "No start converged.")
    parts = [card(listing, title="Minima, best first")]
    chart = _waterfall(study)
    if chart is not None:
        parts.append(card(album.place(chart), title="Where the starts ended"))
    return joined(parts)


def _waterfall(study: MultistartRuns) -> Chart | None:
    found = study.table[study.table["criterion"].notna()].sort_values("criterion", kind="stable")
    if not len(found):
        return None
    above = np.maximum((found["criterion"] - found["criterion"].iloc[0]).to_numpy(dtype=float), 1e-6)
    place, basin = np.arange(1.0, len(found) + 1), found["basin"].to_numpy()
    series = [
        ChartSeries(f"minimum {b}", "points", place[basin == b], above[basin == b], color=1 + b % 5)
        for b in range(min(int(basin.max()) + 1, 8))
    ]
    rest = (basin < 0) | (basin >= 8)
    if rest.any():
        series.append(ChartSeries("other, or not converged", "points", place[rest], above[rest], color=0))
    words = (
        f"{len(found)} starts sorted by the criterion they reached; {int((basin == 0).sum())} reached the best minimum."
    )
    return Chart("Criterion above the best", words, "starts, sorted", "criterion − best", series, 280, log_y=True)


def _runs(study: Study, album: Album) -> Html:
    seconds = study.seconds.to_numpy()
    entries = [(name, f"{n}") for name, n in study.counts.items()]
    entries += [
        ("time per run", f"{short_number(float(np.median(seconds)), 3)} s"),
        ("time of all runs", f"{short_number(float(seconds.sum()), 3)} s"),
    ]
    parts = [card(facts(entries), title="How the runs ended")]
    failed = study.failures
    if len(failed):
        rows = [
            (f"{run}", r["failure"], r["status"], f"{r['seed']}") for run, r in failed.head(MAX_FAILURES).iterrows()
        ]
        parts.append(
            card(scrolling(table(("run", "in", "reason", "seed"), rows, prose=(2,))), title="Runs without an estimate")
        )
    at = np.arange(len(study), dtype=float)
    charts = []
    for name in list(study.names)[:MAX_UNKNOWNS]:
        values = study.table[column(name)].to_numpy(dtype=float)
        words = f"The estimate of {name} in each of {len(values)} runs."
        charts.append(
            album.place(
                Chart(name, words, "run", name, [ChartSeries(name, "points", at, values, color=1)], 190, "runs")
            )
        )
    parts.append(card(tag("div", *charts, class_="grid-2"), title="Run by run"))
    return joined(parts)


def _computation(study: Study) -> Html:
    task = study._prepared.task
    options = [(name, repr(value)) for name, value in task.options.items() if value]
    told = [
        ("method", f"gr.{method_code(task.method)}"),
        ("seed", f"{task.seed}"),
        *options,
        *task.variation.header().items(),
    ]
    alone = joined((tag("code", "study.repeat(0)"), " gives any run again, alone, as a fit with its data."))
    same = " with the same model, data and options gives the same table, bit for bit."
    again = bullets([alone, joined((tag("code", f"gr.{task.kind}(…, seed={task.seed})"), same))])
    fingerprint = tag("p", "model ", tag("code", task.model.fingerprint[:16]), class_="muted")
    return joined(
        (
            card(again, title="Compute it again"),
            card(scrolling(table(("option", "value"), told, prose=(1,))), title="Options"),
            card(facts(versions().items()), fingerprint, title="Versions"),
        )
    )  # fmt: skip
