"""Charts as JSON small enough for a page: long series are thinned to the extremes of short stretches.

A stretch of samples keeps its smallest and its largest, so that nothing that sticks out disappears. All series of a
page share a budget of points; short ones are never thinned for the sake of long ones. Numbers are rounded to a
hundred-thousandth of what their axis spans; equidistant abscissae are stored as beginning and step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from grisaille.reporting.charts import Chart, ChartSeries

MAX_POINTS_PER_PAGE = 60_000
"""Points of all charts of a page: about one megabyte."""
THINNING_TOLERANCE = 1e-5


def encode(charts: Sequence[Chart], budget: int = MAX_POINTS_PER_PAGE) -> str:
    """Return JSON that may stand inside a script element."""
    most = _cap([len(s.x) for chart in charts for s in chart.series], budget)
    text = json.dumps([_chart(chart, most) for chart in charts], separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _cap(lengths: Iterable[int], budget: int) -> int:
    """Return the largest c with Σ min(length, c) ≤ budget."""
    waiting = sorted(lengths)
    left = budget
    for k, n in enumerate(waiting):
        share = left // (len(waiting) - k)
        if n > share:
            return max(share, 16)
        left -= n
    return max(waiting, default=1)


def thin(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return indices of about ``most`` samples: smallest and largest of each stretch, both ends, and where gaps
    begin.
    """
    n = len(x)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, max(most // 2, 2) + 1).astype(int)
    known = np.where(np.isfinite(y), y, np.nan)
    kept = [0, n - 1]
    for a, b in pairwise(edges):
        part = known[a:b]
        if b > a and np.isfinite(part).any():
            kept += [a + int(np.nanargmin(part)), a + int(np.nanargmax(part))]
    missing = np.isnan(known)
    return np.unique([*kept, *np.flatnonzero(missing[1:] & ~missing[:-1]) + 1])


def _chart(chart: Chart, most: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "x": chart.x, "y": chart.y, "height": chart.height, "link": chart.link, "log": chart.log_y,
        "range": None if chart.y_range is None else [float(v) for v in chart.y_range],
        "levels": [float(v) for v in chart.levels], "marks": [float(v) for v in chart.marks],
        "dates": None if chart.calendar is None else chart.calendar.encoded(),
        "series": [_series(s, most, chart.log_y) for s in chart.series],
    }  # fmt: skip
    return {key: value for key, value in found.items() if value not in (None, "", False, [])}


def _series(series: ChartSeries, most: int, logarithmic: bool) -> dict[str, Any]:
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    at = np.arange(len(x)) if series.kind == "bars" else thin(x, y, most)
    found: dict[str, Any] = {"name": series.name, "kind": series.kind, "color": series.color}
    found["x"] = _abscissae(x[at])
    found["y"] = [float(f"{v:.6g}") if np.isfinite(v) else None for v in y[at]] if logarithmic else _numbers(y[at])
    if series.upper is not None:
        found["upper"] = _numbers(np.asarray(series.upper, dtype=float)[at])
    if len(at) < len(x):
        found["of"] = len(x)
    return found


def _abscissae(x: np.ndarray) -> Any:
    if len(x) > 2:
        step = (x[-1] - x[0]) / (len(x) - 1)
        if step > 0 and np.abs(np.diff(x) - step).max() < 1e-6 * step:
            return {"from": float(x[0]), "step": float(f"{step:.12g}"), "count": len(x)}
    return _numbers(x)


def _numbers(values: np.ndarray) -> list[float | int | None]:
    known = values[np.isfinite(values)]
    span = float(np.ptp(known)) if len(known) else 0.0
    scale = span if span > 0 else float(np.abs(known).max(initial=0.0))
    decimals = -int(np.floor(np.log10(THINNING_TOLERANCE * scale))) if scale > 0 else 0
    rounded = np.round(values, min(max(decimals, 0), 300))
    return [None if not np.isfinite(v) else int(v) if v == int(v) and abs(v) < 1e15 else v for v in rounded.tolist()]
