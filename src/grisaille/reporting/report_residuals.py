"""The report's part on residuals: verdicts of ``fit.diagnose()`` in words, and the pictures behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.diagnosis import BETWEEN_OUTPUTS, Diagnosis, ResidualSeries as Tested, ResidualVerdict
from grisaille.estimation.fitted import Fitted
from grisaille.markup import Html, joined, table, tag
from grisaille.reporting.calendar import calendar_of
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.labels import count, experiment_of, p_text, short_number, time_label
from grisaille.reporting.page import card, choices, scrolling

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment
    from grisaille.markup import Content

MEANINGS = (
    ("autocorrelation", "Ljung–Box", "can a residual be predicted from earlier ones?",
     "dynamics or a disturbance are missing, and standard errors are too small"),
    ("periodogram", "Bartlett", "is their power spread evenly over all frequencies?",
     "a drift or slow part (too much slow power) or an oscillation (too much fast power) is missing"),
    ("input …", "χ² of the cross-correlation", "do they still contain a known input or its past?",
     "what leads from that input to the output lacks dynamics, a delay or a nonlinearity"),
    ("normality", "Shapiro–Wilk; Jarque–Bera beyond 5000 samples", "do they scatter like a normal distribution?",
     "outliers, noise that varies, clipping or rounding: a robust loss, or another law, may help"),
    ("outliers", "studentized, Bonferroni", "is a single one an outlier?",
     "a bad measurement or an event that the model does not contain; look at the raw data there"),
    ("between outputs", "cross-correlation, Student's t, Bonferroni", "are outputs correlated, beyond what the model "
     "declares?", "noise that sensors share, or a disturbance that is missing; standard errors are too small"),
    ("size", "χ²", "are they as large as declared noise or a law says?", "the noise is declared wrongly, or the "
     "model is wrong"),
)  # fmt: skip


MAX_NAMED = 5
"""Unhealthy tests that stand on the first tab by name."""
TEST = ("test", "verdict", "statistic", "p", "what it says")


def residuals(fit: Fitted, diagnosis: Diagnosis, album: Album, runs: list[str]) -> Html:
    """Return a table of verdicts and five pictures per series."""
    parts = []
    for run in runs:
        series = [s for s in diagnosis.series if s.experiment == run]
        content = [part for s in series for part in _one(fit, diagnosis, s, album)]
        content += [
            part for v in diagnosis.verdicts if (v.experiment, v.test) == (run, BETWEEN_OUTPUTS) for part in _all(v)
        ]
        parts.append((run, joined(content)))
    words = verdict(diagnosis)
    made = {v.test.split()[0] for v in diagnosis.verdicts}
    rows = [row for row in MEANINGS if row[0].split()[0] in made]
    legend = table(("test", "by", "question", "an unhealthy one suggests"), rows, prose=(1, 2, 3), stacked=True)
    return joined(
        (
            card(tag("p", tag("strong", words)), choices("Experiment", parts, "residuals"), title="Residual tests"),
            card(scrolling(legend), title="What the tests ask") if rows else None,
        )
    )


def verdict(diagnosis: Diagnosis) -> str:
    """Return how many tests are unhealthy at one level for all together, and how many more at that level each."""
    together = diagnosis.together
    alone = sum(not v.healthy for v in diagnosis.tested) - len(diagnosis.unhealthy_together)
    more = f" {alone} more {'has' if alone == 1 else 'have'} p < {diagnosis.level:g} alone." if alone else ""
    return f"{together[:1].upper()}{together[1:]}.{more}"


def verdict_line(diagnosis: Diagnosis | str) -> Html:
    """Return the verdict with the unhealthy tests by name; the reason, where nothing could be tested."""
    if isinstance(diagnosis, str):
        return tag("p", tag("strong", "Residuals: "), diagnosis)
    bad = [f"{v.test} of {v.output}" for v in diagnosis.unhealthy_together]
    total = len(diagnosis.tested)
    kind = "verdict bad" if bad else "verdict good"
    sign = tag("span", "✗ unhealthy" if bad else "✓ healthy", class_=kind) if total else ""
    named = f" {', '.join(bad[:MAX_NAMED])}{', …' if len(bad) > MAX_NAMED else ''}." if bad else ""
    return tag("p", tag("strong", "Residuals: "), sign, f" {verdict(diagnosis)}{named}")


def _one(fit: Fitted, diagnosis: Diagnosis, series: Tested, album: Album) -> Iterator[Html]:
    verdicts = [v for v in diagnosis.verdicts if (v.experiment, v.output) == (series.experiment, series.output)]
    yield tag("h3", f"{series.output}, {series.experiment}: {count(len(series.residuals), 'sample')}")
    yield scrolling(table(TEST, map(_row, verdicts), numbers=(2, 3), prose=(4,), stacked=True))
    charts = [
        _over_time(series, experiment_of(fit, series.experiment)),
        *_tested(series, {v.test for v in verdicts}, diagnosis.level),
    ]
    yield tag("div", *(album.place(chart) for chart in charts), class_="grid-2")


def _all(verdict: ResidualVerdict) -> Iterator[Html]:
    """Yield the test of several outputs against each other."""
    yield tag("h3", f"{verdict.output}, {verdict.experiment}: compared with each other")
    yield scrolling(table(TEST, [_row(verdict)], numbers=(2, 3), prose=(4,), stacked=True))


def _tested(s: Tested, made: set[str], level: float) -> Iterator[Chart]:
    """Yield pictures of the tests that were made: some estimators leave residuals that need not be white."""
    if "autocorrelation" in made:
        yield _autocorrelation(s, level)
    if "periodogram" in made:
        yield from _periodogram(s, level)
    if "normality" in made:
        yield _quantiles(s)
    yield from _inputs(s, made, level)


def _row(v: ResidualVerdict) -> tuple[Content, ...]:
    if np.isnan(v.p):
        mark: Html | str = "not tested"
    else:
        mark = tag(
            "span", "✓ healthy" if v.healthy else "✗ unhealthy", class_=f"verdict {'good' if v.healthy else 'bad'}"
        )
    return v.test, mark, short_number(v.statistic, 4), p_text(v.p), v.sentence[:1].upper() + v.sentence[1:]


def _over_time(s: Tested, experiment: Experiment) -> Chart:
    shown = [
        ChartSeries(
            "quantile residual" if s.by_law else "standardized residual", "points", s.times, s.residuals, color=1
        )
    ]
    if len(s.outliers):
        shown.append(ChartSeries("outlier", "points", s.times[s.outliers], s.residuals[s.outliers], color=6))
    what = "Randomised quantile residuals" if s.by_law else "Residuals divided by their standard deviation"
    words = f"{what}; {count(len(s.outliers), 'outlier')} marked."
    return Chart(
        f"Residuals of {s.output}", words, time_label(experiment), "standard deviations", shown, 210, levels=(0.0,),
        calendar=calendar_of(experiment),
    )  # fmt: skip


def _autocorrelation(s: Tested, level: float) -> Chart:
    lags = np.arange(1, len(s.autocorrelation) + 1, dtype=float)
    shown = [
        _band(s, level, 0.5, len(lags) + 0.5),
        ChartSeries("autocorrelation", "stems", lags, s.autocorrelation, color=1),
    ]
    words = (
        f"Autocorrelation at lags 1 to {len(lags)}; the largest is {short_number(np.abs(s.autocorrelation).max(), 2)}."
    )
    return Chart(f"Autocorrelation of {s.output}", words, "lag [samples]", "correlation", shown, 210)


def _band(s: Tested, level: float, begin: float, end: float) -> ChartSeries:
    from scipy.stats import norm

    width = np.full(2, float(norm.isf(level / 2)) / np.sqrt(max(len(s.residuals), 1)))
    return ChartSeries(
        f"{100 * (1 - level):g} % of white noise", "band", np.array([begin, end]), -width, upper=width, color=0
    )


def _periodogram(s: Tested, level: float) -> Iterator[Chart]:
    from scipy.stats import kstwo

    found = s.periodogram
    if len(found.cumulated) < 2:
        return
    width = float(kstwo.isf(level, len(found.cumulated) - 1))
    shown = [
        ChartSeries(
            f"{100 * (1 - level):g} % of white noise", "band", found.frequency, np.clip(found.uniform - width, 0, 1),
            upper=np.clip(found.uniform + width, 0, 1), color=0,
        ),
        ChartSeries("cumulated periodogram", "line", found.frequency, found.cumulated, color=1),
    ]  # fmt: skip
    words = (
        f"Share of power below each frequency; its largest distance from a flat spectrum is "
        f"{short_number(found.distance, 2)}, the band allows {short_number(width, 2)}."
    )
    title = f"Cumulated periodogram of {s.output}"
    yield Chart(title, words, "frequency [1/sample]", "share of power", shown, 210, y_range=(0.0, 1.0))


def _quantiles(s: Tested) -> Chart:
    from scipy.stats import norm

    n = len(s.residuals)
    expected = norm.ppf((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    shown = [
        ChartSeries("normal distribution", "line", expected, expected, color=0),
        ChartSeries("residuals", "points", expected, np.sort(s.residuals), color=1),
    ]
    words = "Sorted residuals against the quantiles of a normal distribution: a straight line if they are normal."
    return Chart(f"Normal quantiles of {s.output}", words, "normal quantile", "residual quantile", shown, 210)


def _inputs(s: Tested, made: set[str], level: float) -> Iterator[Chart]:
    first = 1 if s.is_static else 0
    for name, correlation in s.inputs.items():
        if f"input {name}" not in made:
            continue
        at = np.arange(first, first + len(correlation), dtype=float)
        shown = [
            _band(s, level, at[0] - 0.5, at[-1] + 0.5),
            ChartSeries(f"correlation with {name}", "stems", at, correlation, color=5),
        ]
        words = (
            f"Correlation of the residuals with {name}; the largest is {short_number(np.abs(correlation).max(), 2)}."
        )
        x = "power of the input" if s.is_static else "input earlier by [samples]"
        yield Chart(f"{s.output} and input {name}", words, x, "correlation", shown, 210)
