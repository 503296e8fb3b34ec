"""``fit.plot()``: measured and predicted outputs, with the residuals below, a column per experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from grisaille.errors import EstimationError
from grisaille.estimation.fit import Fit, fit_method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS = 6


@fit_method
def plot(fit: Fit, experiments: Iterable[str] | None = None, outputs: Iterable[str] | None = None) -> Figure:
    """Measured against predicted for each experiment and output, residuals below with twice the noise as a band.

    experiments, outputs : names; by default the first six experiments, and all outputs
    """
    from matplotlib.figure import Figure

    table = fit.residuals()
    standardized = fit.residuals(standardized=True)["residual"]
    runs = _chosen("experiment", experiments, list(dict.fromkeys(table["experiment"])))[:MOST_COLUMNS]
    names = _chosen("output", outputs, list(dict.fromkeys(table["output"])))
    figure = Figure(figsize=(max(8.0, 4.0 * len(runs)), 3.2 * len(names) + 0.6), layout="constrained")
    panels = figure.subplots(
        2 * len(names), len(runs), sharex="col", squeeze=False, gridspec_kw={"height_ratios": [3, 1] * len(names)}
    )
    for column, run in enumerate(runs):
        for row, name in enumerate(names):
            mine = table[(table["experiment"] == run) & (table["output"] == name)]
            above, below = panels[2 * row, column], panels[2 * row + 1, column]
            _draw_output(above, mine)
            _draw_residuals(below, mine, standardized[mine.index])
            unit = _unit(fit, run, name)
            above.set_ylabel(f"{name} [{unit}]" if unit else name)
            below.set_ylabel("residual")
        panels[0, column].set_title(run, fontsize="medium")
        panels[-1, column].set_xlabel(_abscissa(fit, run))
    panels[0, 0].legend(fontsize="small")
    figure.suptitle(f"{fit.model_name}, fitted by {type(fit.method).__name__}", fontsize="medium")
    return figure


def _chosen(what: str, wanted: Iterable[str] | None, known: Sequence[str]) -> list[str]:
    names = list(known) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise EstimationError(f"The fit has no {what} '{name}'; it has {', '.join(known)}.")
    return names or list(known)


def _draw_output(axes: Any, mine: Any) -> None:
    ordered = mine.sort_values("time")
    axes.plot(mine["time"], mine["measured"], ".", color="0.5", markersize=4, label="measured")
    axes.plot(ordered["time"], ordered["predicted"], color="C0", linewidth=1.2, label="predicted")
    axes.grid(alpha=0.3)


def _draw_residuals(axes: Any, mine: Any, standardized: Any) -> None:
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.plot(mine["time"], mine["residual"], ".", color="C1", markersize=3)
    size = (mine["residual"] / standardized).abs()
    if size.notna().all() and len(size):
        band = 2 * size.median()
        axes.axhspan(-band, band, color="C1", alpha=0.12, linewidth=0)
    axes.grid(alpha=0.3)


def _unit(fit: Fit, run: str, output: str) -> str:
    declared = fit.initial_model._content.outputs[output].unit if output in fit.initial_model._content.outputs else ""
    return declared or next(str(e.units.get(output, "")) for e in fit.experiments if e.name == run)


def _abscissa(fit: Fit, run: str) -> str:
    experiment = next(e for e in fit.experiments if e.name == run)
    return "row" if experiment.is_static else f"time [{experiment.clock.unit}]"
