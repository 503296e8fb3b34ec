"""Pictures of posteriors: the distribution of each unknown beside the traces of its chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grisaille.drawing import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.posteriors.posterior import SampledPosterior

BINS = 40


def draw_posterior(posterior: SampledPosterior, names: Sequence[str], ax: Canvas | None = None) -> Figure:
    """Draw for each unknown its histogram with the estimate of the fit, and its traces with the divergent draws."""
    title = f"Posterior of {posterior.model_name}: {posterior.status}"
    figure, axes = panels(ax, len(names), 2, size=(10, 1.9 * len(names)), title=title)
    diverging = posterior.statistics["diverging"].values
    for (left, right), name in zip(axes, names, strict=True):
        values = posterior.draws[name].values
        unit = posterior.draws[name].attrs.get("units", "")
        edges = np.histogram_bin_edges(values, BINS)
        for k, chain in enumerate(values):
            left.hist(chain, edges, histtype="step", density=True, color=f"C{k % 10}")
            right.plot(chain, color=f"C{k % 10}", linewidth=0.5)
            at = np.flatnonzero(diverging[k])
            right.plot(at, np.full(len(at), values.min()), "|", color="k", markersize=8)
        if name in posterior.fit.estimates:
            left.axvline(posterior.fit.estimates[name], color="0.4", linestyle="--", linewidth=0.8)
        left.set_xlabel(f"{name} [{unit}]" if unit else name)
        left.set_yticks([])
        right.set_ylabel(name)
    axes[-1, 1].set_xlabel("draw")
    return figure
