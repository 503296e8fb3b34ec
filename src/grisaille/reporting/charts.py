"""The data of the interactive charts of a report; ``assets/plot.js`` draws them.

A chart is one pair of axes with series on it. Charts with the same ``link`` zoom together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from grisaille.markup import Html, tag
from grisaille.reporting.calendar import Calendar

Kind = Literal["points", "line", "steps", "stems", "band", "bars"]


@dataclass(frozen=True)
class ChartSeries:
    """One line, cloud or band; ``color`` numbers the colours of the page's palette, 0 is grey."""

    name: str
    kind: Kind
    x: np.ndarray
    y: np.ndarray
    upper: np.ndarray | None = None
    """Of a band, whose lower end is ``y``."""
    color: int = 1


@dataclass(frozen=True)
class Chart:
    """One pair of axes."""

    title: str
    description: str
    """What a reader who cannot see it needs to know: what is drawn, and what it shows."""
    x: str
    y: str
    series: Sequence[ChartSeries]
    height: int = 240
    link: str = ""
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    levels: Sequence[float] = ()
    """Horizontal lines."""
    marks: Sequence[float] = ()
    """Vertical lines."""
    calendar: Calendar | None = None
    """Of an abscissa that is time with dates."""


@dataclass
class Album:
    """The charts of one page, in the order of their places."""

    charts: list[Chart] = field(default_factory=list)

    def place(self, chart: Chart) -> Html:
        """Return the element in which the chart will be drawn."""
        self.charts.append(chart)
        canvas = tag(
            "div", class_="canvas", tabindex="0", role="img", aria_label=f"{chart.title}. {chart.description}",
            aria_describedby="keys", style=f"min-height: {chart.height}px",
        )  # fmt: skip
        plot = tag("div", canvas, class_="plot", data_chart=len(self.charts) - 1)
        return tag("figure", tag("figcaption", chart.title), plot)
