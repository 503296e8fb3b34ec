"""Pictures of prior predictive distributions beside the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from grisaille.drawing import panels
from grisaille.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.posteriors.prior_predictive import PriorPredictive

LINES = 20
"""Draws that are shown one by one."""
RANGES = ((0.95, 0.15), (0.5, 0.3))
"""Probabilities of the bands and how dark they are."""
MAX_RANGE = 5.0
"""The picture shows at most so many times the range of the data and of the central half of the draws."""


def draw_prior_predictive(
    found: PriorPredictive, outputs: str | Iterable[str] | None = None, ax: Canvas | None = None
) -> Figure:
    """Draw a panel for each experiment and output that is measured."""
    wanted = [outputs] if isinstance(outputs, str) else None if outputs is None else [str(o) for o in outputs]
    pairs = [(e, o) for e in found.experiments for o in e.outputs if wanted is None or o in wanted]
    if not pairs:
        known = ", ".join(dict.fromkeys(o for e in found.experiments for o in e.outputs))
        raise ArgumentError(f"plot(): outputs holds {wanted!r}, which no experiment measures; give some of {known}.")
    title = f"{found.model_name}: {len(found.parameters)} draws from the priors"
    figure, axes = panels(ax, len(pairs), size=(8, 2.4 * len(pairs) + 0.6), title=title)
    for panel, (experiment, output) in zip(axes[:, 0], pairs, strict=True):
        drawn = found.trajectories[experiment.name or ""][output]
        t, y = drawn["time"].values, drawn.values
        for probability, shade in RANGES:
            low, high = np.nanquantile(y, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
            label = f"{100 * probability:g} % of the draws"
            panel.fill_between(t, low, high, color="C0", alpha=shade, linewidth=0, label=label)
        panel.plot(t, y[:LINES].T, color="C0", linewidth=0.4, alpha=0.6)
        at, values, _ = experiment.measurements(output)
        panel.plot(at, values, ".", color="k", markersize=4, label="measured")
        ends = [*np.nanquantile(y, [0.25, 0.75]), values.min(), values.max()]
        room = MAX_RANGE * (max(ends) - min(ends)) / 2
        panel.set_ylim(max(panel.get_ylim()[0], min(ends) - room), min(panel.get_ylim()[1], max(ends) + room))
        unit = drawn.attrs.get("units", "")
        panel.set_ylabel(f"{output} [{unit}]" if unit else output)
        panel.set_xlabel(f"time, {experiment.name}" if len(found.experiments) > 1 else "time")
        panel.legend(fontsize="small")
    return figure
