"""``fit.plot()``: measured and predicted outputs, with the residuals below, a column per experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.drawing import labelled, panels
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.reporting.labels import experiment_of, output_unit, time_label
from grisaille.reporting.paths import Path, drawn_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

MOST_COLUMNS = 6


def plot(
    fit: Fitted, experiments: str | Iterable[str] | None, outputs: str | Iterable[str] | None, ax: Canvas | None
) -> Figure:
    """Measured against predicted for each experiment and output, residuals below with twice the noise as a band."""
    table = fit.residuals()
    standardized = fit.residuals(standardized=True)["residual"]
    runs = _chosen("experiment", experiments, list(dict.fromkeys(table["experiment"])))[:MOST_COLUMNS]
    names = _chosen("output", outputs, list(dict.fromkeys(table["output"])))
    figure, grid = panels(
        ax, 2 * len(names), len(runs), size=(max(8.0, 4.0 * len(runs)), 3.2 * len(names) + 0.6),
        title=f"{fit.model_name}, fitted by {type(fit.method).__name__}", sharex="col",
        gridspec_kw={"height_ratios": [3, 1] * len(names)},
    )  # fmt: skip
    for column, run in enumerate(runs):
        for row, name in enumerate(names):
            mine = table[(table["experiment"] == run) & (table["output"] == name)]
            above, below = grid[2 * row, column], grid[2 * row + 1, column]
            _draw_output(above, mine, drawn_path(fit, run, name, mine.sort_values("time", kind="stable")))
            _draw_residuals(below, mine, standardized[mine.index])
            above.set_ylabel(labelled(name, output_unit(fit, run, name)))
            below.set_ylabel("residual")
        grid[0, column].set_title(run, fontsize="medium")
        grid[-1, column].set_xlabel(time_label(experiment_of(fit, run)))
    grid[0, 0].legend(fontsize="small")
    return figure


def _chosen(what: str, wanted: str | Iterable[str] | None, known: Sequence[str]) -> list[str]:
    names = list(known) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise EstimationError(f"The fit has no {what} '{name}'; it has {', '.join(known)}.")
    return names or list(known)


def _draw_output(axes: Any, mine: Any, path: Path) -> None:
    axes.plot(mine["time"], mine["measured"], ".", color="0.5", markersize=4, label="measured")
    axes.plot(path.times, path.predicted, color="C0", linewidth=1.2, label="predicted")
    if np.isfinite(path.spread).any():
        low, high = path.predicted - 2 * path.spread, path.predicted + 2 * path.spread
        axes.fill_between(path.times, low, high, color="C0", alpha=0.15, linewidth=0)
    axes.grid(alpha=0.3)


def _draw_residuals(axes: Any, mine: Any, standardized: Any) -> None:
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.plot(mine["time"], mine["residual"], ".", color="C1", markersize=3)
    size = (mine["residual"] / standardized).abs()
    if size.notna().all() and len(size):
        band = 2 * size.median()
        axes.axhspan(-band, band, color="C1", alpha=0.12, linewidth=0)
    axes.grid(alpha=0.3)
