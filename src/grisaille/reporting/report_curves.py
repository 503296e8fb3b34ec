"""Unknown curves: each table of estimated values with its band."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grisaille.assessment.curve import Curve, curve, estimated_curves
from grisaille.drawing import labelled
from grisaille.estimation.fitted import Fitted
from grisaille.markup import Html, table, tag
from grisaille.model.notation.mathml import symbol
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.labels import short_number
from grisaille.reporting.page import bullets, card, scrolling

MAX_CURVES = 24
"""Curves that are drawn."""


def curves(fit: Fitted, album: Album) -> Html | None:
    """Return a card with every estimated curve; None where there is none."""
    named = estimated_curves(fit)
    if not named:
        return None
    parts = [part for name, run in named[:MAX_CURVES] for part in _shown(curve(fit, name, 0.95, run), run, album)]
    if len(named) > MAX_CURVES:
        parts.append(
            tag("p", f"The first {MAX_CURVES} of {len(named)} curves; fit.curve(name) has all.", class_="muted")
        )
    return card(*parts, title="Curves")


def _shown(found: Curve, run: str | None, album: Album) -> Iterator[Html | None]:
    if len(found.arguments) == 1:
        yield album.place(_chart(found, run))
    rows = [[short_number(float(v), 5) for v in row] for row in found.table.itertuples(index=False)]
    yield tag("details", tag("summary", symbol(found.name), " at its knots"),
              scrolling(table(list(found.table.columns), rows, numbers=range(len(found.table.columns)))))  # fmt: skip
    yield bullets(found.notes)


def _chart(found: Curve, run: str | None) -> Chart:
    line = found.drawn()
    x, value = line.iloc[:, 0].to_numpy(), line["value"].to_numpy()
    finite = np.isfinite(line["std_error"].to_numpy())
    lower, upper = (np.where(finite, line[side].to_numpy(), value) for side in ("lower", "upper"))
    knots = found.table
    series = [
        ChartSeries("95 % band", "band", x, lower, upper=upper, color=0),
        ChartSeries(found.name, "line", x, value, color=1),
        ChartSeries("knots", "points", knots["knot"].to_numpy(), knots["value"].to_numpy(), color=1),
    ]
    at = f", {run}" if run else ""
    words = f"{found.name} against {found.arguments[0]} with its 95 % band, {len(knots)} knots."
    title = f"{found.name}({found.arguments[0]}){at}"
    return Chart(title, words, labelled(*_first(found)), labelled(found.name, found.unit), series)


def _first(found: Curve) -> tuple[str, str]:
    return found.arguments[0], found.units[0]
