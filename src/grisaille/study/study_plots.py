"""Pictures of studies: a waterfall of minima, and distributions of estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.drawing import panels
from grisaille.errors import EstimationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.study.monte_carlo_task import MonteCarloRuns
    from grisaille.study.multistart_task import MultistartRuns

MAX_PANELS = 16
MIN_DRAWN_DIFFERENCE = 1e-6
"""Differences of criteria below this are drawn as if they were this."""


def draw_waterfall(study: MultistartRuns, ax: Canvas | None = None) -> Figure:
    """Draw the criterion above the best, one point per start, sorted."""
    table = study.table[study.table["criterion"].notna()].sort_values("criterion", kind="stable")
    if not len(table):
        raise EstimationError(f"None of the {len(study)} starts gave an estimate: there is nothing to draw.")
    above = np.maximum((table["criterion"] - table["criterion"].iloc[0]).to_numpy(), MIN_DRAWN_DIFFERENCE)
    figure, ((axes,),) = panels(ax, 1, size=(7, 4), title=f"{study.model_name}: {study._counted()}")
    axes.plot(np.arange(1, len(above) + 1), above, color="0.8", linewidth=0.8, zorder=1)
    for basin, positions in table.assign(place=np.arange(len(table))).groupby("basin")["place"]:
        where = positions.to_numpy()
        label = "not converged" if basin < 0 else f"minimum {basin}: {len(where)} starts"
        axes.scatter(
            where + 1, above[where], s=18, zorder=2, marker="x" if basin < 0 else "o",
            color="0.5" if basin < 0 else f"C{basin % 10}", label=label if basin < 8 else None,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("starts, sorted")
    axes.set_ylabel("criterion above the best")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def draw_estimates(study: MonteCarloRuns, ax: Canvas | None = None) -> Figure:
    """Draw a histogram of each unknown, the truth as a line; on a new figure, with a box plot above it."""
    used = study.estimates[study.table["converged"]]
    if not len(used):
        raise EstimationError(f"None of the {len(study)} runs converged: there is nothing to draw.")
    names = list(study.names)[:MAX_PANELS]
    if ax is not None:
        figure, mine = panels(ax, len(names), size=(4, 3))
        for axes, name in zip(mine[:, 0], names, strict=True):
            _draw_histogram(axes, used[name].to_numpy(), name, float(study.truth[name]))
        return figure
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    title = f"{study.model_name}: {study._counted()}"
    figure, grid = panels(
        None, 2 * rows, columns, size=(3.4 * columns, 3.0 * rows + 0.4), title=title,
        height_ratios=[1, 4] * rows, sharex="col" if rows == 1 else False,
    )  # fmt: skip
    for axes in grid.ravel():
        axes.axis("off")
    for k, name in enumerate(names):
        box, histogram = grid[2 * (k // columns), k % columns], grid[2 * (k // columns) + 1, k % columns]
        values = used[name].to_numpy()
        box.boxplot(values, orientation="horizontal", widths=0.6, showfliers=False)
        histogram.axis("on")
        _draw_histogram(histogram, values, name, float(study.truth[name]))
        box.set_xlim(histogram.get_xlim())
    return figure


def _draw_histogram(axes: Axes, values: np.ndarray, name: str, truth: float) -> None:
    axes.hist(values, bins="auto" if len(values) > 1 else 1, color="C0", alpha=0.6)
    axes.axvline(truth, color="C3", linewidth=1.2, label="truth")
    axes.set_xlabel(name)
    axes.set_ylabel("runs")
