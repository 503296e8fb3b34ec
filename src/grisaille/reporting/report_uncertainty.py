"""How estimates are correlated: their correlation, and profiles of the likelihood where they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from grisaille.assessment.profile import Profile, profile as profile_of
from grisaille.drawing import labelled
from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.markup import Html, joined, table, tag
from grisaille.model.notation.mathml import symbol
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.labels import count, short_number
from grisaille.reporting.page import bullets, card, scrolling

MAX_UNKNOWNS = 40
"""Unknowns in the table of correlations."""
STRONG_CORRELATION = 0.95
FEW, DIGITS = 8, 20
"""Unknowns up to which the matrix has names above its columns, and numbers in its cells."""
NOTABLE, LISTED = 0.5, 10
"""From which correlation on, and how many, pairs are listed in front of a large matrix."""


def uncertainty(fit: Fitted, album: Album, profiles: bool) -> Html:
    """Return correlations, then profiles."""
    what = "likelihood" if fit.estimate.is_likelihood else "criterion"
    parts: list[Html | None] = [card(*_correlation(fit), title="Correlation of the estimates")]
    if profiles:
        parts.append(card(*_profiles(fit, album), title=f"Profiles of the {what}"))
    else:
        words = (
            "Wald's intervals rest on a linear model around the estimates; profiles do not. To see them: "
            'fit.report("report.html", profiles=True).'
        )
        parts.append(card(tag("p", words, class_="muted"), title=f"Profiles of the {what}"))
    return joined(parts)


def _correlation(fit: Fitted) -> Iterator[Html | None]:
    names = fit.names[:MAX_UNKNOWNS]
    matrix = fit.correlation.to_numpy()[: len(names), : len(names)]
    if len(names) < 2:
        yield tag("p", "There is only one unknown.")
        return
    all_pairs = scrolling(_matrix(names, matrix))
    if len(names) > FEW:
        yield tag("div", tag("div", *_strongest(names, matrix)), all_pairs, class_="side-by-side")
    else:
        yield all_pairs
    strong = [
        f"{names[j]} and {names[i]} are correlated by {matrix[i, j]:+.3f}: the data determine a combination of them "
        f"much better than each."
        for i in range(len(names)) for j in range(i) if abs(matrix[i, j]) > STRONG_CORRELATION
    ]  # fmt: skip
    yield bullets(strong) or tag("p", f"No two estimates are correlated by more than {STRONG_CORRELATION}.")
    if len(fit.names) > MAX_UNKNOWNS:
        yield tag(
            "p", f"The first {MAX_UNKNOWNS} of {len(fit.names)} unknowns; fit.correlation has all.", class_="muted"
        )


def _strongest(names: Sequence[str], matrix: np.ndarray) -> Iterator[Html]:
    """Yield the pairs that matter, in front of a large matrix."""
    pairs = [(i, j) for i in range(len(names)) for j in range(i) if abs(matrix[i, j]) >= NOTABLE]
    pairs.sort(key=lambda pair: -abs(matrix[pair]))
    if not pairs:
        yield tag("p", f"No two estimates are correlated by more than {NOTABLE}.")
        return
    rows = [(symbol(names[j]), symbol(names[i]), _number(matrix[i, j]), _bar(matrix[i, j])) for i, j in pairs[:LISTED]]
    yield scrolling(table(("", "", "correlation", ""), rows, numbers=(2,), caption="The strongest"))
    if len(pairs) > LISTED:
        further = count(len(pairs) - LISTED, "further pair")
        yield tag("p", f"{further} correlated by more than {NOTABLE}.", class_="muted")


def _matrix(names: Sequence[str], matrix: np.ndarray) -> Html:
    """Return all pairs; a large one has numbered columns and small cells, whose numbers show where there is room for
    them.
    """
    large = len(names) > FEW
    kind = "correlation" + (" dense" if large else "") + (" tiny" if len(names) > DIGITS else "")
    heads = [f"{k}" for k in range(1, len(names) + 1)] if large else [symbol(n) for n in names]
    head = tag("tr", tag("td"), *(tag("th", h, scope="col") for h in heads))
    rows = [
        tag(
            "tr", tag("th", tag("span", f"{k + 1}", class_="order") if large else None, symbol(n), scope="row"),
            *(_cell(v, f"{n} and {other}" if large else "") for v, other in zip(matrix[k], names, strict=True)),
        )
        for k, n in enumerate(names)
    ]  # fmt: skip
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=kind)


def _number(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _bar(value: float) -> Html:
    color = "--c1" if value > 0 else "--c2"
    return tag("span", class_="strength", style=f"--share: {abs(float(value)):.2f}; background: var({color})")


def _cell(value: float, title: str) -> Html:
    if not np.isfinite(value):
        return tag("td", "—", title=title or None)
    told = f"{title}: {_number(value)}" if title else None
    if abs(value) < 0.005:
        return tag("td", "0", class_="muted", title=told)
    share = round(34 * abs(float(value)))
    color = "--c1" if value > 0 else "--c2"
    shade = f"background: color-mix(in srgb, var({color}) {share}%, transparent)"
    return tag("td", _number(value), style=shade, title=told)


def _profiles(fit: Fitted, album: Album) -> Iterator[Html | None]:
    charts, sentences = [], []
    for name, free in zip(fit.names, fit.estimate.free, strict=True):
        if not free:
            continue
        try:
            profile = profile_of(fit, name)
        except GrisailleError as error:
            sentences.append(f"{name}: {error}")
            continue
        charts.append(album.place(_chart(profile)))
        sentences += [f"{name}: {note}" for note in profile.notes]
    yield tag("div", *charts, class_="grid-2")
    yield bullets(sentences)


def _chart(profile: Profile) -> Chart:
    table = profile.table.sort_values("value")
    v = np.linspace(float(table["value"].min()), float(table["value"].max()), 200)
    deviance = np.interp(v, table["value"], table["root"]) ** 2
    series = [ChartSeries("profile", "line", v, deviance, color=1)]
    if profile.std_error > 0:
        parabola = ((v - profile.estimate) / profile.std_error) ** 2
        inside = parabola <= 1.2 * max(float(deviance.max()), profile.threshold)
        series.append(ChartSeries("by the standard error", "line", v[inside], parabola[inside], color=0))
    low, high = ("open" if limit is None else short_number(limit) for limit in profile.interval)
    words = f"{profile.shape}; the {100 * profile.level:g} % interval is {low} to {high}."
    marks = [limit for limit in profile.interval if limit is not None]
    title = f"{profile.name}: {low} … {high}"
    return Chart(
        title,
        words,
        labelled(profile.name, profile.unit),
        "deviance",
        series,
        230,
        levels=(profile.threshold,),
        marks=marks,
    )
