"""Pictures of estimates with unknown intensities: Figs. 5.2 to 5.8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille_reproductions.comparison import new_figure
from grisaille_reproductions.varziri_paths import draw_state
from grisaille_reproductions.varziri_spread import SYMBOLS, box_plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    import grisaille as gr
    from grisaille.results.monte_carlo import MonteCarlo


ZOOM = (0.0, 4.0)
"""Of Q̂/Q in the lower box plots and in histograms."""
Intensities = Mapping[str, tuple[str, float]]
"""Unknown → how the source writes its square, and the truth."""


def draw_intensities(
    studies: Mapping[str, MonteCarlo], names: Sequence[str], intensities: Intensities
) -> dict[str, Figure]:
    """By the names of their files; those of one method are AMLE's."""
    amle = studies["AMLE"]
    return {
        "varziri-intensity": box_plots(studies, names),
        "varziri-intensity-histograms": _histograms(amle, names),
        "varziri-intensity-Q": _intensity_histograms(studies, intensities),
        "varziri-intensity-Q-boxes": _intensity_boxes(studies, intensities),
        "varziri-intensity-scatter": _scatter(amle, names[:4], intensities),
        "varziri-intensity-fit": _one_fit(amle.repeat(0)),
    }


def _found(study: MonteCarlo, name: str) -> np.ndarray:
    return np.asarray(study.estimates[name][study.table["converged"]])


def _histograms(study: MonteCarlo, names: Sequence[str]) -> Figure:
    """Fig. 5.2."""
    figure, axes = new_figure(2, (len(names) + 1) // 2, height=2.2)
    for axis, name in zip(axes, names, strict=False):
        symbol = SYMBOLS[name]
        axis.hist(symbol.factor * _found(study, name), bins=40, color="0.8")
        axis.axvline(symbol.factor * float(study.truth[name]), linestyle=":", color="0.3")
        axis.set(xlabel=symbol.text, yticks=[])
    return figure


def _intensity_histograms(studies: Mapping[str, MonteCarlo], intensities: Intensities) -> Any:
    """Fig. 5.3."""
    figure, axes = new_figure(len(studies), len(intensities), height=2.2)
    cells = ((label, study, name) for label, study in studies.items() for name in intensities)
    for axis, (label, study, name) in zip(axes, cells, strict=True):
        shown, truth = intensities[name]
        ratios = _found(study, name) ** 2 / truth
        axis.hist(ratios, bins=np.linspace(*ZOOM, 41).tolist(), color="0.8")
        axis.axvline(1.0, linestyle=":", color="0.3")
        axis.axvline(float(np.median(ratios)), color="tab:red")
        axis.set(xlabel=f"{shown}, estimate over truth ({label})", yticks=[])
    return figure


def _intensity_boxes(studies: Mapping[str, MonteCarlo], intensities: Intensities) -> Figure:
    """Figs. 5.7 and 5.8: all estimates, and their main part."""
    figure, axes = new_figure(2, len(intensities), width=1.2 + 0.9 * len(studies))
    for k, axis in enumerate(axes):
        row, name = k // len(intensities), list(intensities)[k % len(intensities)]
        shown, truth = intensities[name]
        ratios = [_found(s, name) ** 2 / truth for s in studies.values()]
        axis.boxplot(ratios, tick_labels=list(studies), widths=0.6)
        axis.axhline(1.0, linestyle=":", color="0.4")
        axis.set_title(f"{shown}, estimate over truth")
        axis.tick_params("x", rotation=30)
        if row:
            axis.set_ylim(*ZOOM)
    return figure


def _scatter(study: MonteCarlo, names: Sequence[str], intensities: Intensities) -> Figure:
    """Fig. 5.4."""
    every = (*names, *intensities)
    figure, axes = new_figure(len(every), len(every), width=1.6, height=1.5)
    for k, axis in enumerate(axes):
        row, column = divmod(k, len(every))
        if row == column:
            name = every[row]
            axis.text(0.5, 0.5, intensities.get(name, (name,))[0], ha="center", transform=axis.transAxes)
        else:
            axis.plot(_found(study, every[column]), _found(study, every[row]), ".", markersize=1, color="0.2")
        axis.set(xticks=[], yticks=[])
    return figure


def _one_fit(fit: gr.Fit) -> Figure:
    """Fig. 5.5: the estimated trajectories of one data set."""
    figure, axes = new_figure(2, 1, width=7.0, height=2.4)
    for axis, name in zip(axes, ("C_A", "T"), strict=True):
        draw_state(axis, fit, name)
    return figure
